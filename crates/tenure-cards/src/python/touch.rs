//! The attributes and globals that a function sets and reads.
//!
//! Names are followed without regard to the order of statements: a name stands for an object only if everything
//! that is assigned to it does. What is in doubt is left out.

use super::module::span;
use crate::source::Span;
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::visitor::{self, Visitor};
use rustpython_ruff_python_ast::{Expr, ExprContext, Stmt};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most names that are followed from one to the next.
const MOST_ALIASES: usize = 8;
/// The most assignments to a name that are looked at: each is followed, and so is each of those that it leads to.
const MOST_ASSIGNMENTS: usize = 4;

/// An object of the host that hooks are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    /// `ctx`.
    Context,
    /// `ctx.agent`.
    Agent,
    /// `ctx.runner`.
    Runner,
}

/// The parameters of a function that are objects of the host.
pub(super) type Given = BTreeMap<String, Object>;

/// The holder of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    Agent,
    Runner,
    /// The module, by `global`.
    Module,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Sets,
    /// Changes in place, as `CACHE["x"] = 1` and `SEEN.append(1)` do.
    Changes,
    Reads,
}

/// The methods of lists, dicts, sets and deques that change what they are called on.
const CHANGING: &[&str] = &[
    "add",
    "append",
    "appendleft",
    "clear",
    "difference_update",
    "discard",
    "extend",
    "extendleft",
    "insert",
    "intersection_update",
    "pop",
    "popitem",
    "popleft",
    "remove",
    "reverse",
    "rotate",
    "setdefault",
    "sort",
    "symmetric_difference_update",
    "update",
];

/// A value that a function sets or reads.
#[derive(Clone, Debug)]
pub(super) struct Touch {
    pub(super) holder: Holder,
    pub(super) name: String,
    pub(super) access: Access,
    pub(super) span: Span,
}

/// A call of a function by its name, with the objects among its arguments.
#[derive(Clone, Debug)]
pub(super) struct HelperCall {
    pub(super) name: String,
    by_position: Vec<Option<Object>>,
    by_name: Vec<(String, Object)>,
}

impl HelperCall {
    /// Returns the parameters of the function that are objects in this call.
    pub(super) fn given(&self, def: &ast::StmtFunctionDef) -> Given {
        let parameters = def.parameters.posonlyargs.iter().chain(&def.parameters.args);
        let names = parameters.map(|it| it.parameter.name.id.to_string());
        let placed = names.zip(&self.by_position).filter_map(|(name, it)| Some((name, (*it)?)));
        placed.chain(self.by_name.iter().cloned()).collect()
    }
}

/// Returns what a function sets and reads, and the functions that it calls.
pub(super) fn touches(def: &ast::StmtFunctionDef, given: &Given) -> (Vec<Touch>, Vec<HelperCall>) {
    let mut names = Names { given, assigned: HashMap::new(), globals: HashSet::new() };
    names.visit_parameters(&def.parameters);
    names.visit_body(&def.body);
    let mut scan = Scan { names, touches: Vec::new(), calls: Vec::new() };
    scan.visit_body(&def.body);
    (scan.touches, scan.calls)
}

