//! fast-agent's tool hooks, as cards for it have them, with a real Python.

use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tenure_core::agent::Agent;
use tenure_core::event::EventKind;
use tenure_core::hook::HookAction;
use tenure_core::message::{Message, ToolCall, ToolStatus};
use tenure_core::model::ModelResponse;
use tenure_core::{Outcome, hook};
use tenure_hosts::{
    Environment, Interpreter, PythonConfig, PythonFile, PythonFunction, PythonHost, Style,
    ToolHooks, ToolHooksAdapter, TrimToolHistory,
};
use tenure_models::Hanging;
use tenure_testkit::{HarnessRun, HookHarness};

const NAMES: [&str; 5] = [
    "before_llm_call",
    "after_llm_call",
    "before_tool_call",
    "after_tool_call",
    "after_turn_complete",
];

/// The hooks of a file: each of the five that it defines.
struct Hooks {
    host: PythonHost,
    dir: TempDir,
    file: Arc<PythonFile>,
    defined: Vec<&'static str>,
}

impl Hooks {
    fn new(source: &str) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let config = PythonConfig {
            interpreter: Interpreter::find(dir.path()).expect("there is a Python"),
            environment: Environment::new(),
            dir: dir.path().to_owned(),
            limits: Default::default(),
            modules: Default::default(),
            start_check: None,
        };
        let file = Arc::new(PythonFile::new(dir.path().join("hooks.py"), source));
        let defined =
            NAMES.into_iter().filter(|name| source.contains(&format!("def {name}("))).collect();
        Self { host: PythonHost::new(config), dir, file, defined }
    }

    fn function(&self, name: &'static str) -> Option<PythonFunction> {
        self.defined.contains(&name).then(|| PythonFunction {
            file: self.file.clone(),
            name: name.into(),
            style: Style::Async,
            takes: vec!["ctx".into()],
            waits: false,
        })
    }

    fn adapter(&self) -> ToolHooksAdapter {
        let [
            before_llm_call,
            after_llm_call,
            before_tool_call,
            after_tool_call,
            after_turn_complete,
        ] = NAMES.map(|name| self.function(name));
        self.host.tool_hooks(ToolHooks {
            before_llm_call,
            after_llm_call,
            before_tool_call,
            after_tool_call,
            after_turn_complete,
        })
    }

    fn harness(&self) -> HookHarness {
        HookHarness::new(self.adapter()).tool("clock", "noon")
    }

    /// What the hooks wrote into `seen.txt`.
    fn seen(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.dir.path().join("seen.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn calls(ids: &[&str]) -> ModelResponse {
    let call = |id: &&str| ToolCall::new(*id, "clock", json!({ "zone": "UTC" }).to_string());
    ModelResponse::calls(ids.iter().map(call))
}

fn history(run: &HarnessRun) -> Vec<Message> {
    run.report().expect("a turn").history().iter().cloned().collect()
}

fn roles(messages: &[Message]) -> Vec<&'static str> {
    messages
        .iter()
        .map(|message| match message {
            Message::System { .. } => "system",
            Message::User { .. } => "user",
            Message::Assistant { calls, .. } if !calls.is_empty() => "calls",
            Message::Assistant { .. } => "assistant",
            _ => "tool",
        })
        .collect()
}

const RECORDING: &str = r#"
def note(ctx):
    message = ctx.message
    with open("seen.txt", "a") as seen:
        print(ctx.hook_type, ctx.iteration, message.role, message.last_text(),
              list(message.tool_calls or ()), list(message.tool_results or ()),
              ctx.is_turn_complete, len(ctx.message_history), file=seen)

async def before_llm_call(ctx): note(ctx)
async def after_llm_call(ctx): note(ctx)
async def before_tool_call(ctx): note(ctx)
async def after_tool_call(ctx): note(ctx)
async def after_turn_complete(ctx): note(ctx)
"#;

#[tokio::test]
async fn they_are_called_in_order_and_once_for_a_batch() {
    let hooks = Hooks::new(RECORDING);
    let run = hooks.harness().model_response(calls(&["c", "d"])).after_model(calls(&["a"])).await;
    assert_eq!(run.output(), "done", "{run:?}");
    assert_eq!(
        hooks.seen(),
        [
            "before_llm_call 0 user hello [] [] False 1",
            "after_llm_call 0 assistant None ['a'] [] False 2",
            "before_tool_call 0 assistant None ['a'] [] False 2",
            "after_tool_call 0 user None [] ['a'] False 3",
            "before_llm_call 1 user None [] ['a'] False 3",
            "after_llm_call 1 assistant None ['c', 'd'] [] False 4",
            "before_tool_call 1 assistant None ['c', 'd'] [] False 4",
            "after_tool_call 1 user None [] ['c', 'd'] False 5",
            "before_llm_call 2 user None [] ['c', 'd'] False 5",
            "after_llm_call 2 assistant done [] [] True 6",
            "after_turn_complete 2 assistant done [] [] True 6",
        ]
    );
    assert_eq!(
        roles(&history(&run)),
        ["user", "calls", "tool", "calls", "tool", "tool", "assistant"]
    );
}

