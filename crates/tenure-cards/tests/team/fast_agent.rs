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

/// A workspace as fast-agent has it: a home with cards for agents and for tools.
fn workspace() -> TestFolder {
    TestFolder::new(&[
        ("README.md", "---\ntitle: A space\nsdk: docker\n---\nHello.\n"),
        ("docker-compose.yaml", "services: {}\n"),
        (
            ".fast-agent/fastagent.config.yaml",
            "default_model: $system.default\n\
             logger: { type: file }\n\
             model_references:\n  system:\n    default: script:.fast-agent/dev.yaml\n    \
             fast: $system.quick\n    quick: passthrough\n",
        ),
        (".fast-agent/fastagent.secrets.yaml", "openai: { api_key: sk-never-read }\n"),
        (
            ".fast-agent/dev.yaml",
            "- { call: agent__finder, with: { message: where } }\n- 'found: {result}'\n",
        ),
        (
            ".fast-agent/agent-cards/dev.md",
            "---\ndefault: true\nmodel: $system.default\n---\nYou develop.\n",
        ),
        (".fast-agent/agent-cards/planner.md", "---\n{}\n---\nYou plan.\n"),
        (
            ".fast-agent/tool-cards/finder.md",
            "---\nmodel: $system.fast\ntool_hooks: { after_turn_complete: ../hooks.py:note }\n\
             ---\nYou find.\n",
        ),
        (".fast-agent/hooks.py", "async def note(ctx):\n    print(ctx.agent_name)\n"),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_is_one_team_whose_tool_cards_are_tools_of_the_default_agent() {
    let folder = workspace();
    for path in ["", ".fast-agent"] {
        let path = folder.path().join(path);
        assert_eq!(asked(&path, "go").await.as_deref(), Ok("found: where"), "{}", path.display());
        let loaded = loaded(&path);
        assert_eq!(loaded.project.root, folder.path().canonicalize().expect("it is there"));
        let names: Vec<&str> = loaded.cards.iter().map(|card| &*card.name).collect();
        assert_eq!(names, ["dev", "planner", "finder"]);
        assert!(loaded.card("finder").is_some_and(|card| card.tool_only));
    }
    // Its cards alone are a team of their own, in the same project.
    let cards = folder.path().join(".fast-agent/agent-cards");
    let alone = loaded(&cards);
    assert_eq!(alone.cards.len(), 2);
    assert_eq!(alone.project.root, folder.path().canonicalize().expect("it is there"));
}

#[test]
fn a_pack_is_a_home_by_another_name() {
    let folder = TestFolder::new(&[
        ("pack/card-pack.yaml", "schema_version: 1\nname: pack\n"),
        ("pack/agent-cards/dev.md", "---\nmodel: passthrough\n---\nYou develop.\n"),
        ("pack/tool-cards/finder.md", "---\nmodel: passthrough\n---\nYou find.\n"),
    ]);
    let loaded = loaded(&folder.path().join("pack"));
    assert!(loaded.report.is_empty(), "{:#?}", messages(&loaded.report));
    assert_eq!(loaded.cards.len(), 2);
}

#[test]
fn the_configuration_of_fast_agent_is_read_where_there_is_no_tenure_toml() {
    let config = "default_model: haiku
model_references:
  system: { fast: openai.gpt-4.1-mini }
openai:
  api_key: ${OPENAI_API_KEY}
generic:
  base_url: http://127.0.0.1:8080/v1
  api_key: sk-in-clear
mcp:
  servers:
    fetch: { command: uvx, args: [mcp-server-fetch], read_timeout_seconds: 30 }
    web:
      transport: http
      url: https://example.com/mcp
      headers: { Authorization: 'Bearer ${WEB_TOKEN}' }
      sampling: { model: sonnet }
    time: { target: 'uvx mcp-server-time', env: { TZ: UTC } }
  targets:
    - { name: hf, target: 'https://huggingface.co/mcp' }
    - target: npx -y @scope/server-memory
logger: { type: none }
defaultmodel: sonnet
";
    let files = [
        ("fastagent.config.yaml", config),
        ("fastagent.secrets.yaml", "anthropic: { api_key: sk-never-read }\n"),
        ("dev.md", "---\nname: dev\nmodel: $system.fast\nservers: [fetch, web, hf]\n---\nYou.\n"),
    ];
    let folder = TestFolder::new(&files);
    let loaded = loaded(folder.path());
    assert!(!loaded.report.has_errors(), "{:#?}", messages(&loaded.report));
    let config = &loaded.project.config;
    assert_eq!(config.models.default_model.as_ref().map(|it| &*it.text), Some("haiku"));
    assert!(config.models.providers.contains_key("generic"));
    let servers: Vec<(String, String)> =
        config.servers.values().map(|it| (it.name.to_string(), it.written())).collect();
    let expected = [
        ("fetch", "uvx mcp-server-fetch"),
        ("hf", "https://huggingface.co/mcp"),
        ("server-memory", "npx -y @scope/server-memory"),
        ("time", "uvx mcp-server-time"),
        ("web", "https://example.com/mcp"),
    ];
    assert_eq!(servers, expected.map(|(name, it)| (name.to_owned(), it.to_owned())));
    let limit = config.servers["fetch"].call_limit.map(|it| it.duration());
    assert_eq!(limit, Some(std::time::Duration::from_secs(30)));

    let found = said(folder.path());
    for part in [
        "T0604 fastagent.config.yaml:5 `openai.api_key` is not read (keys are yours and not the",
        "T0604 fastagent.config.yaml:8 `generic.api_key` is not read",
        "T0904 fastagent.config.yaml:16 `mcp.servers.web.sampling` means nothing here",
        "T0904 fastagent.config.yaml:21 `logger` means nothing here",
        "T0904 fastagent.config.yaml:22 `defaultmodel` means nothing here (did you mean `default_m",
        "T0912 fastagent.secrets.yaml:1 this file is not read (keys come from the environment",
    ] {
        assert!(found.iter().any(|it| it.starts_with(part)), "{part}: {found:#?}");
    }
    assert_eq!(found.len(), 6, "{found:#?}");
    let text =
        format!("{}{loaded:?}", loaded.report.render_text(tenure_cards::diagnostic::Color::Never));
    assert!(!text.contains("sk-"), "{text}");

    // What a tenure.toml says is all that counts.
    folder.write("tenure.toml", "[aliases]\n\"$system.fast\" = \"passthrough\"\n");
    let found = said(folder.path());
    let part =
        "T0912 fastagent.config.yaml:1 this file is not read, because there is a tenure.toml";
    assert!(found.iter().any(|it| it.starts_with(part)), "{found:#?}");
    assert!(found.iter().any(|it| it.starts_with("T0509")), "{found:#?}");
}

#[test]
fn what_is_wrong_with_it_is_told_with_its_place() {
    for (config, expected) in [
        ("default_model: [", "T0113 fastagent.config.yaml:1"),
        ("mcp: { servers: { a: {} } }", "T0605 fastagent.config.yaml:1 the server [mcp.servers.a]"),
        ("default_model: 5", "T0603 fastagent.config.yaml:1 `default_model` must be a text"),
        ("model_references: { system: [] }", "T0603 fastagent.config.yaml:1 `model_references."),
        ("- a", "T0111 fastagent.config.yaml:1"),
        (
            "mcp: { targets: [{ name: a }] }",
            "T0605 fastagent.config.yaml:1 an entry of `mcp.targets`",
        ),
        (
            "mcp: { targets: ['ftp://x'] }",
            "T0605 fastagent.config.yaml:1 the target `ftp://x` is an",
        ),
    ] {
        let card = "---\nmodel: passthrough\n---\nYou.\n";
        let folder = TestFolder::new(&[("fastagent.config.yaml", config), ("dev.md", card)]);
        let found = said(folder.path());
        assert!(found.iter().any(|it| it.starts_with(expected)), "{config}: {found:#?}");
    }
    // Two of them would each be right.
    let folder = TestFolder::new(&[
        ("fastagent.config.yaml", "default_model: passthrough\n"),
        ("fast-agent.yaml", "default_model: silent\n"),
        ("dev.md", "---\n{}\n---\nYou.\n"),
    ]);
    let found = said(folder.path());
    assert!(found.iter().any(|it| it.contains("fastagent.config.yaml")), "{found:#?}");
    assert_eq!(
        loaded(folder.path()).project.config.models.default_model.as_ref().map(|it| &*it.text),
        Some("silent")
    );
}

#[test]
fn references_to_models_lead_where_the_configuration_says() {
    let card = |model: &str| format!("---\nname: dev\nmodel: {model}\n---\nYou.\n");
    let toml = "default_model = \"silent\"\n[aliases]\n\"$system.fast\" = \"$system.quick\"\n\
                \"$system.quick\" = \"slow\"\n\"$system.a\" = \"$system.b\"\n\"$system.b\" = \"$system.a\"\n";
    for (model, expected) in [
        ("$system.fast", Ok("slow")),
        ("$system.default", Ok("silent")),
        (
            "$system.slow",
            Err(
                "T0706 dev.md:3 `$system.slow` stands for no model (known are `$system.a`, `$system.b`, `$system.fast` and `$system.quick`",
            ),
        ),
        ("$nobody.fast", Err("T0706 dev.md:3 `$nobody.fast` stands for no model")),
        (
            "$system.a",
            Err(
                "T0706 tenure.toml:6 `$system.b` leads back to itself: `$system.a` -> `$system.b` -> `$system.a`",
            ),
        ),
    ] {
        let folder = TestFolder::new(&[("tenure.toml", toml), ("dev.md", &card(model))]);
        let found = said(folder.path());
        match expected {
            Ok(name) => {
                assert!(found.is_empty(), "{model}: {found:#?}");
                let agents = Team::builder(loaded(folder.path())).inspect().agents;
                assert_eq!(agents[0].model, name, "{model}");
            }
            Err(text) => {
                assert!(found.iter().any(|it| it.starts_with(text)), "{model}: {found:#?}")
            }
        }
    }
    // A default that is nowhere said is not guessed.
    let folder = TestFolder::new(&[("tenure.toml", ""), ("dev.md", &card("$system.default"))]);
    let found = said(folder.path());
    assert!(
        found[0].starts_with(
            "T0706 dev.md:3 `$system.default` stands for the default model, and none is set"
        ),
        "{found:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_tools_are_passed_through_where_a_card_says_so() {
    let tools = "def look(what: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return 'seen: ' + what\n";
    let hooks = "import os\nasync def done(ctx):\n    \
                 with open(os.path.join(os.path.dirname(__file__), 'log.txt'), 'a') as file:\n        \
                 file.write(ctx.message.all_text() + ' ' + ctx.message.stop_reason.value + '\\n')\n";
    let script = "- { calls: [{ call: look, with: { what: one } }, { call: look, with: { what: two } }] }\n- 'rewritten: {result}'\n";
    for (mode, expected) in [
        ("postprocess", "rewritten: seen: two"),
        ("passthrough", "seen: one\nseen: two"),
        ("selectable", "rewritten: seen: two"),
    ] {
        let card = format!(
            "---\nname: dev\nmodel: script:script.yaml\nfunction_tools: [tools.py:look]\n\
             tool_hooks: {{ after_turn_complete: hooks.py:done }}\n\
             request_params: {{ tool_result_mode: {mode} }}\n---\nYou.\n"
        );
        let files = [
            ("tenure.toml", ""),
            ("tools.py", tools),
            ("hooks.py", hooks),
            ("script.yaml", script),
            ("dev.md", &*card),
        ];
        let folder = TestFolder::new(&files);
        assert_eq!(asked(folder.path(), "go").await.as_deref(), Ok(expected), "{mode}");
        assert_eq!(folder.read("log.txt"), format!("{expected} endTurn\n"), "{mode}");
    }
    let card = "---\nrequest_params: { tool_result_mode: sometimes }\n---\nYou.\n";
    let folder = TestFolder::new(&[("tenure.toml", ""), ("dev.md", card)]);
    assert!(said(folder.path())[0].starts_with("T0206 dev.md:2"), "{:#?}", said(folder.path()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_selects_how_a_child_returns_its_results() {
    let tools = "def look(what: str) -> str:\n    \"\"\"Looks.\"\"\"\n    return 'seen: ' + what\n";
    let child = |schema: &str| {
        format!(
            "---\nname: child\ntool_only: true\nmodel: script:child.yaml\nfunction_tools: [tools.py:look]\n\
             request_params: {{ tool_result_mode: selectable }}\n{schema}---\nYou.\n"
        )
    };
    let script = "- { call: look, with: { what: '{input}' } }\n- 'rewritten: {result}'\n";
    for (schema, arguments, expected) in [
        ("", "{\"message\": \"x\"}", "rewritten: seen: x"),
        ("", "{\"message\": \"x\", \"response_mode\": \"inherit\"}", "rewritten: seen: x"),
        ("", "{\"message\": \"x\", \"response_mode\": \" Passthrough \"}", "seen: x"),
        ("", "{\"message\": \"x\", \"response_mode\": \"postprocess\"}", "rewritten: seen: x"),
        (
            "tool_input_schema: { type: object, properties: { goal: { type: string, description: g } } }\n",
            "{\"goal\": \"x\", \"response_mode\": \"passthrough\"}",
            "seen: {\"goal\":\"x\"}",
        ),
    ] {
        let files = [
            ("tenure.toml", ""),
            ("tools.py", tools),
            ("child.yaml", script),
            ("child.md", &*child(schema)),
            ("dev.md", "---\nname: dev\nagents: [child]\n---\nYou.\n"),
        ];
        let folder = TestFolder::new(&files);
        let call = format!("***CALL_TOOL agent__child {arguments}");
        assert_eq!(asked(folder.path(), &call).await.as_deref(), Ok(expected), "{arguments}");
    }
    let files = [
        ("tenure.toml", ""),
        ("tools.py", tools),
        ("child.yaml", script),
        ("child.md", &*child("")),
        ("dev.md", "---\nname: dev\nagents: [child]\n---\nYou.\n"),
    ];
    let folder = TestFolder::new(&files);
    let call = "***CALL_TOOL agent__child {\"message\": \"x\", \"response_mode\": \"never\"}";
    let answer = asked(folder.path(), call).await.expect("the model reads it");
    assert!(
        answer.contains(
            "`response_mode` is `never`, but must be inherit, postprocess or passthrough"
        ),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn children_understand_what_models_send_them() {
    let files = [
        ("tenure.toml", ""),
        ("plain.md", "---\nname: plain\ntool_only: true\nmodel: passthrough\n---\nYou.\n"),
        (
            "shaped.md",
            "---\nname: shaped\ntool_only: true\nmodel: passthrough\ntool_input_schema:\n  type: object\n  \
             properties: { objective: { type: string, description: o }, depth: { type: integer, description: d } }\n---\nYou.\n",
        ),
        (
            "message.md",
            "---\nname: message\ntool_only: true\nmodel: passthrough\ntool_input_schema:\n  type: object\n  \
             properties: { message: { type: string, description: m } }\n---\nYou.\n",
        ),
        (
            "dev.md",
            "---\nname: dev\nagents: [plain, shaped, message]\nmodel: script:dev.json\n---\nYou.\n",
        ),
    ];
    let folder = TestFolder::new(&files);
    for (child, arguments, expected) in [
        ("plain", r#"{"message": "do it"}"#, "do it"),
        ("plain", r#"{"input": "do it"}"#, "do it"),
        ("plain", r#"{"prompt": "do it"}"#, "do it"),
        ("plain", r#"{"task": "do it"}"#, "do it"),
        ("plain", r#"{"message": {"task": "do it"}}"#, r#"{"task":"do it"}"#),
        ("plain", r#"{"task": "do it", "depth": 2}"#, r#"{"task":"do it","depth":2}"#),
        ("shaped", r#"{"objective": "x", "depth": 2}"#, r#"{"objective":"x","depth":2}"#),
        ("shaped", r#"{"message": "do it"}"#, "do it"),
        ("message", r#"{"message": "do it"}"#, "do it"),
    ] {
        let reply = format!(r#"[{{"call": "agent__{child}", "with": {arguments}}}, "{{result}}"]"#);
        folder.write("dev.json", &reply);
        assert_eq!(
            asked(folder.path(), "go").await.as_deref(),
            Ok(expected),
            "{child} {arguments}"
        );
    }
    folder.write(
        "dev.md",
        "---\nname: dev\nagents: [plain, shaped]\nmodel: passthrough\n---\nYou.\n",
    );
    for child in ["plain", "shaped"] {
        let call = format!("***CALL_TOOL agent__{child} \"do it\"");
        assert_eq!(asked(folder.path(), &call).await.as_deref(), Ok("do it"), "{child}");
    }
    // Nothing at all is still an error for the model to read.
    folder.write("dev.md", "---\nname: dev\nagents: [plain]\nmodel: script:dev.json\n---\nYou.\n");
    folder.write("dev.json", r#"[{"call": "agent__plain", "with": {}}, "{result}"]"#);
    let answer = asked(folder.path(), "go").await.expect("it answers");
    assert!(answer.contains("argument `message` is missing"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_comes_with_tools_for_files_that_stay_in_the_project() {
    let outside = TestFolder::new(&[("secret.txt", "not yours\n")]);
    let files = [
        ("tenure.toml", ""),
        ("work/notes.txt", "one\ntwo\nthree\n"),
        ("dev.md", "---\nname: dev\nshell: true\ncwd: work\nmodel: passthrough\n---\nYou.\n"),
    ];
    let folder = TestFolder::new(&files);
    std::os::unix::fs::symlink(outside.path(), folder.path().join("work/link")).expect("a link");
    let absolute = folder.path().canonicalize().expect("it is there").join("work/notes.txt");
    let absolute = absolute.display();
    let escape = outside.path().join("secret.txt");
    for (call, expected) in [
        ("read_text_file {\"path\": \"notes.txt\"}".to_owned(), "one\ntwo\nthree\n"),
        (format!("read_text_file {{\"path\": \"{absolute}\"}}"), "one\ntwo\nthree\n"),
        ("read_text_file {\"path\": \"notes.txt\", \"line\": 2, \"limit\": 1}".to_owned(), "two"),
        ("read_text_file {\"path\": \"gone.txt\"}".to_owned(), "`gone.txt` is not there"),
        (
            "read_text_file {\"path\": \"../../x\"}".to_owned(),
            "`../../x` is outside of the project",
        ),
        (
            "read_text_file {\"path\": \"link/secret.txt\"}".to_owned(),
            "`link/secret.txt` is a link that leads out of the project",
        ),
        (
            "write_text_file {\"path\": \"sub/new.txt\", \"content\": \"hello\"}".to_owned(),
            "wrote 5 characters to sub/new.txt",
        ),
        (
            "write_text_file {\"path\": \"link/new.txt\", \"content\": \"x\"}".to_owned(),
            "`link/new.txt` is a link that leads out of the project",
        ),
        (
            format!("write_text_file {{\"path\": \"{}\", \"content\": \"x\"}}", escape.display()),
            "is outside of the project",
        ),
        (
            "write_text_file {\"path\": \"../.tenure/x\", \"content\": \"x\"}".to_owned(),
            "`../.tenure/x` is kept from models",
        ),
        ("execute {\"command\": \"cat sub/new.txt; pwd\"}".to_owned(), "hello"),
    ] {
        let answer = asked(folder.path(), &format!("***CALL_TOOL {call}")).await;
        let answer = answer.expect("the model reads it");
        assert!(answer.contains(expected), "{call}: {answer}");
    }
    assert_eq!(outside.read("secret.txt"), "not yours\n");
    assert!(!outside.path().join("new.txt").exists() && !folder.path().join(".tenure/x").exists());
    let items = tenure_cards::trust::inventory(&loaded(folder.path())).items;
    assert!(items.iter().any(|it| it.what.contains("read and write files")), "{items:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_not_there_yet_is_a_warning() {
    let card = "---\nname: dev\nshell: true\ncwd: work/later\nmodel: passthrough\n---\nYou.\n";
    let folder = TestFolder::new(&[("tenure.toml", ""), ("dev.md", card)]);
    let found = said(folder.path());
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("T0911 dev.md:4 `cwd` is `work/later`, which is not there"),
        "{found:#?}"
    );
    let call = "***CALL_TOOL execute {\"command\": \"pwd\"}";
    let answer = asked(folder.path(), call).await.expect("the model reads it");
    assert!(answer.contains("work/later"), "{answer}");
    std::fs::create_dir_all(folder.path().join("work/later")).expect("a folder");
    assert!(said(folder.path()).is_empty());
}

#[test]
fn no_message_about_a_configuration_shows_a_secret() {
    let config = "azure: { api_key: sk-one, other: 1 }
openai: { api_key: sk-two, organization: x, base_url: 5 }
mcp:
  servers:
    a: { url: 'no address', headers: { Authorization: sk-three }, auth: { token: sk-four }, roots: [] }
    b: { command: 5, url: 'https://example.com', env: { KEY: sk-five } }
  targets: [{ name: c, target: 'ftp://x', access_token: sk-six }]
otel: [{ secret: sk-seven }]
";
    let card = "---\nmodel: passthrough\n---\nYou.\n";
    let folder = TestFolder::new(&[("fastagent.config.yaml", config), ("dev.md", card)]);
    let loaded = loaded(folder.path());
    assert!(loaded.report.errors() >= 4, "{:#?}", messages(&loaded.report));
    let shown = loaded.report.render_text(tenure_cards::diagnostic::Color::Never);
    let shown = format!("{shown}{loaded:?}{:?}", tenure_cards::project::convert(folder.path()));
    assert!(!shown.contains("sk-"), "{shown}");
}
