//! `function_tools` and `commands`.

use crate::card::{CodeTool, FunctionTool, PluginCommand, list_words, present};
use crate::diagnostic::{Code, Diagnostic};
use crate::hook::SpecScope;
use crate::nearest::nearest;
use crate::python::{Found, FunctionProcess, SaidEffect, tool_spec};
use crate::sandbox::{self, SANDBOX};
use crate::source::{Node, Span, Value};
use std::sync::Arc;
use tenure_core::tool::{Effect, ToolSpec};

pub(super) fn read(tree: &Node, scope: &mut SpecScope<'_, '_>) -> Vec<FunctionTool> {
    let Some(node) = present(tree, "function_tools") else { return Vec::new() };
    match &node.value {
        Value::Text(_) => one(node, scope).into_iter().collect(),
        Value::List(items) => items.iter().filter_map(|item| one(item, scope)).collect(),
        _ => {
            scope.reader.wrong_kind("function_tools", "a spec or a list of specs", node);
            Vec::new()
        }
    }
}

fn one(node: &Node, scope: &mut SpecScope<'_, '_>) -> Option<FunctionTool> {
    let (mut effect, mut grant) = (None, None);
    let (text, span, code) = match &node.value {
        Value::Text(text) => (scope.reader.expanded(text, node.span), node.span, None),
        Value::Map(_) => {
            let fields = ["entrypoint", "effect", "variant", "code_arg", "language", SANDBOX];
            scope.reader.only(node, "a function tool", &fields, Code::UnknownField);
            let code = variant(node, scope);
            effect = scope.effect(node);
            grant = sandbox::grant(scope.reader, node);
            let Some(entry) = present(node, "entrypoint") else {
                scope.reader.problem_help(
                    Code::MissingField,
                    node.span,
                    "this tool does not say which function it is",
                    "add `entrypoint: file.py:function`",
                );
                return None;
            };
            (scope.reader.words_of("entrypoint", entry)?, entry.span, code)
        }
        _ => {
            let wanted = "a spec `file.py:function` or a mapping with `entrypoint`";
            scope.reader.wrong_kind("an entry of function_tools", wanted, node);
            return None;
        }
    };
    let mut tool = tool(&text, span, code, scope)?;
    if let Some(effect) = effect {
        Arc::make_mut(&mut tool.spec).effect = effect;
    }
    if grant.is_some() {
        let process = FunctionProcess { sandbox: grant.clone(), ..FunctionProcess::default() };
        scope.python.note_process(&tool.function, process);
        tool.sandbox = grant;
    }
    Some(tool)
}

fn variant(node: &Node, scope: &mut SpecScope<'_, '_>) -> Option<CodeTool> {
    let variant = scope.reader.one_of(node, "variant", &[("code", ())]);
    let code_arg = scope.reader.words(node, "code_arg");
    let language = scope.reader.words(node, "language");
    if variant.is_some() {
        return Some(CodeTool {
            code_arg: code_arg.unwrap_or_else(|| "code".into()),
            language: language.unwrap_or_else(|| "python".into()),
        });
    }
    if present(node, "variant").is_none() {
        for field in ["code_arg", "language"] {
            if let Some((key, _)) = node.entry(field) {
                scope.reader.problem_help(
                    Code::Contradiction,
                    key.span,
                    format!("`{field}` is said of tools with `variant: code`, and this is none"),
                    format!("add `variant: code`, or remove `{field}`"),
                );
            }
        }
    }
    None
}

impl SpecScope<'_, '_> {
    /// The tool that the function `text` names makes. What is wrong is reported.
    pub fn tool(&mut self, text: &str, span: Span) -> Option<FunctionTool> {
        tool(text, span, None, self)
    }

    /// What the field `effect` of a tool's table says: what a crash means for a call under way.
    pub fn effect(&mut self, table: &Node) -> Option<Effect> {
        self.reader.one_of(table, "effect", &Effect::ALL.map(|effect| (effect.as_str(), effect)))
    }
}

