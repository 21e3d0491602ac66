//! A folder in the shape of a published one, run from beginning to end.

use crate::examples::support::{Ran, run};
use serde_json::{Value, json};
use std::path::Path;

const FILES: &[(&str, &str)] = &[
    (
        "tenure.toml",
        "[databases.agents]\npath = \"agents.sqlite\"\n[context]\ninclude_schema = true\n",
    ),
    ("workflows/_pack/graph.json", "{\"nodes\": [1]}"),
    (
        "workflows/Gen/orchestrator.json",
        "{\"workflow_name\": \"Gen\", \"_comment\": \"x\", \"max_turns\": 3, \
         \"orchestration_pattern\": \"DefaultPattern\", \"initial_message\": \"go\"}",
    ),
    (
        "workflows/Gen/agents.yaml",
        "agents:\n- name: Builder\n  model: script:build.script.json\n  human_input_mode: NEVER\n  \
         system_message: Build for {{enterprise_id}} with {{schema_overview}}.\n",
    ),
    (
        "workflows/Gen/tools.yaml",
        "tools:\n- {agent: Builder, file: bench.py, function: build, tool_type: Agent_Tool, ui: {component: \
         Workbench, mode: artifact}}\nlifecycle_tools:\n- {trigger: before_chat, agent: null, file: bench.py, \
         function: begin}\n",
    ),
    (
        "workflows/Gen/tools/bench.py",
        "def build(name: str, context_variables=None) -> dict:\n    \"\"\"Builds.\"\"\"\n    return {'built': name, \
         'for': context_variables.get('enterprise_id')}\n\ndef begin(context_variables):\n    return {key: \
         context_variables.get(key) for key in ('enterprise_id', 'graph', 'flags', 'gone')}\n",
    ),
    (
        "workflows/Gen/context_variables.yaml",
        "definitions:\n- {name: graph, type: object, source: {type: file, path: workflows/_pack/graph.json, \
         format: json, default: null}}\n- {name: gone, type: object, source: {type: file, path: gone.json, \
         default: null}}\n- {name: flags, type: json, source: {type: static, value: [1, a]}}\nagents:\n- \
         {agent_name: Builder, variables: [enterprise_id, schema_overview, database_schema_db]}\n",
    ),
];

async fn ran(folder: &Path, script: Value) -> Ran {
    for (path, text) in FILES {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("there is room");
        std::fs::write(path, text).expect("there is room");
    }
    std::fs::write(folder.join("workflows/Gen/build.script.json"), script.to_string())
        .expect("room");
    run(&folder.join("workflows/Gen")).await
}

#[tokio::test]
async fn a_published_folder_runs_with_what_its_files_expect() {
    let folder = tempfile::tempdir().expect("a folder");
    let calls = json!([{ "call": "build", "with": { "name": "shop" } }, "done"]);
    let ran = ran(folder.path(), calls).await;
    assert!(ran.report.error.is_none(), "{:?}", ran.report.error);
    let begun = ran.tools("lifecycle.tool_result");
    assert_eq!(
        begun[0]["result"],
        json!({ "enterprise_id": "ent_001", "graph": { "nodes": [1] }, "flags": [1, "a"],
                "gone": null })
    );
    let shown = ran.announced("ui_tool.shown");
    assert_eq!(
        shown,
        [json!({ "tool": "build", "component": "Workbench", "mode": "artifact",
                 "arguments": { "name": "shop" } })]
    );
    let result = &ran.announced("ui_tool.result")[0]["result"];
    assert!(result.as_str().is_some_and(|it| it.contains("ent_001")), "{result}");
    assert_eq!(ran.report.variables["database_schema_db"], json!("agents"));
    let overview = ran.report.variables["schema_overview"].as_str().expect("a text");
    assert!(overview.starts_with("DATABASE: agents\nTOTAL COLLECTIONS: 0\n"), "{overview}");
}
