//! Tools that people expect beside hooks, with a guard before them.

#[cfg(feature = "tools")]
mod search;
#[cfg(feature = "tools")]
mod shell;

#[cfg(feature = "tools")]
pub use search::{FileSearch, Order};
#[cfg(feature = "tools")]
pub use shell::{Otherwise, Shell};
pub use tenure_process::Environment;

use crate::ready::{Makings, Ready, Refusal};
use std::collections::BTreeMap;

/// The hooks of this group.
pub(crate) const READY: &[Ready] = &[
    #[cfg(feature = "tools")]
    Ready::of::<shell::ShellOptions>(),
    #[cfg(feature = "tools")]
    Ready::of::<search::FileSearchOptions>(),
];

/// Refuses a name that no provider takes for a tool.
#[cfg(feature = "tools")]
fn check_name(field: &str, name: &str) -> Result<(), Refusal> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(fits) {
        return Ok(());
    }
    let why = format!("`{name}` is no name for a tool; use up to 64 of a-z, A-Z, 0-9, `_` and `-`");
    Err(Refusal::new(field, why))
}

/// What commands of a hook see: what the project passes to all hooks, and what the hook's own
/// options `pass_env` and `env` say.
pub(crate) fn environment(
    makings: &dyn Makings,
    pass: &[String],
    set: &BTreeMap<String, String>,
) -> Result<Environment, Refusal> {
    let is_name = |name: &str| !name.is_empty() && !name.contains(['=', '\0', ' ']);
    let wrong = |name| format!("`{name}` is no name of a variable");
    let mut environment = makings.environment();
    for (at, name) in pass.iter().enumerate() {
        if !is_name(name) {
            return Err(Refusal::new(format!("pass_env[{at}]"), wrong(name)));
        }
        let upper = name.to_ascii_uppercase();
        if ["KEY", "TOKEN", "SECRET", "PASSWORD"].iter().any(|it| upper.contains(it)) {
            makings
                .warn("pass_env", format!("`{name}` may hold a secret, which commands then see"));
        }
        environment = environment.pass(name);
    }
    for (name, value) in set {
        if !is_name(name) || value.contains('\0') {
            return Err(Refusal::new("env", wrong(name)));
        }
        environment = environment.set(name, value);
    }
    Ok(environment)
}
