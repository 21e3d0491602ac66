//! What loading makes of a card: its fields, its instruction, its hooks and its tools.

use crate::loading::support::*;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tenure_cards::card::{
    CardKind, HistoryMerge, HistorySource, MatchStrategy, PlanType, Rating, Skills,
    TemplateContext, load_history, render_instruction,
};
use tenure_cards::diagnostic::Color;
use tenure_cards::hook::{On, Run};
use tenure_core::hook::{Point, Points, Policy};
use tenure_core::phase::{Phase, PhasePattern};
use tenure_hosts::Style;

#[test]
fn an_agent_has_the_documented_defaults() {
    let folder = Folder::new(&[("my agent.md", "---\n---\nHello.\n")]);
    let card = folder.card("my agent.md");
    assert_eq!((&*card.name, card.instruction.as_deref()), ("my_agent", Some("Hello.")));
    assert!(!card.default && !card.tool_only && card.description.is_none());
    let CardKind::Agent(agent) = &card.kind else { panic!("{:?}", card.kind) };
    assert!(agent.model.use_history && agent.model.model.is_none());
    assert!(!agent.shell && !agent.harness_tools && agent.subagents.is_none());
    assert_eq!(agent.children.max_display_instances, 20);
    assert_eq!(agent.children.max_parallel, None);
    assert_eq!(agent.children.history_source, HistorySource::None);
    assert_eq!(agent.children.history_merge_target, HistoryMerge::None);
    assert_eq!(agent.skills, Skills::Default);
}

