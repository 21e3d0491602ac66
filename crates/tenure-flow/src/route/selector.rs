//! A helper agent that answers questions about the chat.

use super::{RouteCx, Target};
use crate::chat::ChatMessage;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::Error;
use tenure_core::agent::{Agent, AgentBuilder};

/// How often a question is asked, the first time included.
const ASKED: usize = 3;

/// How much of a chat the helper is told: so many of the last messages, and so many characters of
/// each.
const MESSAGES: usize = 20;
const CHARACTERS: usize = 1_000;

pub(crate) const INSTRUCTION: &str = "You moderate a conversation between several agents. You are asked who \
speaks next, or which statements about the conversation are true. You answer with exactly what the \
question asks for: one name, one number or one word. You explain nothing.";

/// The helper that a router asks: an agent of the flow that is no speaker.
#[derive(Clone, Debug)]
pub struct Selector {
    helper: Arc<str>,
    limit: Duration,
}

impl Selector {
    /// The flow's helper of this name, which gets a minute for each answer.
    pub fn new(helper: impl Into<Arc<str>>) -> Self {
        Self { helper: helper.into(), limit: Duration::from_secs(60) }
    }

    /// The same with another limit for each answer.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The helper's name.
    pub fn helper(&self) -> &str {
        &self.helper
    }

    /// An agent that can be such a helper, to be given a model: it is told what it is there for, and
    /// remembers nothing, since each question says everything.
    pub fn agent(name: impl Into<Arc<str>>) -> AgentBuilder {
        Agent::builder(name).instruction(INSTRUCTION).without_history()
    }

    /// Asks until the answer can be read, three times at most. What is wrong with an answer is said
    /// with the next question.
    pub(super) async fn ask<T>(
        &self,
        cx: &RouteCx<'_>,
        question: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Asked<T>, Error> {
        let mut told = question.to_owned();
        let mut times = 0;
        loop {
            let answer = cx.consult_within(&self.helper, told, self.limit).await?;
            times += 1;
            let wrong = match read(&answer) {
                Ok(value) => return Ok(Asked { value: Ok(value), times, answer }),
                Err(wrong) => wrong,
            };
            if times == ASKED {
                return Ok(Asked { value: Err(wrong), times, answer });
            }
            let answer = cut(&answer, 200);
            told = format!("{question}\n\nYou answered \"{answer}\" before, but {wrong}.");
        }
    }
}

/// What became of a question.
pub(super) struct Asked<T> {
    /// What was answered, or what was wrong with the last answer.
    pub(super) value: Result<T, String>,
    /// How often it was asked.
    pub(super) times: usize,
    /// The last answer.
    pub(super) answer: String,
}

/// The end of the chat, as the helper is told it. Never longer than a bound, however long the chat.
pub(super) fn conversation(messages: &[ChatMessage]) -> String {
    let left_out = messages.len().saturating_sub(MESSAGES);
    let mut told = String::from("The conversation so far:\n");
    match (messages.is_empty(), left_out) {
        (true, _) => told.push_str("(nobody has said anything)\n"),
        (_, 0) => {}
        _ => {
            let _ = writeln!(told, "({left_out} earlier messages are left out)");
        }
    }
    for message in &messages[left_out..] {
        let _ = writeln!(told, "[{}] {}", message.speaker, cut(&message.text, CHARACTERS));
    }
    told
}

/// The beginning of a text, if it is long.
pub(super) fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{} [...]", &text[..at]),
        None => text.to_owned(),
    }
}

/// The one that an answer names. The error says what is wrong with the answer.
///
/// It may be the name alone, in another case, in quotes, or in a sentence that names nobody else.
pub(super) fn named(answer: &str, candidates: &[Target]) -> Result<Target, String> {
    let answer = answer.replace("\\_", "_");
    let bare = answer.trim().trim_matches(|it: char| !it.is_alphanumeric() && it != '_');
    if let Some(exact) = candidates.iter().find(|it| it.as_str() == bare) {
        return Ok(exact.clone());
    }
    let said = words(bare);
    let alike: Vec<_> = candidates.iter().filter(|it| words(it.as_str()) == said).collect();
    if let [only] = alike[..] {
        return Ok(only.clone());
    }
    if let Some(alias) = Target::of_alias(bare).filter(|it| candidates.contains(it)) {
        return Ok(alias);
    }
    let mut found = mentioned(&said, candidates);
    // "The writer should answer the user" names the writer.
    if found.len() > 1 {
        found.retain(|it| **it != Target::User);
    }
    let list =
        |found: &[&Target]| found.iter().map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ");
    match found[..] {
        [only] => Ok(only.clone()),
        [] => {
            let all: Vec<_> = candidates.iter().collect();
            Err(format!("that names none of {}", list(&all)))
        }
        _ => Err(format!("that names several of them: {}", list(&found))),
    }
}

