//! Many model calls to servers that fail in every way they can, through retry, breaker and
//! fallback.
//!
//! The servers are real programs of other people (aimock, which `scripts/setup` installs), and the
//! models are real providers over loopback. The servers keep journals, so that it is known what they
//! did to each run, and how many tool calls they handed out.

#[allow(dead_code)]
#[path = "../../../tenure-models/tests/aimock/journal.rs"]
mod journal;
mod provider;
#[allow(dead_code)]
#[path = "../../../tenure-models/tests/aimock/server.rs"]
mod server;

use crate::chaos::journal::{Entry, journal};
use crate::chaos::provider::{Call, Lookup, Timed};
use crate::chaos::server::Aimock;
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tenure_core::agent::Agent;
use tenure_core::event::{EventBus, EventKind};
use tenure_core::model::ModelErrorKind;
use tenure_hooks::calls::{CircuitBreaker, Fallback, Retry};
use tenure_hooks::ready::Shared;
use tenure_testkit::{Recorder, cases};
use tokio::time::timeout;

const SIDE_BY_SIDE: usize = 48;
/// How often one model is asked for one answer, at most.
const ATTEMPTS: u32 = 4;
/// What providers may ask to wait. The mock asks for a second, and sometimes for seven.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);
/// No run takes half of this; it is here so that one that hangs is named.
const RUN: Duration = Duration::from_secs(40);
const TEXT: &str = "Forty-two is the answer to everything.";
/// Where streams are cut: from before the first piece that says something to behind the last.
const CUTS: usize = 8;

/// How likely each kind of fault is, at the first server of each group.
const RATES: [(&str, &str); 3] = [("mild", "0.03"), ("rough", "0.10"), ("harsh", "0.22")];
/// The same at the server that all of them fall back to.
const REST: &str = "0.05";

