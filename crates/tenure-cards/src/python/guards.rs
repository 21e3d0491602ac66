//! Attributes and globals that functions read and never see, because functions of another process set them: guards, and
//! functions with a `sandbox` of their own.

use super::bound::{Nesting, nesting};
use super::files::{FunctionProcess, FunctionUse, Parsed, PythonFiles};
use super::module::{Module, span};
use super::touch::{Access, Given, Holder, Object, Touch, touches};
use crate::diagnostic::{Code, Diagnostic, Report};
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::visitor::{self, Visitor};
use rustpython_ruff_python_ast::{Expr, ExprContext, Stmt};
use rustpython_ruff_python_parser::parse_module;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use tenure_hosts::Role;

/// The attributes of `ctx.agent` that the worker gives it, in a guard's process too.
const OF_AGENT: &[&str] = &[
    "name",
    "id",
    "instance_id",
    "phase",
    "state",
    "config",
    "context",
    "agent_registry",
    "get_agent",
    "usage_accumulator",
    "message_history",
    "load_message_history",
    "send",
];
/// Those of `ctx.runner`.
const OF_RUNNER: &[&str] = &[
    "iteration",
    "agent",
    "is_done",
    "last_message",
    "delta_messages",
    "request_params",
    "set_request_params",
    "append_messages",
];

/// The most calls that are followed from one function: no file is too long to be checked.
const MOST_CALLS: usize = 500;

/// Reports every attribute of `ctx.agent` and `ctx.runner`, and every global, that a function reads and only functions
/// of the same file set that run in another process.
pub(crate) fn check_processes(python: &PythonFiles, report: &mut Report) {
    let mut files: BTreeMap<&Path, Vec<&FunctionUse>> = BTreeMap::new();
    for used in python.uses() {
        files.entry(used.function.file.path()).or_default().push(used);
    }
    for (path, uses) in files {
        let (first, rest) = (uses.first(), uses.iter().skip(1));
        let is_other = |used: &&FunctionUse| first.is_some_and(|it| it.process != used.process);
        if rest.copied().any(|used| is_other(&used))
            && let Some(parsed) = python.parsed(path)
        {
            check(&parsed, &uses, report);
        }
    }
}

/// A function, and what it touches, with the functions of its file that it calls.
struct Touching<'a> {
    name: &'a str,
    process: &'a FunctionProcess,
    touches: Vec<Touch>,
}

impl Touching<'_> {
    /// Returns `true` if it sees nothing of what another one sets. That guards set something for others is not worth a word.
    fn is_apart_from(&self, other: &Self) -> bool {
        let (here, there) = (self.process, other.process);
        here.sandbox != there.sandbox || (here.role == Role::Guard && there.role == Role::Other)
    }
}

fn check(parsed: &Parsed, uses: &[&FunctionUse], report: &mut Report) {
    let source = parsed.module.file.source();
    if nesting(source) != Nesting::Shallow {
        return;
    }
    let Ok(tree) = parse_module(source) else { return };
    let mut functions = Functions::default();
    functions.visit_body(&tree.syntax().body);
    let mut all: Vec<Touching<'_>> = Vec::new();
    for used in uses {
        let name = &*used.function.name;
        if !all.iter().any(|known| known.name == name && *known.process == used.process) {
            let touches = functions.reached(&parsed.module, used);
            all.push(Touching { name, process: &used.process, touches });
        }
    }
    for reader in &all {
        let mut told = BTreeSet::new();
        for read in reader.touches.iter().filter(|it| it.access == Access::Reads) {
            if told.insert((read.holder, &*read.name))
                && let Some(set) = set_elsewhere(&all, (reader, read), &functions.variables)
            {
                report.push(unseen(parsed, (reader, read), set));
            }
        }
    }
}

