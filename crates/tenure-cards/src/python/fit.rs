//! Whether a function's parameters fit its use.

use super::module::{Function, Parameter, ParameterKind};
use std::sync::Arc;
use tenure_core::hook::{Point, Points};

/// What a function is used for.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Use {
    /// A hook at these points.
    Hook(Points),
    /// One of the five tool hooks: takes the context and nothing else.
    ToolHook,
    /// A lifecycle tool of a workflow: takes the context, the chat's variables, both or nothing.
    LifecycleTool,
    /// Something that is given so many values by position.
    Values(&'static [&'static str]),
}

/// What a worker passes by name to a function that takes it, beside the context. This is the one
/// list; the worker knows these names and no others.
const EVERYWHERE: &[&str] = &["context_variables", "state"];
const NAMES: &[&str] = &[
    "context_variables",
    "state",
    "next",
    "input",
    "request",
    "response",
    "output",
    "outcome",
    "arguments",
    "tool",
    "reason",
];

const fn at(point: Point) -> &'static [&'static str] {
    match point {
        Point::OnShutdown => &["reason"],
        Point::BeforeAgent => &["input"],
        Point::BeforeModel => &["request"],
        Point::WrapModelCall => &["request", "next"],
        Point::AfterModel => &["response"],
        Point::WrapToolCall => &["arguments", "tool", "next"],
        Point::AfterAgent | Point::AfterChat => &["output", "outcome"],
        _ => &[],
    }
}

/// How a function does not fit.
#[derive(Debug)]
pub(crate) enum Misfit<'a> {
    /// It takes nothing that a hook is given.
    NoContext,
    /// It wraps a call and has no `next`.
    NoNext(Point),
    /// It takes something that nobody gives.
    Unknown {
        /// The parameter.
        parameter: &'a Parameter,
        /// What can be given by name.
        given: Vec<&'static str>,
    },
    /// It takes fewer values than it is given.
    TooFew(&'static [&'static str]),
    /// It takes by position what can be given only by name.
    PositionalOnly(&'a Parameter),
}

/// The parameters that a worker fills, in order; or how `function` does not fit `used`.
pub(crate) fn fit(function: &Function, used: Use) -> Result<Vec<Arc<str>>, Misfit<'_>> {
    let (given, wrap) = match used {
        Use::ToolHook => (Vec::new(), None),
        Use::LifecycleTool => return by_name(function, &["ctx", "context_variables"]),
        Use::Values(values) => return by_position(function, values),
        Use::Hook(points) => (given(points), points.iter().find(|point| is_wrap(*point))),
    };
    let mut takes: Vec<&Parameter> = Vec::new();
    let mut context: Option<&Parameter> = None;
    for parameter in &function.parameters {
        let name = parameter.name.as_str();
        match parameter.kind {
            ParameterKind::Rest | ParameterKind::Keywords => continue,
            _ if given.contains(&name) => takes.push(parameter),
            _ if NAMES.contains(&name) && parameter.default.is_some() => {}
            _ if NAMES.contains(&name) => return Err(Misfit::Unknown { parameter, given }),
            _ if context.is_none() && (takes.is_empty() || parameter.default.is_none()) => {
                context = Some(parameter);
                takes.push(parameter);
            }
            _ if parameter.default.is_some() => {}
            _ => return Err(Misfit::Unknown { parameter, given }),
        }
    }
    if takes.is_empty() {
        return Err(Misfit::NoContext);
    }
    let names = takes.iter().any(|it| NAMES.contains(&it.name.as_str()));
    for parameter in &takes {
        let lone = takes.len() == 1 && !names;
        match parameter.kind {
            ParameterKind::PositionalOnly if !lone => {
                return Err(Misfit::PositionalOnly(parameter));
            }
            // A lone context goes by position.
            ParameterKind::KeywordOnly if lone => return Err(Misfit::NoContext),
            _ => {}
        }
    }
    match wrap {
        Some(point) if !function.mentions_next => Err(Misfit::NoNext(point)),
        _ => Ok(takes.iter().map(|parameter| parameter.name.as_str().into()).collect()),
    }
}

/// Returns the parameter of these that takes the context.
pub(crate) fn context(takes: &[Arc<str>], used: Use) -> Option<Arc<str>> {
    let is_context = |name: &&Arc<str>| match used {
        Use::Hook(_) | Use::ToolHook => !NAMES.contains(&&***name),
        Use::LifecycleTool => &***name == "ctx",
        Use::Values(_) => false,
    };
    takes.iter().find(is_context).cloned()
}

/// The parameters that are filled by their names; nothing else is needed.
fn by_name<'a>(
    function: &'a Function,
    values: &'static [&'static str],
) -> Result<Vec<Arc<str>>, Misfit<'a>> {
    let mut takes = Vec::new();
    for parameter in &function.parameters {
        match parameter.kind {
            ParameterKind::Rest | ParameterKind::Keywords => {}
            ParameterKind::PositionalOnly if parameter.default.is_none() => {
                return Err(Misfit::PositionalOnly(parameter));
            }
            ParameterKind::PositionalOnly => {}
            _ if values.contains(&parameter.name.as_str()) => {
                takes.push(parameter.name.as_str().into());
            }
            _ if parameter.default.is_some() => {}
            _ => return Err(Misfit::Unknown { parameter, given: values.to_vec() }),
        }
    }
    Ok(takes)
}

