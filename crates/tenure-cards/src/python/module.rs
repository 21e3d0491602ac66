//! The module-level names of a Python file.

use super::bound::{Nesting, nesting};
use super::effect::{Decorator, decorators};
use super::imports::{Import, imports};
use crate::source::Span;
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::visitor::{self, Visitor};
use rustpython_ruff_python_ast::{Expr, Stmt};
use rustpython_ruff_python_parser::parse_module;
use std::collections::HashMap;
use std::sync::Arc;
use tenure_hosts::{PythonFile, Style};

/// The stack of the thread that parses a deeply nested file.
const STACK: usize = 256 << 20;

/// A Python file that was parsed.
#[derive(Debug)]
pub(crate) struct Module {
    /// The file as a worker runs it.
    pub(crate) file: Arc<PythonFile>,
    pub(super) imports: Vec<Import>,
    names: HashMap<String, Binding>,
}

/// The name under which `from module import *` is bound.
const STAR: &str = "*";

/// What a module-level name is bound to.
#[derive(Debug)]
pub(crate) enum Binding {
    /// `def` or `async def`.
    Function(Function),
    /// `class`.
    Class(Box<ast::StmtClassDef>),
    /// `name = expression`.
    Value(Box<Expr>),
    /// `import name` or `from module import name`.
    Imported {
        /// The module that it comes from.
        module: String,
        /// What it is called there; none if it is the module itself.
        name: Option<String>,
        /// When it is imported.
        import: ImportTime,
    },
}

/// When a name is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ImportTime {
    /// When the file runs.
    AtRuntime,
    /// Never: it stands under `if TYPE_CHECKING`.
    ForCheckers,
}

/// A function of a module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) style: Style,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) docstring: Option<String>,
    pub(super) decorators: Vec<Decorator>,
    /// Its type variables, as in `def first[T](...)`.
    pub(super) variables: Vec<String>,
    /// Whether it takes `next`, or says it somewhere in its body.
    pub(crate) mentions_next: bool,
    /// The name in the `def`.
    pub(crate) span: Span,
    /// The whole definition.
    pub(super) range: Span,
}

/// A parameter of a function.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) kind: ParameterKind,
    pub(crate) default: Option<Box<Expr>>,
    pub(crate) annotation: Option<Box<Expr>>,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    PositionalOnly,
    Plain,
    KeywordOnly,
    /// `*args`.
    Rest,
    /// `**kwargs`.
    Keywords,
}

/// Why a file cannot be used.
#[derive(Debug)]
pub(crate) struct SyntaxProblem {
    pub(crate) span: Span,
    pub(crate) message: String,
}

impl Module {
    /// Parses `file`. Nothing is run.
    pub(crate) fn parse(file: Arc<PythonFile>) -> Result<Self, SyntaxProblem> {
        let source = file.source();
        let (names, imports) = match nesting(source) {
            Nesting::Shallow => collect(source),
            Nesting::Deep => std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().stack_size(STACK);
                let parsed = thread.spawn_scoped(scope, || collect(source));
                parsed.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(|| {
                    Err(SyntaxProblem {
                        span: Span::at(0),
                        message: "it cannot be taken apart".into(),
                    })
                })
            }),
            Nesting::TooDeep => {
                Err(SyntaxProblem { span: Span::at(0), message: "it is nested too deeply".into() })
            }
        }?;
        Ok(Self { file, imports, names })
    }

    /// What `name` is bound to.
    pub(crate) fn binding(&self, name: &str) -> Option<&Binding> {
        self.names.get(name)
    }

    /// Whether `name` may be bound in a way that is not read: by a star, by `__getattr__`, by a loop,
    /// or in any other place of the file.
    pub(crate) fn may_bind(&self, name: &str) -> bool {
        let hidden = [STAR, "__getattr__"];
        hidden.iter().any(|it| self.names.contains_key(*it)) || binds(self.file.source(), name)
    }

    /// The function that `name` stands for, also by `name = other_function`.
    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        let mut name = name;
        for _ in 0..8 {
            match self.binding(name)? {
                Binding::Function(function) => return Some(function),
                Binding::Value(value) => match &**value {
                    Expr::Name(other) => name = other.id.as_str(),
                    _ => return None,
                },
                _ => return None,
            }
        }
        None
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The names of all functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &str> {
        self.names
            .iter()
            .filter(|(_, binding)| matches!(binding, Binding::Function(_)))
            .map(|(name, _)| name.as_str())
    }

    /// Returns `true` if the function, or a function or class of the same file that it names, calls `ask`, `step`
    /// or `next` of something, or a `next` that it takes: it may wait for the host, and so has a thread of its
    /// own. `next(iterator)` does not.
    pub(crate) fn waits(&self, function: &Function) -> bool {
        if function.parameters.iter().any(|parameter| parameter.name == "next") {
            return true;
        }
        let mut seen = vec![function.name.as_str()];
        let mut open = vec![function.range];
        while let Some(range) = open.pop() {
            let text = self.file.source().get(range.range()).unwrap_or_default();
            if [".ask(", ".step(", ".next("].iter().any(|call| text.contains(call)) {
                return true;
            }
            for word in words(text) {
                let range = match self.names.get(word) {
                    Some(Binding::Function(other)) => other.range,
                    Some(Binding::Class(class)) => span(class.range),
                    _ => continue,
                };
                if !seen.contains(&word) {
                    seen.push(word);
                    open.push(range);
                }
            }
        }
        false
    }
}

