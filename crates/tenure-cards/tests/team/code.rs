//! Function tools that take source code.

use crate::support::*;
use serde_json::json;
use tenure_cards::card::CardKind;

const TOOLS: &str = r#"
def run(source, note: str = ""):
    """Runs a script.

    Args:
        source: What to run.
    """
    return str(eval(source))

def check(code: str) -> str:
    """Checks a query."""
    return code.upper()
"#;

const CARD: &str = "---
name: a
function_tools:
  - { entrypoint: 'tools.py:run', variant: code, code_arg: source }
  - { entrypoint: 'tools.py:check', variant: code, language: sql }
---
x
";

#[test]
fn the_schema_says_which_parameter_takes_code_and_in_which_language() {
    let project = Project::new([("tools.py", TOOLS), ("a.md", CARD)]);
    let loaded = project.loaded();
    assert!(!loaded.report.has_errors(), "{:#?}", messages(&loaded.report));
    let [card] = &loaded.cards[..] else { panic!("{:?}", loaded.cards) };
    let CardKind::Agent(agent) = &card.kind else { panic!("{:?}", card.kind) };
    let [run, check] = &agent.function_tools[..] else { panic!("{:?}", agent.function_tools) };
    assert_eq!(
        run.spec.parameters["properties"]["source"],
        json!({ "type": "string", "description": "What to run. Source code in python." })
    );
    assert_eq!(run.spec.parameters["required"], json!(["source"]));
    assert_eq!(run.spec.description, "Runs a script.\n\n`source` takes source code in python.");
    assert_eq!(
        check.spec.parameters["properties"]["code"],
        json!({ "type": "string", "description": "Source code in sql." })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_named_parameter_gets_the_code() {
    let project = Project::new([("tools.py", TOOLS), ("a.md", CARD)]);
    let team = project.team();
    team.start().await.expect("it starts");
    for (call, output) in [
        (r#"***CALL_TOOL run {"source": "6 * 7"}"#, "42"),
        (r#"***CALL_TOOL check {"code": "select 1"}"#, "SELECT 1"),
    ] {
        let run = team.run(None, call).await.expect("it runs");
        assert_eq!(run.output, output);
    }
    team.shutdown().await;
}
