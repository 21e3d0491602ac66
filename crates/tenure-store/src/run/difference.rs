//! Where a run and its record differ.

use serde::Serialize;
use serde_json::Value;
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
    /// The difference as an error that parks the run.
    pub fn error(&self) -> Error {
        Error::replay(self.to_string())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, step, seq, recorded, now } = self;
        match now {
            Now::OtherInput { input } => write!(
                f,
                "step {step} (record {seq} of run {run}) was recorded with another input (then \
                 {:016x}, now {input:016x}); on record there is {}",
                step.input,
                Short(recorded)
            )?,
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
        };
        let text = difference.to_string();
        for part in ["turn/tool:pay#2", "record 17", "0000000000000001", "0000000000000002"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert!(text.contains(&format!("tenure restart {run} --from 17")), "{text}");
        assert!(text.len() < 800, "{text}");
        assert!(difference.error().parks());
    }
}
