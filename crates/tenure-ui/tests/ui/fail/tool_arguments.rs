use tenure::tool;

/// Unknown, but near.
#[tool(descripton = "x")]
fn misspelt() -> String {
    String::new()
}

/// Unknown.
#[tool(idempotent)]
fn unknown() -> String {
    String::new()
}

/// Given twice.
#[tool(name = "a", name = "b")]
fn twice() -> String {
    String::new()
}

/// Not a name.
#[tool(name = "get weather")]
fn spaced() -> String {
    String::new()
}

/// Not an effect.
#[tool(effect = "at-most-once")]
fn effect() -> String {
    String::new()
}

/// Not more than zero.
#[tool(limit = "0s")]
fn zero() -> String {
    String::new()
}

/// Without a unit.
#[tool(limit = "30")]
fn unitless() -> String {
    String::new()
}

/// With a unit of something else.
#[tool(limit = "5d")]
fn days() -> String {
    String::new()
}

/// Not a list.
#[tool(writes = "seen")]
fn writes() -> String {
    String::new()
}

/// Not text.
#[tool(limit = 5)]
fn number() -> String {
    String::new()
}

fn main() {}
