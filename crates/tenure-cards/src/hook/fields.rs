//! Where a declared hook is called, its policy and its durations.

use super::On;
use super::spec::SpecScope;
use crate::card::{list_words, present};
use crate::diagnostic::Code;
use crate::nearest::nearest;
use crate::source::{Node, Span, Value};
use tenure_core::hook::{Limit, Point, Points, Policy};
use tenure_core::phase::{Phase, PhasePattern};

impl SpecScope<'_, '_> {
    /// Where the hook is called.
    pub(super) fn on(&mut self, node: &Node) -> Option<On> {
        match &node.value {
            Value::Text(text) if text.contains("->") => self.transition(text, node.span),
            Value::Text(text) => self.point(text, node.span).map(|point| On::Points(point.into())),
            Value::List(items) if items.is_empty() => {
                self.reader.problem_help(
                    Code::MissingPoint,
                    node.span,
                    "`on` is an empty list, so this hook would never be called",
                    "name at least one point",
                );
                None
            }
            Value::List(items) => {
                let mut points = Some(Points::NONE);
                for item in items {
                    let point = match &item.value {
                        Value::Text(text) if text.contains("->") => {
                            self.reader.problem_help(
                                Code::BadTransition,
                                item.span,
                                "a transition cannot stand in a list",
                                format!("write a hook of its own with `on: \"{}\"`", text.trim()),
                            );
                            None
                        }
                        Value::Text(text) => self.point(text, item.span),
                        _ => {
                            self.reader.wrong_kind("on", "the name of a point", item);
                            None
                        }
                    };
                    points = points.zip(point).map(|(points, point)| points.with(point));
                }
                points.map(On::Points)
            }
            _ => {
                self.reader.wrong_kind("on", "a point, a list of points or a transition", node);
                None
            }
        }
    }

