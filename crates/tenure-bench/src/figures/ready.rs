//! What each ready-made hook costs where it lets everything pass, as a share of the model calls of
//! the turn, over loopback HTTP by a provider's client.
//!
//! A hook's cost is a few microseconds at most, and a call over a socket wavers by more than that. So
//! the cost is the difference of two turns with a model that answers at once, with the hook and
//! without, and the call is a turn of its own; all three take turns in the same race.
//!
//! A hook that wraps tool calls is measured on a turn with one, which has two model calls.

use super::Measured;
use crate::fakes::{INPUT, Scripted, builder, quick, started};
use crate::http::{Server, openai, serve};
use crate::measure::{Bench, timed};
use crate::report::Figure;
use serde_json::{Value, json};
use std::cell::Cell;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use tempfile::TempDir;
use tenure::agent::{Agent, AgentBuilder};
use tenure::ask::{Answer, PendingAsk};
use tenure::cache::MemoryCache;
use tenure::hook::{Point, Registration};
use tenure::memory::InMemory;
use tenure::models::provider::{Authority, ProviderConfig, ProviderEntry, Providers};
use tenure_hooks::ready::{self, Bench as Makings};

/// Every ready-made hook, and the stack.
pub(crate) const NAMES: [&str; 44] = [
    "hook_adapt_pct",
    "hook_approval_pct",
    "hook_audit_pct",
    "hook_breaker_pct",
    "hook_budget_pct",
    "hook_cache_pct",
    "hook_call_limit_pct",
    "hook_cheaper_model_pct",
    "hook_clear_tool_results_pct",
    "hook_concurrency_pct",
    "hook_critic_pct",
    "hook_dedupe_pct",
    "hook_dry_run_pct",
    "hook_emulate_tools_pct",
    "hook_fallback_pct",
    "hook_file_search_pct",
    "hook_format_pct",
    "hook_load_context_pct",
    "hook_log_pct",
    "hook_metrics_pct",
    "hook_notify_pct",
    "hook_permissions_pct",
    "hook_pii_pct",
    "hook_prompt_pct",
    "hook_quota_pct",
    "hook_rate_limit_pct",
    "hook_refusal_pct",
    "hook_result_schema_pct",
    "hook_retry_pct",
    "hook_route_pct",
    "hook_safety_pct",
    "hook_sanitise_pct",
    "hook_save_pct",
    "hook_select_tools_pct",
    "hook_shell_pct",
    "hook_telemetry_pct",
    "hook_timeout_pct",
    "hook_todo_pct",
    "hook_tool_errors_pct",
    "hook_tool_retry_pct",
    "hook_usage_pct",
    "hook_validate_pct",
    "hook_window_pct",
    "stack_pct",
];

/// Turns of one sample.
const TURNS: usize = 40;
/// Calls of one sample.
const CALLS: usize = 4;
/// The most that a hook may cost, in percent of a model call.
const HOOK: f64 = 2.0;
/// The most that the stack may cost.
const STACK: f64 = 10.0;

/// Eight hooks as people stack them.
const EIGHT: [&str; 8] =
    ["usage", "retry", "breaker", "rate_limit", "timeout", "call_limit", "pii", "permissions"];

/// A document as people give one to an agent.
const RULES: &str = "\
House rules

- Answer in the language that you were asked in.
- Say where a figure comes from. If you do not know, say so.
- Never promise a date of delivery; name the order's page instead.
- Refunds above 100 euros go to a person: hand over, and say that you did.
- Do not name other customers, and quote nothing from their letters.
- Prices are with tax. Round to the cent, and show the sum at the end.
";

/// What a hook is given here, where its example would not let thousands of turns pass.
fn options(name: &str) -> Option<Value> {
    const MANY: u64 = 1_000_000;
    Some(match name {
        "rate_limit" => json!({ "calls": MANY, "every": "1s" }),
        "quota" => json!({ "requests": MANY, "window": "1h" }),
        "dry_run" => json!({ "except": ["*"] }),
        "log" => json!({ "to": "file", "file": "log.jsonl" }),
        // It tells of nothing that goes well.
        "notify" => json!({ "command": ["true"], "on": ["failed"] }),
        _ => return None,
    })
}

/// What the passing path of a hook has to do, where that is more than looking.
fn inherent(name: &str) -> Option<&'static str> {
    Some(match name {
        "cache" => "the request is made canonical and hashed",
        "window" | "clear_tool_results" => "new messages are tokenised",
        "load_context" => "the system is asked whether the file has changed",
        "pii" | "safety" => "every text is searched",
        "audit" => "two lines are hashed, written to a file and waited for",
        "critic" => "a model is asked",
        _ => return None,
    })
}

