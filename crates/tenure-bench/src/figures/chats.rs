//! Chats of two agents that speak in turn.
//!
//! A turn of a chat is measured against a bare turn of the same agent, with the same text to read
//! and a history that grows likewise. What it takes to begin a chat and to end it, with the start
//! and the shutdown of its agents, is taken off: that is what a chat of one turn takes, and it
//! stands beside the figures.

use super::Measured;
use crate::fakes::INPUT;
use crate::measure::{Bench, since, timed};
use crate::report::Figure;
use async_trait::async_trait;
use std::hint::black_box;
use std::time::Instant;
use tenure::agent::{Agent, Blueprint};
use tenure::context::ModelCx;
use tenure::model::{Model, ModelError, ModelRequest, ModelResponse, Usage};
use tenure_flow::route::RoundRobin;
use tenure_flow::{ChatStatus, Flow};
use tokio::runtime::Builder;
use tokio_util::task::TaskTracker;

const NAMES: [&str; 2] = ["clerk", "other"];
const INSTRUCTION: &str = "You are a clerk. Look things up before you answer.";
const ANSWER: &str = "The value of alpha is 42.";
/// What one of the two hears when the other has spoken.
const HEARD: &str = "clerk: The value of alpha is 42.";
const TURNS: usize = 100;
const LONG: usize = 1_000;
const SHORT: usize = 10;
const CHATS: usize = 1_000;

/// Answers, at once or after it has suspended once.
#[derive(Clone, Copy)]
enum Answers {
    AtOnce,
    Suspended,
}

#[async_trait]
impl Model for Answers {
    async fn call(
        &self,
        _request: &ModelRequest,
        _cx: ModelCx<'_>,
    ) -> Result<ModelResponse, ModelError> {
        if let Self::Suspended = self {
            tokio::task::yield_now().await;
        }
        Ok(ModelResponse::text(ANSWER).with_usage(Usage::new(20, 10)))
    }
}

/// The agent of every figure here. It remembers, as agents in chats do.
fn member(name: &'static str, model: Answers) -> Blueprint {
    let builder = Agent::builder(name).instruction(INSTRUCTION).model(model);
    builder.blueprint().expect("the agent is complete")
}

fn flow(turns: usize, model: Answers) -> Flow {
    let flow = Flow::builder("bench").router(RoundRobin).max_turns(turns);
    let flow = NAMES.into_iter().fold(flow, |flow, name| flow.agent(member(name, model)));
    flow.build().expect("the flow is complete")
}

/// One chat, from the start of its agents to the last of their ends.
async fn chat(flow: &Flow) {
    let report = flow.run(INPUT).await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "its turns are what ends it");
    black_box(&report);
}

/// A turn in a chat against a bare one, and whether turns grow dearer.
pub(crate) fn turns(bench: &Bench) -> Measured {
    let bare = || {
        bench.on_thread(async {
            let agent = member(NAMES[0], Answers::AtOnce).instance();
            agent.startup().await.expect("nothing can fail at startup");
            timed(TURNS, async || {
                let report = agent.run(HEARD).await.expect("the turn succeeds");
                black_box(&report);
            })
            .await
        })
    };
    let chats = |turns: usize, chats: usize| {
        bench.on_thread(async {
            let flow = flow(turns, Answers::AtOnce);
            timed(chats, async || chat(&flow).await).await
        })
    };
    let [bare, one, short, middle, long] = bench.race([
        &mut || bare(),
        &mut || chats(1, LONG / SHORT),
        &mut || chats(SHORT, LONG / SHORT),
        &mut || chats(TURNS, LONG / TURNS),
        &mut || chats(LONG, 1),
    ]);
    let per_turn = |chat: f64, turns: usize| (chat - one) / (turns - 1) as f64;
    Ok(vec![
        Figure::ratio(
            "chat_turn_ratio",
            2.0,
            ("chat_turn_ns", per_turn(middle, TURNS)),
            ("bare_turn_ns", bare),
        )
        .with("chat_of_one_turn_ns", one),
        Figure::ratio(
            "chat_growth_ratio",
            1.3,
            ("long_turn_ns", per_turn(long, LONG)),
            ("short_turn_ns", per_turn(short, SHORT)),
        ),
    ])
}

/// Very many chats at the same time, on all cores, against the same chats one after the other, on
/// as many cores. Every turn suspends once, so all of them are under way at the same time.
pub(crate) fn together(bench: &Bench) -> Measured {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let lanes = runtime.metrics().num_workers();
    let flow = flow(SHORT, Answers::Suspended);
    let mut at_once = || runtime.block_on(in_lanes(&flow, CHATS));
    let mut in_turn = || runtime.block_on(in_lanes(&flow, lanes));
    let [at_once, in_turn] = bench.race([&mut at_once, &mut in_turn]);
    let per_chat = |ns: f64| ns / CHATS as f64;
    Ok(vec![
        Figure::ratio(
            "chats_ratio",
            1.5,
            ("at_once_ns", per_chat(at_once)),
            ("in_turn_ns", per_chat(in_turn)),
        )
        .with("cores", lanes as f64),
    ])
}

/// Nanoseconds from the start of the first chat to the end of the last. The chats of a lane run one
/// after the other, the lanes at the same time.
async fn in_lanes(flow: &Flow, lanes: usize) -> f64 {
    let tracker = TaskTracker::new();
    let start = Instant::now();
    for lane in 0..lanes {
        let flow = flow.clone();
        let chats = CHATS / lanes + usize::from(lane < CHATS % lanes);
        tracker.spawn(async move {
            for _ in 0..chats {
                chat(&flow).await;
            }
        });
    }
    tracker.close();
    tracker.wait().await;
    since(start)
}
