//! Recorded runs that are parked: what stands then, and what is counted.

use crate::semantics::support::*;
use serde_json::Value;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::ask::{Answer, Ask, Asker, PendingAsk};
use tenure_core::event::{Event, EventBus, EventKind};
use tenure_core::hook::{self, Flow};
use tenure_core::step::{MemoryStepLog, StepKey, StepLog, Steps};
use tenure_core::{BoxFuture, Error, ErrorKind, RunId};
use tokio::time::timeout;

/// A log that keeps questions.
struct Keeps {
    steps: MemoryStepLog,
    when_unanswered: Unanswered,
    trouble: Mutex<Option<Error>>,
}

impl Keeps {
    fn steps(steps: &MemoryStepLog, when_unanswered: Unanswered) -> Steps {
        let trouble = Mutex::default();
        Steps::new(Arc::new(Self { steps: steps.clone(), when_unanswered, trouble }))
    }
}

/// What the log does with a question that has no answer at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unanswered {
    Parks,
    Waits,
    /// Has the answer from elsewhere when the asker here fails.
    IsAnsweredElsewhere,
}

impl StepLog for Keeps {
    fn step<'a>(
        &'a self,
        key: StepKey,
        effect: BoxFuture<'a, Result<Value, Error>>,
    ) -> BoxFuture<'a, Result<Value, Error>> {
        let effect = async {
            let value = effect.await?;
            self.trouble().map_or(Ok(value), Err)
        };
        self.steps.step(key, Box::pin(effect))
    }

    fn trouble(&self) -> Option<Error> {
        self.trouble.lock().unwrap().clone()
    }

    fn run_id(&self) -> RunId {
        self.steps.run_id()
    }

    fn ask<'a>(
        &'a self,
        key: StepKey,
        _question: &'a PendingAsk,
        mut here: BoxFuture<'a, Result<Answer, Error>>,
    ) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let first = poll_fn(|cx| Poll::Ready(here.as_mut().poll(cx))).await;
            let answer = match (first, self.when_unanswered) {
                (Poll::Ready(answer), _) => answer?,
                (Poll::Pending, Unanswered::Parks) => {
                    let parked = Error::waiting("there is no answer yet");
                    *self.trouble.lock().unwrap() = Some(parked.clone());
                    return Err(parked);
                }
                (Poll::Pending, Unanswered::Waits) => here.await?,
                (Poll::Pending, Unanswered::IsAnsweredElsewhere) => {
                    here.await.unwrap_or_else(|_| Answer::Respond("Ada".to_owned()))
                }
            };
            let effect = async { Ok(serde_json::to_value(answer).unwrap()) };
            let record = self.steps.step(key, Box::pin(effect)).await?;
            Ok(serde_json::from_value(record).unwrap())
        })
    }

    fn keeps_asks(&self) -> bool {
        true
    }
}

fn asking(bus: &EventBus) -> AgentBuilder {
    Agent::builder("agent").model(script([say("done")])).events(bus).with_lifecycle(
        hook::before_agent(|cx, _| {
            Box::pin(async move {
                cx.ask(Ask::input("who are you?")).await?;
                Ok(Flow::Continue)
            })
        }),
    )
}

