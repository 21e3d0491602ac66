//! Teams made of card files, with real hooks in Python and commands.

mod cast;
mod children;
mod choice;
mod code;
mod config_fields;
mod conversation;
mod examples;
mod fast_agent;
mod guard_attributes;
mod hooks;
mod life;
mod models;
mod python_limits;
mod reload;
mod seed_000;
mod servers;
mod tampered;
mod tampered_python;
mod types;

/// What the hooks wrote down, without the numbers of clones and forks.
fn plain_log(project: &crate::support::Project) -> Vec<String> {
    let plain = |line: String| line.split('#').next().unwrap_or_default().to_owned();
    project.log().into_iter().map(plain).collect()
}
