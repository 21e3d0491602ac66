use tenure::tool;

/// Takes patterns.
#[tool]
fn patterns((a, b): (u8, u8), _: u8, [x, ..]: [u8; 4]) -> String {
    String::new()
}

/// Takes what has no single schema.
#[tool]
fn opaque(name: impl Into<String>, all: Vec<impl ToString>) -> String {
    String::new()
}

/// Takes what it does not own.
#[tool]
fn borrowed(name: &str, all: &[u8], plan: &Plan) -> String {
    String::new()
}

/// Takes the context somewhere else.
#[tool]
async fn late(city: String, cx: tenure::context::ToolCx<'_>) -> String {
    city
}

/// Takes the context otherwise.
#[tool]
async fn by_reference(cx: &tenure::context::ToolCx<'_>) -> String {
    String::new()
}

/// Takes it or leaves it.
#[tool]
fn conditional(#[cfg(unix)] path: String) -> String {
    String::new()
}

fn main() {}
