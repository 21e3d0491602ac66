//! A cancel, wherever the chat stands: it ends at once, and in order.

use crate::engine::support::{Log, Plan, Spy, agent};
use async_trait::async_trait;
use std::time::Duration;
use tenure_core::agent::Agent;
use tenure_core::ask::Ask;
use tenure_core::chat::ChatEnd;
use tenure_core::context::{ChatCx, InstanceCx};
use tenure_core::hook::{AgentLifecycle, Flow as Go, HookError, Point, Points};
use tenure_core::model::ModelErrorKind;
use tenure_core::{CancelCause, CancelToken, Error, Outcome};
use tenure_flow::contract::{ErrorStrategy, Stage};
use tenure_flow::route::{RouteCx, Router, RoutingDecision};
use tenure_flow::{ChatReport, ChatStatus, Flow};
use tenure_models::{Failing, Hanging, Passthrough};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(2);

/// Runs a chat, cancels it after two seconds of its time, and says how long it took then.
async fn cancelled(flow: &Flow) -> (ChatReport, Duration) {
    stopped(flow, CancelToken::cancel).await
}

async fn stopped(flow: &Flow, stop: fn(&CancelToken)) -> (ChatReport, Duration) {
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(SOON).await;
        stop(&token);
        Instant::now()
    };
    let chat = async {
        let report = flow.chat().message("go").cancel_on(&token).run().await;
        (report, Instant::now())
    };
    let ((report, ended), at) = tokio::join!(chat, cancel);
    (report, ended.saturating_duration_since(at))
}

/// Waits at one point for ever.
struct Waits(Point);

#[async_trait]
impl AgentLifecycle for Waits {
    fn points(&self) -> Points {
        self.0.into()
    }

    fn name(&self) -> &str {
        "waits"
    }

    async fn on_start(&self, _cx: InstanceCx<'_>) -> Result<(), HookError> {
        std::future::pending().await
    }

    async fn before_chat(&self, _cx: ChatCx<'_>) -> Result<Go, HookError> {
        std::future::pending().await
    }

    async fn after_chat(&self, cx: ChatCx<'_>, _end: &ChatEnd) -> Result<(), HookError> {
        cx.ask(Ask::input("may I go?")).await?;
        Ok(())
    }
}