/// The names that a function binds.
struct Names<'a> {
    given: &'a Given,
    /// Everything that is assigned to each; none for what is no expression.
    assigned: HashMap<&'a str, Vec<Option<&'a Expr>>>,
    globals: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn bind(&mut self, name: &'a str, value: Option<&'a Expr>) {
        self.assigned.entry(name).or_default().push(value);
    }

    fn assign(&mut self, target: &'a Expr, value: &'a Expr) {
        match (target, value) {
            (Expr::Name(name), _) => self.bind(name.id.as_str(), Some(value)),
            (Expr::Tuple(targets), Expr::Tuple(values))
                if targets.elts.len() == values.elts.len()
                    && !targets.elts.iter().chain(&values.elts).any(Expr::is_starred_expr) =>
            {
                for (target, value) in targets.elts.iter().zip(&values.elts) {
                    self.assign(target, value);
                }
            }
            _ => self.visit_expr(target),
        }
    }

    /// Returns `true` if a name is one of the module.
    fn is_global(&self, name: &str) -> bool {
        let is_bound = self.assigned.contains_key(name) || self.given.contains_key(name);
        self.globals.contains(name) || !is_bound
    }

    fn object(&self, expr: &Expr) -> Option<Object> {
        self.followed(expr, MOST_ALIASES)
    }

    fn followed(&self, expr: &Expr, left: usize) -> Option<Object> {
        let left = left.checked_sub(1)?;
        match expr {
            Expr::Name(name) => self.named(name.id.as_str(), left),
            Expr::Named(named) => self.followed(&named.value, left),
            Expr::Attribute(it) => part(self.followed(&it.value, left)?, it.attr.as_str()),
            Expr::Call(call) => {
                let (of, name) = literal_attribute(call, "getattr")?;
                part(self.followed(of, left)?, name)
            }
            _ => None,
        }
    }

    fn named(&self, name: &str, left: usize) -> Option<Object> {
        let Some(values) = self.assigned.get(name) else { return self.given.get(name).copied() };
        if values.len() > MOST_ASSIGNMENTS {
            return None;
        }
        let mut objects = values.iter().map(|value| self.followed((*value)?, left));
        let first = objects.next()??;
        objects.all(|object| object == Some(first)).then_some(first)
    }
}

/// The object that another one has under this name.
fn part(of: Object, name: &str) -> Option<Object> {
    match (of, name) {
        (Object::Context, "agent") | (Object::Runner, "agent") => Some(Object::Agent),
        (Object::Context, "runner") => Some(Object::Runner),
        _ => None,
    }
}

/// The object and the name of `function(object, "name", ...)`.
fn literal_attribute<'a>(call: &'a ast::ExprCall, function: &str) -> Option<(&'a Expr, &'a str)> {
    let Expr::Name(name) = &*call.func else { return None };
    let [of, Expr::StringLiteral(text), ..] = &*call.arguments.args else { return None };
    (name.id == *function).then(|| (of, text.value.to_str()))
}

impl<'a> Visitor<'a> for Names<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::Assign(it) => {
                self.visit_expr(&it.value);
                it.targets.iter().for_each(|target| self.assign(target, &it.value));
                return;
            }
            Stmt::AnnAssign(it) => {
                if let Some(value) = &it.value {
                    self.visit_expr(value);
                    self.assign(&it.target, value);
                }
                return;
            }
            Stmt::Global(it) => self.globals.extend(it.names.iter().map(|name| name.id.as_str())),
            Stmt::FunctionDef(it) => self.bind(it.name.id.as_str(), None),
            Stmt::ClassDef(it) => self.bind(it.name.id.as_str(), None),
            _ => {}
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Named(it) => {
                self.visit_expr(&it.value);
                self.assign(&it.target, &it.value);
                return;
            }
            Expr::Name(it) if it.ctx != ExprContext::Load => self.bind(it.id.as_str(), None),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_parameter(&mut self, parameter: &'a ast::Parameter) {
        // One of an inner function that is called like the context is hardly something else.
        if !self.given.contains_key(parameter.name.id.as_str()) {
            self.bind(parameter.name.id.as_str(), None);
        }
    }

    fn visit_alias(&mut self, alias: &'a ast::Alias) {
        let name = alias.asname.as_ref().unwrap_or(&alias.name).id.as_str();
        self.bind(name.split('.').next().unwrap_or(name), None);
    }

    fn visit_except_handler(&mut self, handler: &'a ast::ExceptHandler) {
        let ast::ExceptHandler::ExceptHandler(it) = handler;
        if let Some(name) = &it.name {
            self.bind(name.id.as_str(), None);
        }
        visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a ast::Pattern) {
        let name = match pattern {
            ast::Pattern::MatchAs(it) => it.name.as_ref(),
            ast::Pattern::MatchStar(it) => it.name.as_ref(),
            ast::Pattern::MatchMapping(it) => it.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.bind(name.id.as_str(), None);
        }
        visitor::walk_pattern(self, pattern);
    }
}

