//! One card with Python hooks at every point, and tools of every class.

use crate::resume::support::*;
use std::sync::Arc;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_core::step::{MemoryStepLog, ScopeKind, StepKey};

const HOOKS: &str = r#"
from notes import note

def told(ctx):
    note(f"{ctx.hook_type} {ctx.agent_name} resumed={ctx.resumed} id={ctx.delivery_id}")

def start(ctx): told(ctx)
def stop(ctx):
    told(ctx)
    note(f"stopped {ctx.reason}")

def begin_chat(ctx, context_variables):
    told(ctx)
    context_variables["greeting"] = "hi"

async def begin(ctx):
    told(ctx)
    number = await ctx.step("draw", lambda: (note("draw"), 7)[1])
    ctx.input = f"{ctx.input} {number} {ctx.context_variables['greeting']}"

def shape(ctx):
    told(ctx)
    ctx.request["instruction"] = "shaped"

async def around_model(ctx):
    note("wrap_model_call")
    await ctx.step("model", lambda: note("paid for"))
    return await ctx.next()

def look_at(ctx): told(ctx)

def around_tool(ctx, next):
    note("wrap_tool_call " + ctx.tool_name)
    ctx.step("tool", lambda: note("allowed " + ctx.tool_name))
    return next()

async def done(ctx):
    told(ctx)
    ctx.output = ctx.output + "!"

def chat_done(ctx): told(ctx)
def moved(ctx): note("on_transition")
"#;

const TOOLS: &str = r#"
import tenure
from notes import note

@tenure.tool(effect="idempotent")
def look(n: int) -> str:
    """Looks."""
    note("look")
    return str(n + 1)

@tenure.tool(effect="at_most_once")
async def send(to: str, ctx: tenure.CallContext) -> str:
    """Sends."""
    note(f"send {ctx.idempotency_key}")
    assert ctx.call_id in ctx.idempotency_key
    ctx.context_variables["sent"] = to
    return "sent"

def pay(amount: int, context_variables) -> str:
    """Pays."""
    note("pay")
    return f"paid {amount} to {context_variables['sent']}"
"#;

const CARD: &str = "---
name: worker
model: script:script.yml
function_tools:
  - tools.py:look
  - { entrypoint: 'tools.py:send', effect: keyed }
  - tools.py:pay
lifecycle_hooks: { on_start: hooks.py:start, on_shutdown: hooks.py:stop }
hooks:
  - { on: before_chat, run: hooks.py:begin_chat }
  - { on: before_agent, run: hooks.py:begin }
  - { on: before_model, run: hooks.py:shape }
  - { on: wrap_model_call, run: hooks.py:around_model }
  - { on: after_model, run: hooks.py:look_at }
  - { on: wrap_tool_call, run: hooks.py:around_tool }
  - { on: after_agent, run: hooks.py:done }
  - { on: after_chat, run: hooks.py:chat_done }
  - { on: on_transition, run: hooks.py:moved }
---
You work.
";

const SCRIPT: &str = "
- calls: [{ call: look, with: { n: 1 } }, { call: send, with: { to: ann } }]
- { call: pay, with: { amount: 5 } }
- 'done: {input}, {result}'
";

fn project() -> Project {
    let files = [("hooks.py", HOOKS), ("tools.py", TOOLS), ("worker.md", CARD)];
    noting([files[0], files[1], files[2], ("script.yml", SCRIPT)])
}

const ANSWER: &str = "done: go 7 hi, paid 5 to ann!";