#[tokio::test]
async fn before_llm_call_changes_the_conversation_for_good() {
    let hooks = Hooks::new(
        "async def before_llm_call(ctx):\n\
         \x20   if ctx.iteration == 0:\n\
         \x20       ctx.message.content[0].text += ', please'\n\
         \x20       ctx.runner.append_messages('and be brief')\n\
         \x20       ctx.request_params.temperature = 0.25\n",
    );
    let run = hooks.harness().after_model(calls(&["a"])).await;
    assert_eq!(run.output(), "done", "{run:?}");
    let begin = [Message::user("hello, please"), Message::user("and be brief")];
    for request in &run.requests {
        assert_eq!(request.messages.iter().take(2).cloned().collect::<Vec<_>>(), begin);
    }
    assert_eq!(run.requests[0].params.temperature, Some(0.25));
    assert_eq!(history(&run)[..2], begin);
}

#[tokio::test]
async fn after_llm_call_changes_the_answer() {
    let hooks = Hooks::new(
        "async def after_llm_call(ctx):\n\
         \x20   ctx.message.content[-1].text = ctx.message.first_text().upper()\n",
    );
    let run = hooks.harness().before_model("hello").await;
    assert_eq!(run.output(), "DONE", "{run:?}");
}

#[tokio::test]
async fn before_tool_call_rewrites_the_calls() {
    let hooks = Hooks::new(
        "async def before_tool_call(ctx):\n\
         \x20   for call in ctx.message.tool_calls.values():\n\
         \x20       assert call.params.name == call.name == 'clock'\n\
         \x20       call.params.arguments['zone'] = 'CET'\n",
    );
    let run = hooks.harness().after_model(calls(&["a", "b"])).await;
    let cet = || ("clock".to_owned(), json!({ "zone": "CET" }));
    assert_eq!(run.tool_calls, [cet(), cet()], "{run:?}");
    assert!(history(&run)[1].calls()[0].arguments.contains("CET"));
}

#[tokio::test]
async fn a_failing_before_tool_call_lets_no_tool_run_and_fails_the_turn() {
    let hooks =
        Hooks::new("async def before_tool_call(ctx):\n    raise ValueError('not on my watch')\n");
    let run = hooks.harness().after_model(calls(&["a", "b"])).await;
    let why = "Tool hook or execution failed during before_tool_call hooks.py:before_tool_call: \
               ValueError: not on my watch";
    assert!(run.tool_calls.is_empty(), "no tool ran");
    assert_eq!(run.requests.len(), 1, "the model was not asked again");
    assert_eq!(run.outcome(), Outcome::Failed);
    assert!(run.error().is_some_and(|error| error.to_string().contains(why)), "{run:?}");
    let history = history(&run);
    assert_eq!(roles(&history), ["user", "calls", "tool", "tool"]);
    for message in &history[2..] {
        let Message::Tool(result) = message else { panic!("{message:?}") };
        assert_eq!((result.status, result.content.text()), (ToolStatus::Error, why));
    }
}

#[tokio::test]
async fn after_tool_call_changes_the_results_and_its_failure_does_no_harm() {
    let hooks = Hooks::new(
        "async def after_tool_call(ctx):\n\
         \x20   result = ctx.message.tool_results['a']\n\
         \x20   result.content[0].text = 'a ' + result.content[0].text\n",
    );
    let run = hooks.harness().after_model(calls(&["a"])).await;
    assert_eq!(history(&run)[2].text(), "a noon", "{run:?}");
    assert_eq!(run.requests[1].messages.last().map(Message::text), Some("a noon"));

    let hooks = Hooks::new("async def after_tool_call(ctx):\n    raise ValueError('oh')\n");
    let run = hooks.harness().after_model(calls(&["a"])).await;
    assert_eq!(run.output(), "done", "{run:?}");
    assert!(run.failures().is_empty());
    let said = "after_tool_call hooks.py:after_tool_call: ValueError: oh";
    let is_said =
        |kind: &EventKind| matches!(kind, EventKind::Log { line, .. } if line.starts_with(said));
    assert!(run.recorder().events().iter().any(|event| is_said(&event.kind)));
}

