//! What loading makes of files: the typed card, its instruction, its hooks and its tools.

use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use tenure_cards::card::{
    Card, CardKind, Environ, HistoryMerge, HistorySource, MatchStrategy, PlanType, Rating, Skills,
    TemplateContext, load_history, render_instruction,
};
use tenure_cards::check::{LoadOptions, Loaded, load};
use tenure_cards::diagnostic::Color;
use tenure_cards::hook::{On, Run};
use tenure_core::hook::{Point, Points, Policy};
use tenure_core::phase::{Phase, PhasePattern};
use tenure_hosts::Style;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        folder.write("tenure.toml", "");
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    fn load(&self, path: &str) -> Loaded {
        let environ = Environ::of([("KEY", "sk-secret"), ("MODEL", "silent")]);
        load(&self.0.path().join(path), &LoadOptions::default().environ(environ))
    }

    fn card(&self, path: &str) -> Card {
        let loaded = self.load(path);
        assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
        loaded.cards.into_iter().find(|card| card.source.path().ends_with(path)).expect("loaded")
    }
}

fn codes(loaded: &Loaded) -> Vec<&'static str> {
    loaded.report.iter().map(|found| found.code.as_str()).collect()
}

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
        (Run::Python(stop), Run::Use { name, with }) => {
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
    folder.write("hooks.py", "changed = 1\n");
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
    make_executable(&folder.0.path().join("bin/check"));
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

#[test]
fn agents_that_a_card_names_are_found_beside_it_and_others_are_left_alone() {
    let folder = Folder::new(&[
        ("a.md", "---\nagents: [b c]\n---\nx\n".replace("b c", "b_c").as_str()),
        ("some file.yaml", "name: b c\nagents: [d]\n"),
        ("d.md", "---\n---\nx\n"),
        ("unrelated.md", "---\ncolour: red\n---\nx\n"),
        ("broken.yaml", "name: [\n"),
    ]);
    let loaded = folder.load("a.md");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    let names: Vec<&str> = loaded.cards.iter().map(|card| &*card.name).collect();
    assert_eq!(names, ["a", "d", "b_c"]);
    assert_eq!(loaded.default_card().map(|card| &*card.name), Some("a"));
}

#[test]
fn the_default_is_the_one_that_says_so_else_one_that_nobody_names() {
    let folder = Folder::new(&[
        ("a.yaml", "name: a\n"),
        ("b.yaml", "name: b\nagents: [a]\n"),
        ("c.yaml", "name: c\ntool_only: true\n"),
    ]);
    assert_eq!(folder.load("").default_card().map(|card| card.name.to_string()), Some("b".into()));
    folder.write("z.yaml", "name: z\ndefault: true\n");
    assert_eq!(folder.load("").default_card().map(|card| card.name.to_string()), Some("z".into()));
}

#[test]
fn the_project_is_the_nearest_folder_with_a_configuration() {
    let folder = Folder::new(&[
        ("inner/tenure.toml", "[hooks]\nenv = [\"A\"]\n"),
        ("inner/cards/a.yaml", "lifecycle_hooks: { on_start: ../../outer.py:f }\n"),
        ("cards/a.yaml", "lifecycle_hooks: { on_start: ../outer.py:f }\n"),
        ("outer.py", "def f(ctx): pass\n"),
    ]);
    let loaded = folder.load("inner/cards");
    assert_eq!(codes(&loaded), ["T0403"]);
    assert_eq!(loaded.project.config.hook_env, ["A"]);
    assert!(loaded.project.root.ends_with("inner"));
    assert!(folder.load("cards").report.is_empty());
}

#[test]
fn hostile_python_is_refused_and_does_not_exhaust_the_stack() {
    let sources = [
        format!("x = {}1\ndef f(ctx): pass\n", "-".repeat(100_000)),
        format!("x = a{}\ndef f(ctx): pass\n", ".b".repeat(100_000)),
        format!("x = {}\ndef f(ctx): pass\n", "[".repeat(50_000)),
        format!("x = {}1\ndef f(ctx): pass\n", "lambda: ".repeat(50_000)),
        format!("x = {}\ndef f(ctx): pass\n", "a if b else ".repeat(50_000)),
    ];
    for source in sources {
        let card = "lifecycle_hooks: { on_start: hooks.py:f }\n";
        let folder = Folder::new(&[("a.yaml", card), ("hooks.py", &source)]);
        let found = codes(&folder.load("a.yaml"));
        assert_eq!(found, ["T0406", "T0406"], "{:.30}", source);
    }
    // A long sum is unusual, but it is Python.
    let source = format!("x = {}1\ndef f(ctx): pass\n", "1 + ".repeat(1500));
    let card = "lifecycle_hooks: { on_start: hooks.py:f }\n";
    let folder = Folder::new(&[("a.yaml", card), ("hooks.py", &source)]);
    assert!(folder.load("a.yaml").report.is_empty());
}

#[cfg(unix)]
fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

#[test]
fn secrets_are_what_the_environment_says_in_secret_places_or_under_secret_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let card = "api_key: ${ONE}\nmcp_connect:\n  - target: \"serve ${TWO_TOKEN} ${PLAIN}\"\n    \
                headers: { A: \"Bearer ${THREE}\" }\n    auth: { deep: { x: \"${FOUR}\" } }\n\
                hooks:\n  - { use: x, with: { password: \"${FIVE}\", other: \"${URL}\" } }\n  \
                - { use: x, with: { key: \"${UNSET:default-value}\" } }\n";
    std::fs::write(folder.path().join("a.yaml"), card).expect("written");
    let environ = Environ::of([
        ("ONE", "value-one"),
        ("TWO_TOKEN", "value-two"),
        ("PLAIN", "not-secret"),
        ("THREE", "value-three"),
        ("FOUR", "value-four"),
        ("FIVE", "value-five"),
        ("URL", "https://me:hunter22@x.example"),
    ]);
    let loaded = load(folder.path(), &LoadOptions::default().environ(environ));
    assert!(!loaded.report.has_errors(), "{}", loaded.report.render_text(Color::Never));
    let secrets = loaded.secrets();
    for hidden in ["value-one", "value-two", "value-three", "value-four", "value-five", "hunter22"]
    {
        assert_eq!(secrets.redact(hidden), "[redacted]", "{hidden}");
    }
    for shown in ["not-secret", "default-value", "Bearer"] {
        assert_eq!(secrets.redact(shown), shown);
    }
    // Neither the cards nor the secrets themselves say them.
    let all = format!("{:?} {secrets:?}", loaded.cards[0].expansions);
    assert!(!all.contains("value-"), "{all}");
}

