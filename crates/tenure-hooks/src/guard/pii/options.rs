//! What `pii` takes by `with`.

use super::{Custom, Detector, Pii, Strategy};
use crate::ready::{About, Makings, Options, Pattern, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tenure_core::hook::{IntoRegistration, Registration};

/// What `pii` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::guard) struct PiiOptions {
    /// What is looked for; without it, everything but `url`.
    detect: Option<Vec<Detector>>,
    /// What is done with whatever is found: `redact` (`[REDACTED_EMAIL]`), `mask` (the last four
    /// digits are left, and the host of an e-mail address), `hash` (`<email_hash:0a1b2c3d4e5f>`) or
    /// `block` (the turn or the call is refused).
    strategy: Strategy,
    /// What is done with what single detectors find, by their names.
    strategies: BTreeMap<Detector, Strategy>,
    /// Patterns of your own.
    patterns: Vec<OwnPattern>,
    /// Where it is looked: `input` (what enters the agent), `output` (what the model says, and the
    /// arguments of its calls) and `tool_results`.
    apply_to: Vec<Place>,
    /// Tools whose arguments and results are left alone, by name; `*` stands for any text.
    except_tools: Vec<String>,
    /// What is hashed together with each value, so that nobody can find one by trying.
    salt: String,
    /// What the record of a run, logs, events and exports have of what is found: `redact` takes it out
    /// there too; `keep` leaves it in clear. Where `apply_to` or `except_tools` leave something to the
    /// agent, its record keeps that.
    record: InRecord,
}

/// What becomes of what is found in what is stored, shown and exported.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum InRecord {
    /// It is taken out.
    #[default]
    Redact,
    /// It stays in clear.
    Keep,
}

/// A pattern of somebody's own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OwnPattern {
    /// Its name: small letters, digits and `_`. `employee_id` is redacted as `[REDACTED_EMPLOYEE_ID]`.
    name: String,
    /// The regular expression.
    pattern: Pattern,
    /// What is done with it; without it, what `strategy` says.
    strategy: Option<Strategy>,
}

/// Where it is looked.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Place {
    /// What enters the agent.
    Input,
    /// What the model says, and the arguments of its calls.
    Output,
    /// What tools answer.
    ToolResults,
}

impl Default for PiiOptions {
    fn default() -> Self {
        Self {
            detect: None,
            strategy: Strategy::default(),
            strategies: BTreeMap::new(),
            patterns: Vec::new(),
            apply_to: vec![Place::Input, Place::Output, Place::ToolResults],
            except_tools: Vec::new(),
            salt: String::new(),
            record: InRecord::default(),
        }
    }
}

impl Options for PiiOptions {
    const ABOUT: About = About {
        name: "pii",
        summary: "Takes personal data and secrets out of input, answers and tool results.",
        covers: &["UC-1.1", "UC-4.4"],
        peers: &["PIIMiddleware"],
        example: r#"{ "strategies": { "credit_card": "mask", "private_key": "block" } }"#,
    };

    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal> {
        let mut pii = Pii::new().strategy(self.strategy).salt(self.salt);
        if let Some(detect) = self.detect {
            if detect.is_empty() && self.patterns.is_empty() {
                return Err(Refusal::new(
                    "detect",
                    "there is nothing to look for; name a detector",
                ));
            }
            pii = pii.detect(detect);
        }
        for (detector, strategy) in self.strategies {
            if !pii.detectors.contains(&detector) {
                let name = detector.as_str();
                return Err(Refusal::new(
                    format!("strategies.{name}"),
                    format!("`{name}` is not looked for; add it to `detect`"),
                ));
            }
            pii = pii.strategy_of(detector, strategy);
        }
        for (at, OwnPattern { name, pattern, strategy }) in self.patterns.into_iter().enumerate() {
            if pii.patterns.iter().any(|(other, _)| *other.name == *name) {
                let message = format!("two patterns have the name `{name}`; give each its own");
                return Err(Refusal::new(format!("patterns[{at}].name"), message));
            }
            let custom = Custom::new(&name, &pattern.text)
                .map_err(|why| Refusal::new(format!("patterns[{at}]"), why))?;
            pii.patterns.push((custom, strategy));
        }
        if self.apply_to.is_empty() {
            let message = "it looks nowhere; name `input`, `output` or `tool_results`";
            return Err(Refusal::new("apply_to", message));
        }
        let applies = |place| self.apply_to.contains(&place);
        pii.input = applies(Place::Input);
        pii.output = applies(Place::Output);
        pii.tool_results = applies(Place::ToolResults);
        let uses_hash = [pii.strategy]
            .into_iter()
            .chain(pii.strategies.values().copied())
            .chain(pii.patterns.iter().filter_map(|(_, strategy)| *strategy))
            .any(|strategy| strategy == Strategy::Hash);
        if uses_hash && pii.salt.is_empty() {
            let message = "without a salt, values of which there are few can be found by trying";
            makings.warn("salt", message.to_owned());
        }
        pii.except_tools = self.except_tools;
        pii.record = self.record == InRecord::Redact;
        Ok(pii.into_registration())
    }
}
