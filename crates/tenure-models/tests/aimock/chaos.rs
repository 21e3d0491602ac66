//! Many calls of whole agents to a server that fails in every way it can.
//!
//! The server keeps a journal. So it is not only known how every run ended, but also what the
//! server did to it, and how many tool calls it handed out.

use crate::aimock::agents::{Counted, Lookup, Way, agent, started};
use crate::aimock::journal::{Entry, journal};
use crate::aimock::server::Aimock;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;
use tenure_core::model::ModelErrorKind::{self, Malformed, Overloaded, RateLimited, Transport};
use tokio::time::timeout;

/// How many calls the long form makes, which is that of `scripts/test --long`, and how many the short one.
const LONG: usize = 2_000;
const SHORT: usize = 400;
const SIDE_BY_SIDE: usize = 16;
/// No run takes a tenth of this; it is here so that one that hangs is named.
const RUN: Duration = Duration::from_secs(30);
const FLAGS: [&str; 8] = [
    "--chaos-drop",
    "0.06",
    "--chaos-malformed",
    "0.06",
    "--chaos-ratelimit",
    "0.06",
    "--chaos-disconnect",
    "0.06",
];
/// Where streams are cut: from before the first piece that says something to behind the last.
const CUTS: usize = 8;

/// What the agents are asked, in turns. What they have to do is in the words.
fn question(run: usize) -> String {
    let round = run / Way::ALL.len();
    let task = match round % 6 {
        0 => "say hello".to_owned(),
        1 => "call one tool".to_owned(),
        2 => "call three tools".to_owned(),
        3 => format!("call and be cut after {}.", round / 6 % CUTS + 1),
        4 => format!("speak and be cut after {}.", round / 6 % CUTS + 1),
        _ => "wait your turn".to_owned(),
    };
    format!("run {run}: {task}")
}

fn fixtures() -> Vec<Value> {
    let call = |key: &str| json!({ "name": "lookup", "arguments": { "key": key } });
    let calls = json!({ "toolCalls": [call("alpha"), call("beta")] });
    let text = json!({ "content": "Forty-two is the answer to everything." });
    let mut fixtures = vec![
        json!({ "match": { "hasToolResult": true }, "chunkSize": 8, "response": text }),
        json!({ "match": { "userMessage": "say hello" }, "chunkSize": 8, "response": text }),
        json!({
            "match": { "userMessage": "call one tool" }, "chunkSize": 8,
            "response": { "toolCalls": [call("alpha")] },
        }),
        json!({
            "match": { "userMessage": "call three tools" }, "chunkSize": 8,
            "response": { "toolCalls": [call("alpha"), call("beta"), call("gamma")] },
        }),
        json!({
            "match": { "userMessage": "wait your turn" },
            "response": {
                "error": { "message": "not yet", "type": "rate_limit_error" },
                "status": 429, "retryAfter": 7,
            },
        }),
    ];
    for after in 1..=CUTS {
        for (task, response) in [("call", &calls), ("speak", &text)] {
            fixtures.push(json!({
                "match": { "userMessage": format!("{task} and be cut after {after}.") },
                "chunkSize": 6, "latency": 2, "truncateAfterChunks": after,
                "response": response,
            }));
        }
    }
    fixtures
}

/// How a run ended.
struct Run {
    number: usize,
    way: Way,
    /// The answer, or the kind of the error and when to come back.
    end: Result<String, (ModelErrorKind, Option<Duration>)>,
    /// The ids of the tool calls that were made.
    calls: Vec<String>,
}

async fn run(number: usize, way: Way, model: Counted) -> Run {
    let tool = Lookup::default();
    let question = question(number);
    let turn = timeout(RUN, async {
        let agent = started(agent(model, &tool)).await;
        let turn = way.run(agent.request(question.as_str())).await;
        agent.shutdown().await;
        turn
    });
    let turn = turn.await.unwrap_or_else(|_| panic!("`{question}` ({way}) did not end"));
    let end = turn.result.map(|report| report.output().to_owned()).map_err(|error| {
        let cause = error.model_error();
        let cause = cause.unwrap_or_else(|| panic!("`{question}` ({way}): untyped: {error:?}"));
        assert_ne!(cause.kind(), ModelErrorKind::Other, "`{question}` ({way}): {cause:?}");
        (cause.kind(), cause.retry_after())
    });
    let calls = tool.seen().into_iter().map(|(id, _)| id).collect();
    Run { number, way, end, calls }
}