pub(crate) fn measure(bench: &Bench) -> Measured {
    let folder = TempDir::new()?;
    // What `load_context` names in its example.
    fs::create_dir(folder.path().join("docs"))?;
    fs::write(folder.path().join("docs/rules.md"), RULES)?;
    let remote = Remote::new(bench)?;
    let mut figures = Vec::new();
    for (_, hook) in ready::all() {
        let name: &'static str = format!("hook_{}_pct", hook.name()).leak();
        let sample = made(hook.name(), &folder)?;
        let steps = usize::from(sample.points().contains(Point::WrapToolCall));
        let figure = compare(bench, &remote, name, HOOK, steps, || {
            made(hook.name(), &folder).map(|hook| vec![hook])
        })?;
        figures.push(match inherent(hook.name()) {
            Some(work) => figure.inherent(work),
            None => figure,
        });
    }
    let stack = || EIGHT.into_iter().map(|name| made(name, &folder)).collect();
    figures.push(compare(bench, &remote, "stack_pct", STACK, 1, stack)?);
    remote.stop(bench);
    Ok(figures)
}

/// The hook as the figure has it.
fn made(name: &str, folder: &TempDir) -> Result<Registration, Box<dyn Error>> {
    let hook = ready::find(name).ok_or_else(|| format!("there is no hook `{name}`"))?;
    let with = match options(name) {
        Some(with) => with,
        None => serde_json::from_str(hook.about().example)?,
    };
    let makings = Makings::new().root(folder.path()).with_cache(MemoryCache::new());
    Ok(hook.make(&with, &makings).map_err(|refused| format!("{name}: {refused}"))?)
}

fn compare(
    bench: &Bench,
    remote: &Remote,
    name: &'static str,
    limit: f64,
    steps: usize,
    hooks: impl Fn() -> Result<Vec<Registration>, Box<dyn Error>>,
) -> Result<Figure, Box<dyn Error>> {
    let agent = |hooks: Vec<Registration>| {
        let agent = quick(Scripted { steps })
            .memory(InMemory::new())
            .on_ask(|_: &PendingAsk| Some(Answer::Approve));
        let mut made = None;
        bench.on_thread(async {
            let agent = hooks.into_iter().fold(agent, AgentBuilder::with_lifecycle);
            made = Some(started(agent).await);
            0.0
        });
        made.ok_or("the agent was not started")
    };
    let (bare, hooked) = (agent(Vec::new())?, agent(hooks()?)?);
    // What has been asked before may be known already, so nothing is asked twice.
    let asked = Cell::new(0_u64);
    let turns = |agent: &Agent| {
        bench.on_thread(timed(TURNS, async || {
            asked.set(asked.get() + 1);
            let question = format!("{INPUT} {:08x}", asked.get());
            black_box(agent.run(question).await.expect("the turn succeeds"));
        }))
    };
    let [bare_ns, hooked_ns, call_ns] =
        bench.race([&mut || turns(&bare), &mut || turns(&hooked), &mut || remote.call(bench)]);
    bench.on_thread(async {
        bare.shutdown().await;
        hooked.shutdown().await;
        0.0
    });
    let calls_ns = call_ns * (steps + 1) as f64;
    let figure = Figure::percent(
        name,
        limit,
        ("calls_and_hook_ns", calls_ns + hooked_ns - bare_ns),
        ("calls_ns", calls_ns),
    );
    Ok(figure.with("hook_ns", hooked_ns - bare_ns))
}

/// An agent whose model is behind HTTP.
struct Remote {
    agent: Agent,
    server: Server,
}

impl Remote {
    fn new(bench: &Bench) -> Result<Self, Box<dyn Error>> {
        let mut remote = None;
        bench.on_thread(async {
            let made = async {
                let (address, server) = serve(openai).await?;
                let mut config = ProviderConfig::default();
                let mut entry = ProviderEntry::default();
                entry.base_url = Some((format!("http://{address}/v1"), Authority::User));
                config.providers.insert("openai".to_owned(), entry);
                let providers = Providers::with_env(config, |_| Some("sk-none".to_owned()));
                let model = providers.model("openai.gpt-4.1-mini")?;
                Ok::<_, Box<dyn Error>>(Self { agent: started(builder(model)).await, server })
            };
            remote = Some(made.await);
            0.0
        });
        remote.ok_or("the server was not started")?
    }

    /// A turn of one model call.
    fn call(&self, bench: &Bench) -> f64 {
        bench.on_thread(timed(CALLS, async || {
            black_box(self.agent.run(INPUT).await.expect("the server answers"));
        }))
    }

    fn stop(self, bench: &Bench) {
        bench.on_thread(async {
            self.agent.shutdown().await;
            drop(self.agent);
            self.server.stop().await;
            0.0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hook_has_a_figure() {
        let mut hooks: Vec<String> =
            ready::all().map(|(_, hook)| format!("hook_{}_pct", hook.name())).collect();
        hooks.sort();
        hooks.push("stack_pct".to_owned());
        assert_eq!(NAMES.to_vec(), hooks);
    }
}