/// The walk that finds what is set and read.
struct Scan<'a> {
    names: Names<'a>,
    touches: Vec<Touch>,
    calls: Vec<HelperCall>,
}

impl Scan<'_> {
    fn attribute(&mut self, of: &Expr, name: &str, access: Access, place: Span) {
        let holder = match self.names.object(of) {
            Some(Object::Agent) => Holder::Agent,
            Some(Object::Runner) => Holder::Runner,
            Some(Object::Context) | None => return,
        };
        self.touch(holder, name, access, place);
    }

    fn touch(&mut self, holder: Holder, name: &str, access: Access, span: Span) {
        self.touches.push(Touch { holder, name: name.to_owned(), access, span });
    }

    /// Notes that a part of what this stands for is changed, if it is a global.
    fn change(&mut self, of: &Expr, place: Span) {
        let mut of = of;
        loop {
            of = match of {
                Expr::Subscript(it) => &it.value,
                Expr::Attribute(it) => &it.value,
                _ => break,
            };
        }
        if let Expr::Name(name) = of
            && self.names.is_global(name.id.as_str())
        {
            self.touch(Holder::Module, name.id.as_str(), Access::Changes, place);
        }
    }

    fn call(&mut self, call: &ast::ExprCall) {
        if let Expr::Attribute(method) = &*call.func
            && CHANGING.contains(&method.attr.as_str())
        {
            self.change(&method.value, span(call.range));
        }
        let Expr::Name(function) = &*call.func else { return };
        let of_attributes =
            [("setattr", Access::Sets), ("getattr", Access::Reads), ("hasattr", Access::Reads)];
        for (function, access) in of_attributes {
            if let Some((of, name)) = literal_attribute(call, function) {
                self.attribute(of, name, access, span(call.range));
            }
        }
        if self.names.is_global(function.id.as_str()) {
            let object = |it: &Expr| self.names.object(it);
            let by_name = call.arguments.keywords.iter().filter_map(|keyword| {
                Some((keyword.arg.as_ref()?.id.to_string(), object(&keyword.value)?))
            });
            let by_position =
                call.arguments.args.iter().take_while(|it| !it.is_starred_expr()).map(object);
            let call = HelperCall {
                name: function.id.to_string(),
                by_position: by_position.collect(),
                by_name: by_name.collect(),
            };
            self.calls.push(call);
        }
    }
}

impl<'a> Visitor<'a> for Scan<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        if let Stmt::AugAssign(it) = stmt {
            match &*it.target {
                Expr::Attribute(target) => {
                    let (of, place) = (&target.value, span(target.range));
                    self.attribute(of, target.attr.as_str(), Access::Reads, place);
                }
                Expr::Name(target) if self.names.globals.contains(target.id.as_str()) => {
                    let place = span(target.range);
                    self.touch(Holder::Module, target.id.as_str(), Access::Reads, place);
                }
                _ => {}
            }
        }
        visitor::walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let access = |context: ExprContext| match context {
            ExprContext::Load => Some(Access::Reads),
            ExprContext::Store => Some(Access::Sets),
            ExprContext::Del | ExprContext::Invalid => None,
        };
        match expr {
            Expr::Attribute(it) => {
                if let Some(access) = access(it.ctx) {
                    self.attribute(&it.value, it.attr.as_str(), access, span(it.range));
                }
                if it.ctx != ExprContext::Load {
                    self.change(&it.value, span(it.range));
                }
            }
            Expr::Subscript(it) if it.ctx != ExprContext::Load => {
                self.change(&it.value, span(it.range));
            }
            Expr::Name(it) if self.names.is_global(it.id.as_str()) => {
                if let Some(access) = access(it.ctx) {
                    self.touch(Holder::Module, it.id.as_str(), access, span(it.range));
                }
            }
            Expr::Call(call) => self.call(call),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
