//! Folders as they are published: the names and shapes that the files of other generations have.

use crate::loading::support::Project;
use serde_json::json;
use tenure_flow::LoadedWorkflow;
use tenure_flow::output::{Outputs, check};

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
