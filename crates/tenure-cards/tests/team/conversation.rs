//! Conversations: many turns, one chat.

use crate::support::*;
use std::time::Duration;
use tenure_cards::Team;
use tenure_cards::team::TeamErrorKind;
use tenure_core::Outcome;
use tenure_core::event::EventKind;
use tenure_testkit::assert_paired;

const HOOKS: &str = r#"
from log import log

async def before(ctx):
    seen = ctx.context_variables.get("seen", 0)
    log(f"before {ctx.agent_name} {seen}")

async def after(ctx):
    log(f"after {ctx.agent_name} {ctx.outcome} {ctx.context_variables.get('seen')}")

async def count(ctx):
    seen = ctx.context_variables.get("seen", 0) + 1
    ctx.context_variables["seen"] = seen
    log(f"turn {ctx.agent_name} {seen}")

async def refuse(ctx):
    return {"deny": "closed today"}

async def answer(ctx):
    return {"finish": "closed today"}
"#;

fn card(name: &str, more: &str) -> String {
    format!(
        "---\nname: {name}\n{more}\nlifecycle_hooks: {{ on_shutdown: log.py:stop }}\nhooks:\n  - \
         {{ on: before_chat, run: chat.py:before }}\n  - {{ on: after_chat, run: chat.py:after \
         }}\n  - {{ on: before_agent, run: chat.py:count }}\n---\nx\n"
    )
}

fn two() -> Project {
    Project::new([("a.md", &card("a", "")), ("b.md", &card("b", "")), ("chat.py", HOOKS)])
}

