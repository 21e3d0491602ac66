//! The module-level names of a Python file.

use super::bound::{Nesting, nesting};
use super::effect::{Decorator, decorators};
use super::imports::{Import, imports};
use crate::source::Span;
use rustpython_ruff_python_ast as ast;
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
    /// The imports that it cannot do without.
    pub(crate) imports: Vec<Import>,
    names: HashMap<String, Binding>,
}

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
    },
}

/// A function of a module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) style: Style,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) docstring: Option<String>,
    pub(super) decorators: Vec<Decorator>,
    /// Whether it takes `next`, or says it somewhere in its body.
    pub(crate) mentions_next: bool,
    /// The name in the `def`.
    pub(crate) span: Span,
    /// The whole definition.
    range: Span,
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

    /// The names of all functions.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &str> {
        self.names
            .iter()
            .filter(|(_, binding)| matches!(binding, Binding::Function(_)))
            .map(|(name, _)| name.as_str())
    }

    /// Whether the function, or a function or class of the same file that it names, mentions `ask`,
    /// `step` or `next`.
    pub(crate) fn waits(&self, function: &Function) -> bool {
        let mut seen = vec![function.name.as_str()];
        let mut open = vec![function.range];
        while let Some(range) = open.pop() {
            let text = self.file.source().get(range.range()).unwrap_or_default();
            for word in words(text) {
                if matches!(word, "ask" | "step" | "next") {
                    return true;
                }
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
}

fn block(body: Vec<Stmt>, place: Place, names: &mut HashMap<String, Binding>) {
    for statement in body {
        bind(statement, place, names);
    }
}

fn bind(statement: Stmt, place: Place, names: &mut HashMap<String, Binding>) {
    let mut set = |name: String, binding: Binding| {
        let keep = place == Place::Nested
            && matches!(names.get(&name), Some(Binding::Function(_)))
            && !matches!(binding, Binding::Function(_));
        if !keep {
            names.insert(name, binding);
        }
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
        Stmt::Import(import) => {
            for alias in import.names {
                let module = alias.name.id.to_string();
                let name = match alias.asname {
                    Some(name) => name.id.to_string(),
                    None => module.split('.').next().unwrap_or_default().to_owned(),
                };
                set(name, Binding::Imported { module, name: None });
            }
        }
        Stmt::ImportFrom(import) => {
            let dots = ".".repeat(import.level as usize);
            let module = import.module.map(|module| module.id.to_string()).unwrap_or_default();
            let module = format!("{dots}{module}");
            for alias in import.names {
                let own = alias.name.id.to_string();
                let name = alias.asname.map_or_else(|| own.clone(), |name| name.id.to_string());
                let (module, own) = (module.clone(), Some(own));
                set(name, Binding::Imported { module, name: own });
            }
        }
        Stmt::If(branch) => {
            block(branch.body, Place::Nested, names);
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
        mentions_next: false,
        span: span(def.name.range),
        range: span(def.range),
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

fn span(range: impl Into<std::ops::Range<usize>>) -> Span {
    let range = range.into();
    Span::new(range.start, range.end)
}