/// Never decides; by itself, or because its helper never answers.
struct Undecided(Option<&'static str>);

#[async_trait]
impl Router for Undecided {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, Error> {
        if let Some(helper) = self.0 {
            cx.consult(helper, "who?".to_owned()).await?;
        }
        std::future::pending().await
    }

    fn name(&self) -> &str {
        "undecided"
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_chat_at_once_wherever_it_stands() {
    let cancelled = (ChatStatus::Cancelled, Stage::Cancelled, Outcome::Cancelled);
    wherever_it_stands(CancelToken::cancel, cancelled).await;
}

/// The same, and every end sees that it was the time, and nobody's wish.
#[tokio::test(start_paused = true)]
async fn a_chat_whose_time_is_up_has_timed_out_wherever_it_stands() {
    let late = (ChatStatus::Failed, Stage::Failed, Outcome::TimedOut);
    wherever_it_stands(|token| token.cancel_for(CancelCause::TimeIsUp), late).await;
}

async fn wherever_it_stands(stop: fn(&CancelToken), end: (ChatStatus, Stage, Outcome)) {
    for place in
        ["start", "before_chat", "turn", "route", "consult", "ask", "backoff", "after_chat"]
    {
        let (log, spy) = (Log::new(), Spy::default());
        let own = |builder: tenure_core::agent::AgentBuilder| {
            builder.with_lifecycle(spy.clone()).blueprint().expect("it can be built")
        };
        let flow = Flow::builder("one").events(&log.bus).with_lifecycle(spy.clone());
        let echo = || log.builder("a", Passthrough::new());
        let flow = match place {
            "start" => flow.agent(own(echo().with_lifecycle(Waits(Point::OnStart)))),
            "before_chat" => flow.agent(own(echo())).with_lifecycle(Waits(Point::BeforeChat)),
            "turn" => flow.agent(own(log.builder("a", Hanging::new()))),
            "route" => flow.agent(own(echo())).router(Undecided(None)),
            "consult" => flow
                .agent(own(echo()))
                .helper(own(log.builder("h", Hanging::new())))
                .router(Undecided(Some("h"))),
            "ask" => flow.agent(own(echo())).user(true).router(Plan::new(["user"])),
            "backoff" => {
                let hour = Duration::from_secs(3600);
                let retry = ErrorStrategy::Retry { attempts: 3, backoff: hour };
                let fails = log.builder("a", Failing::new(ModelErrorKind::Overloaded));
                flow.agent(own(fails)).error_strategy(retry)
            }
            _ => flow
                .agent(own(echo()))
                .with_lifecycle(Waits(Point::AfterChat))
                .router(Plan::new(["a"])),
        };
        let (report, took) = stopped(&flow.build().expect("a flow"), stop).await;
        assert!(took < Duration::from_millis(10), "{place}: {took:?}");
        let notes = spy.notes();
        // What was over is over: a cancel in the ends changes nothing but that nobody waits.
        let status = match place {
            "after_chat" => ChatStatus::Completed,
            _ => end.0,
        };
        assert_eq!(report.status, status, "{place}: {:?}", report.error);
        if place != "after_chat" {
            assert_eq!((report.stage, report.outcome), (end.1, end.2), "{place}");
        }
        // Turns that had failed before have, and what was over is over.
        let is_cut = |note: &&String| match place {
            "after_chat" => false,
            "backoff" => note.starts_with("after_chat"),
            _ => note.starts_with("after_"),
        };
        for note in notes.iter().filter(is_cut) {
            assert!(note.ends_with(end.2.as_str()), "{place}: {note}");
        }
        assert_eq!(spy.count("start"), spy.count("shutdown"), "{place}: {notes:?}");
        assert_eq!(spy.count("before_agent"), spy.count("after_agent"), "{place}: {notes:?}");
        assert_eq!(spy.count("before_chat"), spy.count("after_chat"), "{place}: {notes:?}");
        let names = log.names();
        let at = |wanted: &str| names.iter().rposition(|name| *name == wanted);
        assert!(at("agent.turn.ended") <= at("chat.ended"), "{place}: {names:?}");
        assert!(at("chat.ended") < at("chat.status"), "{place}: {names:?}");
        // Nobody stops before all the other ends are over; who never came to the spy's own start
        // has none.
        let stops = notes.iter().position(|it| it.starts_with("shutdown"));
        assert_eq!(stops.is_none(), place == "start", "{place}: {notes:?}");
        let last = &notes[stops.unwrap_or(notes.len())..];
        assert!(last.iter().all(|it| it.starts_with("shutdown")), "{place}: {notes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chat_that_is_given_up_ends_in_the_background_and_cancels_nobody_else() {
    let spy = Spy::default();
    let own = Agent::builder("a").model(Hanging::new()).with_lifecycle(spy.clone());
    let flow = Flow::builder("one")
        .agent(own.blueprint().expect("it can be built"))
        .with_lifecycle(spy.clone());
    let flow = flow.build().expect("a flow");
    let token = CancelToken::new();
    let chat = flow.chat().message("go").cancel_on(&token).run();
    assert!(tokio::time::timeout(SOON, chat).await.is_err());
    flow.settled().await;
    assert!(!token.is_cancelled(), "the token is somebody else's");
    let ends = ["after_agent a cancelled", "after_chat cancelled", "after_chat cancelled"];
    assert_eq!(spy.notes()[spy.notes().len() - 4..][..3], ends, "{:?}", spy.notes());
    assert_eq!(spy.notes().last().unwrap(), "shutdown a");
}

#[tokio::test(start_paused = true)]
async fn one_token_cancels_all_the_chats_it_was_handed_to_and_a_flow_all_of_its_own() {
    let flow = Flow::builder("one").agent(agent("a", Hanging::new())).build().expect("a flow");
    let token = CancelToken::new();
    let chat = || flow.chat().message("go").cancel_on(&token).run();
    let cancel = async {
        tokio::time::sleep(SOON).await;
        token.cancel();
    };
    let (first, second, ()) = tokio::join!(chat(), chat(), cancel);
    assert_eq!([first.status, second.status], [ChatStatus::Cancelled; 2]);
    // A chat that is begun with a cancelled token starts nobody.
    let third = chat().await;
    assert_eq!((third.status, third.turns), (ChatStatus::Cancelled, 0));
    let cancel = async {
        tokio::time::sleep(SOON).await;
        flow.cancel();
    };
    let (fourth, ()) = tokio::join!(flow.run("go"), cancel);
    assert_eq!(fourth.status, ChatStatus::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn what_the_chats_ends_ask_after_a_cancel_is_not_waited_for() {
    // Somebody listens, so a question would stand.
    let log = Log::new();
    let flow = Flow::builder("one").events(&log.bus).agent(log.agent("a", Hanging::new()));
    let flow = flow.with_lifecycle(Waits(Point::AfterChat)).build().expect("a flow");
    let (report, took) = cancelled(&flow).await;
    assert_eq!((report.status, report.turns), (ChatStatus::Cancelled, 1));
    assert!(took < Duration::from_millis(10), "{took:?}");
}

/// Takes a second to end a turn.
struct Lingers;

#[async_trait]
impl AgentLifecycle for Lingers {
    fn points(&self) -> Points {
        Point::AfterAgent.into()
    }

    fn name(&self) -> &str {
        "lingers"
    }

    async fn after_agent(
        &self,
        _cx: tenure_core::context::TurnCx<'_>,
        _end: &mut tenure_core::drive::TurnEnd<'_>,
    ) -> Result<tenure_core::hook::After, HookError> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(tenure_core::hook::After::Done)
    }
}

#[tokio::test(start_paused = true)]
async fn a_helper_that_is_being_asked_ends_its_turn_before_the_chat_ends() {
    let (log, spy) = (Log::new(), Spy::default());
    let helper = log.builder("h", Hanging::new()).with_lifecycle(spy.clone());
    let helper = helper.with_lifecycle(Lingers).blueprint().expect("it can be built");
    let flow = Flow::builder("one").events(&log.bus).with_lifecycle(spy.clone()).helper(helper);
    let flow = flow.agent(agent("a", Passthrough::new())).router(Undecided(Some("h")));
    let (report, _) = cancelled(&flow.build().expect("a flow")).await;
    assert_eq!(report.status, ChatStatus::Cancelled);
    let notes = spy.notes();
    let at = |note: &str| notes.iter().position(|it| it == note);
    let (turn, chat) = (at("after_agent h cancelled"), at("after_chat cancelled"));
    assert!(turn.is_some() && turn < chat, "{notes:?}");
}
