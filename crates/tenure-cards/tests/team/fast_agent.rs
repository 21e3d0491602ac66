//! Projects that were written for fast-agent, as they are.

use crate::support::messages;
use std::path::Path;
use std::process::Command;
use tenure_cards::check::{LoadOptions, Loaded, load};
use tenure_cards::{Team, card::Environ};
use tenure_testkit::TestFolder;

fn loaded(path: &Path) -> Loaded {
    load(path, &LoadOptions::default().environ(Environ::of([] as [(&str, &str); 0])))
}

/// A team of a folder without errors.
fn team(path: &Path) -> Team {
    let loaded = loaded(path);
    assert!(!loaded.report.has_errors(), "{:#?}", messages(&loaded.report));
    let team = Team::builder(loaded).build();
    team.unwrap_or_else(|report| panic!("{:#?}", messages(&report)))
}

/// What the default agent answers, or why it does not.
async fn asked(path: &Path, message: &str) -> Result<String, String> {
    let team = team(path);
    if let Err(error) = team.start().await {
        return Err(error.to_string());
    }
    let result = team.run(None, message).await;
    team.shutdown().await;
    result.map(|run| run.output).map_err(|error| error.to_string())
}

/// What `tenure check` says.
fn said(path: &Path) -> Vec<String> {
    let mut loaded = loaded(path);
    let found = Team::builder(loaded.clone()).inspect().report;
    loaded.report.extend_built(found);
    let place = |it: &tenure_cards::Diagnostic| {
        let line = it.source.line_col(it.span.start as usize).line;
        let file = it.source.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let help = it.help.as_deref().unwrap_or_default();
        format!("{} {file}:{line} {} ({help})", it.code, it.message)
    };
    loaded.report.iter().map(place).collect()
}

const HOOKS: &str = r#"
from __future__ import annotations

import os
from typing import get_type_hints

from fast_agent import Context as SameContext, PromptMessageExtended, RequestParams
from fast_agent.agents.agent_types import AgentConfig, AgentType, LifecycleHooksConfig
from fast_agent.constants import FAST_AGENT_USAGE
from fast_agent.context import Context
from fast_agent.core.exceptions import AgentConfigError
from fast_agent.core.logging.logger import get_logger
from fast_agent.hooks import (
    AgentLifecycleContext,
    HookContext,
    show_hook_failure,
    show_hook_message,
    trim_tool_loop_history,
)
from fast_agent.hooks.history_trimmer import trim_tool_loop_history as same_trimmer
from fast_agent.hooks.hook_context import HookContext as SameHookContext
from fast_agent.hooks.lifecycle_hook_context import AgentLifecycleContext as SameLifecycle
from fast_agent.interfaces import AgentProtocol
from fast_agent.mcp.helpers.content_helpers import get_text, text_content
from fast_agent.mcp.prompt_serialization import load_messages, save_messages
from fast_agent.types import LlmStopReason, split_into_turns
from mcp.types import CallToolResult, TextContent
from mcp_types import CallToolRequestParams

HERE = os.path.dirname(os.path.abspath(__file__))
logger = get_logger(__name__)


def note(line: str) -> None:
    with open(os.path.join(HERE, "log.txt"), "a") as file:
        file.write(line + "\n")


async def start(ctx: AgentLifecycleContext) -> None:
    assert isinstance(ctx, SameLifecycle), type(ctx)
    config: AgentConfig = ctx.config
    context: Context | None = ctx.context
    logger.info("it starts", data={"agent": ctx.agent_name})
    logger.warning("with a reason", reason=AgentType.BASIC.value)
    ctx.agent._service_handle = object()
    ctx.agent.started_by = config.name
    note(f"start {config.name} {context} {ctx.hook_type}")


async def stop(ctx: AgentLifecycleContext) -> None:
    note(f"stop {type(ctx.agent._service_handle).__name__} {ctx.agent.started_by}")