/// A folder outside of the project `project`, with a secret in it.
fn beside() -> (tempfile::TempDir, Folder) {
    let outer = tempfile::tempdir().expect("a temporary folder");
    fs::write(outer.path().join("passwd"), "root:x:0:0\n").expect("written");
    (outer, Folder::new(&[("good.md", "---\nname: good\n---\nx\n")]))
}

#[cfg(unix)]
#[test]
fn a_card_that_is_a_link_out_of_the_project_is_refused_unread() {
    use std::os::unix::fs::symlink;
    let (outer, folder) = beside();
    for name in ["p.md", "p.yaml"] {
        let link = folder.0.path().join(name);
        symlink(outer.path().join("passwd"), &link).expect("linked");
        for path in ["", name] {
            let loaded = folder.load(path);
            assert_eq!(codes(&loaded), ["T0404"], "{path}");
            let shown = loaded.report.render_text(Color::Never);
            assert!(shown.contains("leads out of the project") && shown.contains(name), "{shown}");
            assert!(!shown.contains("root:"), "{shown}");
            let said = loaded.report.to_json_lines() + &loaded.report.to_sarif().to_string();
            assert!(!said.contains("root:"), "{said}");
        }
        fs::remove_file(link).expect("removed");
    }
    // Also where another card names it.
    folder.write("parent.md", "---\nagents: [p]\n---\nx\n");
    symlink(outer.path().join("passwd"), folder.0.path().join("p.md")).expect("linked");
    assert_eq!(codes(&folder.load("parent.md")), ["T0404"]);
}

#[cfg(unix)]
#[test]
fn a_link_inside_the_project_is_a_card_where_its_name_is() {
    let folder = Folder::new(&[("real/a.md", "---\n---\nx\n"), ("cards/b.md", "---\n---\nx\n")]);
    let link = folder.0.path().join("cards/a.md");
    std::os::unix::fs::symlink("../real/a.md", link).expect("linked");
    assert_eq!(&*folder.card("cards/a.md").name, "a");
    assert_eq!(folder.load("cards").cards.len(), 2);
}

