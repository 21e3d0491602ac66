//! Declared variables: what tools may not write, and what a removal means.

use crate::lifecycle::support::{Lab, calls};
use serde_json::json;
use std::sync::Arc;
use tenure_cards::card::Environ;
use tenure_flow::ChatStatus;
use tenure_flow::lifecycle::Trigger;
use tenure_flow::variables::{Computed, Config, Definition, Kind, Source, State, Variables};

const TOOLS: &str = r#"
def sets(context_variables):
    context_variables.data.update(count=5, name="x", scratch=1)

def removes(context_variables):
    for key in ("count", "name", "scratch"):
        del context_variables.data[key]

def sees(context_variables):
    data = context_variables.data
    return [data["count"], data["name"], data["double"], "scratch" in data]

def writes_fixed(context_variables):
    context_variables.data.update(mine=1, fixed="other")

def writes_region(context_variables):
    context_variables.data.update(mine=1, region="other")

def writes_double(context_variables):
    context_variables.data.update(mine=1, double=9)

def writes_no_number(context_variables):
    context_variables.data.update(mine=1, count="many")

def removes_fixed(context_variables):
    context_variables.data["mine"] = 1
    del context_variables.data["fixed"]

def removes_double(context_variables):
    context_variables.data["mine"] = 1
    del context_variables.data["double"]

def removes_region(context_variables):
    context_variables.data["mine"] = 1
    del context_variables.data["region"]

def well(context_variables):
    context_variables.data["well"] = context_variables.data.get("well", 0) + 1
"#;

/// A state with a default, one without, and three that nobody writes; the region has no value.
fn variables() -> Arc<Variables> {
    let of = Definition::new;
    let all = vec![
        of("count", Kind::Int, Source::State(State::new(3))),
        of("name", Kind::Str, Source::State(State::new(json!(null)))),
        of("fixed", Kind::Str, Source::Static(json!("stone"))),
        of("region", Kind::Str, Source::Config(Config::new("REGION"))),
        of("double", Kind::Int, Source::Computed(Computed::new("count * 2"))),
    ];
    let here = std::env::current_dir().expect("there is one");
    let variables = Variables::new(all, Vec::new(), &here, &here).expect("they are good");
    Arc::new(variables.environ(Environ::empty()))
}

#[tokio::test]
async fn a_tool_that_writes_a_variable_that_is_read_only_writes_nothing() {
    let mut lab = Lab::new(TOOLS);
    for trigger in Trigger::ALL {
        for (function, part) in [
            ("writes_fixed", "`fixed`"),
            ("writes_region", "`region`"),
            ("writes_double", "`double`"),
            ("writes_no_number", "`count`: \"many\" is not a whole number"),
            ("removes_fixed", "`fixed`"),
            ("removes_double", "`double`"),
        ] {
            let tools = [lab.tool(trigger, function), lab.tool(trigger, "well")];
            let flow = lab.flow(&tools).variables(variables()).build().expect("a flow");
            let report = flow.run("hello").await;
            assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
            let times = if trigger.is_of_chat() { 1 } else { 2 };
            assert_eq!(report.variables["well"], times, "{function} at {trigger}");
            assert_eq!(report.variables.get("mine"), None, "{function} at {trigger}");
            let kept = ["count", "fixed", "region", "double"].map(|it| &report.variables[it]);
            assert_eq!(kept, [&json!(3), &json!("stone"), &json!(null), &json!(6)], "{function}");
            let seen = lab.seen();
            let errors: Vec<_> =
                seen.iter().filter(|it| it.name == "lifecycle.tool_error").collect();
            assert_eq!(errors.len(), times, "{function} at {trigger}: {:?}", calls(&seen));
            for error in errors {
                let text = error.data["error"].as_str().expect("a text");
                assert!(text.contains(part), "{function} at {trigger}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_declared_variable_that_is_removed_has_its_default_again() {
    let mut lab = Lab::new(TOOLS);
    let tools = ["sets", "removes", "sees"].map(|it| lab.tool(Trigger::BeforeChat, it));
    let flow = lab.flow(&tools).variables(variables()).build().expect("a flow");
    let report = flow.run("hello").await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    let seen = lab.seen();
    let last = seen.iter().rev().find(|it| it.name == "lifecycle.tool_result").expect("a result");
    assert_eq!(last.data["result"], json!([3, null, 6, false]), "{seen:#?}");
    assert_eq!(report.variables["count"], 3);
    assert!(!report.variables.contains_key("scratch"), "one that is not declared is gone");
}

#[tokio::test]
async fn a_read_only_variable_that_has_no_value_is_still_there_when_it_was_removed() {
    let lab = Lab::new(TOOLS);
    let tools = [lab.tool(Trigger::BeforeChat, "removes_region")];
    let flow = lab.flow(&tools).variables(variables()).build().expect("a flow");
    let report = flow.run("hello").await;
    assert_eq!(report.variables["region"], json!(null), "nothing was changed");
    assert_eq!(report.variables["mine"], 1);
}
