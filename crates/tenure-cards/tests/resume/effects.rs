//! What a crash means for a tool, however it is said.

use crate::resume::support::*;
use tenure_core::tool::Effect;

const TOOLS: &str = r#"
import tenure as t
from tenure import tool

def plain() -> str:
    """Nothing is said."""
    return ""

@t.tool(effect="idempotent")
def decorated() -> str:
    """The decorator says it."""
    return ""

@tool(effect="keyed")
async def imported() -> str:
    """The decorator says it."""
    return ""

@tool(effect="idempotent")
def both() -> str:
    """The card says more."""
    return ""

@tool(effect="idempotnt")
def wrong() -> str:
    """A word that is none."""
    return ""

@tool(effect=str("keyed"))
def made() -> str:
    """A word that cannot be read."""
    return ""
"#;

#[test]
fn an_effect_is_what_the_card_says_else_the_decorator_else_at_most_once() {
    let card = "---
name: a
shell: true
human_input: true
agents: [b]
function_tools:
  - tools.py:plain
  - tools.py:decorated
  - { entrypoint: 'tools.py:imported' }
  - { entrypoint: 'tools.py:both', effect: at_most_once }
---
x
";
    let project = noting([
        ("tools.py", TOOLS),
        ("a.md", card),
        ("b.md", "---\nname: b\nmodel: passthrough\n---\nx\n"),
    ]);
    let team = built(project.builder());
    let explanation = team.explain("a").expect("it is there");
    let effects: Vec<_> = explanation.effects.iter().map(|(name, it)| (&**name, *it)).collect();
    assert_eq!(
        effects,
        [
            ("__human_input", Effect::Idempotent),
            ("both", Effect::AtMostOnce),
            ("decorated", Effect::Idempotent),
            ("execute", Effect::AtMostOnce),
            ("imported", Effect::Keyed),
            ("plain", Effect::AtMostOnce),
            ("read_text_file", Effect::Idempotent),
            ("write_text_file", Effect::Idempotent),
        ]
    );
    assert!(explanation.tools.iter().any(|tool| tool == "agent__b"), "{:?}", explanation.tools);
}

#[test]
fn an_effect_that_is_none_is_found_with_the_word_that_was_meant() {
    for (entry, parts) in [
        (
            "{ entrypoint: 'tools.py:plain', effect: kyed }",
            &["T0206 `effect` is `kyed`", "did you mean `keyed`?"][..],
        ),
        (
            "{ entrypoint: 'tools.py:plain', effect: sometimes }",
            &["`effect` is `sometimes`", "use `idempotent`, `keyed` or `at_most_once`"],
        ),
        ("tools.py:wrong", &["the effect of `wrong` is `idempotnt`", "did you mean `idempotent`?"]),
        ("tools.py:made", &["the decorator of `made` says no effect", "write the word itself"]),
    ] {
        let card = format!("---\nname: a\nfunction_tools:\n  - {entry}\n---\nx\n");
        let project = noting([("tools.py", TOOLS), ("a.md", &card)]);
        let found = messages(&project.loaded().report).join("\n");
        for part in parts {
            assert!(found.contains(part), "{entry}: {found}");
        }
    }
}
