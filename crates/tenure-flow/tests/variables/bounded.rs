//! Databases that take their time: nobody waits for them for ever, and a cancel not at all.

use crate::variables::support::variables;
use async_trait::async_trait;
use serde_json::{Map, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::CancelToken;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::model::Model;
use tenure_flow::route::{RouteCx, Router, RoutingDecision, Target};
use tenure_flow::variables::{
    DataEntity, DataReference, Database, DatabaseError, Definition, Document, Index, Kind, Query,
    Refresh, Source, Variables, WriteStrategy,
};
use tenure_flow::{ChatReport, ChatStatus, Flow};
use tenure_models::{Hanging, Passthrough};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// How long reads and writes take from which one on, and what was written.
#[derive(Default)]
struct Slow {
    read: Option<(usize, Duration)>,
    write: Option<Duration>,
    fails: Option<usize>,
    reads: AtomicUsize,
    puts: Mutex<Vec<Document>>,
}

#[async_trait]
impl Database for Slow {
    async fn find(&self, _: &str, _: &Query, _: usize) -> Result<Vec<Document>, DatabaseError> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        if self.fails.is_some_and(|from| read >= from) {
            return Err(DatabaseError::new("it is out of order"));
        }
        if let Some((from, takes)) = self.read
            && read >= from
        {
            tokio::time::sleep(takes).await;
        }
        Ok(vec![Map::new()])
    }

    async fn insert(&self, _: &str, _: &Document) -> Result<(), DatabaseError> {
        Ok(())
    }

    async fn update(&self, _: &str, _: &Query, _: &Document) -> Result<usize, DatabaseError> {
        Ok(1)
    }

    async fn put(&self, _: &str, _: &Query, document: &Document) -> Result<(), DatabaseError> {
        if let Some(takes) = self.write {
            tokio::time::sleep(takes).await;
        }
        self.puts.lock().expect("it is whole").push(document.clone());
        Ok(())
    }

    async fn index(&self, _: &str, _: &Index) -> Result<(), DatabaseError> {
        Ok(())
    }
}

/// A variable that is read again before every turn of somebody else.
fn reference(database: Slow) -> Variables {
    let mut it = DataReference::new("shop", "orders");
    it.refresh = Refresh::PerPhase;
    let order = Definition::new("order", Kind::Dict, Source::DataReference(it));
    variables(vec![order]).database("shop", Arc::new(database))
}

/// A variable that is written.
fn entity(database: Arc<Slow>, write: WriteStrategy) -> Variables {
    let mut it = DataEntity::default();
    it.database_name = "shop".into();
    it.collection = "orders".into();
    it.search_by = "chat_id".into();
    it.write = write;
    let order = Definition::new("order", Kind::Dict, Source::DataEntity(it));
    variables(vec![order]).database("shop", database)
}

fn agent(model: impl Model) -> Blueprint {
    Agent::builder("a").model(model).blueprint().expect("it can be built")
}

/// This one speaks once.
struct Once(Target);

#[async_trait]
impl Router for Once {
    async fn route(&self, cx: &RouteCx<'_>) -> Result<RoutingDecision, tenure_core::Error> {
        Ok(match cx.turn == 0 && !cx.after_user {
            true => RoutingDecision::new(self.0.clone(), "it is first"),
            false => RoutingDecision::end("it has spoken"),
        })
    }

    fn name(&self) -> &str {
        "once"
    }
}

fn flow(variables: Variables, model: impl Model, first: Target) -> Flow {
    let flow = Flow::builder("x").agent(agent(model)).user(true).router(Once(first));
    flow.variables(Arc::new(variables)).build().expect("a flow")
}

fn agent_first() -> Target {
    Target::Agent("a".into())
}

