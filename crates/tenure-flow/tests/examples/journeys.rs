//! Journeys and databases that files declare, run from beginning to end.

use crate::examples::support::{loaded, messages};
use crate::examples::whole::Folder;
use serde_json::{Value, json};
use tenure_core::event::EventKind;
use tenure_flow::{ChatReport, ChatStatus, Workflow};
use tenure_testkit::Recorder;

const PLAN: &str = r#"- '{"tasks": [{"name": "roof", "message": "a roof"}, {"name": "wall", "message": "a wall"}]}'"#;

fn plan(pack: &str) -> Folder {
    Folder::new(&[
        (
            "workflows/house/orchestrator.yaml",
            "workflow_name: house\norchestration_pattern: DefaultPattern\nstartup_mode: BackendOnly\n\
             initial_agent: Planner\n",
        ),
        (
            "workflows/house/agents.yaml",
            "- { name: Planner, system_message: You plan., model: \"script:plan.yaml\" }\n\
             - { name: Builder, system_message: You build., model: passthrough }\n",
        ),
        ("workflows/house/plan.yaml", PLAN),
        (
            "workflows/house/structured_outputs.yaml",
            "structured_outputs:\n  models:\n    Task:\n      type: model\n      fields:\n        \
             name: { type: str }\n        message: { type: str }\n    Plan:\n      type: model\n      \
             fields:\n        tasks: { type: list, items: Task }\n  registry: { Planner: Plan }\n",
        ),
        (
            "workflows/house/handoffs.yaml",
            "handoff_rules:\n- { source_agent: Builder, target_agent: terminate }\n",
        ),
        (
            "workflows/house/context_variables.yaml",
            "definitions:\n  - { name: colour, type: str, source: { type: static, value: red } }\n",
        ),
        ("workflows/house/_pack/workflow_graph.json", pack),
        (
            "workflows/part/orchestrator.yaml",
            "workflow_name: part\norchestration_pattern: DefaultPattern\nstartup_mode: BackendOnly\n",
        ),
        (
            "workflows/part/agents.yaml",
            "- { name: Mason, system_message: You lay stones., model: passthrough }\n",
        ),
        (
            "workflows/part/tools.yaml",
            "lifecycle_tools:\n  - { trigger: after_chat, agent: null, file: w.py, function: w }\n",
        ),
        (
            "workflows/part/w.py",
            "def w(context_variables):\n    return context_variables.data.get('colour')\n",
        ),
    ])
}

async fn run(folder: &Folder, name: &str) -> (ChatReport, Recorder) {
    let (bus, recorder) = Recorder::with_bus();
    let workflow = Workflow::builder(loaded(&folder.workflow(name))).events(&bus).build();
    let workflow = workflow.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    let flow = workflow.open().await.unwrap_or_else(|error| panic!("{error}"));
    let report = flow.chat().id("c").user("u").app("shop").message("begin").run().await;
    workflow.shutdown().await;
    tenure_testkit::assert_paired(&recorder);
    (report, recorder)
}

fn announced(recorder: &Recorder, wanted: &str) -> Vec<Value> {
    let events = recorder.events();
    let all = events.iter().filter_map(|event| match &event.kind {
        EventKind::Announced { name, data } if *name == wanted => Some(data.clone()),
        _ => None,
    });
    all.collect()
}

#[tokio::test]
async fn a_journey_of_a_pack_fans_out_into_chats_and_comes_back() {
    let folder = plan(
        r#"{"version": 3, "mid_flight_journeys": [{
            "id": "build", "trigger_agent": "Planner", "trigger_on": "structured_output_ready",
            "fan_out": {"spawn_mode": "workflow", "generator_workflow": "part", "max_children": 4,
                        "timeout_seconds": 30, "input_contract": {"required": ["colour"]}},
            "fan_in": {"resume_agent": "Builder", "merge_mode": "collect_all",
                       "inject_as": "built", "on_partial_failure": "fail_all"}}]}"#,
    );
    let (report, recorder) = run(&folder, "house").await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    let built = report.variables["built"].as_array().expect("a list").clone();
    let of = |field: &str| -> Vec<Value> { built.iter().map(|it| it[field].clone()).collect() };
    assert_eq!(of("name"), ["roof", "wall"]);
    assert_eq!(of("output"), ["a roof", "a wall"]);
    assert_eq!(announced(&recorder, "journey.fan_out").len(), 1);
    let back = announced(&recorder, "journey.fan_in");
    assert_eq!(back.len(), 1);
    assert_eq!(back[0]["succeeded"], json!(2));
    let speakers: Vec<Value> = announced(&recorder, "select_speaker")
        .into_iter()
        .map(|it| it["agent"].clone())
        .filter(|it| it != "Mason")
        .collect();
    assert_eq!(speakers, ["Planner", "Builder"], "{speakers:?}");
    let colours: Vec<Value> = announced(&recorder, "lifecycle.tool_result")
        .into_iter()
        .filter(|it| it["file"].as_str().is_some_and(|file| file.ends_with("w.py")))
        .map(|it| it["result"].clone())
        .collect();
    assert_eq!(colours, ["red", "red"], "each child has what the contract gives it");
}

#[tokio::test]
async fn a_document_of_a_database_of_the_project_is_there_in_the_next_chat() {
    let folder = Folder::new(&[
        (
            "workflows/till/orchestrator.yaml",
            "workflow_name: till\norchestration_pattern: RoundRobinPattern\nmax_turns: 1\n",
        ),
        (
            "workflows/till/agents.yaml",
            "- { name: Clerk, system_message: \"You have {{cart}}.\", model: passthrough }\n",
        ),
        (
            "workflows/till/context_variables.yaml",
            "definitions:\n  - name: cart\n    type: dict\n    source:\n      type: data_entity\n      \
             database_name: shop\n      collection: carts\n      search_by: user_id\n      \
             schema: { total: { type: int, required: true } }\nagents: { Clerk: [cart] }\n",
        ),
        (
            "workflows/till/tools.yaml",
            "lifecycle_tools:\n  - { trigger: before_agent, agent: Clerk, file: add.py, \
             function: add }\n",
        ),
        (
            "workflows/till/add.py",
            "def add(context_variables):\n    cart = context_variables.data['cart'] or {}\n    \
             context_variables.data['cart'] = {**cart, 'total': cart.get('total', 0) + 7}\n",
        ),
    ]);
    folder.0.write("data/.keep", "");
    folder.0.write("tenure.toml", "[databases.shop]\npath = \"data/shop.sqlite\"\n");
    for total in [7, 14] {
        let (report, _) = run(&folder, "till").await;
        assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
        assert_eq!(report.variables["cart"]["total"], json!(total));
    }
    let database = folder.workflow("till").join("../../data/shop.sqlite");
    assert!(database.is_file(), "it is where tenure.toml says");
}
