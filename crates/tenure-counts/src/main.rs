//! Paths to count the instructions of: `tenure-counts PATH TIMES`.
//!
//! Wall time wavers on a busy machine, the number of instructions does not. Each path is done so
//! many times and nothing else; the difference between two counts, divided by the difference in
//! times, is what one takes.

#[path = "../../tenure-bench/src/base.rs"]
#[allow(dead_code, reason = "the figures use the rest of it")]
mod base;
#[path = "../../tenure-bench/src/fakes.rs"]
#[allow(dead_code, reason = "the figures use the rest of it")]
mod fakes;

use fakes::{
    AroundModel, AtModel, BaseParts, Elsewhere, Scripted, base_turn, blueprint, quick, started,
    turn, with_hooks,
};
use std::hint::black_box;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use tenure::agent::AgentBuilder;

#[derive(Clone, Copy)]
enum Path {
    Turn,
    Step,
    Hook,
    Wrap,
    Instance,
    Life,
    Clone,
    ZeroHooks,
    IdleHooks,
    BaseTurn,
    BaseStep,
    BaseInstance,
}

/// Steps of a turn with and without idle hooks.
const STEPS: usize = 10;
const HOOKS: usize = 6;
const IDLE: usize = 5;

impl Path {
    const ALL: [Path; 12] = [
        Path::Turn,
        Path::Step,
        Path::Hook,
        Path::Wrap,
        Path::Instance,
        Path::Life,
        Path::Clone,
        Path::ZeroHooks,
        Path::IdleHooks,
        Path::BaseTurn,
        Path::BaseStep,
        Path::BaseInstance,
    ];

    fn name(self) -> &'static str {
        match self {
            Path::Turn => "turn",
            Path::Step => "step",
            Path::Hook => "hook",
            Path::Wrap => "wrap",
            Path::Instance => "instance",
            Path::Life => "life",
            Path::Clone => "clone",
            Path::ZeroHooks => "zero_hooks",
            Path::IdleHooks => "idle_hooks",
            Path::BaseTurn => "base_turn",
            Path::BaseStep => "base_step",
            Path::BaseInstance => "base_instance",
        }
    }
}

/// Does `path` so many times.
fn run(path: Path, times: usize) -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let silent = || Scripted { steps: 0 };
        match path {
            Path::Turn => turns(quick(silent()), times).await,
            // One turn of so many steps, so that the turn itself drops out of the difference.
            Path::Step => turns(quick(Scripted { steps: times }), 1).await,
            Path::Hook => turns(with_hooks(quick(silent()), HOOKS, || AtModel), times).await,
            Path::Wrap => turns(with_hooks(quick(silent()), HOOKS, || AroundModel), times).await,
            Path::ZeroHooks => turns(quick(Scripted { steps: STEPS }), times).await,
            Path::IdleHooks => {
                let agent = quick(Scripted { steps: STEPS });
                turns(with_hooks(agent, IDLE, || Elsewhere), times).await;
            }
            Path::Instance => {
                let blueprint = blueprint(quick(silent()));
                (0..times).for_each(|_| drop(black_box(blueprint.instance())));
            }
            Path::Life => {
                let blueprint = blueprint(quick(silent()));
                for _ in 0..times {
                    let agent = blueprint.instance();
                    agent.startup().await.expect("nothing can fail at startup");
                    agent.shutdown().await;
                }
            }
            Path::Clone => {
                let agent = started(quick(silent())).await;
                for _ in 0..times {
                    let spawned = agent.spawn_detached_instance(None).await;
                    let clone = spawned.expect("nothing can fail at startup");
                    turn(&clone).await;
                    clone.shutdown().await;
                }
            }
            Path::BaseTurn => base_turns(&base_parts(0).agent(), times).await,
            Path::BaseStep => base_turns(&base_parts(times).agent(), 1).await,
            Path::BaseInstance => {
                let parts = base_parts(0);
                (0..times).for_each(|_| drop(black_box(parts.agent())));
            }
        }
    });
    Ok(())
}

async fn turns(agent: AgentBuilder, times: usize) {
    let agent = started(agent).await;
    for _ in 0..times {
        turn(&agent).await;
    }
}

fn base_parts(steps: usize) -> BaseParts {
    BaseParts::quick(Arc::new(Scripted { steps }))
}

async fn base_turns(agent: &base::Agent, times: usize) {
    for _ in 0..times {
        base_turn(agent).await;
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = match arguments.as_slice() {
        [path, times] => Path::ALL.into_iter().find(|it| it.name() == path).zip(times.parse().ok()),
        _ => None,
    };
    let Some((path, times)) = wanted else {
        let names = Path::ALL.map(Path::name).join(", ");
        eprintln!("usage: tenure-counts PATH TIMES\npaths: {names}");
        return ExitCode::from(2);
    };
    match run(path, times) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
