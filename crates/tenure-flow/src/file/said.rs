//! Handoffs that wait for a word: `trigger: NEXT` holds when the agent's message is that word, or
//! ends with it. Each is a state variable of its own that the agent's messages set and reset.

use super::scope::Visible;
use crate::variables::{Definition, Kind, Pattern, Source, State, Transition, Trigger};
use serde_json::Value;

/// The words that handoffs wait for.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Agent, word and variable.
    words: Vec<(String, String, String)>,
}

impl Said {
    /// The variable that says whether `agent` said `word` last.
    pub(super) fn variable(&mut self, agent: &str, word: &str, visible: &Visible) -> String {
        let known = self.words.iter().find(|(who, what, _)| who == agent && what == word);
        if let Some((_, _, name)) = known {
            return name.clone();
        }
        let odd = |c: char| !c.is_ascii_alphanumeric();
        let base = format!("said_{}_by_{}", word.replace(odd, "_"), agent.replace(odd, "_"));
        let mut name = base.clone();
        let mut number = 2;
        while visible.has(&name) || self.words.iter().any(|(_, _, taken)| *taken == name) {
            name = format!("{base}_{number}");
            number += 1;
        }
        self.words.push((agent.to_owned(), word.to_owned(), name.clone()));
        name
    }

    /// The variables, to be declared beside those of the file.
    pub(super) fn definitions(self) -> Vec<Definition> {
        let words = self.words.into_iter().filter_map(|(agent, word, name)| {
            let last = Pattern::regex(&format!(r"(?s)(?:^|\s){}[.!]?$", escaped(&word))).ok()?;
            let any = Pattern::regex("(?s).*").ok()?;
            let to = |truth: bool, matches: Pattern| {
                let trigger =
                    Trigger::AgentText { agent: agent.clone(), matches, ui_hidden: false };
                Transition::between(None, Value::Bool(truth), trigger)
            };
            let mut state = State::new(false);
            state.triggers = vec![to(true, last), to(false, any)];
            let said = format!("whether {agent} said {word} last");
            Some(Definition::new(name, Kind::Bool, Source::State(state)).described(said))
        });
        words.collect()
    }
}

/// The word as a regular expression that means itself.
fn escaped(word: &str) -> String {
    let mut text = String::new();
    for c in word.chars() {
        if !c.is_alphanumeric() && c != '_' && c != ' ' {
            text.push('\\');
        }
        text.push(c);
    }
    text
}
