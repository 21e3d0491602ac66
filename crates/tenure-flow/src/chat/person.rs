//! The person's turn in a chat.

use super::talk::Talk;
use super::{Cast, ChatMessage, Speaker};
use crate::contract::Stage;
use crate::flow::StartupMode;
use crate::route::{RoutingDecision, Target};
use crate::wait::unless_cancelled;
use serde_json::json;
use std::pin::pin;
use tenure_core::Error;
use tenure_core::chat::Chat;

/// What the person is asked if nobody has said anything that they get to see.
const YOUR_TURN: &str = "What would you like to say?";

impl Talk {
    /// The person's turn. It does not count against `max_turns`, but there are never more of them
    /// in a row.
    ///
    /// A person who says nothing is not quoted: the agent that asked goes on, and who says nothing
    /// twice in a row has nothing more to say: the chat is complete.
    pub(super) async fn ask_user(&mut self, chat: &Chat, cast: &Cast) -> Result<(), Error> {
        let Some(user) = &cast.user else {
            return Err(Error::orchestration("the person is next, and takes no part"));
        };
        let most = self.flow.inner.max_turns;
        if self.user_turns >= most {
            return Err(Error::max_turns(most));
        }
        self.prepare(chat, cast, "user").await?;
        self.user_turns += 1;
        self.after_user = true;
        let place = cast.place_of_person();
        self.select(cast, &place, user, "user");
        self.enter(cast, &place, Stage::Execute, || json!({ "agent": "user" }));
        let request = cast.of_person(user.request(self.question()).in_chat(chat));
        let report = match request.run().await {
            Ok(report) => report,
            Err(error) if error.parks() => return Err(error),
            Err(_) if cast.token.is_cancelled() => return Err(Error::cancelled()),
            Err(error) => {
                if let Some(report) = error.report() {
                    self.failures.extend(report.failures.iter().cloned());
                }
                let message = format!("the person's turn: {error}");
                return Err(Error::orchestration(message).because(error));
            }
        };
        let mut led_to = Ok(());
        let text = report.output().trim();
        if text.is_empty() {
            self.silences += 1;
            self.next = Some(self.after_silence());
        } else {
            self.silences = 0;
            self.after_user = !self.begins();
            let mut message = ChatMessage::new(Speaker::User, text, self.turns);
            let hidden = match &self.session {
                Some(session) => session.after_message(chat, "user", text),
                None => Ok(false),
            };
            // It was said, whatever that led to.
            message.hidden = hidden.as_ref().is_ok_and(|hidden| *hidden);
            self.say(cast, message);
            led_to = hidden.map(drop);
        }
        self.failures.extend(report.failures);
        led_to?;
        if let Some(session) = &self.session {
            let written = pin!(session.after_turn(chat));
            unless_cancelled(written, &cast.token, || false).await.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    /// Whether the person is about to say the first thing of a chat that they begin. That is not a
    /// turn after which handoffs are looked at: it is the same as a message that the chat was given.
    fn begins(&self) -> bool {
        self.flow.inner.startup == StartupMode::UserDriven
            && self.last_agent.is_none()
            && !self.messages.iter().any(|message| message.speaker == Speaker::User)
    }

    fn after_silence(&self) -> RoutingDecision {
        match &self.last_agent {
            _ if self.silences > 1 => RoutingDecision::end("the person said nothing twice"),
            Some(agent) => {
                RoutingDecision::agent(agent.clone(), "the person said nothing, and it goes on")
            }
            None => RoutingDecision::new(Target::User, "the person said nothing"),
        }
    }

    /// What the person is asked: the last thing they get to see, and who said it.
    fn question(&self) -> String {
        let seen = self.messages.iter().rev().find(|message| !message.hidden);
        match seen {
            Some(last) if last.speaker != Speaker::User => last.heard(),
            _ => YOUR_TURN.to_owned(),
        }
    }
}
