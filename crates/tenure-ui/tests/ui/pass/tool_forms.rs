//! Every kind of function that `#[tool]` takes, without a warning, and whatever is in scope.

#![deny(warnings, missing_docs, unreachable_pub)]
#![allow(clippy::non_minimal_cfg, reason = "a condition that holds is what is tried")]

use tenure::context::ToolCx;
use tenure::tool;
use tenure::tool::{Tool, ToolError, ToolOutput};

// Names that generated code likes to use, meaning something else here.
#[allow(dead_code)]
mod shadows {
    use tenure::tool;

    type Result<T> = std::result::Result<T, std::io::Error>;
    struct Option;
    struct Vec;
    struct Some;
    struct None;
    struct Ok;
    struct Err;
    struct Value;

    /// Reads.
    #[tool]
    pub(super) async fn read(path: String, lines: std::vec::Vec<u32>) -> Result<String> {
        std::result::Result::Ok(format!("{path} {lines:?}"))
    }
}

/// In a module of its own, and public.
pub mod public {
    use tenure::tool;

    fn helper() -> String {
        String::new()
    }

    /// Calls what is beside it, and above it.
    #[tool]
    pub fn neighbour() -> String {
        helper() + super::above()
    }

    #[tool(description = "Documented by the attribute alone.")]
    #[allow(clippy::unused_async)]
    pub async fn undocumented() -> &'static str {
        ""
    }
}

fn above() -> &'static str {
    "above"
}

/// Takes the context and nothing else.
#[tool]
async fn context_only(cx: ToolCx<'_>) -> String {
    cx.call_id().to_owned()
}

/// Takes the context, does not use it, and names its lifetime.
#[tool(name = "the-context", effect = "at_most_once")]
async fn context_unused<'a>(_: ToolCx<'a>, mut text: String) -> Result<ToolOutput, ToolError> {
    text.push('!');
    Ok(ToolOutput::text(text))
}

/// Has a parameter of its own name, and one that is a keyword.
#[tool(effect = "keyed", writes = ["seen", "plan"])]
fn city(city: String, r#type: Option<bool>) -> Result<serde_json::Value, ToolError> {
    Ok(serde_json::json!([city, r#type]))
}

/// Is called like something in the generated code.
#[tool]
fn arguments(cx: u8, arguments: u8, name: u8, value: u8, problems: u8) -> String {
    (cx + arguments + name + value + problems).to_string()
}

/// Is a keyword.
#[tool]
fn r#match(r#in: String) -> String {
    r#in
}

/// Is not compiled.
#[tool]
#[cfg(any())]
fn absent(what: Absent) -> String {
    what
}

/// Is compiled.
#[cfg(all())]
#[tool]
fn present() -> String {
    String::new()
}

/// Nobody uses it.
#[tool]
#[allow(dead_code)]
fn unused() -> String {
    String::new()
}

mod old {
    /// Was better once.
    #[tenure::tool]
    #[deprecated]
    #[allow(dead_code)]
    pub(crate) fn retired() -> String {
        String::new()
    }
}

fn main() {
    /// In the body of a function.
    #[tool]
    fn local() -> String {
        String::new()
    }

    let tools: [(&dyn Tool, &str); 11] = [
        (&shadows::read, "read"),
        (&public::neighbour, "neighbour"),
        (&public::undocumented, "undocumented"),
        (&context_only, "context_only"),
        (&context_unused, "the-context"),
        (&city, "city"),
        (&arguments, "arguments"),
        (&r#match, "match"),
        (&present, "present"),
        (&local, "local"),
        (&{ city }, "city"),
    ];
    for (tool, name) in tools {
        let spec = tool.spec();
        assert_eq!(&*spec.name, name);
        assert!(!spec.description.is_empty());
    }
    assert_eq!(format!("{city:?}"), "city");
}