/// Those whose names occur in what was said. A name that is part of a longer one that was said does
/// not count there.
fn mentioned<'a>(said: &[String], candidates: &'a [Target]) -> Vec<&'a Target> {
    let names: Vec<_> = candidates.iter().map(|it| (it, words(it.as_str()))).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < said.len() {
        let here =
            names.iter().filter(|(_, name)| !name.is_empty() && said[at..].starts_with(name));
        let longest = here.clone().map(|(_, name)| name.len()).max();
        for (target, _) in here.filter(|(_, name)| Some(name.len()) == longest) {
            if !found.contains(target) {
                found.push(*target);
            }
        }
        at += longest.unwrap_or(1);
    }
    found
}

/// The words of a text, in small letters; `_` and `-` are spaces.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|it: char| !it.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Speaker;

    fn candidates() -> Vec<Target> {
        let agent = |name: &str| Target::Agent(name.into());
        let agents = ["planner", "Writer", "senior_writer", "fact-checker"].map(agent);
        agents.into_iter().chain([Target::User, Target::End]).collect()
    }

    #[test]
    fn names_are_read_alone_quoted_in_any_case_and_in_sentences() {
        for (answer, expected) in [
            ("planner", "planner"),
            ("  planner.\n", "planner"),
            ("\"Writer\"", "Writer"),
            ("**writer**", "Writer"),
            ("PLANNER", "planner"),
            ("`senior_writer`", "senior_writer"),
            ("Senior Writer", "senior_writer"),
            ("senior\\_writer", "senior_writer"),
            ("fact checker!", "fact-checker"),
            ("I think the senior_writer should go on.", "senior_writer"),
            ("Next: planner", "planner"),
            ("The planner should answer the user now", "planner"),
            ("user", "user"),
            ("Human", "user"),
            ("Ask the user.", "user"),
            ("TERMINATE", "terminate"),
            ("stop", "terminate"),
            ("We can terminate here.", "terminate"),
        ] {
            let read = named(answer, &candidates());
            assert_eq!(read.as_ref().map(Target::as_str), Ok(expected), "{answer}");
        }
    }

    #[test]
    fn an_answer_that_names_nobody_or_several_is_refused_with_the_reason() {
        let refused = |answer: &str| named(answer, &candidates()).expect_err(answer);
        assert_eq!(
            refused("planner or writer?"),
            "that names several of them: `planner`, `Writer`"
        );
        let nobody = "that names none of `planner`, `Writer`, `senior_writer`, `fact-checker`, \
                      `user`, `terminate`";
        for answer in ["", "   ", "...", "42", "nobody", "the plannerish one"] {
            assert_eq!(refused(answer), nobody, "{answer}");
        }
        // A person who does not take part is not there to be named.
        let agents = [Target::Agent("a".into()), Target::End];
        assert_eq!(named("user", &agents), Err("that names none of `a`, `terminate`".into()));
    }

    #[test]
    fn names_that_differ_only_in_case_need_their_own_spelling() {
        let both = [Target::Agent("bob".into()), Target::Agent("Bob".into())];
        assert_eq!(named("Bob", &both), Ok(both[1].clone()));
        assert_eq!(named("bob", &both), Ok(both[0].clone()));
        assert!(named("BOB", &both).is_err());
    }

    #[test]
    fn the_conversation_is_told_in_bounded_length() {
        let said = |at: usize| ChatMessage::new(Speaker::User, "x".repeat(5_000), at);
        let few = conversation(&[said(1)]);
        let many: Vec<_> = (0..1_000).map(said).collect();
        let told = conversation(&many);
        assert!(told.contains("(980 earlier messages are left out)"), "{}", &told[..200]);
        assert!(told.len() < 21 * few.len(), "{}", told.len());
    }
}