#[tokio::test]
async fn after_turn_complete_puts_another_conversation_in_its_place() {
    let hooks = Hooks::new(
        "async def after_turn_complete(ctx):\n\
         \x20   assert ctx.is_turn_complete and ctx.agent_name == 'harness'\n\
         \x20   first, final = ctx.message_history[0], ctx.message_history[-1]\n\
         \x20   assert final is ctx.message\n\
         \x20   ctx.load_message_history([first, final])\n",
    );
    let run = hooks.harness().after_model(calls(&["a"])).await;
    assert_eq!(run.output(), "done", "{run:?}");
    assert_eq!(history(&run), [Message::user("hello"), Message::assistant("done")]);

    let hooks = Hooks::new("async def after_turn_complete(ctx):\n    raise RuntimeError('no')\n");
    let run = hooks.harness().before_model("hello").await;
    assert_eq!(run.outcome(), Outcome::Failed);
    assert!(run.error().is_some_and(|error| error.to_string().contains("RuntimeError: no")));
}

#[tokio::test]
async fn a_conversation_that_is_not_valid_fails_the_turn() {
    let hooks = Hooks::new(
        "async def after_turn_complete(ctx):\n\
         \x20   ctx.load_message_history([m for m in ctx.message_history if not m.tool_results])\n",
    );
    let run = hooks.harness().after_model(calls(&["a"])).await;
    assert_eq!(run.outcome(), Outcome::Failed);
    assert!(run.error().is_some_and(|error| error.to_string().contains("not a valid history")));
}

#[tokio::test]
async fn a_cancelled_turn_has_no_after_turn_complete() {
    let hooks = Hooks::new(RECORDING);
    let agent = Agent::builder("cancelled")
        .model(Hanging::new())
        .with_lifecycle(hooks.adapter())
        .build()
        .expect("it is built");
    agent.startup().await.expect("it starts");
    let cancel = async {
        while hooks.seen().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        agent.cancel();
    };
    let both = async { tokio::join!(agent.run("hello"), cancel) };
    let (turn, ()) = tokio::time::timeout(Duration::from_secs(20), both).await.expect("in time");
    assert!(turn.is_err_and(|error| error.is_cancelled()));
    agent.shutdown().await;
    assert_eq!(hooks.seen(), ["before_llm_call 0 user hello [] [] False 1"]);
}

#[tokio::test]
async fn files_that_import_fast_agents_names_load_without_it() {
    let hooks = Hooks::new(
        "from fast_agent.hooks.hook_context import HookContext\n\
         from fast_agent.types import LlmStopReason, PromptMessageExtended\n\
         from mcp.types import TextContent\n\
         \n\
         async def after_llm_call(ctx: HookContext) -> None:\n\
         \x20   assert isinstance(ctx.message, PromptMessageExtended)\n\
         \x20   assert ctx.message.stop_reason == LlmStopReason.END_TURN == 'endTurn'\n\
         \x20   ctx.message.content = [TextContent(type='text', text='swapped')]\n",
    );
    let run = hooks.harness().before_model("hello").await;
    assert_eq!(run.output(), "swapped", "{run:?}");
}

#[tokio::test]
async fn trimming_goes_together_with_a_hook_of_the_turns_end() {
    let rounds = async |harness: HookHarness| {
        let harness = harness.model_response(calls(&["b"])).model_response(calls(&["c"]));
        harness.after_model(calls(&["a"])).await
    };
    let run = HookHarness::new(TrimToolHistory).tool("clock", "noon");
    let run = rounds(run).await;
    assert_eq!(roles(&history(&run)), ["user", "calls", "tool", "assistant"], "{run:?}");
    assert_eq!(&*history(&run)[1].calls()[0].id, "c");

    let hooks = Hooks::new(RECORDING);
    let run = rounds(hooks.harness().and(TrimToolHistory)).await;
    assert_eq!(roles(&history(&run)), ["user", "calls", "tool", "assistant"], "{run:?}");
    let last = hooks.seen().pop().expect("it was called");
    assert_eq!(last, "after_turn_complete 3 assistant done [] [] True 8", "it sees all of it");
}

#[tokio::test]
async fn a_request_that_another_hook_edited_for_one_call_is_not_kept() {
    let hooks =
        Hooks::new("async def before_llm_call(ctx):\n    ctx.runner.append_messages('hook')\n");
    let other = hook::before_model(|_cx, request| {
        request.messages.edit().insert(0, Message::system("for this call"));
        Box::pin(async { Ok(hook::Flow::Continue) })
    });
    let run = HookHarness::new(other).and(hooks.adapter()).before_model("hello").await;
    assert_eq!(run.output(), "done", "{run:?}");
    assert_eq!(run.requests[0].messages.len(), 3);
    assert_eq!(history(&run), [Message::user("hello"), Message::assistant("done")]);
}

