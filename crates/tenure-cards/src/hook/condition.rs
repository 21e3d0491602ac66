//! Checking the condition of a declared hook.

use super::ordered::without_products;
use super::spec::SpecScope;
use super::{On, When};
use crate::card::{list_words, present};
use crate::diagnostic::{Code, Diagnostic};
use crate::nearest::nearest;
use crate::source::{Node, Span};
use tenure_core::hook::{Point, Points};
use tenure_hooks::limit::check_expression;

impl SpecScope<'_, '_> {
    /// The condition, if it compiles and mentions only what it sees.
    pub fn when(&mut self, node: &Node, on: &On) -> Option<When> {
        let found = present(node, "when")?;
        let span = found.span;
        let expression = self.reader.words_of("when", found)?;
        if let Err(much) = check_expression(&expression) {
            let message = format!("the condition cannot be read: {much}");
            let help = "write a shorter one, or write a function that decides";
            self.reader.problem_help(Code::TooMuch, span, message, help);
            return None;
        }
        let environment = minijinja::Environment::empty();
        let written = without_products(&expression);
        let error = match environment.compile_expression(&written) {
            Ok(compiled) => {
                let mut mentioned: Vec<String> =
                    compiled.undeclared_variables(false).into_iter().collect();
                mentioned.sort_unstable();
                self.mentioned(&mentioned, found.span, &expression, on);
                return Some(When { expression, span: found.span });
            }
            Err(error) => error,
        };
        let detail = error.detail().unwrap_or("it is not an expression").to_owned();
        let span = self.inside(found.span, &expression, error.range());
        self.reader.report.push(
            Diagnostic::new(
                Code::BadCondition,
                self.reader.source,
                span,
                format!("the condition does not compile: {detail}"),
            )
            .help("write an expression such as `tool.name == 'shell'`"),
        );
        None
    }

    /// Reports what a condition mentions and never sees.
    fn mentioned(&mut self, mentioned: &[String], span: Span, expression: &str, on: &On) {
        let seen = visible(on);
        for name in mentioned.iter().filter(|name| !seen.contains(&name.as_str())) {
            let at = expression.find(name.as_str()).map(|at| at..at + name.len());
            let help = match nearest(name, seen.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("a condition here sees {}", list_words(&seen, "and")),
            };
            let span = self.inside(span, expression, at);
            let message = format!("the condition mentions `{name}`, which it never sees here");
            self.reader.problem_help(Code::BadCondition, span, message, help);
        }
    }

    /// The place of a part of an expression, if it is written in one piece.
    fn inside(&self, span: Span, text: &str, part: Option<std::ops::Range<usize>>) -> Span {
        let written = self.reader.source.slice(span);
        match (written.find(text), part) {
            (Some(at), Some(part)) if part.end <= text.len() => {
                let start = span.start as usize + at;
                Span::new(start + part.start, start + part.end)
            }
            _ => span,
        }
    }
}

/// What a condition sees where the hook is called.
fn visible(on: &On) -> Vec<&'static str> {
    let points = match on {
        On::Points(points) if points.is_empty() => Points::ALL,
        On::Points(points) => *points,
        On::Transition { .. } => Point::OnTransition.into(),
        On::Own => Points::ALL,
    };
    let mut seen = vec!["agent", "instance_id", "point", "variables", "state"];
    // The four points that lifecycle tools of workflows know as their triggers.
    let triggers = [Point::BeforeChat, Point::AfterChat, Point::BeforeAgent, Point::AfterAgent];
    if points.iter().all(|point| triggers.contains(&point)) {
        seen.push("trigger");
    }
    for point in points.iter() {
        let more: &[&str] = match point {
            Point::OnShutdown => &["reason"],
            Point::AfterChat | Point::AfterAgent => &["outcome", "output", "error"],
            Point::BeforeAgent => &["input"],
            Point::BeforeModel | Point::WrapModelCall => &["request"],
            Point::AfterModel => &["request", "response"],
            Point::WrapToolCall => &["tool"],
            Point::OnTransition => &["from", "to"],
            _ => &[],
        };
        for name in more {
            if !seen.contains(name) {
                seen.push(name);
            }
        }
    }
    seen
}
