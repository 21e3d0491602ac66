//! Folders as they are published: the names and shapes that the files of other generations have.

use crate::loading::support::Project;
use serde_json::json;
use tenure_flow::LoadedWorkflow;
use tenure_flow::file::ToolType;
use tenure_flow::output::{Outputs, check};
use tenure_flow::route::Pattern;
use tenure_flow::variables::Source;

fn good(text: &str) -> LoadedWorkflow {
    let project = Project::with(text);
    let loaded = project.load();
    assert_eq!(project.report(&loaded), "");
    loaded
}

fn report(text: &str) -> String {
    let project = Project::with(text);
    project.report(&project.load())
}

/// The schema of `Writer`'s answers.
fn outputs(models: &str) -> Outputs {
    let spec = good(models).workflow.outputs;
    assert!(check(&spec).is_empty(), "{:?}", check(&spec));
    Outputs::new(spec).expect("they are checked")
}

const MODELS: &str =
    "=== structured_outputs.yaml\nstructured_outputs:\n  registry: {Writer: Plan}\n  models:\n";

#[test]
fn types_may_be_spelled_as_python_and_as_older_files_do() {
    let spellings = [
        ("optional_str", json!([null, "x"]), json!([1])),
        ("optional_int", json!([null, 1]), json!(["x"])),
        ("optional_list", json!([null, [1, "x"]]), json!(["x"])),
        ("optional_Step", json!([null, { "sku": "x" }]), json!([{}])),
        ("Optional[str]", json!([null, "x"]), json!([1])),
        ("Optional[List[str]]", json!([null, ["x"]]), json!([[1], "x"])),
        ("List", json!([[], [1, "x"]]), json!([{}])),
        ("List[str]", json!([["x"]]), json!([[1], null])),
        ("list[Step]", json!([[{ "sku": "x" }]]), json!([[{}], [1]])),
        ("list[list[int]]", json!([[[1], []]]), json!([[1], [["x"]]])),
        ("Dict", json!([{}, { "a": 1 }]), json!([[]])),
        ("Dict[str, Any]", json!([{}, { "a": [1] }]), json!([[]])),
        ("dict[str, int]", json!([{}, { "a": 1 }]), json!([{ "a": "x" }])),
        ("Union[int, str, None]", json!([1, "x", null]), json!([[]])),
        ("str | None", json!(["x", null]), json!([1])),
        ("Literal['a', \"b\", 1]", json!(["a", "b", 1]), json!(["c"])),
        ("typing.Optional[float]", json!([null, 1.5]), json!(["x"])),
        ("Any", json!([1, null, {}]), json!([])),
    ];
    let step = "      Step: {type: model, fields: {sku: {type: str}}}\n";
    for (spelling, fit, misfit) in &spellings {
        let model = format!(
            "{MODELS}{step}      Plan:\n        type: model\n        fields:\n          \
             value: {{type: {}}}\n",
            json!(spelling)
        );
        let outputs = outputs(&model);
        let output = outputs.get("Writer").expect("it has a model");
        for value in fit.as_array().expect("a list") {
            let answer = json!({ "value": value });
            assert_eq!(output.read(&answer.to_string()), Ok(answer), "{spelling}");
        }
        for value in misfit.as_array().expect("a list") {
            let answer = json!({ "value": value }).to_string();
            assert!(output.read(&answer).is_err(), "{spelling} takes {value}");
        }
    }
}

#[test]
fn what_is_optional_may_be_left_out_and_is_null_then() {
    let outputs = outputs(&format!(
        "{MODELS}      Plan:\n        type: model\n        fields:\n          \
         note: {{type: optional_str}}\n          tags: {{type: 'Optional[List[str]]'}}\n          \
         size: {{type: optional_int, required: true}}\n          \
         kind: {{type: optional_str, default: a}}\n"
    ));
    let output = outputs.get("Writer").expect("it has a model");
    let read = output.read("{\"size\": null}");
    assert_eq!(read, Ok(json!({ "note": null, "tags": null, "size": null, "kind": "a" })));
    assert!(output.read("{}").is_err_and(|error| error.contains("`size` is missing")));
    assert_eq!(output.schema()["required"], json!(["size"]));
    let note = &output.schema()["properties"]["note"];
    assert_eq!(note["anyOf"], json!([{ "type": "string" }, { "type": "null" }]));
}