/// How many steps there are of a kind whose names begin with this.
fn steps(keys: &[StepKey], kind: &str, name: &str) -> usize {
    keys.iter().filter(|key| &*key.kind == kind && key.name.starts_with(name)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_goes_on_after_every_step_and_nothing_on_record_is_done_again() {
    let project = project();
    let (mut delivered, mut keys_sent) = (Vec::new(), Vec::new());
    let mut lost = 0;
    let check = |cut: usize, left: &[StepKey], log: &MemoryStepLog, result| {
        let notes = take_notes(&project);
        let result: Result<tenure_cards::team::Run, _> = result;
        let run = result.unwrap_or_else(|error| panic!("cut after {cut}: {error}"));
        assert_ended(log);
        let instances = |kind| log.scopes().iter().filter(|(it, _)| it.kind == kind).count();
        let is_whole = left.is_empty();
        let lives = if is_whole { 1 } else { 2 };
        assert_eq!(instances(ScopeKind::Instance), lives, "cut after {cut}");
        assert_eq!((instances(ScopeKind::Chat), instances(ScopeKind::Turn)), (1, 1));

        let ends: Vec<_> = ["on_shutdown", "after_agent", "after_chat"]
            .map(|end| {
                notes.of(end).first().map(|it| it.rsplit('=').next().unwrap_or("").to_owned())
            })
            .into();
        let sent: Vec<_> = notes.of("send").into_iter().map(str::to_owned).collect();
        if is_whole {
            assert_eq!(run.output, ANSWER);
            assert!(notes.of("on_start")[0].contains("resumed=False"));
            (delivered, keys_sent) = (ends, sent);
            assert!(delivered.iter().all(|id| id.as_ref().is_some_and(|id| id.len() == 16)));
            return;
        }
        // Who dies in the middle of a payment does not know whether it was made.
        let is_lost = steps(left, "intent", "pay") == 0 && steps(left, "tool", "pay") == 1;
        lost += usize::from(is_lost);
        match is_lost {
            true => assert!(run.output.contains("nobody knows whether"), "{}", run.output),
            false => assert_eq!(run.output, ANSWER, "cut after {cut}"),
        }
        let paid = usize::from(!is_lost) * steps(left, "tool", "pay");
        assert_eq!(notes.count("pay"), paid, "cut after {cut}: {notes:?}");
        for tool in ["look", "send"] {
            assert_eq!(notes.count(tool), steps(left, "tool", tool), "cut after {cut}: {notes:?}");
        }
        assert!(sent.iter().all(|key| keys_sent.contains(key)), "{sent:?} {keys_sent:?}");
        for (point, hook) in [
            ("before_chat", "worker/hooks.py:begin_chat"),
            ("before_agent", "hooks.py:begin"),
            ("before_model", "hooks.py:shape"),
            ("after_model", "hooks.py:look_at"),
            ("after_agent", "hooks.py:done"),
            ("after_chat", "worker/hooks.py:chat_done"),
        ] {
            let wanted = steps(left, point, hook);
            assert_eq!(notes.count(point), wanted, "{point}, cut after {cut}: {notes:?}");
        }
        assert_eq!(notes.count("draw"), steps(left, "step", "before_agent@"), "cut after {cut}");
        assert_eq!(notes.count("paid"), steps(left, "step", "wrap_model_call@"));
        assert_eq!(notes.count("allowed"), steps(left, "step", "wrap_tool_call@"));
        // An instance ends with its process; the next one delivers its end, if nobody has.
        assert_eq!(notes.count("on_start"), 1);
        assert!(notes.of("on_start")[0].contains("resumed=True"), "{notes:?}");
        let missed = steps(left, "on_shutdown", "hooks.py:stop");
        assert_eq!(notes.count("on_shutdown"), 1 + missed, "cut after {cut}: {notes:?}");
        if missed == 1 {
            assert_eq!(notes.of("stopped"), ["crashed", "completed"], "cut after {cut}");
            assert_eq!(ends[0], delivered[0], "the end has the same name in every life");
        }
        for (end, first) in ends.iter().zip(&delivered).skip(1) {
            assert!(end.is_none() || end == first, "{ends:?} {delivered:?}");
        }
    };
    let whole = cut_everywhere(|| project.builder(), "worker", check).await;
    assert!(whole.keys().len() > 25, "{:#?}", whole.keys());
    assert_eq!(lost, 1, "there is one place where nobody knows");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_says_what_came_of_a_payment_that_nobody_knows_of() {
    let project = project();
    let whole = MemoryStepLog::new();
    let stay = tenure_core::step::WhenWaiting::Stay;
    life(project.builder(), whole.clone(), "worker", stay).await.expect("it runs");
    let keys = whole.keys();
    let intent = keys.iter().position(|key| &*key.kind == "intent" && key.name.starts_with("pay"));
    let cut = intent.expect("it is there") + 1;
    for (answer, paid, output) in [
        ("again", 1, ANSWER),
        ("it was paid, see the statement", 0, "done: go 7 hi, it was paid, see the statement!"),
    ] {
        take_notes(&project);
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (seen, said) = (asked.clone(), answer.to_owned());
        let builder = project.builder().on_ask(move |ask: &PendingAsk| {
            seen.lock().expect("not poisoned").push(ask.ask.prompt.clone());
            Some(Answer::Respond(said.clone()))
        });
        let run = life(builder, whole.cut_after(cut), "worker", stay).await.expect("it goes on");
        assert_eq!(run.output, output);
        assert_eq!(take_notes(&project).count("pay"), paid);
        let asked = asked.lock().expect("not poisoned").join(" ");
        assert!(asked.contains("while `pay` was being called"), "{asked}");
    }
}