fn tool(
    text: &str,
    span: Span,
    code: Option<CodeTool>,
    scope: &mut SpecScope<'_, '_>,
) -> Option<FunctionTool> {
    let found = scope.find(text, span)?;
    let name = text.rsplit(':').next().unwrap_or_default().trim();
    let file = text.rsplit_once(':').map_or("", |(file, _)| file.trim());
    let source = scope.reader.source;
    let files = (&mut *scope.python, scope.origin.project.root.as_path());
    let mut spec = match tool_spec(&found, name, files, scope.reader.report) {
        Ok(spec) => spec,
        Err(unfit) => {
            let line = found.line(unfit.parameter.span);
            scope.reader.report.push(
                Diagnostic::new(
                    Code::ToolParameters,
                    source,
                    span,
                    format!("`{name}` cannot be a tool: it {}", unfit.problem),
                )
                .label(format!("see line {line} of {file}"))
                .help("give the function parameters that have names"),
            );
            return None;
        }
    };
    if let Some(code) = &code
        && !take_code(&mut spec, code)
    {
        scope.reader.problem_help(
            Code::ToolParameters,
            span,
            format!("`{name}` has no parameter `{}` for the code", code.code_arg),
            "name the parameter that takes the code in `code_arg`",
        );
        return None;
    }
    if let Some(said) = found.module().effect(found.function()) {
        spec.effect = said_effect(said, name, &found, (file, span), scope)?;
    }
    let takes: Vec<Arc<str>> =
        found.function().parameters.iter().map(|it| it.name.as_str().into()).collect();
    let context = takes.iter().find(|name| &***name == "ctx").cloned();
    let function = found.callable(takes);
    scope.python.note_use(&function, context);
    Some(FunctionTool {
        entrypoint: text.trim().to_owned(),
        function,
        spec: Arc::new(spec),
        code,
        sandbox: None,
        span,
    })
}

/// The effect that the function's decorator says. What is wrong with it is reported.
fn said_effect(
    said: SaidEffect<'_>,
    name: &str,
    found: &Found,
    (file, span): (&str, Span),
    scope: &mut SpecScope<'_, '_>,
) -> Option<Effect> {
    let words = Effect::ALL.map(Effect::as_str);
    let (message, at, help) = match said {
        SaidEffect::Known(effect) => return Some(effect),
        SaidEffect::Unknown(word, at) => {
            let help = match nearest(word, words) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use {}", list_words(&words, "or")),
            };
            let wanted = list_words(&words, "or");
            (format!("the effect of `{name}` is `{word}`, but must be {wanted}"), at, help)
        }
        SaidEffect::Unreadable(at) => (
            format!("the decorator of `{name}` says no effect that can be read"),
            at,
            "write the word itself, as in `@tenure.tool(effect=\"keyed\")`".to_owned(),
        ),
    };
    let line = found.line(at);
    scope.reader.report.push(
        Diagnostic::new(Code::NotOneOf, scope.reader.source, span, message)
            .label(format!("see line {line} of {file}"))
            .help(help),
    );
    None
}

/// Says in the schema which parameter takes the code, and in which language. Whether there is such
/// a parameter.
fn take_code(spec: &mut ToolSpec, CodeTool { code_arg, language }: &CodeTool) -> bool {
    let Some(property) = spec.parameters["properties"].get_mut(code_arg) else { return false };
    if let Some(schema) = property.as_object_mut() {
        if !schema.contains_key("type") && !schema.contains_key("anyOf") {
            schema.insert("type".into(), "string".into());
        }
        let said = schema.get("description").and_then(|said| said.as_str()).unwrap_or_default();
        let said = said.trim().trim_end_matches('.');
        let said = if said.is_empty() { String::new() } else { format!("{said}. ") };
        schema.insert("description".into(), format!("{said}Source code in {language}.").into());
    }
    let takes = format!("`{code_arg}` takes source code in {language}.");
    spec.description = format!("{}\n\n{takes}", spec.description.trim_end());
    true
}

pub(super) fn commands(tree: &Node, scope: &mut SpecScope<'_, '_>) -> Vec<PluginCommand> {
    let Some(map) = scope.reader.mapping(tree, "commands") else { return Vec::new() };
    let mut commands = Vec::new();
    for (key, node) in map.map().unwrap_or_default() {
        if node.map().is_none() {
            let wanted = "a mapping with `description` and `handler`";
            scope.reader.wrong_kind(&format!("commands.{}", key.text), wanted, node);
            continue;
        }
        let fields = ["description", "input_hint", "handler", "key"];
        scope.reader.only(node, "a command", &fields, Code::UnknownField);
        for field in ["description", "handler"] {
            if present(node, field).is_none() {
                scope.reader.problem_help(
                    Code::MissingField,
                    key.span,
                    format!("the command `{}` needs `{field}`", key.text),
                    format!("add `{field}`"),
                );
            }
        }
        let description = scope.reader.words(node, "description");
        let input_hint = scope.reader.words(node, "input_hint");
        let short = scope.reader.words(node, "key");
        let handler = scope.reader.words(node, "handler");
        let found = match (&handler, present(node, "handler")) {
            (Some(handler), Some(node)) => scope.find(handler, node.span).is_some(),
            _ => false,
        };
        if let (Some(description), Some(handler), true) = (description, handler, found) {
            commands.push(PluginCommand {
                name: key.text.trim_start_matches('/').to_owned(),
                description,
                input_hint,
                handler,
                key: short,
            });
        }
    }
    commands
}