#[test]
fn a_list_that_says_its_items_beside_it_is_a_list_of_them() {
    let outputs = outputs(&format!(
        "{MODELS}      Plan:\n        type: model\n        fields:\n          \
         a: {{type: List, items: int}}\n          b: {{type: optional_list, items: str}}\n          \
         c: {{type: union, variants: [literal, 'null', list], values: [x], items: bool}}\n"
    ));
    let output = outputs.get("Writer").expect("it has a model");
    let answer = |a: serde_json::Value, b: serde_json::Value, c: serde_json::Value| {
        output.read(&json!({ "a": a, "b": b, "c": c }).to_string()).is_ok()
    };
    assert!(answer(json!([1]), json!(["x"]), json!("x")));
    assert!(answer(json!([1]), json!(null), json!([true])));
    assert!(!answer(json!(["x"]), json!(null), json!(null)));
    assert!(!answer(json!([1]), json!([1]), json!(null)));
    assert!(!answer(json!([1]), json!(null), json!("y")));
    assert!(!answer(json!([1]), json!(null), json!([1])));
}

#[test]
fn a_model_may_stand_where_it_is_used() {
    let outputs = outputs(&format!(
        "{MODELS}      Plan:\n        type: model\n        fields:\n          \
         registry: {{type: list, items: {{type: model, fields: {{agent: {{type: str}}}}}}}}\n          \
         pack: {{type: model, description: The pack, fields: {{name: {{type: str, enum: [a, b]}}}}}}\n"
    ));
    let output = outputs.get("Writer").expect("it has a model");
    let read = |pack: &str, agent: serde_json::Value| {
        let answer = json!({ "registry": [{ "agent": agent }], "pack": { "name": pack } });
        output.read(&answer.to_string())
    };
    assert!(read("a", json!("Writer")).is_ok());
    assert!(read("c", json!("Writer")).is_err());
    assert!(read("a", json!(1)).is_err());
    assert_eq!(output.schema()["properties"]["pack"]["$ref"], "#/$defs/Plan_pack");
}

#[test]
fn comments_in_json_are_no_fields() {
    let outputs = outputs(
        "=== structured_outputs.json\n{\"_comment\": \"a\", \"structured_outputs\": {\"//\": \"b\", \
         \"models\": {\"_comment_models\": [\"c\"], \"Plan\": {\"type\": \"model\", \"NOTE\": \
         \"old\", \"$comment\": \"d\", \"fields\": {\"_comment\": \"e\", \"// more\": \"f\", \
         \"note\": {\"type\": \"str\", \"_comment\": \"g\"}}}}, \"registry\": {\"//\": \"h\", \
         \"Writer\": \"Plan\"}}}",
    );
    let output = outputs.get("Writer").expect("it has a model");
    assert_eq!(output.read("{\"note\": \"x\"}"), Ok(json!({ "note": "x" })));
    assert!(output.read("{\"note\": \"x\", \"_comment\": \"e\"}").is_err());
}

#[test]
fn a_type_that_cannot_be_read_is_refused_with_its_place() {
    for (spelling, says) in [
        ("List[str", "`List[str` cannot be read as a type"),
        ("Optional[]", "`Optional[]` cannot be read as a type"),
        ("dict[int, str]", "`dict[int, str]` cannot be read as a type"),
        ("Step[str]", "`Step[str]` cannot be read as a type"),
        ("List[Stepp]", "`Stepp` is neither a type nor a model"),
        ("", "a type is empty"),
    ] {
        let said = report(&format!(
            "{MODELS}      Step: {{type: model, fields: {{sku: {{type: str}}}}}}\n      Plan:\n        \
             type: model\n        fields:\n          value: {{type: {}}}\n",
            json!(spelling)
        ));
        assert!(said.contains(says), "{spelling}: {said}");
        assert!(said.contains("structured_outputs.yaml:8:"), "{said}");
        assert_eq!(said.matches("error[").count(), 1, "{said}");
    }
}

#[test]
fn every_file_may_have_remarks() {
    let loaded = good(
        "=== -agents.yaml\n=== agents.json\n{\"_comment\": \"who\", \"agents\": {\"//\": \"all\", \"Writer\": \
         {\"model\": \"passthrough\", \"_comment\": \"x\", \"system_message\": \"You write.\"}}}\n\
         === tools.json\n{\"_comment\": \"none yet\", \"tools\": []}\n\
         === context_variables.json\n{\"_comment\": \"what\", \"definitions\": {\"_comment\": \"y\", \
         \"region\": {\"type\": \"dict\", \"//\": \"z\", \"source\": {\"type\": \"state\", \"default\": \
         {\"_comment\": \"kept\"}, \"_comment\": \"w\"}}}, \"agents\": {\"//\": \"v\", \"Writer\": \
         [\"region\"]}}\n",
    );
    assert_eq!(loaded.workflow.agents.len(), 1);
    assert_eq!(loaded.workflow.variables.definitions.len(), 1);
}