/// The parameters that take `values`, which are given by position: all of them, and nothing else is
/// needed.
fn by_position<'a>(
    function: &'a Function,
    values: &'static [&'static str],
) -> Result<Vec<Arc<str>>, Misfit<'a>> {
    let mut takes = Vec::new();
    let mut rest = false;
    for parameter in &function.parameters {
        match parameter.kind {
            ParameterKind::Rest => rest = true,
            ParameterKind::Keywords => {}
            ParameterKind::PositionalOnly | ParameterKind::Plain if takes.len() < values.len() => {
                takes.push(parameter.name.as_str().into());
            }
            _ if parameter.default.is_some() => {}
            _ => return Err(Misfit::Unknown { parameter, given: values.to_vec() }),
        }
    }
    match takes.len() == values.len() || rest {
        true => Ok(takes),
        false => Err(Misfit::TooFew(values)),
    }
}

/// What is given by name at every one of the points.
fn given(points: Points) -> Vec<&'static str> {
    let everywhere = |name: &&str| points.iter().all(|point| at(point).contains(name));
    let some = NAMES.iter().copied().filter(|name| !points.is_empty() && everywhere(name));
    EVERYWHERE.iter().copied().chain(some).collect()
}

const fn is_wrap(point: Point) -> bool {
    matches!(point, Point::WrapModelCall | Point::WrapToolCall)
}

#[cfg(test)]
mod tests {
    use super::super::module::Module;
    use super::*;
    use tenure_hosts::PythonFile;

    fn fits(signature: &str, used: Use) -> Result<Vec<String>, String> {
        let source = format!("def f({signature}):\n    pass\n");
        let module = Module::parse(Arc::new(PythonFile::new("f.py", source.as_str())));
        let module = module.expect("it parses");
        let function = module.function("f").expect("it is there");
        match fit(function, used) {
            Ok(takes) => Ok(takes.iter().map(ToString::to_string).collect()),
            Err(Misfit::NoContext) => Err("context".into()),
            Err(Misfit::NoNext(_)) => Err("next".into()),
            Err(Misfit::Unknown { parameter, .. }) => Err(parameter.name.clone()),
            Err(Misfit::TooFew(_)) => Err("few".into()),
            Err(Misfit::PositionalOnly(parameter)) => Err(format!("/{}", parameter.name)),
        }
    }

    #[test]
    fn a_hook_takes_the_context_and_what_its_point_has() {
        let start = Use::Hook(Point::OnStart.into());
        let wrap = Use::Hook(Point::WrapToolCall.into());
        let end = Use::Hook(Point::AfterAgent.into());
        let both = Use::Hook(Points::from(Point::BeforeAgent).with(Point::AfterAgent));
        for (signature, used, expected) in [
            ("ctx", start, Ok(vec!["ctx"])),
            ("c: int, verbose=False, *args, **more", start, Ok(vec!["c"])),
            ("ctx, context_variables", start, Ok(vec!["ctx", "context_variables"])),
            ("context_variables", start, Ok(vec!["context_variables"])),
            ("context_variables, verbose=False", start, Ok(vec!["context_variables"])),
            ("ctx, /", start, Ok(vec!["ctx"])),
            ("ctx, /, state", start, Err("/ctx")),
            ("*, ctx", start, Err("context")),
            ("", start, Err("context")),
            ("*args", start, Err("context")),
            ("ctx, other", start, Err("other")),
            ("ctx, next", start, Err("next")),
            ("ctx, next=None", start, Ok(vec!["ctx"])),
            ("ctx, next", wrap, Ok(vec!["ctx", "next"])),
            ("next, ctx, arguments", wrap, Ok(vec!["next", "ctx", "arguments"])),
            ("ctx", wrap, Err("next")),
            ("ctx, output", end, Ok(vec!["ctx", "output"])),
            ("ctx, output", both, Err("output")),
            ("ctx", Use::ToolHook, Ok(vec!["ctx"])),
            ("ctx, context_variables", Use::ToolHook, Err("context_variables")),
            ("", Use::LifecycleTool, Ok(vec![])),
            ("verbose=True, *args, **more", Use::LifecycleTool, Ok(vec![])),
            ("*, context_variables", Use::LifecycleTool, Ok(vec!["context_variables"])),
            ("ctx, /", Use::LifecycleTool, Err("/ctx")),
            ("context_variables", Use::LifecycleTool, Ok(vec!["context_variables"])),
            ("context_variables=None", Use::LifecycleTool, Ok(vec!["context_variables"])),
            ("ctx, context_variables", Use::LifecycleTool, Ok(vec!["ctx", "context_variables"])),
            ("ctx, state", Use::LifecycleTool, Err("state")),
            ("ctx, other", Use::LifecycleTool, Err("other")),
            ("message", Use::Values(&["message"]), Ok(vec!["message"])),
            ("a, b", Use::Values(&["agent", "messages"]), Ok(vec!["a", "b"])),
            ("a, b, c=1", Use::Values(&["agent", "messages"]), Ok(vec!["a", "b"])),
            ("*args", Use::Values(&["agent", "messages"]), Ok(vec![])),
            ("a", Use::Values(&["agent", "messages"]), Err("few")),
            ("a, b, c", Use::Values(&["agent", "messages"]), Err("c")),
            ("a, *, b", Use::Values(&["agent"]), Err("b")),
        ] {
            let expected: Result<Vec<String>, String> = expected
                .map(|names| names.into_iter().map(str::to_owned).collect())
                .map_err(str::to_owned);
            assert_eq!(fits(signature, used), expected, "({signature}) {used:?}");
        }
    }
}
