//! Runs that wait for a person.

use crate::resume::support::*;
use std::time::Duration;
use tenure_cards::team::{TeamError, TeamErrorKind};
use tenure_core::ask::Answer;
use tenure_core::step::{MemoryStepLog, ScopeKind, WhenWaiting};

const HOOKS: &str = r#"
from notes import note

async def may(ctx):
    note("asks")
    answer = await ctx.ask("May we begin?", action={"begin": True})
    note("told " + answer.decision)
    return None if answer.approved else {"finish": "no"}

def guard(ctx, next):
    answer = ctx.ask("May it be sent?", action=dict(ctx.arguments))
    return next() if answer.approved else {"deny": answer.value}

def end(ctx):
    note("end " + ctx.hook_type)
"#;

const TOOLS: &str = r#"
import tenure
from notes import note

@tenure.tool(effect="idempotent")
def send(to: str) -> str:
    """Sends."""
    note("send " + to)
    return "sent to " + to
"#;

fn project() -> Project {
    noting([
        ("hooks.py", HOOKS),
        ("tools.py", TOOLS),
        (
            "asker.md",
            "---\nname: asker\nmodel: script:asker.yml\nhuman_input: true\nfunction_tools: [tools.py:send]\nhooks:\n\
             \x20 - { on: before_chat, run: hooks.py:may }\n\
             \x20 - { on: wrap_tool_call, run: hooks.py:guard, when: \"tool.name == 'send'\" }\n\
             \x20 - { on: after_agent, run: hooks.py:end }\n\
             \x20 - { on: after_chat, run: hooks.py:end }\n---\nx\n",
        ),
        (
            "asker.yml",
            "- { call: __human_input, with: { prompt: 'To whom?' } }\n- { call: send, with: { to: '{result}' } }\n- 'done: {result}'\n",
        ),
        ("member.md", "---\nname: member\nmodel: script:member.yml\nhuman_input: true\n---\nx\n"),
        (
            "member.yml",
            "- { call: __human_input, with: { prompt: 'Which?' } }\n- 'it is {result}'\n",
        ),
        (
            "slow.md",
            "---\nname: slow\nmodel: script:slow.yml\nfunction_tools: [tools.py:send]\n---\nx\n",
        ),
        (
            "slow.yml",
            "- { wait: 300ms, call: send, with: { to: slow } }\n- { wait: 300ms, text: 'slow is done' }\n",
        ),
        ("both.yaml", "type: parallel\nname: both\nfan_out: [member, slow]\n"),
    ])
}

fn question(error: &TeamError) -> String {
    assert!(error.is_waiting() && error.is_parked(), "{error}");
    assert_eq!(error.kind(), TeamErrorKind::Parked);
    let text = error.to_string();
    let (_, rest) = text.split_once("(question ").unwrap_or_else(|| panic!("{text}"));
    rest.split(')').next().unwrap_or_default().to_owned()
}

fn is_open(log: &MemoryStepLog, kind: ScopeKind) -> bool {
    let scopes = log.scopes();
    let of: Vec<_> = scopes.iter().filter(|(scope, _)| scope.kind == kind).collect();
    assert!(!of.is_empty(), "there is a {kind:?}");
    of.iter().any(|(_, end)| end.is_none())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_waits_is_parked_and_goes_on_when_it_was_answered() {
    let project = project();
    let mut log = Keeping::new();
    for (words, answer) in [
        ("May we begin?", Answer::Approve),
        ("To whom?", Answer::Respond("ann".to_owned())),
        ("May it be sent?", Answer::Approve),
    ] {
        let result = life(project.builder(), log.clone(), "asker", WhenWaiting::Park).await;
        let error = result.expect_err("it waits");
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("`asker` asks"), "{error}");
        assert!(is_open(&log.log, ScopeKind::Chat), "the chat goes on");
        assert!(!is_open(&log.log, ScopeKind::Instance), "the instance of this life is over");
        let id = question(&error);

        // Nothing has happened by the next life, so it waits for the same.
        log = log.resumed();
        let result = life(project.builder(), log.clone(), "asker", WhenWaiting::Park).await;
        assert_eq!(question(&result.expect_err("it waits again")), id);

        log.answer(&id, answer);
        log = log.resumed();
    }
    let run = life(project.builder(), log.clone(), "asker", WhenWaiting::Park).await;
    assert_eq!(run.expect("it was answered").output, "done: sent to ann");
    assert_ended(&log.log);
    let notes = take_notes(&project);
    assert_eq!(notes.of("send"), ["ann"], "{notes:?}");
    assert_eq!(notes.of("end"), ["after_agent", "after_chat"], "{notes:?}");
    assert_eq!(notes.of("told"), ["approve"], "{notes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_stays_takes_an_answer_from_elsewhere() {
    let project = project();
    let log = Keeping::new();
    let parked = life(project.builder(), log.clone(), "member", WhenWaiting::Park).await;
    let id = question(&parked.expect_err("it waits"));
    let log = log.resumed();
    let (answering, builder) = (log.clone(), project.builder());
    let answer = async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        answering.answer(&id, Answer::Respond("the second".to_owned()));
    };
    let (run, ()) = tokio::join!(life(builder, log.clone(), "member", WhenWaiting::Stay), answer);
    assert_eq!(run.expect("it was answered").output, "it is the second");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_parked_only_when_everybody_at_work_waits() {
    let project = project();
    let log = Keeping::new();
    let result = life(project.builder(), log.clone(), "both", WhenWaiting::Park).await;
    let id = question(&result.expect_err("it waits"));
    assert_eq!(take_notes(&project).count("send"), 1, "who works beside it comes to the end");
    let said = log.log.keys().iter().filter(|key| &*key.kind == "model").count();
    assert_eq!(said, 4, "{:#?}", log.log.keys());
    log.answer(&id, Answer::Respond("this one".to_owned()));
    let log = log.resumed();
    let run = life(project.builder(), log.clone(), "both", WhenWaiting::Park).await;
    let output = run.expect("it was answered").output;
    assert!(output.contains("it is this one") && output.contains("slow is done"), "{output}");
    assert_eq!(take_notes(&project).count("send"), 0);
    assert_ended(&log.log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_keeps_no_questions_never_parks_for_one() {
    let project = project();
    let builder = project.builder().on_ask(|ask: &tenure_core::ask::PendingAsk| {
        std::thread::sleep(Duration::from_millis(150));
        Some(Answer::Respond(ask.ask.prompt.clone()))
    });
    let run = life(builder, MemoryStepLog::new(), "member", WhenWaiting::Park).await;
    assert_eq!(run.expect("somebody is there").output, "it is Which?");
}