/// A project whose databases are declared.
fn with_databases(text: &str) -> (Project, LoadedWorkflow) {
    let project = Project::with(text);
    let databases = "[databases.shop]\npath = \"shop.sqlite\"\n";
    std::fs::write(project.root().join("tenure.toml"), databases).expect("there is room");
    let loaded = project.load();
    (project, loaded)
}

#[test]
fn a_database_that_is_not_declared_is_reported_where_it_is_named() {
    let text = "=== context_variables.yaml\ndefinitions:\n- name: concept\n  type: string\n  source:\n    \
                type: data_reference\n    database_name: shopp\n    collection: Concepts\n    fields: [Text]\n";
    let (project, loaded) = with_databases(text);
    let said = project.report(&loaded);
    assert!(said.contains("error[T1024]: the database `shopp` is not declared"), "{said}");
    assert!(said.contains("workflows/Demo/context_variables.yaml:6:20"), "{said}");
    assert!(said.contains("did you mean `shop`?"), "{said}");
    let (project, loaded) = with_databases(&text.replace("shopp", "autogen_ai_agents"));
    let said = project.report(&loaded);
    assert!(said.contains("add to tenure.toml: [databases.autogen_ai_agents]"), "{said}");
    let (project, loaded) = with_databases(&text.replace("shopp", "shop"));
    assert_eq!(project.report(&loaded), "");
}

#[test]
fn older_names_of_the_app_are_known_wherever_the_app_is() {
    let (project, loaded) = with_databases(
        "=== orchestrator.yaml\norchestration_pattern: DefaultPattern\n\
         === handoffs.yaml\nhandoff_rules:\n- {source_agent: Writer, target_agent: terminate, \
         handoff_type: condition, condition: '${enterprise_id} == \"x\"'}\n\
         === context_variables.yaml\ndefinitions:\n- name: concept\n  type: string\n  source:\n    \
         type: data_reference\n    database_name: shop\n    collection: Concepts\n    \
         query_template: {enterprise_id: '{{runtime.enterprise_id}}'}\n    fields: [Text]\n\
         - name: older\n  type: string\n  source: {type: database, database_name: shop, collection: \
         Concepts, search_by: enterprise_id, field: Text}\n\
         - name: kept\n  type: json\n  source: {type: data_entity, database_name: shop, collection: \
         kept, search_by: enterprise_id}\n\
         - name: greeting\n  type: str\n  source: {type: computed, computation: \"'hi ' ~ enterprise_id\"}\n",
    );
    assert_eq!(project.report(&loaded), "");
    let names: Vec<_> = loaded.workflow.variables.definitions.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["concept", "older", "kept", "greeting", "enterprise_id"]);
    // What no file mentions, no chat has.
    assert!(good("").workflow.variables.definitions.is_empty());
}

#[test]
fn a_transition_without_an_end_becomes_what_the_response_says() {
    let loaded = good(
        "=== tools.yaml\ntools:\n- {agent: Writer, file: helpers.py, function: look_up, tool_type: \
         UI_Tool, ui: {component: Form, mode: inline}}\n\
         === context_variables.yaml\ndefinitions:\n- name: acceptance\n  type: string\n  source:\n    \
         type: state\n    default: pending\n    transitions:\n    - from: pending\n      trigger: {type: \
         ui_response, tool: look_up, response_key: plan.acceptance}\n",
    );
    let Source::State(state) = &loaded.workflow.variables.definitions[0].source else {
        panic!("a state")
    };
    assert_eq!((&state.triggers[0].from, &state.triggers[0].to), (&Some(json!("pending")), &None));
    // A message leads to true, which a text cannot be.
    let said = report(
        "=== context_variables.yaml\ndefinitions:\n- name: mood\n  type: string\n  source:\n    type: \
         state\n    transitions:\n    - trigger: {type: agent_text, agent: Writer, match: {equals: x}}\n",
    );
    assert!(said.contains("a message sets it to true, but it is declared as str"), "{said}");
}

#[test]
fn a_file_may_be_missing_if_it_says_so_and_may_start_from_the_project() {
    let text = "=== context_variables.yaml\ndefinitions:\n- name: graph\n  type: object\n  source: {type: \
                file, path: workflows/_pack/graph.json, format: json, default: null}\n";
    let loaded = good(text);
    let Source::File(file) = &loaded.workflow.variables.definitions[0].source else {
        panic!("a file")
    };
    assert_eq!((file.default.clone(), file.required), (Some(json!(null)), false));
    let project = Project::with(&text.replace(", default: null", ""));
    let said = project.report(&project.load());
    assert!(said.contains("from the workflow's folder or from the project's"), "{said}");
    let folder = project.root().join("workflows/_pack");
    std::fs::create_dir_all(&folder).expect("there is room");
    std::fs::write(folder.join("graph.json"), "{\"a\": 1}").expect("there is room");
    let loaded = project.load();
    assert_eq!(project.report(&loaded), "");
    let watched = tenure_flow::sources(&loaded);
    assert!(format!("{watched:?}").contains("workflows/_pack/graph.json"), "{watched:?}");
}