#[test]
fn the_other_types_have_the_documented_defaults() {
    let folder = Folder::new(&[
        ("w.md", "---\n---\nx\n"),
        ("chain.yaml", "type: chain\nsequence: [w]\n"),
        ("parallel.yaml", "type: parallel\nfan_out: [w]\n"),
        ("eo.yaml", "type: evaluator_optimizer\ngenerator: w\nevaluator: w\n"),
        ("router.yaml", "type: router\nagents: [w]\n"),
        ("o.yaml", "type: orchestrator\nagents: [w]\n"),
        ("p.yaml", "type: iterative_planner\nagents: [w]\n"),
        ("m.yaml", "type: MAKER\nworker: w\n"),
        ("a2a.yaml", "type: a2a\nurl: https://example.org\n"),
    ]);
    let loaded = folder.load("");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    for card in &loaded.cards {
        match &card.kind {
            CardKind::Agent(_) => {}
            CardKind::Chain(it) => assert!(!it.cumulative),
            CardKind::Parallel(it) => assert!(it.include_request && it.fan_in.is_none()),
            CardKind::EvaluatorOptimizer(it) => {
                assert_eq!((it.min_rating, it.max_refinements), (Rating::Good, 3));
            }
            CardKind::Router(it) => assert!(!it.model.use_history),
            CardKind::Orchestrator(it) => {
                assert_eq!((it.plan_type, it.plan_iterations), (PlanType::Full, Some(5)));
            }
            CardKind::IterativePlanner(it) => assert_eq!(it.plan_iterations, None),
            CardKind::Maker(it) => {
                assert_eq!((it.k, it.max_samples), (3, 50));
                assert_eq!(it.match_strategy, MatchStrategy::Exact);
            }
            CardKind::A2a(it) => assert!(it.streaming && it.request_timeout.as_secs() == 120),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(loaded.cards.len(), 9);
}

#[test]
fn smart_is_an_agent_with_helpers_unless_the_card_says_otherwise() {
    let folder = Folder::new(&[
        ("a.yaml", "type: smart\n"),
        ("b.yaml", "type: smart\nsubagents: false\nharness_tools: false\n"),
    ]);
    let loaded = folder.load("");
    let found: Vec<_> = loaded
        .cards
        .iter()
        .map(|card| match &card.kind {
            CardKind::Agent(agent) => (agent.smart, agent.subagents, agent.harness_tools),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found, [(true, Some(true), true), (true, Some(false), false)]);
    assert_eq!(codes(&loaded), ["T0901", "T0901"]);
    let said: Vec<_> = loaded.report.iter().map(|it| it.message.contains("runs without")).collect();
    assert_eq!(said, [true, false], "what is not given is said, unless nobody wants it");
    let told = loaded.report.render_text(Color::Never);
    assert!(!told.contains("harness_tools: true"), "{told}");
}

#[test]
fn variables_are_expanded_in_values_and_nowhere_else() {
    let text = "---\nmodel: ${MODEL}\napi_key: ${KEY}\ndescription: ${NO:some ${MODEL} text}\n\
                request_params: { stop: [\"${MODEL}\"] }\n---\nSay ${MODEL}.\n";
    let folder = Folder::new(&[("a.md", text)]);
    let card = folder.card("a.md");
    let fields = card.kind.model_fields().expect("an agent has a model");
    assert_eq!(fields.model.as_deref(), Some("silent"));
    assert_eq!(fields.request_params.extra["stop"], json!(["silent"]));
    assert_eq!(fields.api_key.as_ref().map(|key| key.reveal()), Some("sk-secret"));
    assert_eq!(card.instruction.as_deref(), Some("Say ${MODEL}."));
    assert_eq!(card.tree().field("api_key").and_then(|it| it.text()), Some("${KEY}"));
    assert!(!format!("{card:?}").contains("sk-secret"));
    let names: Vec<_> =
        card.expansions.iter().map(|it| (it.name.as_str(), it.is_resolved)).collect();
    assert!(names.contains(&("KEY", true)) && names.contains(&("NO", true)), "{names:?}");
}

#[test]
fn request_params_are_typed_and_the_rest_is_kept() {
    let text = "request_params: { max_iterations: 4, temperature: 1, max_tokens: 9, top_p: 0.5, \
                tool_result_mode: Selectable }\n";
    let folder = Folder::new(&[("a.yaml", text)]);
    let card = folder.card("a.yaml");
    let params = &card.kind.model_fields().expect("an agent has a model").request_params;
    assert_eq!((params.max_steps, params.max_tokens), (Some(4), Some(9)));
    assert_eq!(params.temperature, Some(1.0));
    assert_eq!(params.tool_result_mode.as_deref(), Some("selectable"));
    assert_eq!(serde_json::Value::Object(params.extra.clone()), json!({ "top_p": 0.5 }));
}

#[test]
fn templates_are_rendered_from_their_context() {
    let body = "I am {{agentName}} ({{agentType}}) on {{currentDate}}.\n{{file:rules.txt}}\
                {{file_silent:gone.txt}} {{unknown}} {{ a.b }}";
    let folder = Folder::new(&[("a.md", &format!("---\n---\n{body}\n")), ("rules.txt", "Rules")]);
    let loaded = folder.load("a.md");
    assert_eq!(codes(&loaded), ["T0903"]);
    let mut context = TemplateContext::new(&loaded.project);
    context.current_date = "1 May 2026".into();
    let text = render_instruction(&loaded.cards[0], &context).expect("it renders");
    assert_eq!(text, "I am a (agent) on 1 May 2026.\nRules {{unknown}} {{ a.b }}");
    // A file that vanished after the check is an error, not a gap.
    fs::remove_file(folder.0.path().join("rules.txt")).expect("removed");
    let error = render_instruction(&loaded.cards[0], &context).expect_err("it is gone");
    assert!(error.to_string().contains("rules.txt"), "{error}");
}

#[test]
fn a_card_without_an_instruction_gets_the_default_one() {
    let folder = Folder::new(&[("a.yaml", "name: a\n"), ("AGENTS.md", "House rules.")]);
    let loaded = folder.load("a.yaml");
    let context = TemplateContext::new(&loaded.project);
    let text = render_instruction(&loaded.cards[0], &context).expect("it renders");
    assert!(text.starts_with("You are a helpful AI Agent."), "{text}");
    assert!(text.contains("House rules.") && !text.contains("{{"), "{text}");
}

#[test]
fn messages_become_one_history() {
    let folder = Folder::new(&[
        ("a.yaml", "messages: [one.txt, two.json]\n"),
        ("one.txt", "---USER\nhi\n---ASSISTANT\nhello\n"),
        ("two.json", r#"{"messages": [{"role": "user", "content": "more"}]}"#),
    ]);
    let history = load_history(&folder.card("a.yaml"));
    let texts: Vec<&str> = history.iter().map(|message| message.text()).collect();
    assert_eq!(texts, ["hi", "hello", "more"]);
}

const HOOKS: &str = "
async def start(ctx): pass
def stop(ctx, reason): pass
async def guard(ctx, next): return await next()
def later(ctx): helper(ctx)
def helper(ctx): ctx.ask('really?')
";

#[test]
fn hooks_are_typed_in_the_order_of_the_file() {
    let text = "---\nlifecycle_hooks:\n  on_start: hooks.py:start\n  on_shutdown: { run: hooks.py:stop, timeout: 5s }\n\
                hooks:\n  - { on: wrap_tool_call, run: hooks.py:guard, policy: deny, name: guard, when: \"tool.name == 'x'\" }\n\
                \x20 - { on: \"bootstrapping -> *\", run: hooks.py:start, after: guard, order: 3 }\n\
                \x20 - { on: [before_agent, before_model], run: [sh, -c, x], retries: 2, backoff: 50ms }\n\
                \x20 - { use: retry, with: { attempts: 3, who: \"${MODEL}\" } }\n---\nx\n";
    let folder = Folder::new(&[("a.md", text), ("hooks.py", HOOKS)]);
    let card = folder.card("a.md");
    let hooks = &card.hooks.declared;
    let names: Vec<&str> = hooks.iter().map(|hook| &*hook.name).collect();
    assert_eq!(
        names,
        ["hooks.py:start", "hooks.py:stop", "guard", "hooks.py:start#2", "sh", "retry"]
    );
    assert_eq!(hooks[0].on, On::Points(Point::OnStart.into()));
    assert_eq!(hooks[1].timeout.map(|it| it.duration().as_secs()), Some(5));
    assert_eq!((hooks[2].policy, hooks[2].when.is_some()), (Some(Policy::Deny), true));
    let to = On::Transition { from: PhasePattern::Is(Phase::Bootstrapping), to: PhasePattern::Any };
    assert_eq!((&hooks[3].on, hooks[3].order), (&to, 3));
    assert_eq!(hooks[3].after, [Arc::from("guard")]);
    let both = Points::from(Point::BeforeAgent).with(Point::BeforeModel);
    assert_eq!((&hooks[4].on, hooks[4].retries), (&On::Points(both), 2));
    assert_eq!(hooks[4].backoff.map(|it| it.as_millis()), Some(50));
    assert_eq!(hooks[5].on, On::Own);
    match (&hooks[1].run, &hooks[5].run) {
        (Run::Python(stop), Run::Use { name, with, .. }) => {
            assert_eq!(stop.function.takes, [Arc::from("ctx"), Arc::from("reason")]);
            assert_eq!((&*stop.function.name, stop.function.style), ("stop", Style::Sync));
            assert_eq!(name, "retry");
            assert_eq!(with, &json!({ "attempts": 3, "who": "silent" }));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_function_waits_if_it_or_what_it_calls_asks_or_steps() {
    let text = "hooks:\n  - { on: on_start, run: hooks.py:start }\n\
                \x20 - { on: on_start, run: hooks.py:later }\n\
                \x20 - { on: wrap_tool_call, run: hooks.py:guard }\n";
    let folder = Folder::new(&[("a.yaml", text), ("hooks.py", HOOKS)]);
    let card = folder.card("a.yaml");
    let waits: Vec<bool> = card
        .hooks
        .declared
        .iter()
        .map(|hook| match &hook.run {
            Run::Python(python) => python.function.waits,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(waits, [false, true, true]);
}

#[test]
fn the_source_that_was_checked_is_the_source_that_runs() {
    let folder = Folder::new(&[
        ("a.yaml", "lifecycle_hooks: { on_start: hooks.py:start }\n"),
        ("hooks.py", "\u{feff}def start(ctx): pass\n"),
    ]);
    let card = folder.card("a.yaml");
    folder.0.write("hooks.py", "changed = 1\n");
    let Run::Python(python) = &card.hooks.declared[0].run else { panic!("it is Python") };
    assert_eq!(&**python.function.file.source(), "def start(ctx): pass\n");
    assert!(python.function.file.path().is_absolute());
}

#[test]
fn a_command_of_the_project_is_found_and_its_arguments_stay() {
    let folder = Folder::new(&[
        ("cards/a.yaml", "hooks: [{ on: on_start, run: [\"../bin/check\", --strict] }]\n"),
        ("bin/check", "#!/bin/sh\n"),
    ]);
    folder.0.make_executable("bin/check");
    let card = folder.card("cards/a.yaml");
    let Run::Command(command) = &card.hooks.declared[0].run else { panic!("it is a command") };
    assert!(Path::new(&command.argv[0]).is_absolute() && command.argv[0].ends_with("bin/check"));
    assert_eq!(command.argv[1], "--strict");
    assert_eq!(command.written[0], "../bin/check");
    assert_eq!(command.file.as_deref(), Some(Path::new(&command.argv[0])));
    assert!(command.dir.ends_with("cards"));
    assert_eq!(&*card.hooks.declared[0].name, "check");
}

#[cfg(unix)]
#[test]
fn a_path_with_a_colon_is_a_path() {
    let folder = Folder::new(&[
        ("a.yaml", "lifecycle_hooks: { on_start: \"odd:name.py:start\" }\n"),
        ("odd:name.py", "def start(ctx): pass\n"),
    ]);
    assert_eq!(&*folder.card("a.yaml").hooks.declared[0].name, "odd:name.py:start");
}

#[test]
fn a_tool_is_made_from_signature_annotations_and_docstring() {
    let tools = r#"
from typing import Annotated, Any, Literal, Optional, TypedDict
from elsewhere import SomethingElse

Mode = Literal["fast", "slow"]

class Place(TypedDict, total=False):
    city: str
    zip: "Optional[int]"

async def search(
    query: Annotated[str, "what to look for"],
    ctx,
    place: Place,
    mode: Mode = "fast",
    tags: list[str] | None = None,
    sizes: dict[str, float] = {},
    pair: tuple[int, bool] = (1, True),
    anything: Any = None,
    unknown: SomethingElse = -1.5,
    *,
    deep: set[int],
):
    """Searches everywhere.

    At length.

    Args:
        tags (list): only these
            and no others
        query: ignored, the annotation says it
    Returns:
        what was found
    """
"#;
    let folder =
        Folder::new(&[("a.yaml", "function_tools: tools.py:search\n"), ("tools.py", tools)]);
    let card = folder.card("a.yaml");
    let CardKind::Agent(agent) = &card.kind else { panic!("it is an agent") };
    let tool = &agent.function_tools[0];
    assert_eq!(&*tool.spec.name, "search");
    assert_eq!(tool.spec.description, "Searches everywhere.\n\nAt length.");
    assert_eq!(tool.function.style, Style::Async);
    assert!(tool.function.takes.iter().any(|name| &**name == "ctx"));
    assert_eq!(
        tool.spec.parameters,
        json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "what to look for" },
                "place": { "type": "object", "properties": {
                    "city": { "type": "string" },
                    "zip": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                } },
                "mode": { "type": "string", "enum": ["fast", "slow"], "default": "fast" },
                "tags": {
                    "anyOf": [{ "type": "array", "items": { "type": "string" } }, { "type": "null" }],
                    "description": "only these and no others",
                    "default": null,
                },
                "sizes": {
                    "type": "object", "additionalProperties": { "type": "number" }, "default": {},
                },
                "pair": {
                    "type": "array", "prefixItems": [{ "type": "integer" }, { "type": "boolean" }],
                    "minItems": 2, "maxItems": 2, "default": [1, true],
                },
                "anything": { "default": null },
                "unknown": { "default": -1.5 },
                "deep": { "type": "array", "items": { "type": "integer" }, "uniqueItems": true },
            },
            "required": ["query", "place", "deep"],
            "additionalProperties": false,
        })
    );
}