/// Whether a name is assigned to anywhere in a file.
fn binds(source: &str, name: &str) -> bool {
    struct Search<'n>(&'n str, bool);
    impl<'a> Visitor<'a> for Search<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(it) = expr
                && it.ctx == ast::ExprContext::Store
            {
                self.1 |= it.id == self.0;
            }
            visitor::walk_expr(self, expr);
        }
    }
    let mut search = Search(name, nesting(source) != Nesting::Shallow);
    if !search.1
        && let Ok(parsed) = parse_module(source)
    {
        search.visit_body(&parsed.syntax().body);
    }
    search.1
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

fn collect(source: &str) -> Result<(HashMap<String, Binding>, Vec<Import>), SyntaxProblem> {
    let parsed = parse_module(source).map_err(|problem| SyntaxProblem {
        span: span(problem.location),
        message: problem.error.to_string(),
    })?;
    let body = parsed.into_syntax().body;
    let imports = imports(&body);
    let mut names = HashMap::new();
    block(body, Place::Top, &mut names);
    for binding in names.values_mut() {
        if let Binding::Function(function) = binding {
            let text = source.get(function.range.range()).unwrap_or_default();
            function.mentions_next = words(text).any(|word| word == "next");
        }
    }
    Ok((names, imports))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Top,
    /// Inside `if`, `try` or `with`: a function that is already there stays.
    Nested,
    /// Inside `if TYPE_CHECKING`.
    Checkers,
}

fn block(body: Vec<Stmt>, place: Place, names: &mut HashMap<String, Binding>) {
    for statement in body {
        bind(statement, place, names);
    }
}

