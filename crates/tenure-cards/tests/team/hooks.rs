//! Hooks of cards, at work.

use crate::support::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tenure_cards::HookCatalog;
use tenure_cards::team::TeamErrorKind;
use tenure_core::Outcome;
use tenure_core::hook::{self, Flow, HookError, Policy};

async fn asked(project: &Project, message: &str) -> Result<String, String> {
    let team = project.team();
    team.start().await.expect("it starts");
    let result = team.run(None, message).await;
    team.shutdown().await;
    result.map(|run| run.output).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_five_tool_hooks_of_a_card_are_called() {
    let hooks = r#"
import os
LOG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "log.txt")

def note(ctx):
    with open(LOG, "a") as file:
        file.write(ctx.hook_type + "\n")

async def before_llm(ctx): note(ctx)
async def after_llm(ctx): note(ctx)
async def before_tool(ctx): note(ctx)
async def after_tool(ctx): note(ctx)
async def done(ctx): note(ctx)

def double(n: int) -> str:
    """Doubles a number."""
    return str(2 * n)
"#;
    let card = "---
name: a
function_tools: ['hooks.py:double']
tool_hooks:
  before_llm_call: hooks.py:before_llm
  after_llm_call: hooks.py:after_llm
  before_tool_call: hooks.py:before_tool
  after_tool_call: hooks.py:after_tool
  after_turn_complete: hooks.py:done
---
x
";
    let project = Project::new([("hooks.py", hooks), ("a.md", card)]);
    let output = asked(&project, r#"***CALL_TOOL double {"n": 21}"#).await;
    assert_eq!(output.as_deref(), Ok("42"));
    assert_eq!(
        project.log(),
        [
            "before_llm_call",
            "after_llm_call",
            "before_tool_call",
            "after_tool_call",
            "before_llm_call",
            "after_llm_call",
            "after_turn_complete",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_denies_and_its_condition_says_when() {
    let guard = "def check(ctx, next):\n    return {'deny': 'not that one'}\n";
    let card = "---
name: a
shell: true
human_input: true
hooks:
  - { on: wrap_tool_call, run: 'guard.py:check', policy: deny, when: \"tool.name == 'execute'\", name: guard }
---
x
";
    let project = Project::new([("guard.py", guard), ("a.md", card)]);
    let denied = asked(&project, r#"***CALL_TOOL execute {"command": "echo hi"}"#).await;
    assert_eq!(denied.as_deref(), Ok("not that one"));
    let other = asked(&project, r#"***CALL_TOOL __human_input {"prompt": "well?"}"#).await;
    assert_ne!(other.as_deref(), Ok("not that one"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_that_cannot_be_evaluated_calls_a_guard_and_skips_any_other() {
    for (policy, expected) in [("deny", "no"), ("abort", "hello")] {
        let card = format!(
            "---\nname: a\nhooks:\n  - {{ on: before_agent, run: [echo, '{{\"finish\": \"no\"}}'], policy: {policy}, when: 'variables.nobody > 1' }}\n---\nx\n"
        );
        let project = Project::new([("a.md", &card)]);
        assert_eq!(asked(&project, "hello").await.as_deref(), Ok(expected), "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conditions_see_what_their_point_has() {
    for (on, when, expected) in [
        (
            "before_agent",
            "input == 'hello' and agent.name == 'a' and point == 'before_agent'",
            "no",
        ),
        ("before_agent", "'x' in input", "hello"),
        ("before_agent", "agent.phase == 'processing_user_input'", "no"),
        ("before_model", "request.step == 1", "no"),
        ("before_model", "request.step > 5", "hello"),
        ("before_chat", "variables.chat_id is startingwith 'chat-' and not state", "no"),
        ("before_chat", "variables.chat_id == 'other'", "hello"),
    ] {
        let card = format!(
            "---\nname: a\nhooks:\n  - {{ on: {on}, run: [echo, '{{\"finish\": \"no\"}}'], when: \"{when}\" }}\n---\nx\n"
        );
        let project = Project::new([("a.md", &card)]);
        assert_eq!(asked(&project, "hello").await.as_deref(), Ok(expected), "{on}: {when}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_that_fails_is_called_again_with_growing_waits() {
    let flaky = "calls = 0\ndef sometimes(ctx):\n    global calls\n    calls += 1\n    if calls < 3:\n        raise OSError('try again')\n    return {'finish': 'attempt %d' % calls}\n";
    for (retries, expected) in [(2, Ok("attempt 3")), (1, Err("OSError: try again"))] {
        let card = format!(
            "---\nname: a\nhooks:\n  - {{ on: before_agent, run: 'flaky.py:sometimes', retries: {retries}, backoff: 20ms }}\n---\nx\n"
        );
        let project = Project::new([("flaky.py", flaky), ("a.md", &card)]);
        match (asked(&project, "go").await, expected) {
            (Ok(output), Ok(expected)) => assert_eq!(output, expected),
            (Err(error), Err(part)) => assert!(error.contains(part), "{error}"),
            (result, _) => panic!("{retries}: {result:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_not_repeated_and_the_run_is_denied() {
    let deny = "calls = 0\ndef no(ctx):\n    global calls\n    calls += 1\n    return {'deny': 'no, %d' % calls}\n";
    let card = "---\nname: a\nhooks:\n  - { on: before_agent, run: 'deny.py:no', retries: 5, backoff: 1ms }\n---\nx\n";
    let project = Project::new([("deny.py", deny), ("a.md", card)]);
    let team = project.team();
    team.start().await.expect("it starts");
    let error = team.run(None, "go").await.expect_err("it is denied");
    assert_eq!((error.kind(), error.outcome()), (TeamErrorKind::Run, Outcome::Denied));
    assert!(error.to_string().contains("no, 1"), "{error}");
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrap_whose_call_was_made_is_not_repeated() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = made.clone();
    let catalog = HookCatalog::new().register(
        "late",
        hook::wrap_model_call(move |_, request, next| {
            let counted = counted.clone();
            Box::pin(async move {
                next.call(request).await?;
                counted.fetch_add(1, Ordering::SeqCst);
                Err(HookError::new("too late"))
            })
        }),
    );
    let card = "---\nname: a\nhooks:\n  - { use: late, retries: 5, backoff: 1ms }\n---\nx\n";
    let project = Project::new([("a.md", card)]);
    let team = project.builder().hook_catalog(catalog).build().expect("a good team");
    team.start().await.expect("it starts");
    let error = team.run(None, "go").await.expect_err("it fails");
    assert!(error.to_string().contains("too late"), "{error}");
    assert_eq!(made.load(Ordering::SeqCst), 1);
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registered_hooks_are_made_of_what_the_card_says() {
    let catalog = HookCatalog::new().register_with("greet", |with| {
        let word = with["word"].as_str().ok_or("it needs a text `word`")?.to_owned();
        let greet = hook::before_agent(move |_, input| {
            input.content = format!("{word} {}", input.content.text()).into();
            Box::pin(async { Ok(Flow::Continue) })
        });
        Ok(hook::hook(greet).policy(Policy::Abort))
    });
    let card = "---\nname: a\nhooks:\n  - { use: greet, with: { word: hi }, when: \"input != 'quiet'\" }\n---\nx\n";
    let project = Project::new([("a.md", card)]);
    let team = project.builder().hook_catalog(catalog).build().expect("a good team");
    team.start().await.expect("it starts");
    assert_eq!(team.run(None, "you").await.expect("it runs").output, "hi you");
    assert_eq!(team.run(None, "quiet").await.expect("it runs").output, "quiet");
    team.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_of_a_chat_surround_a_run_and_share_variables() {
    let hooks = "def begin(ctx, context_variables):\n    context_variables.data['word'] = 'shared'\ndef answer(ctx, context_variables):\n    return {'finish': context_variables.data['word']}\n";
    let card = "---\nname: a\nhooks:\n  - { on: before_chat, run: 'chat.py:begin' }\n  - { on: before_agent, run: 'chat.py:answer', when: \"variables.word == 'shared'\" }\n---\nx\n";
    let project = Project::new([("chat.py", hooks), ("a.md", card)]);
    assert_eq!(asked(&project, "x").await.as_deref(), Ok("shared"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_of_a_team_share_what_python_modules_hold() {
    let shared = "seen = []\ndef start(ctx):\n    seen.append(ctx.agent_name)\ndef tell(ctx):\n    return {'finish': ' '.join(seen)}\n";
    let card = |name: &str, more: &str| {
        format!(
            "---\nname: {name}\nlifecycle_hooks: {{ on_start: shared.py:start }}\n{more}\n---\nx\n"
        )
    };
    let project = Project::new([
        ("shared.py", shared),
        ("a.md", &card("a", "")),
        ("b.md", &card("b", "default: true\nhooks: [{ on: before_agent, run: 'shared.py:tell' }]")),
    ]);
    assert_eq!(asked(&project, "x").await.as_deref(), Ok("a b"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_stand_in_the_order_that_the_card_asks_for() {
    let add = |word: &str| {
        format!(
            "[sh, -c, 'read x; echo \"{{\\\"log\\\": \\\"{word}\\\"}}\"; echo {word} >> log.txt']"
        )
    };
    let card = format!(
        "---\nname: a\nhooks:\n  - {{ on: before_agent, run: {}, name: one, after: [two] }}\n  - {{ on: before_agent, run: {}, name: two }}\n  - {{ on: before_agent, run: {}, name: three, order: -1 }}\n  - {{ on: 'bootstrapping -> idle', run: {}, name: ready }}\n---\nx\n",
        add("one"),
        add("two"),
        add("three"),
        add("ready")
    );
    let project = Project::new([("a.md", &card)]);
    asked(&project, "x").await.expect("it runs");
    assert_eq!(project.log(), ["ready", "three", "two", "one"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_variables_that_the_project_passes_reach_a_hook() {
    // Every test process has variables of the build; none of them is passed by itself.
    let (name, value) = ("CARGO_PKG_NAME", std::env::var("CARGO_PKG_NAME").expect("by cargo"));
    let python = "import os\ndef tell(ctx):\n    return {'finish': os.environ.get('CARGO_PKG_NAME', 'none')}\n";
    let shell = r#"printf '{"finish": "%s"}' "${CARGO_PKG_NAME-none}""#;
    for hook in ["'tell.py:tell'", "[sh, tell.sh]"] {
        let card =
            format!("---\nname: a\nhooks:\n  - {{ on: before_agent, run: {hook} }}\n---\nx\n");
        let project = Project::new([("a.md", &*card), ("tell.py", python), ("tell.sh", shell)]);
        assert_eq!(asked(&project, "go").await.as_deref(), Ok("none"), "{hook}");
        let config = format!("[hooks]\nenv = [\"{name}\"]\n");
        std::fs::write(project.path().join("tenure.toml"), config).expect("a file");
        assert_eq!(asked(&project, "go").await, Ok(value.clone()), "{hook}");
    }
}