#[tokio::test]
async fn what_nobody_changed_stays_as_the_model_wrote_it() {
    let hooks = Hooks::new(
        "async def after_turn_complete(ctx):\n    ctx.message.content[0].text = 'changed'\n",
    );
    let odd = ToolCall::new("a", "clock", "{ \"zone\" :  \"UTC\", \"at\":1 }");
    let run = hooks.harness().after_model(ModelResponse::calls([odd.clone()])).await;
    assert_eq!(run.output(), "changed", "{run:?}");
    assert_eq!(history(&run)[1].calls(), [odd]);
}

#[tokio::test]
async fn an_error_names_the_function_and_the_tool_hook() {
    for name in ["before_llm_call", "after_llm_call", "after_turn_complete"] {
        let hooks = Hooks::new(&format!("async def {name}(ctx):\n    raise ValueError('no')\n"));
        let run = hooks.harness().before_model("hello").await;
        let said = format!("{name} hooks.py:{name}: ValueError: no");
        assert!(run.error().is_some_and(|it| it.to_string().contains(&said)), "{said}: {run:?}");
    }
}

#[tokio::test]
async fn calls_that_a_later_hook_puts_in_place_are_checked_alone() {
    let swap = || {
        hook::after_model(|_cx, response| {
            let has_calls = !response.calls.is_empty();
            Box::pin(async move {
                let bad = json!({ "zone": "evil" }).to_string();
                // The same id and name, with other arguments; and one that is not there yet.
                let calls = ["a", "b"].map(|id| ToolCall::new(id, "clock", bad.clone()));
                let response = Box::new(ModelResponse::calls(calls));
                Ok(if has_calls { HookAction::Modify(response) } else { HookAction::Continue })
            })
        })
    };
    // What comes first after the model is what was registered last.
    let swapped = async |hooks: &Hooks| {
        let harness = HookHarness::new(swap()).and(hooks.adapter()).tool("clock", "noon");
        harness.after_model(calls(&["a"])).await
    };
    let source = "\
def note(text):
    with open('seen.txt', 'a') as seen:
        print(text, file=seen)

async def before_tool_call(ctx):
    for id, call in ctx.message.tool_calls.items():
        note(f'{id} {call.arguments}')
        if call.arguments['zone'] == 'evil':
            WHAT
";
    let hooks = Hooks::new(&source.replace("WHAT", "raise ValueError('not that')"));
    let run = swapped(&hooks).await;
    assert!(run.tool_calls.is_empty(), "{run:?}");
    let seen = hooks.seen();
    assert_eq!(seen[0], "a {'zone': 'UTC'}");
    assert!(seen.len() > 1 && seen[1..].iter().all(|it| it.ends_with("evil'}")), "{seen:?}");

    let hooks = Hooks::new(&source.replace("WHAT", "call.params.arguments['zone'] = 'CET'"));
    let run = swapped(&hooks).await;
    let cet = || ("clock".to_owned(), json!({ "zone": "CET" }));
    assert_eq!(run.tool_calls, [cet(), cet()], "{run:?}");

    let hooks = Hooks::new(&source.replace("WHAT", "ctx.message.tool_calls = None"));
    let run = swapped(&hooks).await;
    assert!(run.tool_calls.is_empty(), "{run:?}");
}

#[tokio::test]
async fn a_call_that_was_checked_is_not_checked_again() {
    let hooks = Hooks::new(RECORDING);
    let run = hooks.harness().after_model(calls(&["a", "b"])).await;
    assert_eq!(run.tool_calls.len(), 2, "{run:?}");
    let checks = hooks.seen().into_iter().filter(|it| it.starts_with("before_tool_call"));
    assert_eq!(checks.count(), 1);
}

#[tokio::test]
async fn a_call_that_another_hook_makes_up_is_checked_too() {
    let made_up = || {
        hook::after_model(|_cx, response| {
            let is_first = response.content.text() == "first";
            Box::pin(async move {
                let response = Box::new(calls(&["x"]));
                Ok(if is_first { HookAction::Modify(response) } else { HookAction::Continue })
            })
        })
    };
    let hooks = Hooks::new(
        "async def before_tool_call(ctx):\n\
         \x20   ctx.message.tool_calls['x'].arguments = {'zone': 'CET'}\n",
    );
    let harness = HookHarness::new(made_up()).and(hooks.adapter()).tool("clock", "noon");
    let run = harness.after_model(ModelResponse::text("first")).await;
    assert_eq!(run.tool_calls, [("clock".to_owned(), json!({ "zone": "CET" }))], "{run:?}");

    let hooks = Hooks::new("async def before_tool_call(ctx):\n    raise ValueError('no')\n");
    let harness = HookHarness::new(made_up()).and(hooks.adapter()).tool("clock", "noon");
    let run = harness.after_model(ModelResponse::text("first")).await;
    assert!(run.tool_calls.is_empty(), "{run:?}");
    assert_eq!(run.outcome(), Outcome::Failed);
}
