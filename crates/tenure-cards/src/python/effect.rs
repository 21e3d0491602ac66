//! What a tool's decorator says of its effect: `@tenure.tool(effect="keyed")`.

use super::module::{Binding, Function, Module};
use crate::source::Span;
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::Expr;
use tenure_core::tool::Effect;

/// The package whose decorator counts, and the decorator.
const PACKAGE: &str = "tenure";
const DECORATOR: &str = "tool";

/// A decorator that may be the one.
#[derive(Debug)]
pub(crate) struct Decorator {
    /// What it is called: `tool`, or `tenure` and `tool`.
    name: String,
    attribute: Option<String>,
    /// The word that `effect` is.
    word: Option<String>,
    span: Span,
}

/// What a function says of its effect.
#[derive(Debug, PartialEq)]
pub(crate) enum SaidEffect<'a> {
    /// It says one.
    Known(Effect),
    /// It says a word that is none.
    Unknown(&'a str, Span),
    /// It has the decorator, and no word that could be read without running the file.
    Unreadable(Span),
}

/// The decorators of a function that could say an effect.
pub(super) fn decorators(list: Vec<ast::Decorator>) -> Vec<Decorator> {
    list.into_iter().filter_map(decorator).collect()
}

fn decorator(it: ast::Decorator) -> Option<Decorator> {
    let range = it.range;
    let span = Span::new(range.start().to_usize(), range.end().to_usize());
    let (called, arguments) = match it.expression {
        Expr::Call(call) => (*call.func, Some(call.arguments)),
        other => (other, None),
    };
    let (name, attribute) = match called {
        Expr::Name(name) => (name.id.to_string(), None),
        Expr::Attribute(attribute) => match *attribute.value {
            Expr::Name(name) => (name.id.to_string(), Some(attribute.attr.id.to_string())),
            _ => return None,
        },
        _ => return None,
    };
    let word = arguments.and_then(|arguments| {
        let is_effect = |it: &&ast::Keyword| it.arg.as_ref().is_some_and(|arg| arg == "effect");
        match &arguments.keywords.iter().find(is_effect)?.value {
            Expr::StringLiteral(text) => Some(text.value.to_str().to_owned()),
            _ => None,
        }
    });
    Some(Decorator { name, attribute, word, span })
}

impl Module {
    /// What the decorators of a function say of its effect as a tool.
    pub(crate) fn effect<'a>(&self, function: &'a Function) -> Option<SaidEffect<'a>> {
        let is_it = |it: &&Decorator| match (self.binding(&it.name), &it.attribute) {
            (Some(Binding::Imported { module, name: None, .. }), Some(attribute)) => {
                module == PACKAGE && attribute == DECORATOR
            }
            (Some(Binding::Imported { module, name: Some(name), .. }), None) => {
                module == PACKAGE && name == DECORATOR
            }
            _ => false,
        };
        let decorator = function.decorators.iter().find(is_it)?;
        let Some(word) = decorator.word.as_deref() else {
            return Some(SaidEffect::Unreadable(decorator.span));
        };
        Some(match Effect::ALL.into_iter().find(|effect| effect.as_str() == word) {
            Some(effect) => SaidEffect::Known(effect),
            None => SaidEffect::Unknown(word, decorator.span),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tenure_hosts::PythonFile;

    fn said(source: &str) -> Option<String> {
        let file = Arc::new(PythonFile::new("tools.py", source));
        let module = Module::parse(file).expect("it is Python");
        let function = module.function("send").expect("it is there");
        module.effect(function).map(|said| match said {
            SaidEffect::Known(effect) => effect.as_str().to_owned(),
            SaidEffect::Unknown(word, _) => format!("unknown {word}"),
            SaidEffect::Unreadable(_) => "unreadable".to_owned(),
        })
    }

    #[test]
    fn the_decorator_counts_however_it_is_imported_and_no_other_does() {
        let def = "def send():\n    pass\n";
        let table = [
            ("import tenure\n@tenure.tool(effect=\"keyed\")\n", Some("keyed")),
            ("import tenure as t\n@t.tool(effect='idempotent')\n", Some("idempotent")),
            ("from tenure import tool\n@tool(effect='at_most_once')\n", Some("at_most_once")),
            ("from tenure import tool as said\n@said(effect='keyed')\n", Some("keyed")),
            ("from tenure import tool\n@tool(effect='kyed')\n", Some("unknown kyed")),
            ("from tenure import tool\nWORD = 'keyed'\n@tool(effect=WORD)\n", Some("unreadable")),
            ("from tenure import tool\n@tool\n", Some("unreadable")),
            ("from other import tool\n@tool(effect='keyed')\n", None),
            ("import other\n@other.tool(effect='keyed')\n", None),
            ("import tenure\n@tenure.other(effect='keyed')\n", None),
            ("", None),
        ];
        for (head, expected) in table {
            assert_eq!(said(&format!("{head}{def}")).as_deref(), expected, "{head}");
        }
    }
}