#[test]
fn what_the_platform_provides_can_be_seen_without_being_declared() {
    let text = "=== agents.yaml\n- {name: Writer, model: passthrough, system_message: 'Use {{schema_overview}}.'}\n\
                === context_variables.yaml\nschema_overview: {enabled: true, database_name: shop}\n\
                definitions:\n- {name: region, type: str, default: eu}\nagents:\n- agent_name: Writer\n  variables: \
                [region, schema_overview, database_schema_available, database_schema_db, \
                collections_first_docs_full]\n";
    let (project, loaded) = with_databases(text);
    assert_eq!(project.report(&loaded), "");
    let variables = &loaded.workflow.variables;
    assert_eq!(variables.exposures[0].variables.len(), 5);
    assert_eq!(variables.schema.database.as_deref(), Some("shop"));
    assert!(variables.schema.is_included);
    let provided = variables.definitions.iter().filter(|it| it.source.as_str() == "provided");
    assert_eq!(provided.count(), 4, "{:?}", variables.definitions);
    // A workflow's own is its own, and what nobody mentions is not there.
    let own = good(
        "=== context_variables.yaml\ndefinitions:\n- {name: concept_overview, type: str, default: ours}\n",
    );
    let names: Vec<_> = own.workflow.variables.definitions.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["concept_overview"]);
    assert_eq!(own.workflow.variables.definitions[0].source.as_str(), "state");
}

#[test]
fn the_oldest_shape_has_variables_with_a_database() {
    let (project, loaded) = with_databases(
        "=== context_variables.json\n{\"context_variables\": {\"schema_overview\": {\"enabled\": true, \
         \"database_name\": \"shop\"}, \"variables\": [{\"name\": \"concept_overview\", \"description\": \
         \"x\", \"database\": {\"collection\": \"Concepts\", \"database_name\": \"shop\", \"search_by\": \
         \"enterprise_id\", \"field\": \"ConceptOverview\"}}]}}\n",
    );
    assert_eq!(project.report(&loaded), "");
    let Source::DataReference(concept) = &loaded.workflow.variables.definitions[0].source else {
        panic!("a reference")
    };
    assert_eq!(concept.query_template["enterprise_id"], "{{runtime.enterprise_id}}");
    assert_eq!(concept.fields, ["ConceptOverview"]);
}

#[test]
fn a_tool_that_asks_nobody_may_be_shown() {
    let tools = "=== tools.yaml\ntools:\n- {agent: Writer, file: helpers.py, function: look_up, tool_type: \
                 Agent_Tool, ui: {component: Workbench, mode: artifact}}\n";
    let loaded = good(tools);
    let [tool] = loaded.workflow.tools.as_slice() else { panic!("one tool") };
    assert_eq!(tool.tool_type, ToolType::Agent);
    assert_eq!(tool.shown.as_ref().and_then(|it| it.component.as_deref()), Some("Workbench"));
    let nothing = good(
        &tools.replace("{component: Workbench, mode: artifact}", "{component: null, mode: null}"),
    );
    assert_eq!(nothing.workflow.tools[0].shown, None);
    let said = report(&tools.replace("component: Workbench, ", ""));
    assert!(said.contains("and not with which component"), "{said}");
}

#[test]
fn patterns_and_fields_may_be_spelled_as_ag2_does() {
    for (spelling, pattern) in [
        ("auto", Pattern::Auto),
        ("round_robin", Pattern::RoundRobin),
        ("random", Pattern::Random),
        ("autogen.agentchat.group.patterns.RandomPattern", Pattern::Random),
    ] {
        let loaded = Project::with(&format!(
            "=== orchestrator.yaml\norchestration_pattern: {spelling}\nselector_model: passthrough\n\
             === agents.yaml\n- {{name: Writer, model: passthrough, system_message: x, human_input_mode: NEVER}}\n"
        ));
        let loaded = loaded.load();
        assert!(!loaded.report.has_errors(), "{:?}", loaded.report);
        assert_eq!(loaded.workflow.orchestrator.pattern, pattern, "{spelling}");
    }
    let said = report("=== orchestrator.yaml\norchestration_pattern: manual\n");
    assert!(said.contains("hand over to `user`"), "{said}");
    let said = report(
        "=== agents.yaml\n- {name: Writer, model: passthrough, system_message: x, human_input_mode: ALWAYS}\n",
    );
    assert!(said.contains("`human_input_mode` can only be `NEVER`"), "{said}");
    assert!(said.contains("hand over to `user`"), "{said}");
}