async fn say(team_says: &mut tenure_cards::team::Conversation, to: &str, text: &str) -> String {
    let saying = team_says.say(to, text).await.expect("it is said");
    saying.finish().await.expect("it is answered").output
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_is_one_chat_of_many_turns_that_share_variables() {
    let project = two();
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let mut talk = team.conversation().expect("it is running");
    assert!(talk.join("a").await.expect("it joins").is_none());
    assert_eq!(say(&mut talk, "a", "one").await, "one");
    assert_eq!(say(&mut talk, "a", "two").await, "two");
    assert_eq!(say(&mut talk, "b", "three").await, "three");
    assert_eq!(talk.joined(), ["a", "b"]);
    assert_eq!(talk.variables()["seen"], 3);
    assert_eq!(talk.variables()["chat_id"], talk.id());
    assert!(talk.end().await.is_empty(), "no end failed");
    team.shutdown().await;
    assert_eq!(
        project.log(),
        [
            "before a 0",
            "turn a 1",
            "turn a 2",
            "before b 2",
            "turn b 3",
            "after b ok 3",
            "after a ok 3",
            "stop b",
            "stop a"
        ]
    );
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_keep_what_was_said_until_they_are_told_to_forget_it() {
    let project = two();
    let team = project.team();
    team.start().await.expect("it starts");
    let mut talk = team.conversation().expect("it is running");
    say(&mut talk, "a", "one").await;
    say(&mut talk, "a", "two").await;
    let history = || team.agent("a").expect("it lives").history().len();
    assert_eq!(history(), 4);
    talk.forget().expect("nobody is busy");
    assert_eq!(history(), 0);
    say(&mut talk, "a", "three").await;
    assert_eq!(history(), 2);
    assert_eq!(talk.variables()["seen"], 3, "the chat goes on");
    talk.end().await;
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_cancelled_by_itself_and_the_next_one_goes_on() {
    let project = slow();
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let mut talk = team.conversation().expect("it is running");
    let saying = talk.say("a", "wait").await.expect("it is said");
    project.wait_for("turn a 1").await;
    saying.cancel();
    let error = saying.finish().await.expect_err("it is cancelled");
    assert_eq!(error.outcome(), Outcome::Cancelled);
    // The same by dropping it; the next message comes after its ends.
    let saying = talk.say("a", "wait").await.expect("it is said");
    project.wait_for("turn a 2").await;
    drop(saying);
    assert_eq!(say(&mut talk, "a", "hi").await, "hi");
    assert!(!project.log().iter().any(|line| line.starts_with("after")), "{:?}", project.log());
    talk.end().await;
    assert_eq!(ends(&project), ["after a ok 3"]);
    team.shutdown().await;
    assert_paired(&recorder);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_a_conversation_ends_its_ends_run_once() {
    type End = fn(&Team);
    let ways: [(&str, End); 3] =
        [("cancel", |team| team.cancel()), ("drop", |_| {}), ("shutdown", |_| {})];
    for (name, end) in ways {
        for busy in [false, true] {
            let project = slow();
            let (team, recorder) = project.recorded();
            team.start().await.expect("it starts");
            let mut talk = team.conversation().expect("it is running");
            talk.join("a").await.expect("it joins");
            let saying = match busy {
                true => Some(talk.say("a", "wait").await.expect("it is said")),
                false => None,
            };
            if busy {
                project.wait_for("turn a 1").await;
            }
            end(&team);
            if name == "drop" {
                drop(talk);
                project.wait_for("after a cancelled").await;
            } else if name == "cancel" {
                project.wait_for("after a cancelled").await;
                drop(talk);
            }
            let until = tokio::time::timeout(Duration::from_secs(20), team.shutdown());
            until.await.expect("it stops");
            assert_eq!(ends(&project).len(), 1, "{name} {busy}: {:?}", project.log());
            assert!(ends(&project)[0].starts_with("after a cancelled"), "{:?}", project.log());
            assert_eq!(project.log().last().map(String::as_str), Some("stop a"), "{name} {busy}");
            if let Some(saying) = saying {
                let error = saying.finish().await.expect_err("it is cancelled");
                assert_eq!(error.outcome(), Outcome::Cancelled, "{name}");
            }
            assert_paired(&recorder);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chat_that_is_refused_or_answered_does_not_begin() {
    let with = |hook: &str| {
        format!(
            "---\nname: a\nhooks:\n  - {{ on: before_chat, run: chat.py:{hook}, policy: deny \
             }}\n---\nx\n"
        )
    };
    let project = Project::new([("a.md", &with("refuse")), ("chat.py", HOOKS)]);
    let team = project.team();
    team.start().await.expect("it starts");
    let mut talk = team.conversation().expect("it is running");
    let error = talk.join("a").await.expect_err("it is refused");
    assert_eq!((error.kind(), error.outcome()), (TeamErrorKind::Run, Outcome::Denied));
    assert!(talk.joined().is_empty());
    team.shutdown().await;

    let project = Project::new([("a.md", &with("answer")), ("chat.py", HOOKS)]);
    let team = project.team();
    team.start().await.expect("it starts");
    let mut talk = team.conversation().expect("it is running");
    let run = talk.join("a").await.expect("it is answered").expect("by the hook");
    assert_eq!((run.output.as_str(), run.turn.is_none()), ("closed today", true));
    assert_eq!(say(&mut talk, "a", "hello?").await, "closed today");
    drop(talk);
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_conversation_is_no_run_and_another_team_can_go_on_with_it() {
    let project = two();
    let old = project.team();
    old.start().await.expect("it starts");
    let mut talk = old.conversation().expect("it is running");
    say(&mut talk, "a", "one").await;
    let idle = tokio::time::timeout(Duration::from_secs(10), old.idle());
    idle.await.expect("between turns nothing goes on");
    let new = project.team();
    new.start().await.expect("it starts");
    let mut next = new.conversation_after(&talk).expect("it is running");
    assert_eq!(next.id(), talk.id());
    talk.end().await;
    old.shutdown().await;
    say(&mut next, "a", "two").await;
    assert_eq!(next.variables()["seen"], 2);
    next.end().await;
    new.shutdown().await;
    let chats: Vec<_> =
        project.log().into_iter().filter(|line| !line.starts_with("stop")).collect();
    let expected =
        ["before a 0", "turn a 1", "after a ok 1", "before a 1", "turn a 2", "after a ok 2"];
    assert_eq!(chats, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_there_cannot_be_spoken_to() {
    let project = two();
    let team = project.team();
    let error = team.conversation().expect_err("it is not started");
    assert_eq!(error.kind(), TeamErrorKind::NotRunning);
    team.start().await.expect("it starts");
    let mut talk = team.conversation().expect("it is running");
    let error = talk.say("c", "hi").await.expect_err("it is not there");
    assert_eq!(error.to_string(), "there is no agent `c`; there are: a, b");
    talk.join("a").await.expect("it joins");
    team.shutdown().await;
    let error = talk.say("a", "too late").await.map(|_| ()).expect_err("it is over");
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (TeamErrorKind::NotRunning, "the team has been stopped")
    );
}

/// An agent that takes a minute for one message, and no time for the others.
fn slow() -> Project {
    let script = r#"{"turns": [{"when": "wait", "replies": [{"text": "late", "wait": "60s"}]},
        {"when": "", "replies": ["{input}"]}]}"#;
    let card = card("a", "model: script:a.json");
    Project::new([("a.md", &card), ("a.json", script), ("chat.py", HOOKS)])
}

fn ends(project: &Project) -> Vec<String> {
    project.log().into_iter().filter(|line| line.starts_with("after")).collect()
}

impl Project {
    /// Waits until a hook has written a line that begins so.
    async fn wait_for(&self, line: &str) {
        let written = async {
            while !self.log().iter().any(|it| it.starts_with(line)) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let written = tokio::time::timeout(Duration::from_secs(20), written).await;
        written.unwrap_or_else(|_| panic!("never seen: {line}; {:?}", self.log()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_comes_while_it_is_made_and_tells_its_response() {
    let card = "---\nname: a\nmodel: script:a.json\nfunction_tools: [tools.py:look]\n---\nx\n";
    let script = r#"[{"text": "I look.", "call": "look"}, "I saw {result}"]"#;
    let tools = "def look() -> str:\n    \"\"\"Looks.\"\"\"\n    return 'a cat'\n";
    let project = Project::new([("a.md", card), ("a.json", script), ("tools.py", tools)]);
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let mut talk = team.conversation().expect("it is running");
    let mut saying = talk.say("a", "what is there?").await.expect("it is said");
    let mut responses = vec![String::new(); 3];
    while let Some(piece) = saying.next().await {
        responses[piece.response].push_str(&piece.text);
    }
    assert_eq!(responses, ["", "I look.", "I saw a cat"]);
    assert_eq!(saying.finish().await.expect("it is answered").output, "I saw a cat");
    talk.end().await;
    team.shutdown().await;
    let chats = recorder.events().into_iter();
    let chats = chats.filter(|event| matches!(event.kind, EventKind::ChatStarted { .. }));
    assert_eq!(chats.count(), 1);
}