    fn point(&mut self, text: &str, span: Span) -> Option<Point> {
        let text = text.trim();
        let found = text.parse().ok();
        if found.is_none() {
            let names = Point::ALL.map(Point::as_str);
            let help = match nearest(text, names) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the points are {}", list_words(&names, "and")),
            };
            let message = format!("`{text}` is not a point of an agent's life");
            self.reader.problem_help(Code::UnknownPoint, span, message, help);
        }
        found
    }

    fn transition(&mut self, text: &str, span: Span) -> Option<On> {
        let (from, to) = text.split_once("->")?;
        let from = self.phase(from, span);
        let to = self.phase(to, span);
        let (from, to) = (from?, to?);
        if !PhasePattern::can_meet(from, to) {
            let message = format!("no agent makes the transition {from} -> {to}");
            let help = PhasePattern::instead_of(from, to);
            self.reader.problem_help(Code::BadTransition, span, message, help);
            return None;
        }
        Some(On::Transition { from, to })
    }

    fn phase(&mut self, text: &str, span: Span) -> Option<PhasePattern> {
        let text = text.trim();
        if text == "*" {
            return Some(PhasePattern::Any);
        }
        if let Ok(phase) = text.parse::<Phase>() {
            return Some(PhasePattern::Is(phase));
        }
        let names = Phase::ALL.map(Phase::as_str);
        let help = match nearest(text, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the phases are {}; `*` is any", list_words(&names, "and")),
        };
        let message = match text {
            "" => "a transition names two phases, and one is missing here".to_owned(),
            _ => format!("`{text}` is not a phase"),
        };
        self.reader.problem_help(Code::BadTransition, span, message, help);
        None
    }

    /// What a failure means.
    pub fn policy(&mut self, node: &Node, on: Option<&On>) -> Option<Policy> {
        let found = present(node, "policy")?;
        let policies = [Policy::Abort, Policy::Deny, Policy::Continue];
        let text = self.reader.text_of("policy", found)?;
        let Some(policy) = policies.into_iter().find(|policy| policy.as_str() == text.trim())
        else {
            let help = match nearest(text.trim(), policies.map(Policy::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "use `abort`, `deny` or `continue`".to_owned(),
            };
            let message = format!("`{}` is not a policy", text.trim());
            self.reader.problem_help(Code::BadPolicy, found.span, message, help);
            return None;
        };
        let late = match on {
            Some(On::Transition { .. }) => Some(Point::OnTransition),
            Some(On::Points(points)) => {
                points.iter().find(|point| point.is_end() || *point == Point::OnTransition)
            }
            _ => None,
        };
        if let (Policy::Deny, Some(point)) = (policy, late) {
            self.reader.problem_help(
                Code::DenyTooLate,
                found.span,
                format!(
                    "`deny` comes too late at {point}: what it would stand before has happened"
                ),
                "use `continue`, or choose a point that comes before",
            );
            return None;
        }
        Some(policy)
    }

    /// Whether the hook is called again when a run goes on in another process.
    pub(super) fn again(&mut self, node: &Node, on: Option<&On>) -> bool {
        let again = self.reader.truth(node, "again_on_resume").unwrap_or(false);
        let points = match on {
            Some(On::Points(points)) => *points,
            Some(On::Transition { .. }) => Point::OnTransition.into(),
            // The registered hook says where it is called.
            Some(On::Own) | None => return again,
        };
        if again
            && !points.iter().any(Point::decides)
            && let Some((key, _)) = node.entry("again_on_resume")
            && let Some(point) = points.iter().next()
        {
            let message = match point {
                Point::OnStart | Point::WrapModelCall | Point::WrapToolCall => {
                    format!("`again_on_resume` means nothing at {point}: it is called again anyway")
                }
                Point::OnTransition => {
                    format!("`again_on_resume` means nothing at {point}: what happens is told")
                }
                _ => format!("`again_on_resume` means nothing at {point}: an end comes once"),
            };
            let decides: Vec<_> =
                Point::ALL.into_iter().filter(|it| it.decides()).map(Point::as_str).collect();
            let help = format!("remove it; it is for hooks at {}", list_words(&decides, "and"));
            self.reader.problem_help(Code::MeaninglessField, key.span, message, help);
        }
        again
    }

    /// Whether people write the file as JSON.
    fn is_json(&self) -> bool {
        self.reader.source.path().extension().is_some_and(|it| it == "json")
    }

    /// A duration with its unit.
    pub fn duration(&mut self, node: &Node, name: &str) -> Option<Limit> {
        let found = present(node, name)?;
        let text = match &found.value {
            Value::Text(text) => self.reader.expanded(text, found.span),
            Value::Int(_) | Value::Float(_) => {
                self.reader.problem_help(
                    Code::BadDuration,
                    found.span,
                    format!("`{name}` needs a unit"),
                    match self.is_json() {
                        true => format!("write `\"{name}\": \"{0}s\"` or `\"{0}ms\"`", found.raw),
                        false => {
                            format!(
                                "write `{name}: {0}s` for seconds or `{name}: {0}ms`",
                                found.raw
                            )
                        }
                    },
                );
                return None;
            }
            _ => {
                self.reader.wrong_kind(name, "a duration such as 30s", found);
                return None;
            }
        };
        text.parse()
            .map_err(|error: tenure_core::Error| {
                let message = format!("`{name}` cannot be read: {error}");
                let help = match self.is_json() {
                    true => format!("write for example `\"{name}\": \"30s\"` or `\"500ms\"`"),
                    false => format!("write for example `{name}: 30s` or `{name}: 500ms`"),
                };
                self.reader.problem_help(Code::BadDuration, found.span, message, help);
            })
            .ok()
    }

    /// One name or a list of them.
    pub fn names(&mut self, node: &Node, name: &str) -> Vec<(String, Span)> {
        let Some(found) = present(node, name) else { return Vec::new() };
        match &found.value {
            Value::Text(_) => {
                let text = self.reader.words_of(name, found);
                text.map(|text| (text.trim().to_owned(), found.span)).into_iter().collect()
            }
            _ => self.reader.texts_of(name, found).unwrap_or_default(),
        }
    }
}