/// Returns the function that sets what is read, or changes it in place, if none of the reader's process does. Of globals
/// only `variables` are changed in place: a module that is imported is not.
fn set_elsewhere<'a>(
    all: &'a [Touching<'a>],
    (reader, read): (&Touching<'_>, &Touch),
    variables: &HashSet<&str>,
) -> Option<(&'a Touching<'a>, &'a Touch)> {
    if is_given(read) {
        return None;
    }
    let is_set = |access| match access {
        Access::Sets => true,
        Access::Changes => variables.contains(&*read.name),
        Access::Reads => false,
    };
    let sets = |it: &&Touch| is_set(it.access) && it.holder == read.holder && it.name == read.name;
    let mut setter = None;
    for touching in all {
        let Some(set) = touching.touches.iter().find(sets) else { continue };
        if touching.process == reader.process {
            return None;
        }
        if setter.is_none() && reader.is_apart_from(touching) {
            setter = Some((touching, set));
        }
    }
    setter
}

fn is_given(read: &Touch) -> bool {
    let known = match read.holder {
        Holder::Agent => OF_AGENT,
        Holder::Runner => OF_RUNNER,
        Holder::Module => return false,
    };
    known.contains(&&*read.name) || read.name.starts_with("__")
}

fn unseen(
    parsed: &Parsed,
    (reader, read): (&Touching<'_>, &Touch),
    (setter, set): (&Touching<'_>, &Touch),
) -> Diagnostic {
    let line = |touch: &Touch| {
        let place = parsed.placed(touch.span).start as usize;
        parsed.source.line_col(place).line
    };
    let name = &read.name;
    let (what, there) = match read.holder {
        Holder::Agent => (format!("`ctx.agent.{name}`"), "it is never there"),
        Holder::Runner => (format!("`ctx.runner.{name}`"), "it is never there"),
        Holder::Module => (format!("the global `{name}`"), "it is never changed"),
    };
    let verb = if set.access == Access::Changes { "changes" } else { "sets" };
    let (who, why, help) = match reader.process.sandbox == setter.process.sandbox {
        true => (
            "the guard ",
            "guards run in a process of their own",
            "keep it as JSON in `ctx.state`, which guards read too, or have a guard set it (`policy: deny`)",
        ),
        false => (
            "",
            "it has another `sandbox` and runs in another process",
            "keep it as JSON in `ctx.state`, which every process reads, or give both the same `sandbox`",
        ),
    };
    let message = format!(
        "{who}`{}` reads {what} in line {}, which `{}` {verb} in line {}: {why}, where {there}",
        reader.name,
        line(read),
        setter.name,
        line(set)
    );
    let place = parsed.placed(read.span);
    Diagnostic::new(Code::UnseenByProcess, &parsed.source, place, message).help(help)
}

/// The functions and the variables of a file that stand at its top level.
#[derive(Default)]
struct Functions<'a> {
    all: Vec<&'a ast::StmtFunctionDef>,
    variables: HashSet<&'a str>,
}

impl<'a> Visitor<'a> for Functions<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(def) => self.all.push(def),
            Stmt::ClassDef(_) => {}
            _ => visitor::walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(it) if it.ctx == ExprContext::Store => {
                self.variables.insert(it.id.as_str());
            }
            _ => visitor::walk_expr(self, expr),
        }
    }
}

impl<'a> Functions<'a> {
    /// The definition that a name of the module stands for.
    fn find(&self, module: &Module, name: &str) -> Option<&'a ast::StmtFunctionDef> {
        let range = module.function(name)?.range;
        self.all.iter().copied().find(|def| span(def.range) == range)
    }

    /// Returns what a function touches, itself and by functions of the same file that it calls.
    fn reached(&self, module: &Module, used: &FunctionUse) -> Vec<Touch> {
        let given = used.context.iter().map(|name| (name.to_string(), Object::Context)).collect();
        let mut seen: BTreeSet<(String, Given)> = BTreeSet::new();
        let mut open = vec![(used.function.name.to_string(), given)];
        let mut all = Vec::new();
        while let Some(next) = open.pop() {
            let Some(def) = self.find(module, &next.0) else { continue };
            if seen.len() >= MOST_CALLS || !seen.insert(next.clone()) {
                continue;
            }
            let (found, calls) = touches(def, &next.1);
            all.extend(found);
            for call in calls {
                if let Some(def) = self.find(module, &call.name) {
                    let given = call.given(def);
                    open.push((call.name, given));
                }
            }
        }
        all
    }
}