/// Runs a chat that has an order, and says how long it took. One that takes an hour hangs.
async fn timed(flow: &Flow, token: &CancelToken) -> (ChatReport, Duration) {
    let began = Instant::now();
    let chat = flow.chat().message("go").cancel_on(token);
    let given = flow.name() == "gives";
    let chat = if given { chat.variable("order", json!({ "a": 1 })) } else { chat };
    let report = tokio::time::timeout(HOUR, chat.run()).await.expect("it ends within an hour");
    (report, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_a_reference_is_read_again_ends_the_chat() {
    for first in [agent_first(), Target::User] {
        let slow = Slow { read: Some((0, 4 * SECOND)), ..Slow::default() };
        let flow = flow(reference(slow), Hanging::new(), first.clone());
        let token = CancelToken::new();
        let cancel = async {
            // The first read is the start's.
            tokio::time::sleep(6 * SECOND).await;
            token.cancel();
        };
        let ((report, took), ()) = tokio::join!(timed(&flow, &token), cancel);
        assert_eq!(report.status, ChatStatus::Cancelled, "{first:?}: {:?}", report.error);
        // Nobody waits for the read, and no turn begins after it.
        assert!(took < 7 * SECOND, "{first:?}: {took:?}");
        assert_eq!((report.turns, report.turn_summaries.len()), (0, 0), "{first:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_database_that_never_answers_fails_the_chat_within_its_limit() {
    for (from, least) in [(0, 30 * SECOND), (1, 30 * SECOND)] {
        let slow = Slow { read: Some((from, 10 * HOUR)), ..Slow::default() };
        let flow = flow(reference(slow), Passthrough::new(), agent_first());
        let (report, took) = timed(&flow, &CancelToken::new()).await;
        assert_eq!(report.status, ChatStatus::Failed, "{from}");
        let error = report.error.expect("it failed").to_string();
        assert!(error.contains("`order`"), "{error}");
        assert!(error.contains("did not answer within 30s"), "{error}");
        assert!(took >= least && took < least + SECOND, "{from}: {took:?}");
    }
    let slow = Slow { read: Some((0, 10 * HOUR)), ..Slow::default() };
    let short = reference(slow).data_limits(2 * SECOND, SECOND);
    let (report, took) =
        timed(&flow(short, Passthrough::new(), agent_first()), &CancelToken::new()).await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert!(took >= 2 * SECOND && took < 3 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_database_that_never_writes_does_not_keep_the_end_of_a_chat() {
    for (write, cancels, status, most) in [
        // Once to write what the talk has left, and once after the chat's own ends.
        (WriteStrategy::OnWorkflowEnd, false, ChatStatus::Failed, 10),
        // A cancel is not kept by the first, and the second has its limit.
        (WriteStrategy::OnWorkflowEnd, true, ChatStatus::Cancelled, 6),
        (WriteStrategy::Immediate, true, ChatStatus::Cancelled, 6),
    ] {
        let slow = Arc::new(Slow { write: Some(10 * HOUR), ..Slow::default() });
        let flow = Flow::builder("gives")
            .agent(agent(Passthrough::new()))
            .router(Once(agent_first()))
            .variables(Arc::new(entity(slow, write)))
            .build()
            .expect("a flow");
        let token = CancelToken::new();
        let cancel = async {
            if cancels {
                tokio::time::sleep(SECOND).await;
                token.cancel();
            }
        };
        let ((report, took), ()) = tokio::join!(timed(&flow, &token), cancel);
        assert_eq!(report.status, status, "{:?}", report.error);
        assert!(took <= most * SECOND + SECOND / 10, "{status}: {took:?}");
        if !cancels {
            let error = report.error.expect("it failed").to_string();
            assert!(error.contains("could not be written within 5s"), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_chat_still_writes_what_can_be_written() {
    let slow = Arc::new(Slow { write: Some(SECOND), ..Slow::default() });
    let flow = Flow::builder("gives")
        .agent(agent(Hanging::new()))
        .router(Once(agent_first()))
        .variables(Arc::new(entity(slow.clone(), WriteStrategy::OnWorkflowEnd)))
        .build()
        .expect("a flow");
    let token = CancelToken::new();
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        token.cancel();
    };
    let ((report, took), ()) = tokio::join!(timed(&flow, &token), cancel);
    assert_eq!(report.status, ChatStatus::Cancelled);
    assert!(took < 3 * SECOND, "{took:?}");
    assert_eq!(slow.puts.lock().expect("it is whole").len(), 1);
}

#[tokio::test]
async fn a_document_that_did_not_change_is_written_once() {
    for (given, puts) in [(true, 1), (false, 0)] {
        let slow = Arc::new(Slow::default());
        let name = if given { "gives" } else { "x" };
        let flow = Flow::builder(name)
            .agent(agent(Passthrough::new()))
            .max_turns(3)
            .variables(Arc::new(entity(slow.clone(), WriteStrategy::Immediate)))
            .build()
            .expect("a flow");
        let (report, _) = timed(&flow, &CancelToken::new()).await;
        assert_eq!((report.status, report.turns), (ChatStatus::MaxTurns, 3));
        let written = slow.puts.lock().expect("it is whole").len();
        assert_eq!(written, puts, "what the database has already is not written again");
    }
}

#[tokio::test]
async fn a_turn_that_could_not_begin_is_not_counted() {
    let slow = Slow { fails: Some(1), ..Slow::default() };
    let flow = flow(reference(slow), Passthrough::new(), agent_first());
    let (report, _) = timed(&flow, &CancelToken::new()).await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert!(report.error.expect("it failed").to_string().contains("out of order"));
    assert_eq!((report.turns, report.turn_summaries.len()), (0, 0));
}
