//! What a recorded run has beside its steps: one run, a date, a history, a memory.

use crate::resume::support::*;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tenure_cards::HookCatalog;
use tenure_cards::team::{Recording, TeamErrorKind};
use tenure_core::hook::{self, Flow};
use tenure_core::memory::{InMemory, Memory};
use tenure_core::message::{History, Message};
use tenure_core::step::{MemoryStepLog, Steps, WhenWaiting};

const ECHO: &str = "---\nname: a\nmodel: script:a.yml\n---\nToday is {{currentDate}}.\n";
const DAY: Duration = Duration::from_secs(86_400);

fn project() -> Project {
    noting([("a.md", ECHO), ("a.yml", "- 'you said {input}'\n")])
}

#[tokio::test]
async fn a_recorded_team_runs_once() {
    let project = project();
    let log = MemoryStepLog::new();
    let recording = Recording::new(Steps::new(Arc::new(log.clone())));
    let team = built(project.builder().recorded(recording));
    team.start().await.expect("it starts");
    let first = team.run(None, "go").await.expect("it runs");
    assert_eq!(first.output, "you said go");
    let error = team.run(None, "go").await.expect_err("it has had its run");
    assert_eq!(error.kind(), TeamErrorKind::NotRunning);
    assert!(!error.is_parked() && error.to_string().contains("another team"), "{error}");
    team.shutdown().await;
    assert_ended(&log);

    // The same in another life: all of it comes from the record, the chat's id included.
    let run = life(project.builder(), log.resumed(), "a", WhenWaiting::Stay).await;
    let run = run.expect("it is on record");
    assert_eq!((run.output, run.chat), (first.output, first.chat));
}

#[tokio::test]
async fn a_run_goes_on_with_the_date_that_it_began_with() {
    let project = project();
    let began = SystemTime::now() - 40 * DAY;
    let log = MemoryStepLog::new();
    let run = life(project.builder().now(began), log.clone(), "a", WhenWaiting::Stay).await;
    run.expect("it runs");

    let today = life(project.builder(), log.resumed(), "a", WhenWaiting::Stay).await;
    let error = today.expect_err("the instruction is another one today");
    assert!(error.is_parked() && !error.is_waiting(), "{error}");
    assert!(error.to_string().contains("turn/model:script#0"), "{error}");

    let then = project.builder().now(began);
    life(then, log.resumed(), "a", WhenWaiting::Stay).await.expect("it is the same as then");
}

#[tokio::test]
async fn a_dropped_run_is_parked_and_goes_on() {
    let project = noting([
        ("a.md", ECHO),
        ("a.yml", "- { wait: 10s, text: late }\n"),
        ("b.md", "---\nname: b\nmodel: passthrough\n---\nx\n"),
    ]);
    let log = MemoryStepLog::new();
    let team = built(project.builder().recorded(Recording::new(Steps::new(Arc::new(log.clone())))));
    team.start().await.expect("it starts");
    let dropped = tokio::time::timeout(Duration::from_millis(100), team.run(Some("a"), "go")).await;
    dropped.expect_err("it takes longer");
    team.shutdown().await;
    let open = |id: &str| log.scopes().iter().any(|(it, end)| &*it.id == id && end.is_none());
    assert!(open("turn:turn") && open("chat:"), "{:#?}", log.scopes());
    assert!(!open("instance:@a#1") && !open("instance:@b#1"), "{:#?}", log.scopes());

    std::fs::write(project.path().join("a.yml"), "- in time\n").expect("a file");
    let log = log.resumed();
    let run = life(project.builder(), log.clone(), "a", WhenWaiting::Stay).await;
    assert_eq!(run.expect("it goes on").output, "in time");
    assert_ended(&log);
}

#[tokio::test]
async fn an_agent_goes_on_with_an_earlier_conversation() {
    let project = noting([("a.md", "---\nname: a\nmodel: passthrough\n---\nx\n")]);
    let team = built(project.builder());
    let earlier: History =
        [Message::user("hello"), Message::assistant("hello to you")].into_iter().collect();
    let early = team.set_history("a", earlier.clone()).expect_err("it is not running yet");
    assert_eq!(early.kind(), TeamErrorKind::NotRunning);
    assert_eq!(team.history("a"), None);
    team.start().await.expect("it starts");
    team.set_history("a", earlier).expect("it is at rest");
    team.run(None, "again").await.expect("it runs");
    let said = team.history("a").expect("it is running");
    let said: Vec<_> = said.iter().map(Message::text).collect();
    assert_eq!(said, ["hello", "hello to you", "again", "again"]);
    team.set_history("b", History::new()).expect_err("there is no such agent");
    team.shutdown().await;
}

#[tokio::test]
async fn what_an_agent_remembers_is_stored_once_however_often_its_run_is_cut() {
    let card = "---\nname: a\nmodel: script:a.yml\nhooks: [{ use: count }]\n---\nx\n";
    let project = noting([("a.md", card), ("a.yml", "- 'you said {input}'\n")]);
    let catalog = HookCatalog::new().register(
        "count",
        hook::before_agent(|cx, _| {
            Box::pin(async move {
                let memory = cx.memory().expect("there is a memory");
                let seen = memory.get("facts").and_then(|it| it.as_u64()).unwrap_or_default();
                memory.update("facts", seen + 1)?;
                Ok(Flow::Continue)
            })
        }),
    );
    let memory = Arc::new(InMemory::new());
    let builder = || project.builder().hook_catalog(catalog.clone()).memory(memory.clone());
    let log = MemoryStepLog::new();
    life(builder(), log.clone(), "a", WhenWaiting::Stay).await.expect("it runs");
    let seen = memory.load("a").await.expect("it loads");
    assert_eq!(seen.get("facts"), Some(&json!(1)));
    for cut in 1..log.keys().len() {
        life(builder(), log.cut_after(cut), "a", WhenWaiting::Stay).await.expect("it goes on");
        let seen = memory.load("a").await.expect("it loads");
        assert_eq!(seen.get("facts"), Some(&json!(1)), "cut after {cut}");
    }
    life(builder(), MemoryStepLog::new(), "a", WhenWaiting::Stay).await.expect("another run");
    assert_eq!(memory.load("a").await.expect("it loads").get("facts"), Some(&json!(2)));
}
