//! The imports of a Python file that its functions cannot do without.

use crate::source::Span;
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::{Expr, Stmt};

/// An import that fails its file, or the function around it, if nothing satisfies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// The module, absolute.
    pub(crate) module: String,
    /// The name that is taken from it; none if it is the module itself.
    pub(crate) name: Option<String>,
    /// The function of the module that it stands in; none if it runs with the file.
    pub(crate) within: Option<String>,
    pub(crate) span: Span,
}

impl Import {
    /// Returns `true` if it runs with the file, or in this function of it.
    pub(crate) fn runs_for(&self, function: &str) -> bool {
        self.within.as_deref().is_none_or(|it| it == function)
    }
}

/// Returns the imports of a file. Those that run for type checkers alone, those that are tried, and
/// those of `if __name__ == "__main__"` are left out.
pub(super) fn imports(body: &[Stmt]) -> Vec<Import> {
    let mut found = Vec::new();
    block(body, None, &mut found);
    found
}

fn block(body: &[Stmt], within: Option<&str>, found: &mut Vec<Import>) {
    for statement in body {
        one(statement, within, found);
    }
}

fn one(statement: &Stmt, within: Option<&str>, found: &mut Vec<Import>) {
    let mut add = |module: &str, name: Option<&str>, range: std::ops::Range<usize>| {
        found.push(Import {
            module: module.to_owned(),
            name: name.map(str::to_owned),
            within: within.map(str::to_owned),
            span: Span::new(range.start, range.end),
        });
    };
    match statement {
        Stmt::Import(import) => {
            for alias in &import.names {
                add(alias.name.id.as_str(), None, import.range.into());
            }
        }
        Stmt::ImportFrom(import) if import.level == 0 => {
            let module = import.module.as_ref().map(|module| module.id.as_str());
            for alias in &import.names {
                let name = alias.name.id.as_str();
                add(module.unwrap_or_default(), Some(name), alias.range.into());
            }
        }
        Stmt::FunctionDef(def) => {
            let name = within.unwrap_or(def.name.id.as_str());
            block(&def.body, Some(name), found);
        }
        Stmt::ClassDef(class) => block(&class.body, within, found),
        Stmt::With(with) => block(&with.body, within, found),
        Stmt::If(branch) => {
            if !is_never_run(&branch.test) {
                block(&branch.body, within, found);
            }
            for clause in &branch.elif_else_clauses {
                block(&clause.body, within, found);
            }
        }
        Stmt::Try(attempt) => {
            if !attempt.handlers.iter().any(catches_imports) {
                block(&attempt.body, within, found);
            }
            block(&attempt.finalbody, within, found);
        }
        _ => {}
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
