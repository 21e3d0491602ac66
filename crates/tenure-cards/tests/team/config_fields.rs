//! The fields of a card, as Python hooks read them from `ctx.config`.

use crate::support::*;
use serde_json::{Value, json};
use tenure_cards::card::{CardType, Environ, FIELDS};
use tenure_cards::check::LoadOptions;

/// Hooks that write `seen.json`: what the expression `SEEN` is, where they are called.
fn hooks(seen: &str) -> String {
    format!(
        r#"
import json, os, tenure
def look(ctx):
    config = ctx.config
    path = os.path.join(os.path.dirname(__file__), "seen.json")
    with open(path, "w") as file:
        json.dump({seen}, file)
"#
    )
}

async fn seen(project: &Project, options: LoadOptions) -> Value {
    let team = project.builder_with(options).build();
    let team = team.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    team.start().await.unwrap_or_else(|error| panic!("{error}"));
    team.shutdown().await;
    let text = std::fs::read_to_string(project.path().join("seen.json")).expect("it was called");
    serde_json::from_str(&text).expect("it is JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hook_reads_every_field_of_its_card_as_it_is_written() {
    let card = "---
name: worker
model: ${MODEL}
description: works
servers: []
shell: true
max_parallel: 4
child_timeout_sec: 2.5
request_params: { max_iterations: 7, temperature: 0.5 }
skills: []
api_key: ${WORKER_KEY}
variables: { region: eu }
lifecycle_hooks:
  on_start: hooks.py:look
  on_shutdown: { run: 'hooks.py:look', timeout: 5s }
hooks:
  - { on: before_agent, run: 'hooks.py:look', name: late }
---
You work.
";
    let names = [
        "name",
        "type",
        "agent_type",
        "model",
        "description",
        "instruction",
        "servers",
        "shell",
        "max_parallel",
        "child_timeout_sec",
        "request_params",
        "default_request_params",
        "max_steps",
        "temperature",
        "skills",
        "api_key",
        "variables",
        "lifecycle_hooks",
        "hooks",
        "tool_only",
        "use_history",
        "max_display_instances",
        "tool_hooks",
        "cwd",
        "sequence",
    ];
    let read = names.map(|name| format!("'{name}': config.{name}")).join(", ");
    let project = Project::new([("hooks.py", &hooks(&format!("{{{read}}}"))), ("worker.md", card)]);
    let environ = Environ::of([("MODEL", "passthrough"), ("WORKER_KEY", "sk-12345678")]);
    let found = seen(&project, LoadOptions::default().environ(environ)).await;
    assert_eq!(
        found,
        json!({
            "name": "worker",
            "type": "agent",
            "agent_type": "basic",
            "model": "passthrough",
            "description": "works",
            "instruction": "You work.",
            "servers": [],
            "shell": true,
            "max_parallel": 4,
            "child_timeout_sec": 2.5,
            "request_params": { "max_iterations": 7, "temperature": 0.5 },
            "default_request_params": { "max_iterations": 7, "temperature": 0.5 },
            "max_steps": 7,
            "temperature": 0.5,
            "skills": [],
            "api_key": "${WORKER_KEY}",
            "variables": { "region": "eu" },
            "lifecycle_hooks": {
                "on_start": "hooks.py:look",
                "on_shutdown": { "run": "hooks.py:look", "timeout": "5s" },
            },
            "hooks": [{ "on": "before_agent", "run": "hooks.py:look", "name": "late" }],
            "tool_only": false,
            "use_history": true,
            "max_display_instances": 20,
            "tool_hooks": null,
            "cwd": null,
            "sequence": null,
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_field_of_a_card_is_an_attribute_and_nothing_else_is() {
    let own = |it: &&tenure_cards::card::Field| it.types.iter().any(|kind| *kind != CardType::A2a);
    let names: Vec<&str> = FIELDS.iter().filter(own).map(|field| field.name).collect();
    let text = format!(
        "[[it for it in {names:?} if not hasattr(config, it)], \
         [it for it in ['modle', 'url', 'no_such_field'] if hasattr(config, it)], \
         sorted(set(config) ^ {{it for it in vars(tenure.Config) if not it.startswith('_')}})]"
    );
    let card = "---\nname: a\nlifecycle_hooks: { on_start: 'hooks.py:look' }\n---\nx\n";
    let project = Project::new([("hooks.py", &hooks(&text)), ("a.md", card)]);
    assert_eq!(seen(&project, LoadOptions::default()).await, json!([[], [], []]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_composed_card_has_the_fields_of_its_type_with_their_defaults() {
    let chain = "---\nname: line\ntype: chain\nsequence: [a]\nlifecycle_hooks: { on_start: 'hooks.py:look' }\n---\n";
    let read = "[config.type, config.agent_type, config.sequence, config.cumulative, config.k, config.model, \
                os.path.basename(config.source_path), config.source_path.parent.is_dir()]";
    let project = Project::new([
        ("hooks.py", &hooks(read)),
        ("line.md", chain),
        ("a.md", "---\nname: a\n---\nx\n"),
    ]);
    let found = seen(&project, LoadOptions::default()).await;
    assert_eq!(found, json!(["chain", "chain", ["a"], false, null, null, "line.md", true]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_in_no_field_and_the_configuration_is_sent_once() {
    let card = "---
name: a
api_key: ${A_KEY}
hooks:
  - { on: before_agent, run: 'hooks.py:first' }
  - { on: before_agent, run: 'hooks.py:second' }
---
x
";
    let hooks = "
seen = []
def first(ctx):
    seen.append(ctx.config)
def second(ctx):
    secret = 'sk-' + '12345678'
    return {'finish': f'{seen[0] is ctx.config} {secret in repr(vars(ctx)) + repr(dict(ctx.config))}'}
";
    let project = Project::new([("hooks.py", hooks), ("a.md", card)]);
    let environ = Environ::of([("A_KEY", "sk-12345678")]);
    let team = project.builder_with(LoadOptions::default().environ(environ)).build();
    let team = team.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    team.start().await.expect("it starts");
    assert_eq!(team.run(None, "go").await.expect("it goes on").output, "True False");
    team.shutdown().await;
}
