//! One message and its answer.

use super::super::ended::{Bound, Drove, Ended};
use super::answer::Answer;
use super::talk::Talk;
use crate::exit::Exit;
use crate::terminal::print_plain;
use crate::terminal::style::{DIM, WARN, paint};
use crate::terminal::text::{count, human};
use anyhow::Result;
use std::sync::Arc;
use tenure_cards::team::{Conversation, Run, TeamError};
use tenure_core::drive::TurnReport;
use tenure_core::event::{Event, Received, Subscriber};
use tenure_core::model::Cost;
use tenure_core::{CancelToken, Error, Outcome};

/// What comes after a turn.
pub(super) enum After {
    /// The next message.
    Next,
    /// The end of the chat, with this code.
    Leave(Exit),
}

/// So many events of a turn wait to be looked at. A few lost ones do no harm here.
const WAITING: usize = 4096;

impl Talk {
    /// Says a message to an agent, and shows what it answers. Fails if nobody reads that any more.
    pub(super) async fn turn(
        &self,
        conversation: &mut Conversation,
        agent: &str,
        message: String,
    ) -> Result<After> {
        let pressed = self.stopper().interrupts().turn_begins();
        let answered = self.answered(conversation, agent, message, &pressed).await;
        self.stopper().interrupts().turn_ends();
        if let Some(keep) = &self.ears.keep {
            keep.save(&self.team, agent).await;
        }
        let is_cut = pressed.is_cancelled() || self.stopper().cause().is_some();
        Ok(self.conclude(agent, answered?, is_cut))
    }

    /// The answer, which is on the screen by then. `None` if it was cancelled before it began.
    async fn answered(
        &self,
        conversation: &mut Conversation,
        agent: &str,
        message: String,
        pressed: &CancelToken,
    ) -> Result<Option<Result<Run, TeamError>>> {
        let mut events = self.bus.subscribe(WAITING);
        let instance = self.team.agent(agent).map(|agent| agent.id());
        let mut answer = Answer::new(self.screen(), instance);
        let limit = self.team.loaded().project.config.turn_limit;
        let opening = async {
            match limit {
                Some(limit) => conversation.say_within(agent, message, limit.duration()).await,
                None => conversation.say(agent, message).await,
            }
        };
        let opened = tokio::select! {
            biased;
            // Its `before_chat` is cut off, and the ends of that run in the background.
            () = self.stopped(pressed) => return Ok(None),
            opened = opening => opened,
        };
        let mut saying = match opened {
            Ok(saying) => saying,
            Err(error) => return Ok(Some(Err(error))),
        };
        let mut questions = self.ears.flush.listen().await;
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                biased;
                () = self.stopped(pressed), if !is_cancelled => {
                    is_cancelled = true;
                    saying.cancel();
                }
                piece = saying.next() => match piece {
                    Some(piece) => answer.piece(&piece),
                    None => break,
                },
                shown = questions.next() => {
                    while let Some(piece) = saying.ready() {
                        answer.piece(&piece);
                    }
                    answer.pause();
                    shown.done();
                }
                event = next(&mut events) => answer.event(&event),
            }
        }
        let result = saying.finish().await;
        answer.end(result.as_ref().ok().map(|run| &*run.output))?;
        Ok(Some(result))
    }

    /// Waits for whatever ends a turn: Ctrl-C, a signal, or a person who left a question.
    pub(super) async fn stopped(&self, pressed: &CancelToken) {
        tokio::select! {
            () = pressed.cancelled() => {}
            () = self.stopper().stopped() => {}
            () = self.ears.left.stopped() => {}
        }
    }

    /// Says how the turn went.
    fn conclude(
        &self,
        agent: &str,
        answered: Option<Result<Run, TeamError>>,
        is_cut: bool,
    ) -> After {
        let _quiet = self.screen().hold();
        let report = match &answered {
            Some(Ok(run)) => run.turn.as_ref(),
            Some(Err(error)) => error.error().and_then(Error::report),
            None => None,
        };
        let line = report.map(spent);
        let error = answered.as_ref().and_then(|result| result.as_ref().err());
        let was_cancelled =
            answered.is_none() || error.is_some_and(|it| it.outcome() == Outcome::Cancelled);
        let is_gone = || self.team.agent(agent).is_none_or(|it| it.exit_reason().is_some());
        let is_fatal = error.is_some_and(|it| it.error().is_some_and(Error::is_fatal) || is_gone());
        let Some(result) = answered.filter(|_| !(was_cancelled && is_cut)) else {
            // Of a turn that had begun the progress tells.
            if line.is_none() {
                self.note(&paint(WARN, "cancelled"));
            }
            return After::Next;
        };
        let went_well = result.is_ok();
        let bound = self.team.loaded().project.config.turn_limit.map(Bound::Turn);
        let drove = Drove { result: Some(result), bound, ..Drove::default() };
        let ended = Ended::new(agent, drove, None, self.screen().clone());
        ended.complain();
        if let Some(line) = line.filter(|_| went_well) {
            self.note(&paint(DIM, line));
        }
        if is_fatal {
            let text = format!("the agent `{agent}` is gone, and the chat is over");
            print_plain(&paint(WARN, text));
            return After::Leave(ended.exit());
        }
        After::Next
    }
}

async fn next(events: &mut Subscriber) -> Arc<Event> {
    loop {
        match events.recv().await {
            Some(Received::Event(event)) => return event,
            Some(Received::Missed(_)) => {}
            None => std::future::pending().await,
        }
    }
}

/// How long a turn took, and what it cost.
fn spent(report: &TurnReport) -> String {
    let usage = report.usage;
    let mut parts = vec![human(report.duration)];
    if usage.total() > 0 {
        parts.push(format!("{} in, {} out", count(usage.input), count(usage.output)));
    }
    if usage.cost > Cost::ZERO {
        let more = if usage.unpriced > 0 { "+" } else { "" };
        parts.push(format!("{}{more}", usage.cost));
    }
    format!("  {}", parts.join(" · "))
}
