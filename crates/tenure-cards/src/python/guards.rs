//! Attributes and globals that guards read and never see, because functions of another process set them.

use super::bound::{Nesting, nesting};
use super::files::{FunctionUse, Parsed, PythonFiles};
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

/// Reports every attribute of `ctx.agent` and `ctx.runner`, and every global, that a guard reads and only functions
/// of the same file set that are no guards.
pub(crate) fn check_guards(python: &PythonFiles, report: &mut Report) {
    let mut files: BTreeMap<&Path, Vec<&FunctionUse>> = BTreeMap::new();
    for used in python.uses() {
        files.entry(used.function.file.path()).or_default().push(used);
    }
    for (path, uses) in files {
        let has = |role| uses.iter().any(|used| used.role == role);
        if has(Role::Guard)
            && has(Role::Other)
            && let Some(parsed) = python.parsed(path)
        {
            check(&parsed, &uses, report);
        }
    }
}

/// A function, and what it touches, with the functions of its file that it calls.
struct Touching<'a> {
    name: &'a str,
    role: Role,
    touches: Vec<Touch>,
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
        if !all.iter().any(|known| known.name == name && known.role == used.role) {
            let touches = functions.reached(&parsed.module, used);
            all.push(Touching { name, role: used.role, touches });
        }
    }
    for guard in all.iter().filter(|it| it.role == Role::Guard) {
        let mut told = BTreeSet::new();
        for read in guard.touches.iter().filter(|it| it.access == Access::Reads) {
            if told.insert((read.holder, &*read.name))
                && let Some((setter, set)) = set_elsewhere(&all, read, &functions.variables)
            {
                report.push(unseen(parsed, (guard.name, read), (setter, set)));
            }
        }
    }
}

/// Returns the function that sets what is read, or changes it in place, if no guard does. Of globals only
/// `variables` are changed in place: a module that is imported is not.
fn set_elsewhere<'a>(
    all: &'a [Touching<'a>],
    read: &Touch,
    variables: &HashSet<&str>,
) -> Option<(&'a str, &'a Touch)> {
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
        let set = touching.touches.iter().find(sets);
        match (touching.role, set) {
            (Role::Guard, Some(_)) => return None,
            (Role::Other, Some(set)) => setter = setter.or(Some((touching.name, set))),
            (_, None) => {}
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

fn unseen(parsed: &Parsed, guard: (&str, &Touch), setter: (&str, &Touch)) -> Diagnostic {
    let line = |touch: &Touch| {
        let place = parsed.placed(touch.span).start as usize;
        parsed.source.line_col(place).line
    };
    let (reads, read) = guard;
    let (sets, set) = setter;
    let name = &read.name;
    let (what, there) = match read.holder {
        Holder::Agent => (format!("`ctx.agent.{name}`"), "it is never there"),
        Holder::Runner => (format!("`ctx.runner.{name}`"), "it is never there"),
        Holder::Module => (format!("the global `{name}`"), "it is never changed"),
    };
    let verb = if set.access == Access::Changes { "changes" } else { "sets" };
    let message = format!(
        "the guard `{reads}` reads {what} in line {}, which `{sets}` {verb} in line {}: guards run in a process of \
         their own, where {there}",
        line(read),
        line(set)
    );
    let help = "keep it as JSON in `ctx.state`, which guards read too, or have a guard set it (`policy: deny`)";
    let place = parsed.placed(read.span);
    Diagnostic::new(Code::UnseenByGuard, &parsed.source, place, message).help(help)
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
