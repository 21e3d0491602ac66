//! Where a run and its record differ.

use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use tenure_core::step::StepKey;
use tenure_core::{Error, RunId};

/// The first difference between a run and its record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The run.
    pub run: RunId,
    /// The step, with the input that is on record.
    pub step: StepKey,
    /// Where it is in the record; zero if it is not there.
    pub seq: u64,
    /// What is recorded there: the step's result, or the question.
    pub recorded: Value,
    /// What came now.
    pub now: Now,
    /// Which parts of the input have changed, where the record and the step both say what it is made
    /// of.
    pub changed: Vec<Change>,
}

/// A part of a step's input that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Its name: `instruction`, `messages`, `tools` or `params` of a model call.
    pub part: String,
    /// Its short hash on record, with how many there were of what is counted: `5e6f7a8b/7`.
    pub then: String,
    /// The same of what came now.
    pub now: String,
}

impl Change {
    /// What of `then` is another in `now`, in the order of the record. Nothing, if one of the two
    /// says nothing.
    pub(super) fn between(then: &str, now: &str) -> Vec<Self> {
        let parts = |detail: &str| -> Vec<(String, String)> {
            let parts = detail.split(' ').filter_map(|part| part.split_once('='));
            parts.map(|(part, print)| (part.to_owned(), print.to_owned())).collect()
        };
        let now: HashMap<_, _> = parts(now).into_iter().collect();
        let changed = parts(then).into_iter().filter_map(|(part, then)| {
            let now = now.get(&part).filter(|now| **now != then)?.clone();
            Some(Self { part, then, now })
        });
        changed.collect()
    }

    /// How many there were and are, of what is counted.
    fn counts(&self) -> Option<(&str, &str)> {
        let count = |print| str::split_once(print, '/').map(|(_, count)| count);
        count(&self.then).zip(count(&self.now))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.part {
            "messages" => f.write_str("the conversation")?,
            "params" => f.write_str("the parameters of the model")?,
            part => write!(f, "the {part}")?,
        }
        match self.counts() {
            Some((then, now)) if then == now => write!(f, " ({now} messages then and now)"),
            Some((then, now)) => write!(f, " ({then} messages then, {now} now)"),
            None => Ok(()),
        }
    }
}

/// "the instruction, the conversation (7 messages then, 8 now) and the tools have".
struct Have<'a>(&'a [Change]);

impl fmt::Display for Have<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, change) in self.0.iter().enumerate() {
            match index {
                0 => {}
                last if last + 1 == self.0.len() => f.write_str(" and ")?,
                _ => f.write_str(", ")?,
            }
            write!(f, "{change}")?;
        }
        match self.0 {
            [only] if matches!(&*only.part, "instruction" | "messages") => f.write_str(" has"),
            _ => f.write_str(" have"),
        }
    }
}

/// What came instead of what is on record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Now {
    /// The same step with another input.
    OtherInput {
        /// The hash of that input.
        input: u64,
    },
    /// The same step, and it asks for something else.
    OtherQuestion {
        /// What it asks.
        question: Value,
    },
    /// The run ended without asking for the step.
    NeverCame,
    /// All steps were as recorded, and what came of them is not.
    OtherOutput {
        /// What came of them.
        output: Value,
    },
}

impl Difference {
    pub(super) fn new(run: RunId, step: StepKey, seq: u64, recorded: Value, now: Now) -> Self {
        Self { run, step, seq, recorded, now, changed: Vec::new() }
    }

    /// The difference as an error that parks the run.
    pub fn error(&self) -> Error {
        Error::replay(self.to_string())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, step, seq, recorded, now, changed } = self;
        match now {
            Now::OtherInput { input } => {
                write!(f, "step {step} was recorded with another input")?;
                if !changed.is_empty() {
                    write!(f, ": {} changed since", Have(changed))?;
                }
                let (then, recorded) = (step.input, Short(recorded));
                write!(
                    f,
                    " (record {seq} of run {run}; input then {then:016x}, now {input:016x}); on \
                     record there is {recorded}"
                )?;
            }
            Now::OtherQuestion { question } => write!(
                f,
                "step {step} of run {run} asks something else than what is on record; then {}, now \
                 {}",
                Short(recorded),
                Short(question)
            )?,
            Now::NeverCame => write!(
                f,
                "step {step} (record {seq} of run {run}) was never asked for again, and the run came \
                 to its end without it; on record there is {}",
                Short(recorded)
            )?,
            Now::OtherOutput { output } => write!(
                f,
                "run {run} took every step as recorded and came to another result; on record there \
                 is {}, now it is {}",
                Short(recorded),
                Short(output)
            )?,
        }
        write!(
            f,
            ". The code has changed since, or what it reads has. The run is parked, and nothing is \
             guessed: restore the code and go on (`tenure run --resume {run}`), begin a new run from \
             there (`tenure restart {run} --from {seq}`), or give it up (`tenure run --abandon {run}`)"
        )
    }
}

/// A value in one line that is not too long.
struct Short<'a>(&'a Value);

const ENOUGH: usize = 160;

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        match text.char_indices().nth(ENOUGH) {
            Some((at, _)) => write!(f, "{}... ({} bytes)", &text[..at], text.len()),
            None => f.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_difference_names_the_step_what_was_there_and_what_to_do() {
        let run = RunId::unique();
        let difference = Difference {
            run,
            step: StepKey::new("turn", "tool", "pay", 2, 1),
            seq: 17,
            recorded: json!({ "value": "x".repeat(1000) }),
            now: Now::OtherInput { input: 2 },
            changed: Vec::new(),
        };
        let text = difference.to_string();
        for part in ["turn/tool:pay#2", "record 17", "0000000000000001", "0000000000000002"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(text.contains(&format!("tenure restart {run} --from 17")), "{text}");
        assert!(text.len() < 800, "{text}");
        assert!(difference.error().parks());
    }

    #[test]
    fn a_difference_says_which_parts_of_the_input_have_changed() {
        let then = "instruction=00000001 messages=00000002/7 tools=00000003 params=00000004";
        let said = |changes: &[(&str, &str)]| {
            let now = changes.iter().fold(then.to_owned(), |now, (a, b)| now.replace(a, b));
            let step = StepKey::new("turn", "model", "script", 0, 1).with_detail(then);
            let now_is = Now::OtherInput { input: 2 };
            let mut it = Difference::new(RunId::unique(), step, 17, json!("hi"), now_is);
            it.changed = Change::between(then, &now);
            let text = it.to_string();
            let (said, rest) = text.split_once(" (record 17 of run ").expect("where it is");
            assert!(rest.contains("then 0000000000000001, now 0000000000000002"), "{text}");
            said.strip_prefix("step turn/model:script#0 was recorded with another input")
                .expect("which step it is")
                .to_owned()
        };
        let (instruction, tools) = (("=00000001", "=a"), ("=00000003", "=c"));
        assert_eq!(said(&[instruction]), ": the instruction has changed since");
        assert_eq!(said(&[tools]), ": the tools have changed since");
        let both = ": the instruction and the tools have changed since";
        assert_eq!(said(&[instruction, tools]), both);
        let longer = ("=00000002/7", "=b/8");
        let conversation = "the conversation (7 messages then, 8 now)";
        assert_eq!(said(&[longer]), format!(": {conversation} has changed since"));
        let three = format!(": the instruction, {conversation} and the tools have changed since");
        assert_eq!(said(&[instruction, longer, tools]), three);
        // A record without parts, or a step that has none, says only that it is another.
        assert_eq!(said(&[(then, "")]), "");
        assert!(Change::between("", then).is_empty());
    }
}