/// What the agents are asked, in turns. What they have to do is in the words.
fn question(run: usize) -> String {
    let round = run / (RATES.len() * 2);
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

/// What a server answers. The first one cuts streams and sends people away; the other does not.
fn fixtures(first: bool) -> Vec<Value> {
    let call = |key: &str| json!({ "name": "lookup", "arguments": { "key": key } });
    let answer = |user: &str, response: Value| json!({ "match": { "userMessage": user }, "chunkSize": 8, "response": response });
    let (text, two) = (json!({ "content": TEXT }), json!({ "toolCalls": [call("a"), call("b")] }));
    let mut fixtures = vec![
        json!({ "match": { "hasToolResult": true }, "chunkSize": 8, "response": text }),
        answer("say hello", text.clone()),
        answer("call one tool", json!({ "toolCalls": [call("a")] })),
        answer("call three tools", json!({ "toolCalls": [call("a"), call("b"), call("c")] })),
    ];
    if !first {
        let rest = [("call and be cut", &two), ("speak and be cut", &text), ("wait your", &text)];
        fixtures.extend(rest.map(|(user, response)| answer(user, response.clone())));
        return fixtures;
    }
    let error = json!({ "message": "not yet", "type": "rate_limit_error" });
    let later = json!({ "error": error, "status": 429, "retryAfter": 7 });
    fixtures.push(answer("wait your turn", later));
    for after in 1..=CUTS {
        for (task, response) in [("call", &two), ("speak", &text)] {
            fixtures.push(json!({
                "match": { "userMessage": format!("{task} and be cut after {after}.") },
                "chunkSize": 6, "latency": 2, "truncateAfterChunks": after, "response": response,
            }));
        }
    }
    fixtures
}

fn server(rate: &str, first: bool) -> Aimock {
    let kinds = ["--chaos-drop", "--chaos-malformed", "--chaos-ratelimit", "--chaos-disconnect"];
    let flags: Vec<_> = kinds.into_iter().flat_map(|kind| [kind, rate]).collect();
    Aimock::start(&fixtures(first), &flags)
}

/// Agents whose first model is behind one server.
struct Group {
    name: &'static str,
    rate: &'static str,
    server: Aimock,
    model: Timed,
    bus: EventBus,
    recorder: Recorder,
    shared: Shared,
}

impl Group {
    fn new((name, rate): (&'static str, &'static str)) -> Self {
        let server = server(rate, true);
        let bus = EventBus::new();
        Self {
            model: Timed::new("openai.gpt-4.1-mini", &server),
            recorder: Recorder::new(&bus),
            shared: Shared::new(),
            name,
            rate,
            server,
            bus,
        }
    }

    fn agent(&self, rest: &Timed, tool: &Lookup) -> Agent {
        let retry = Retry::new()
            .attempts(ATTEMPTS)
            .initial_delay(Duration::from_millis(20))
            .max_delay(Duration::from_millis(200))
            .max_retry_after(MAX_RETRY_AFTER);
        let breaker = CircuitBreaker::new()
            .failures(30)
            .window(Duration::from_secs(1))
            .open_for(Duration::from_millis(100))
            .probes(2)
            .shared(&self.shared, "all");
        Agent::builder("clerk")
            .instruction("You are a clerk.")
            .model(self.model.clone())
            .tool(tool.clone())
            .events(&self.bus)
            .with_lifecycle(breaker)
            .with_lifecycle(Fallback::to(rest.clone()))
            .with_lifecycle(retry)
            .build()
            .expect("the agent is complete")
    }

    /// How often this was announced with these words.
    fn announced(&self, wanted: &str, part: &str) -> usize {
        let fits = |kind: &EventKind| match kind {
            EventKind::Announced { name, data } => {
                *name == wanted && data.to_string().contains(part)
            }
            _ => false,
        };
        self.recorder.events().iter().filter(|event| fits(&event.kind)).count()
    }
}

/// How a run ended.
struct Run {
    number: usize,
    group: usize,
    streamed: bool,
    pieces: String,
    end: Result<String, (ModelErrorKind, String)>,
    /// The ids of the tool calls that were made.
    tools: Vec<String>,
    took: Duration,
}

async fn run(number: usize, groups: &[Group], rest: &Timed) -> Run {
    let (group, streamed) = (number % groups.len(), number / groups.len() % 2 == 1);
    let (tool, question, start) = (Lookup::default(), question(number), Instant::now());
    let turn = timeout(RUN, async {
        let agent = groups[group].agent(rest, &tool);
        agent.startup().await.expect("nothing can fail at startup");
        let mut pieces = String::new();
        let result = if streamed {
            let mut stream = agent.request(question.as_str()).stream();
            while let Some(piece) = stream.next().await {
                pieces.push_str(&piece);
            }
            stream.finish().await
        } else {
            agent.run(question.as_str()).await
        };
        agent.shutdown().await;
        (pieces, result)
    });
    let (pieces, result) = turn.await.unwrap_or_else(|_| panic!("`{question}` did not end"));
    let end = result.map(|report| report.output().to_owned()).map_err(|error| {
        let cause = error.model_error();
        let cause = cause.unwrap_or_else(|| panic!("`{question}`: untyped: {error:?}"));
        (cause.kind(), error.to_string())
    });
    Run { number, group, streamed, pieces, end, tools: tool.seen(), took: start.elapsed() }
}

/// The requests of every run at one server.
fn by_run(server: &Aimock) -> BTreeMap<usize, Vec<Entry>> {
    let mut runs: BTreeMap<usize, Vec<Entry>> = BTreeMap::new();
    for entry in journal(server) {
        let number = entry.user.strip_prefix("run ").and_then(|user| user.split_once(':'));
        let number = number.unwrap_or_else(|| panic!("whose request is this? {entry:?}")).0;
        runs.entry(number.parse().expect("a number")).or_default().push(entry);
    }
    runs
}

/// No model was asked earlier than it said, nor at all if it wanted too long a wait, nor more often
/// than allowed. Returns the shortest and the longest wait beyond what was asked for.
fn check_calls(calls: &[Call], late: &mut Vec<Duration>) {
    let mut by_answer: BTreeMap<(usize, usize), Vec<&Call>> = BTreeMap::new();
    for call in calls {
        by_answer.entry((call.run, call.messages)).or_default().push(call);
    }
    for ((run, _), calls) in by_answer {
        assert!(calls.len() <= ATTEMPTS as usize, "run {run}: asked {} times", calls.len());
        for pair in calls.windows(2) {
            let (_, Some(after)) = pair[0].failed.expect("an answer is not asked for again") else {
                continue;
            };
            assert!(after <= MAX_RETRY_AFTER, "run {run}: asked again though told {after:?}");
            let gap = pair[1].began - pair[0].ended;
            assert!(gap >= after, "run {run}: told to come back in {after:?}, came in {gap:?}");
            late.push(gap - after);
        }
    }
}

fn check_run(run: &Run, first: &[Entry], rest: &[Entry]) {
    let at =
        format!("run {}: {:?}, {:?} after {first:?} {rest:?}", run.number, run.end, run.pieces);
    // A tool runs exactly as often as a server handed out a whole call of it: once.
    let handed_out: usize = first.iter().chain(rest).map(Entry::handed_out).sum();
    assert_eq!(run.tools.len(), handed_out, "{at}");
    match &run.end {
        Ok(output) => {
            assert_eq!(output, TEXT, "an answer of a half stream: {at}");
            assert!(!run.streamed || run.pieces == TEXT, "what was read is the answer: {at}");
            // What fell back asks the first model again for its next answer.
            let whole = |entries: &[Entry]| entries.last().is_some_and(Entry::is_whole);
            assert!(whole(first) || whole(rest), "{at}");
        }
        Err((_, message)) => {
            assert!(TEXT.starts_with(&run.pieces) && run.pieces != TEXT, "{at}");
            let cut = |entry: &&Entry| !entry.is_whole();
            // Either a server failed it last, or the breaker did not let it ask.
            let broken = message.contains("(breaker)");
            let last = first.last().into_iter().chain(rest.last());
            assert!(broken || last.filter(cut).count() > 0, "{at}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_under_chaos_end_and_keep_what_they_promise() {
    let start = Instant::now();
    let wanted = cases(800, 2_000);
    let groups = RATES.map(Group::new);
    let rest_server = server(REST, false);
    let rest = Timed::new("anthropic.claude-haiku-4-5", &rest_server);
    let called =
        || groups.iter().map(|group| group.model.calls().len()).sum::<usize>() + rest.calls().len();

    let runs = Mutex::new(Vec::new());
    stream::iter((0..).take_while(|_| called() < wanted))
        .for_each_concurrent(SIDE_BY_SIDE, async |number: usize| {
            let run = run(number, &groups, &rest).await;
            runs.lock().expect("nobody panicked").push(run);
        })
        .await;
    let runs = runs.into_inner().expect("nobody panicked");

    // A call is one request: none is lost, none is tried in silence.
    let first_journals: Vec<_> = groups.iter().map(|group| by_run(&group.server)).collect();
    let rest_journal = by_run(&rest_server);
    let journals = first_journals.iter().chain([&rest_journal]);
    let requests: usize = journals.flat_map(BTreeMap::values).map(Vec::len).sum();
    assert!(requests >= wanted, "only {requests} requests");
    assert_eq!(requests, called());

    let mut late = Vec::new();
    for group in &groups {
        check_calls(&group.model.calls(), &mut late);
    }
    check_calls(&rest.calls(), &mut late);
    assert!(late.len() >= wanted / 50, "only {} calls were told when to come back", late.len());

    let mut ids = HashSet::new();
    for run in &runs {
        let none = Vec::new();
        let first = first_journals[run.group].get(&run.number).unwrap_or(&none);
        check_run(run, first, rest_journal.get(&run.number).unwrap_or(&none));
        for id in &run.tools {
            assert!(ids.insert(id.clone()), "{id} was called twice, in run {}", run.number);
        }
    }

    let mut cut = 0;
    for (at, group) in groups.iter().enumerate() {
        let of: Vec<_> = runs.iter().filter(|run| run.group == at).collect();
        let ok = of.iter().filter(|run| run.end.is_ok()).count();
        let read = of.iter().filter(|run| run.end.is_err() && !run.pieces.is_empty()).count();
        let is_refused = |end: &Result<String, (ModelErrorKind, String)>| {
            end.as_ref().is_err_and(|(_, why)| why.contains("(breaker)"))
        };
        let refused = of.iter().filter(|run| run.pieces.is_empty() && is_refused(&run.end)).count();
        let (answered, retries) =
            (group.announced("fallback.answered", ""), group.announced("retry", ""));
        let opened = group.announced("breaker", "\"open\"");
        println!(
            "{:<6} (4 x {}): {} runs, {ok} ok, {read} cut while read, {refused} refused by both \
             breakers, {} other errors; {} calls to the first model; {retries} retries, {answered} answers by fallback, breaker opened \
             {opened} times",
            group.name,
            group.rate,
            of.len(),
            of.len() - ok - read - refused,
            group.model.calls().len(),
        );
        // Whoever has a second model gets an answer, unless some of the first was read already. If
        // the breakers of both are open, one of them is waited for.
        let all = of.len() - read;
        // A short run has so few of a group that five say nothing yet.
        let lost = (all * 3 / 100).max(cases(5, 0));
        assert!(ok + lost >= all, "{}: only {ok} of {all}", group.name);
        assert!(retries > wanted / 100 && answered > wanted / 100, "{}", group.name);
        // Where most calls fail at once, few streams get as far as to be cut.
        assert!(read > 0 || wanted < 2_000, "{}", group.name);
        cut += read;
    }
    assert!(cut > 0, "no stream was cut while it was read");
    assert!(groups[2].announced("breaker", "\"open\"") > 0, "it never opened under harsh chaos");
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    let journals = first_journals.iter().chain([&rest_journal]);
    for entry in journals.flat_map(BTreeMap::values).flatten() {
        let what = match (entry.chaos.as_deref(), entry.interrupted, entry.status) {
            (Some(chaos), ..) => chaos,
            (None, true, _) => "cut",
            (None, false, 200) => "whole",
            (None, false, _) => "limited",
        };
        *faults.entry(what).or_default() += 1;
    }
    for fault in ["drop", "malformed", "rateLimit", "disconnect", "cut", "limited", "whole"] {
        assert!(
            faults.get(fault).is_some_and(|count| *count >= wanted / 100),
            "{fault}: {faults:?}"
        );
    }
    late.sort();
    let took: Duration = runs.iter().map(|run| run.took).max().unwrap_or_default();
    println!(
        "{} runs, {requests} calls, {} tool calls, none twice; {faults:?}; {} waits as told, at \
         least {:?} and at most {:?} longer; longest run {took:?}; all in {:?}",
        runs.len(),
        ids.len(),
        late.len(),
        late[0],
        late[late.len() - 1],
        start.elapsed(),
    );
}
