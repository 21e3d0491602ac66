//! The imports of a Python file, wherever they are written in it.

use super::module::span;
use crate::source::Span;
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::visitor::{self, Visitor};
use rustpython_ruff_python_ast::{Expr, Stmt};

/// An import statement; of `import a, b` each module by itself.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    /// The number of dots before the name.
    pub(crate) level: usize,
    /// The module, as in `a.b`; empty in `from . import x`.
    pub(crate) module: String,
    /// The names that are taken of the module; empty if it is the module itself.
    pub(crate) names: Vec<Taken>,
    pub(crate) span: Span,
    pub(crate) made: Made,
    /// The function of the file that it stands in; none if it runs with the file.
    within: Option<String>,
}

/// A name that is taken of a module.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) name: String,
    pub(crate) span: Span,
}

/// The occasion on which an import is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Made {
    /// Whenever the file runs.
    Always,
    /// In a function, or on a condition.
    Sometimes,
    /// Only where it may fail, or for type checkers or a file that is run by itself.
    Guarded,
}

impl Import {
    /// Returns `true` if it is made with the file, or in this function of it, and may not fail.
    pub(crate) fn runs_for(&self, function: &str) -> bool {
        self.made < Made::Guarded && self.within.as_deref().is_none_or(|it| it == function)
    }
}

/// Returns every import of a file.
pub(super) fn imports(body: &[Stmt]) -> Vec<Import> {
    let mut walk = Walk { within: None, found: Vec::new() };
    walk.block(body, Made::Always);
    let mut named = Named(walk.found);
    named.visit_body(body);
    named.0
}

/// The modules that a file imports by their names, as `importlib.import_module("a.b")` does. What cannot be read here is
/// refused when it is tried.
struct Named(Vec<Import>);

impl<'a> Visitor<'a> for Named {
    fn visit_expr(&mut self, expr: &'a Expr) {
        if let Expr::Call(call) = expr
            && let Some(Expr::StringLiteral(name)) = call.arguments.args.first()
            && is_import(&call.func)
            && !name.value.to_str().starts_with('.')
        {
            let (module, span) = (name.value.to_str().to_owned(), span(call.range));
            let (names, made, within) = (Vec::new(), Made::Guarded, None);
            self.0.push(Import { level: 0, module, names, span, made, within });
        }
        visitor::walk_expr(self, expr);
    }
}

/// Returns `true` if a call of this function imports what it is told.
fn is_import(function: &Expr) -> bool {
    match function {
        Expr::Name(name) => ["import_module", "__import__"].contains(&name.id.as_str()),
        Expr::Attribute(of) => of.attr.id.as_str() == "import_module",
        _ => false,
    }
}

struct Walk<'a> {
    within: Option<&'a str>,
    found: Vec<Import>,
}

impl<'a> Walk<'a> {
    fn block(&mut self, body: &'a [Stmt], made: Made) {
        for statement in body {
            self.one(statement, made);
        }
    }

    fn one(&mut self, statement: &'a Stmt, made: Made) {
        let inner = made.max(Made::Sometimes);
        match statement {
            Stmt::Import(import) => {
                for alias in &import.names {
                    let module = alias.name.id.to_string();
                    self.add(0, module, Vec::new(), span(import.range), made);
                }
            }
            Stmt::ImportFrom(import) => {
                let module = import.module.as_ref().map(|module| module.id.to_string());
                let names = import.names.iter().map(|alias| Taken {
                    name: alias.name.id.to_string(),
                    span: span(alias.range),
                });
                let names = names.collect();
                let level = import.level as usize;
                self.add(level, module.unwrap_or_default(), names, span(import.range), made);
            }
            Stmt::FunctionDef(function) => {
                let around = self.within;
                self.within = around.or(Some(function.name.id.as_str()));
                self.block(&function.body, inner);
                self.within = around;
            }
            Stmt::ClassDef(class) => self.block(&class.body, made),
            Stmt::With(with) => self.block(&with.body, made),
            Stmt::For(each) => {
                self.block(&each.body, inner);
                self.block(&each.orelse, inner);
            }
            Stmt::While(each) => {
                self.block(&each.body, inner);
                self.block(&each.orelse, inner);
            }
            Stmt::If(branch) => {
                let first = if is_never_run(&branch.test) { Made::Guarded } else { inner };
                self.block(&branch.body, first);
                for clause in &branch.elif_else_clauses {
                    self.block(&clause.body, inner);
                }
            }
            Stmt::Match(choice) => {
                for case in &choice.cases {
                    self.block(&case.body, inner);
                }
            }
            Stmt::Try(attempt) => {
                let is_tried = attempt.handlers.iter().any(catches_imports);
                self.block(&attempt.body, if is_tried { Made::Guarded } else { made });
                for ast::ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
                    self.block(&handler.body, Made::Guarded);
                }
                self.block(&attempt.orelse, Made::Guarded);
                self.block(&attempt.finalbody, inner);
            }
            _ => {}
        }
    }

    fn add(&mut self, level: usize, module: String, names: Vec<Taken>, span: Span, made: Made) {
        let within = self.within.map(str::to_owned);
        self.found.push(Import { level, module, names, span, made, within });
    }
}

/// Returns `true` for a condition of type checkers, or of a file that is run by itself.
fn is_never_run(test: &Expr) -> bool {
    let named = |expression: &Expr, name: &str| match expression {
        Expr::Name(it) => it.id.as_str() == name,
        Expr::Attribute(it) => it.attr.id.as_str() == name,
        _ => false,
    };
    match test {
        Expr::Compare(compare) => named(&compare.left, "__name__"),
        test => named(test, "TYPE_CHECKING"),
    }
}

fn catches_imports(handler: &ast::ExceptHandler) -> bool {
    let ast::ExceptHandler::ExceptHandler(handler) = handler;
    let is_one = |expression: &Expr| match expression {
        Expr::Name(name) => {
            let names = ["ImportError", "ModuleNotFoundError", "Exception", "BaseException"];
            names.contains(&name.id.as_str())
        }
        _ => false,
    };
    match handler.type_.as_deref() {
        None => true,
        Some(Expr::Tuple(several)) => several.elts.iter().any(is_one),
        Some(one) => is_one(one),
    }
}