/// What has to come of a run whose last request the server answered like this.
fn check_end(run: &Run, last: &Entry) {
    let (way, end) = (run.way, &run.end);
    let at = format!("run {} ({way}), {end:?}, {last:?}", run.number);
    let kind = end.as_ref().map_err(|(kind, _)| *kind).err();
    match (last.chaos.as_deref(), last.status) {
        (Some("drop"), 500) => assert_eq!(kind, Some(Overloaded), "{at}"),
        (Some("malformed"), 200) => assert_eq!(kind, Some(Malformed), "{at}"),
        (Some("disconnect"), 0) => assert_eq!(kind, Some(Transport), "{at}"),
        (Some("rateLimit"), 429) => {
            assert_eq!(*end, Err((RateLimited, Some(Duration::from_secs(1)))), "{at}");
        }
        (None, 429) => assert_eq!(*end, Err((RateLimited, Some(Duration::from_secs(7)))), "{at}"),
        (None, 200) if last.interrupted => assert_eq!(kind, last.cut(), "{at}"),
        (None, 200) => {
            let text = "Forty-two is the answer to everything.";
            assert_eq!(end.as_deref().ok(), Some(text), "{at}");
        }
        _ => panic!("the server did something unheard of: {at}"),
    }
}

/// What the server did to a request, in a word.
fn done_to(entry: &Entry) -> &str {
    match (entry.chaos.as_deref(), entry.interrupted, entry.status) {
        (Some(chaos), ..) => chaos,
        (None, true, _) => "cut",
        (None, false, 200) => "whole",
        (None, false, _) => "limited",
    }
}

#[tokio::test]
async fn calls_under_chaos_all_end_with_a_typed_outcome_and_no_tool_runs_twice() {
    let is_long = std::env::var_os("TENURE_LONG").is_some_and(|value| !value.is_empty());
    let wanted_calls = if is_long { LONG } else { SHORT };
    let server = Aimock::start(&fixtures(), &FLAGS);
    let models = Way::ALL.map(|way| Counted::new(way.model(&server)));
    let called = || models.iter().map(Counted::calls).sum::<usize>();

    let runs = Mutex::new(Vec::new());
    stream::iter((0..).take_while(|_| called() < wanted_calls))
        .for_each_concurrent(SIDE_BY_SIDE, async |number: usize| {
            let at = number % Way::ALL.len();
            let run = run(number, Way::ALL[at], models[at].clone()).await;
            runs.lock().expect("nobody panicked").push(run);
        })
        .await;
    let runs = runs.into_inner().expect("nobody panicked");

    let mut entries: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
    let mut requests = 0;
    for entry in journal(&server) {
        let number = entry.user.strip_prefix("run ").and_then(|user| user.split_once(':'));
        let number = number.unwrap_or_else(|| panic!("whose request is this? {entry:?}")).0;
        entries.entry(number.parse().expect("a number")).or_default().push(entry);
        requests += 1;
    }
    assert!(requests >= wanted_calls, "only {requests} requests");
    assert_eq!(requests, called(), "a call is one request: none is lost, none tried in silence");

    let mut ids = HashSet::new();
    let mut table: BTreeMap<(Way, String, String), usize> = BTreeMap::new();
    for run in &runs {
        let entries = &entries[&run.number];
        let last = entries.last().expect("a run has a request");
        check_end(run, last);
        // A tool runs exactly as often as the server handed out a whole call of it.
        let handed_out: usize = entries.iter().map(Entry::handed_out).sum();
        assert_eq!(run.calls.len(), handed_out, "run {} ({}): {entries:?}", run.number, run.way);
        for id in &run.calls {
            assert!(ids.insert(id.clone()), "{id} was called twice, in run {}", run.number);
        }
        let end = match &run.end {
            Ok(_) => "ok".to_owned(),
            Err((kind, after)) => match after {
                Some(after) => format!("{kind:?}, retry after {after:?}"),
                None => format!("{kind:?}"),
            },
        };
        *table.entry((run.way, done_to(last).to_owned(), end)).or_default() += 1;
    }

    println!("{} runs, {requests} calls, {} tool calls", runs.len(), ids.len());
    for ((way, done, end), count) in &table {
        println!("{way:<20} {done:<11} {end:<30} {count:>5}");
    }
    // The server really did all of it, and in the long form on each of the ways where it can.
    let count = |ways: &[Way], fault: &str| -> usize {
        let fits = |(way, done, _): &(Way, String, String)| ways.contains(way) && done == fault;
        table.iter().filter(|(key, _)| fits(key)).map(|(_, count)| count).sum()
    };
    for fault in ["drop", "malformed", "rateLimit", "disconnect", "limited", "cut", "whole"] {
        assert!(count(&Way::ALL, fault) >= 5, "too few runs ended by {fault}");
        let able = Way::ALL.into_iter().filter(|way| fault != "cut" || way.streams());
        for way in able.filter(|_| is_long) {
            let count = count(&[way], fault);
            assert!(count >= 5, "{way}: only {count} runs ended by {fault}");
        }
    }
}