async def done(ctx: HookContext) -> None:
    assert isinstance(ctx, SameHookContext), type(ctx)
    get_type_hints(done)
    agent: AgentProtocol = ctx.agent
    file = os.path.join(HERE, "saved.json")
    save_messages(ctx.message_history, file)
    again = load_messages(file)
    assert [it.role for it in again] == [it.role for it in ctx.message_history]
    assert again[0].all_text() == ctx.message_history[0].all_text()
    calls = [call.params.name for it in again for call in (it.tool_calls or {}).values()]
    results = [get_text(it.content[0]) for m in again for it in (m.tool_results or {}).values()]
    await trim_tool_loop_history(ctx)
    show_hook_message(ctx, f"kept {len(ctx.message_history)}", hook_name="done")
    show_hook_failure(ctx, hook_name="done", error=AgentConfigError("not really", "no"))
    turns = split_into_turns(ctx.message_history)
    note(f"done {agent.name} {calls} {results} {len(turns)} {len(turns[-1])} {again[-1].stop_reason}")


def double(n: int) -> str:
    """Doubles a number."""
    return str(2 * n)
"#;

const CARD: &str = "---
name: dev
model: script:script.yaml
function_tools: [hooks.py:double]
lifecycle_hooks: { on_start: hooks.py:start, on_shutdown: hooks.py:stop }
tool_hooks: { after_turn_complete: hooks.py:done }
---
You develop.
";

const SCRIPT: &str = "
- { call: double, with: { n: 1 } }
- { call: double, with: { n: 21 } }
- 'it is {result}'
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_find_what_they_import_from_fast_agent_without_it() {
    let folder = TestFolder::new(&[("hooks.py", HOOKS), ("dev.md", CARD), ("script.yaml", SCRIPT)]);
    assert_eq!(asked(folder.path(), "well?").await.as_deref(), Ok("it is 42"));
    assert_eq!(
        folder.read("log.txt").lines().collect::<Vec<_>>(),
        [
            "start dev None on_start",
            "done dev ['double', 'double'] ['2', '42'] 1 4 endTurn",
            "stop object dev",
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_fast_agent_itself_has_is_told_with_what_to_install() {
    for import in ["from fast_agent import FastAgent", "import fast_agent.core.fastagent"] {
        let hooks = format!("async def start(ctx):\n    {import}\n");
        let card = "---\nname: dev\nlifecycle_hooks: { on_start: hooks.py:start }\n---\nx\n";
        let folder = TestFolder::new(&[("hooks.py", &hooks), ("dev.md", card)]);
        let error = asked(folder.path(), "well?").await.expect_err("it is not installed");
        assert!(error.contains("install fast-agent-mcp"), "{import}: {error}");
    }
    // One that is asked for with care is not there, as if nothing stood in for anything.
    let hooks = "
async def start(ctx):
    try:
        from fast_agent.core.fastagent import FastAgent
    except ImportError:
        return
    raise AssertionError(FastAgent)
";
    let card = "---\nname: dev\nlifecycle_hooks: { on_start: hooks.py:start }\n---\nx\n";
    let folder = TestFolder::new(&[("hooks.py", hooks), ("dev.md", card)]);
    assert_eq!(asked(folder.path(), "well?").await.as_deref(), Ok("well?"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fast_agent_that_is_installed_comes_first() {
    let hooks = "
import fast_agent
from fast_agent.hooks import HookContext, told

async def start(ctx):
    assert HookContext == 'the real one', HookContext
    try:
        import fast_agent.core.logging.logger
    except ModuleNotFoundError as error:
        assert error.name == 'fast_agent.core', error.name
    else:
        raise AssertionError('half of it is ours')
";
    let card = "---\nname: dev\nlifecycle_hooks: { on_start: hooks.py:start }\n---\nx\n";
    let folder = TestFolder::new(&[("hooks.py", hooks), ("dev.md", card)]);
    let made = Command::new("python3")
        .args(["-m", "venv", "--without-pip", ".venv"])
        .current_dir(folder.path())
        .status();
    assert!(made.expect("there is a Python").success());
    let lib = std::fs::read_dir(folder.path().join(".venv/lib")).expect("it has a library");
    let version = lib.flatten().next().expect("of one version").file_name();
    let site = format!(".venv/lib/{}/site-packages/fast_agent", version.to_string_lossy());
    folder.write(&format!("{site}/__init__.py"), "");
    folder.write(&format!("{site}/hooks.py"), "HookContext = 'the real one'\ntold = True\n");
    assert_eq!(asked(folder.path(), "well?").await.as_deref(), Ok("well?"));
    assert!(said(folder.path()).is_empty(), "{:#?}", said(folder.path()));
}
