//! The person's turn: a turn like any other, whose answer is asked for.

use async_trait::async_trait;
use std::fmt;
use tenure_core::Error;
use tenure_core::ask::{Answer, Ask};
use tenure_core::context::TurnCx;
use tenure_core::drive::Input;
use tenure_core::hook::{AgentLifecycle, Flow, HookError, Point, Points};

/// Asks the person, and gives the answer as what the turn said.
pub(crate) struct AskPerson;

#[async_trait]
impl AgentLifecycle for AskPerson {
    fn points(&self) -> Points {
        Point::BeforeAgent.into()
    }

    fn name(&self) -> &str {
        "ask_person"
    }

    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        if !cx.can_ask() {
            return Err(HookError::new(WaitsForPerson));
        }
        let answer = match cx.ask(Ask::input(input.content.text())).await? {
            Answer::Respond(text) => text,
            Answer::Edit(serde_json::Value::String(text)) => text,
            Answer::Edit(value) => value.to_string(),
            Answer::Approve => "yes".to_owned(),
            Answer::Reject(reason) => return Err(Error::denied(reason).into()),
        };
        Ok(Flow::Finish(answer.into()))
    }
}

/// A chat cannot go on without a person, and none is there.
#[derive(Debug)]
pub(crate) struct WaitsForPerson;

impl WaitsForPerson {
    /// Whether this is why something failed.
    pub(crate) fn is_behind(error: &Error) -> bool {
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            if error.is::<Self>() {
                return true;
            }
            cause = error.source();
        }
        false
    }
}

impl fmt::Display for WaitsForPerson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the chat waits for a person, and nobody is there to ask")
    }
}

impl std::error::Error for WaitsForPerson {}