fn bind(statement: Stmt, place: Place, names: &mut HashMap<String, Binding>) {
    let mut set = |name: String, binding: Binding| {
        let keep = match (place, names.get(&name), &binding) {
            (Place::Top, ..) | (_, None, _) => false,
            (Place::Checkers, Some(_), _) => true,
            (_, Some(Binding::Function(_)), other) => !matches!(other, Binding::Function(_)),
            // What takes the place of a module that is not installed says less than the module.
            (_, Some(_), Binding::Value(value)) => matches!(&**value, Expr::NoneLiteral(_)),
            _ => false,
        };
        if !keep {
            names.insert(name, binding);
        }
    };
    let import = match place {
        Place::Checkers => ImportTime::ForCheckers,
        Place::Top | Place::Nested => ImportTime::AtRuntime,
    };
    match statement {
        Stmt::FunctionDef(def) => {
            set(def.name.id.to_string(), Binding::Function(function(def)));
        }
        Stmt::ClassDef(class) => {
            set(class.name.id.to_string(), Binding::Class(Box::new(class)));
        }
        Stmt::Assign(assign) => {
            for target in &assign.targets {
                if let Expr::Name(name) = target {
                    set(name.id.to_string(), Binding::Value(assign.value.clone()));
                }
            }
        }
        Stmt::AnnAssign(assign) => {
            if let (Expr::Name(name), Some(value)) = (&*assign.target, assign.value) {
                set(name.id.to_string(), Binding::Value(value));
            }
        }
        Stmt::Import(it) => {
            for alias in it.names {
                let module = alias.name.id.to_string();
                let name = match alias.asname {
                    Some(name) => name.id.to_string(),
                    None => module.split('.').next().unwrap_or_default().to_owned(),
                };
                set(name, Binding::Imported { module, name: None, import });
            }
        }
        Stmt::ImportFrom(it) => {
            let dots = ".".repeat(it.level as usize);
            let module = it.module.map(|module| module.id.to_string()).unwrap_or_default();
            let module = format!("{dots}{module}");
            for alias in it.names {
                let own = alias.name.id.to_string();
                let name = alias.asname.map_or_else(|| own.clone(), |name| name.id.to_string());
                let (module, own) = (module.clone(), Some(own));
                set(name, Binding::Imported { module, name: own, import });
            }
        }
        Stmt::TypeAlias(alias) => {
            if let Expr::Name(name) = &*alias.name {
                set(name.id.to_string(), Binding::Value(alias.value));
            }
        }
        Stmt::If(branch) => {
            let checkers = last_name(&branch.test) == Some("TYPE_CHECKING");
            let inside = if checkers { Place::Checkers } else { Place::Nested };
            block(branch.body, inside, names);
            for clause in branch.elif_else_clauses {
                block(clause.body, Place::Nested, names);
            }
        }
        Stmt::Try(attempt) => {
            block(attempt.body, Place::Nested, names);
            for ast::ExceptHandler::ExceptHandler(handler) in attempt.handlers {
                block(handler.body, Place::Nested, names);
            }
            block(attempt.orelse, Place::Nested, names);
            block(attempt.finalbody, Place::Nested, names);
        }
        Stmt::With(with) => block(with.body, Place::Nested, names),
        _ => {}
    }
}

fn function(def: ast::StmtFunctionDef) -> Function {
    let docstring = match def.body.first() {
        Some(Stmt::Expr(first)) => match &*first.value {
            Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
            _ => None,
        },
        _ => None,
    };
    let ast::Parameters { posonlyargs, args, vararg, kwonlyargs, kwarg, .. } = *def.parameters;
    let mut parameters = Vec::new();
    let mut take = |list: Vec<ast::ParameterWithDefault>, kind| {
        for each in list {
            parameters.push(parameter(each.parameter, each.default, kind));
        }
    };
    take(posonlyargs, ParameterKind::PositionalOnly);
    take(args, ParameterKind::Plain);
    take(kwonlyargs, ParameterKind::KeywordOnly);
    if let Some(rest) = vararg {
        parameters.push(parameter(*rest, None, ParameterKind::Rest));
    }
    if let Some(keywords) = kwarg {
        parameters.push(parameter(*keywords, None, ParameterKind::Keywords));
    }
    Function {
        name: def.name.id.to_string(),
        style: if def.is_async { Style::Async } else { Style::Sync },
        parameters,
        docstring,
        decorators: decorators(def.decorator_list),
        variables: variables(def.type_params.as_deref()),
        mentions_next: false,
        span: span(def.name.range),
        range: span(def.range),
    }
}

/// The names of type variables.
pub(super) fn variables(parameters: Option<&ast::TypeParams>) -> Vec<String> {
    let each = parameters.into_iter().flat_map(|it| it.iter());
    each.map(|it| it.name().to_string()).collect()
}

/// The name at the end of `a.b.name`.
pub(super) fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        Expr::Attribute(attribute) => Some(attribute.attr.as_str()),
        Expr::Subscript(it) => last_name(&it.value),
        _ => None,
    }
}

fn parameter(it: ast::Parameter, default: Option<Box<Expr>>, kind: ParameterKind) -> Parameter {
    Parameter {
        name: it.name.id.to_string(),
        kind,
        default,
        annotation: it.annotation,
        span: span(it.name.range),
    }
}

pub(super) fn span(range: impl Into<std::ops::Range<usize>>) -> Span {
    let range = range.into();
    Span::new(range.start, range.end)
}