fn questions(events: &[Arc<Event>]) -> Vec<(&'static str, Arc<str>)> {
    let of = |event: &Arc<Event>| match &event.kind {
        EventKind::Asked { ask, .. }
        | EventKind::Answered { ask, .. }
        | EventKind::AskEnded { ask, .. } => Some((event.name(), ask.clone())),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[tokio::test(start_paused = true)]
async fn g1_a_question_of_a_run_that_is_parked_stands_until_a_later_life_ends_it() {
    let table = [(Unanswered::Parks, "the log parks"), (Unanswered::Waits, "the run is dropped")];
    for (when_unanswered, why) in table {
        let (bus, steps) = (EventBus::new(), MemoryStepLog::new());
        let mut subscriber = bus.subscribe(1024);
        let parking = started(asking(&bus)).await;
        let run = parking.request("go").recorded(&Keeps::steps(&steps, when_unanswered)).run();
        match timeout(ms(5), run).await {
            Ok(parked) => assert_eq!(parked.unwrap_err().kind(), ErrorKind::Waiting, "{why}"),
            Err(_) => assert_eq!(when_unanswered, Unanswered::Waits, "{why}"),
        }
        parking.ready().await.expect("a parked run leaves the agent ready");
        assert!(parking.pending_asks().is_empty(), "{why}: it is not answered here any more");
        let asked = questions(&events(&mut subscriber));
        let [("ask.requested", id)] = &asked[..] else { panic!("{why}: {asked:?}") };

        let answering = asking(&bus).on_ask(|_: &PendingAsk| Some(Answer::Respond("Ada".into())));
        let answering = started(answering).await;
        let log = Keeps::steps(&steps.resumed(), Unanswered::Waits);
        let run = answering.request("go").recorded(&log).run();
        assert_eq!(run.await.unwrap().output(), "done", "{why}");
        let asked = questions(&events(&mut subscriber));
        let expected = [("ask.requested", id.clone()), ("ask.answered", id.clone())];
        assert_eq!(asked, expected, "{why}: the same question, and its one end");
    }
}

#[tokio::test(start_paused = true)]
async fn g1_a_question_that_is_answered_elsewhere_does_not_end_with_its_asker_here() {
    struct Falls;
    #[async_trait::async_trait]
    impl Asker for Falls {
        async fn answer(&self, _ask: &PendingAsk) -> Option<Answer> {
            tokio::task::yield_now().await;
            std::panic::resume_unwind(Box::new("the asker fell over"))
        }
    }
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(1024);
    let agent = started(asking(&bus).on_ask(Falls)).await;
    let log = Keeps::steps(&MemoryStepLog::new(), Unanswered::IsAnsweredElsewhere);
    assert_eq!(agent.request("go").recorded(&log).run().await.unwrap().output(), "done");
    let asked: Vec<_> = questions(&events(&mut subscriber)).into_iter().map(|it| it.0).collect();
    assert_eq!(asked, ["ask.requested", "ask.answered"]);
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_recorded_run_that_is_cancelled_ends() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(1024);
    let agent = started(asking(&bus)).await;
    let log = Keeps::steps(&MemoryStepLog::new(), Unanswered::Waits);
    let run = agent.request("go").recorded(&log).run();
    let (result, ()) = tokio::join!(run, async {
        tokio::time::sleep(ms(5)).await;
        agent.cancel();
    });
    assert!(result.unwrap_err().is_cancelled());
    let asked: Vec<_> = questions(&events(&mut subscriber)).into_iter().map(|it| it.0).collect();
    assert_eq!(asked, ["ask.requested", "ask.ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_parked_is_counted_as_a_request_that_did_not_fail() {
    for hooked in [true, false] {
        let bus = EventBus::new();
        let mut subscriber = bus.subscribe(1024);
        let mut builder = Agent::builder("agent").model(script([Reply::Hang])).events(&bus);
        if hooked {
            builder = builder.with_lifecycle(hook::on_transition(|_| Box::pin(async { Ok(()) })));
        }
        let agent = started(builder).await;
        let run = agent.request("go").steps(MemoryStepLog::new()).run();
        assert!(timeout(ms(40), run).await.is_err());
        agent.ready().await.unwrap();
        let metrics = agent.metrics();
        assert_eq!((metrics.total_requests, metrics.failed_requests), (1, 0), "{metrics:?}");
        assert!((metrics.active_time_ms - 40.0).abs() < 2.0, "{metrics:?}");
        let is_move = |event: &&Arc<Event>| matches!(event.kind, EventKind::PhaseEntered { .. });
        let moves = events(&mut subscriber).iter().filter(is_move).count() as u64;
        assert_eq!(metrics.state_transitions, moves, "hooked: {hooked}");
        assert_eq!(moves, 5, "start 2, the turn 2, and back to idle");
    }
}
