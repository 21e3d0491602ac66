//! Tools of workflows whose parameters are more than JSON has.

use crate::examples::whole::{Folder, ONE, run};
use serde_json::json;
use tenure_core::ask::Answer;
use tenure_core::event::EventKind;
use tenure_flow::ChatStatus;

const BOOKS: &str = r#"
from __future__ import annotations
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
class Size(Enum):
    SMALL = "small"
    BIG = "big"
@dataclass
class Part:
    name: str
    printed: date
    parts: list[Part] = field(default_factory=list)
"#;

fn folder(answer: &str) -> Folder {
    let keep = r#"
from __future__ import annotations
from books import Part, Size
def keep(number: int, size: Size, parts: list[Part], context_variables) -> Size:
    """Keeps a book."""
    context_variables.data["kept"] = [str(number), size.name, parts[0].printed.year]
    return size
"#;
    Folder::new(&[
        ("workflows/one/orchestrator.yaml", ONE),
        (
            "workflows/one/agents.yaml",
            "- { name: Maker, system_message: You make., model: \"script:made.yaml\", \
             auto_tool_mode: true }\n",
        ),
        ("workflows/one/made.yaml", &format!("- '{answer}'\n")),
        (
            "workflows/one/structured_outputs.yaml",
            "structured_outputs:\n  models:\n    Piece:\n      type: model\n      fields:\n        \
             name: { type: str }\n        printed: { type: str }\n    Book:\n      type: model\n      \
             fields:\n        number: { type: int }\n        size: { type: str }\n        \
             parts: { type: list, items: Piece }\n  registry: { Maker: Book }\n",
        ),
        (
            "workflows/one/tools.yaml",
            "tools:\n  - { agent: Maker, file: keep.py, function: keep, tool_type: Agent_Tool, \
             auto_invoke: true, description: Keeps a book }\n",
        ),
        ("workflows/one/tools/keep.py", keep),
        ("workflows/one/tools/books.py", BOOKS),
    ])
}

#[tokio::test]
async fn a_structured_output_becomes_what_the_tool_takes() {
    let answer = r#"{"number": 123456789012345678901234567890, "size": "big", "parts": [{"name": "a", "printed": "2026-01-31"}]}"#;
    let (report, _, _) = run(&folder(answer).workflow("one"), Answer::Approve).await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    let kept = json!(["123456789012345678901234567890", "BIG", 2026]);
    assert_eq!(report.variables["kept"], kept);
}

#[tokio::test]
async fn a_structured_output_that_cannot_become_it_is_said_with_its_place() {
    for (answer, said) in [
        (
            r#"{"number": 1, "size": "big", "parts": [{"name": "a", "printed": "soon"}]}"#,
            "argument `parts[0].printed` must be a date such as 2026-01-31, but is the text \"soon\"",
        ),
        (
            r#"{"number": 1, "size": "huge", "parts": []}"#,
            "argument `size` must be \"small\" or \"big\", but is the text \"huge\"",
        ),
    ] {
        let (report, _, _) = run(&folder(answer).workflow("one"), Answer::Approve).await;
        let error = report.error.expect("the turn fails").to_string();
        assert!(error.contains(said), "{error}");
        assert_eq!(report.variables.get("kept"), None, "the function was not called");
    }
}

#[tokio::test]
async fn the_answer_to_a_ui_tool_becomes_what_its_function_takes() {
    let confirm = r#"
from books import Part
def confirm(what: str, ui_response: Part) -> str:
    """Confirm it."""
    return f"{what}: {ui_response.printed.year} {ui_response.parts[0].name}"
"#;
    let folder = Folder::new(&[
        ("workflows/one/orchestrator.yaml", ONE),
        (
            "workflows/one/agents.yaml",
            "- { name: Clerk, system_message: You ask., model: \"script:asks.yaml\" }\n",
        ),
        (
            "workflows/one/asks.yaml",
            "- { call: confirm, with: { what: the order } }\n- \"It said {result}.\"\n",
        ),
        (
            "workflows/one/tools.yaml",
            "tools:\n  - { agent: Clerk, file: confirm.py, function: confirm, tool_type: UI_Tool, \
             description: Confirm it, ui: { component: Confirm, mode: inline } }\n",
        ),
        ("workflows/one/tools/confirm.py", confirm),
        ("workflows/one/tools/books.py", BOOKS),
    ]);
    let part = |parts| json!({ "name": "a", "printed": "2026-01-31", "parts": parts });
    let says = Answer::Edit(part(json!([part(json!([]))])));
    let (report, _, _) = run(&folder.workflow("one"), says).await;
    assert_eq!(report.output, "It said the order: 2026 a.", "{:?}", report.error);
}

#[tokio::test]
async fn what_a_lifecycle_tool_returns_is_told_as_json() {
    let init = r#"
from books import Part, Size
from datetime import date
class Pool:
    def __repr__(self): return "<pool>"
def init():
    return {"part": Part("a", date(2026, 1, 31)), "size": Size.BIG, "pool": Pool(), "all": {2, 1}}
"#;
    let folder = Folder::new(&[
        ("workflows/one/orchestrator.yaml", ONE),
        (
            "workflows/one/agents.yaml",
            "- { name: Clerk, system_message: You talk., model: \"script:says.yaml\" }\n",
        ),
        ("workflows/one/says.yaml", "- Hello.\n"),
        (
            "workflows/one/tools.yaml",
            "lifecycle_tools:\n  - { trigger: before_chat, agent: null, file: init.py, \
             function: init }\n",
        ),
        ("workflows/one/tools/init.py", init),
        ("workflows/one/tools/books.py", BOOKS),
    ]);
    let (report, recorder, _) = run(&folder.workflow("one"), Answer::Approve).await;
    assert_eq!(report.output, "Hello.", "{:?}", report.error);
    let results: Vec<_> = recorder
        .events()
        .into_iter()
        .filter_map(|event| match &event.kind {
            EventKind::Announced { name: "lifecycle.tool_result", data } => {
                (data["function"] == "init").then(|| data["result"].clone())
            }
            _ => None,
        })
        .collect();
    let part = json!({ "name": "a", "printed": "2026-01-31", "parts": [] });
    let told = json!({ "part": part, "size": "big", "pool": "<pool>", "all": [1, 2] });
    assert_eq!(results, [told]);
}