#[cfg(unix)]
#[test]
fn a_configuration_that_is_a_link_out_of_the_project_is_refused_unread() {
    let (outer, folder) = beside();
    fs::remove_file(folder.0.path().join("tenure.toml")).expect("removed");
    let link = folder.0.path().join("tenure.toml");
    std::os::unix::fs::symlink(outer.path().join("passwd"), link).expect("linked");
    let loaded = folder.load("good.md");
    assert_eq!(codes(&loaded), ["T0404"]);
    assert!(!loaded.report.render_text(Color::Never).contains("root:"));
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_whose_name_begins_like_the_project_leads_out() {
    let outer = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: &str| {
        let path = outer.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("made");
        fs::write(path, text).expect("written");
    };
    write("project/tenure.toml", "");
    write("project2/x.py", "def start(ctx): pass\n");
    write("project2/x.md", "---\nname: x\n---\nx\n");
    write("project/a.md", "---\nlifecycle_hooks: { on_start: 'x.py:start' }\n---\nx\n");
    for name in ["x.py", "x.md"] {
        let link = outer.path().join("project").join(name);
        std::os::unix::fs::symlink(format!("../project2/{name}"), link).expect("linked");
    }
    let loaded = load(&outer.path().join("project"), &LoadOptions::default());
    assert_eq!(codes(&loaded), ["T0404", "T0404"]);
}

#[test]
fn an_interpreter_that_is_not_there_is_reported() {
    let folder = Folder::new(&[("a.md", "---\n---\nx\n"), ("tools/python", "")]);
    for (named, expected) in [
        ("tools/python", None),
        ("gone/python", Some("`python.interpreter` names `gone/python`, which is not there")),
        ("tools", Some("`python.interpreter` names `tools`, which is not a file")),
    ] {
        folder.write("tenure.toml", &format!("[python]\ninterpreter = \"{named}\"\n"));
        let loaded = folder.load("a.md");
        let said: Vec<_> =
            loaded.report.iter().map(|it| (it.code.as_str(), it.message.as_str())).collect();
        assert_eq!(said, expected.map(|it| ("T0603", it)).into_iter().collect::<Vec<_>>());
    }
}

/// The place and the message of the only thing that is wrong.
fn wrong(text: &str) -> (usize, usize, String) {
    let folder = Folder::new(&[("a.yaml", text), ("hooks.py", "def start(ctx): pass\n")]);
    let loaded = folder.load("a.yaml");
    let found: Vec<_> = loaded.report.iter().collect();
    let [found] = *found else { panic!("{}", loaded.report.render_text(Color::Never)) };
    let place = found.source.line_col(found.span.start as usize);
    (place.line, place.column, found.message.clone())
}

#[test]
fn a_bracket_that_is_never_closed_is_pointed_at() {
    for (text, column) in [
        ("name: a\nmodel: [passthrough\ndescription: x\nuse_history: true\n", 8),
        ("name: a\nagents: {a: b\nmodel: x\n", 9),
        ("name: a\nservers: [x\nagents: [b]\nmodel: x\n", 10),
        ("name: a\nmodel: [a, b\n", 8),
    ] {
        let (line, found, message) = wrong(text);
        assert_eq!((line, found), (2, column), "{text}{message}");
        assert!(message.ends_with("is never closed"), "{text}{message}");
    }
    // What is wrong inside of brackets that are closed is pointed at where it is.
    let (line, _, message) = wrong("name: a\nservers: [\n  x,\n  b: c: d\n]\n");
    let expected = "a list or mapping in brackets does not end, or lacks a comma";
    assert_eq!((line, &*message), (4, expected));
}

#[test]
fn a_tab_is_pointed_at_where_it_stands() {
    for (text, place) in [
        ("name: a\nrequest_params:\n\tmaxTokens: 3\n", (3, 1)),
        ("name: a\nhooks:\n  - on: on_start\n\t  run: hooks.py:start\n", (4, 1)),
    ] {
        let (line, column, message) = wrong(text);
        assert_eq!((line, column), place, "{text}{message}");
        assert_eq!(message, "a tab stands where YAML allows only spaces");
    }
}

#[test]
fn a_spec_with_two_colons_is_told_apart_from_a_missing_file() {
    let text = "hooks:\n  - { on: on_start, run: 'hooks.py:start:x' }\n";
    let folder = Folder::new(&[("a.yaml", text), ("hooks.py", "def start(ctx): pass\n")]);
    let shown = folder.load("a.yaml").report.render_text(Color::Never);
    assert!(shown.contains("one colon") && shown.contains("write `hooks.py:start`"), "{shown}");
}
