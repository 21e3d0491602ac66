//! Whatever is done to an agent, in whatever order, it goes only where the table lets it go.

use crate::guarantees::support::{
    Acts, Does, Events, Fault, Held, Log, Saw, Says, Watch, agent, cases,
};
use async_trait::async_trait;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::context::{InstanceCx, PhaseCx};
use tenure_core::hook::{AgentLifecycle, HookError, Point, Points};
use tenure_core::life::{
    AgentLifecycleProtocol, Lifecycle, LifecycleConfig, ManagedAgent, own_agent,
};
use tenure_core::memory::Memory;
use tenure_core::phase::{AgentState, Phase, PhaseHook, PhasePattern};
use tenure_core::{BoxError, ExitReason, InstanceId};
use tokio::time::{sleep, timeout};

/// One thing that is done to the agent.
#[derive(Clone, Copy, Debug)]
enum Command {
    Startup,
    StartupTwice,
    StartupKept,
    StartupDropped,
    Run,
    Stream,
    RunDropped,
    RunCancelled,
    RunTwice,
    Handle,
    Pause,
    PauseWhileBusy,
    Resume,
    Shutdown,
    ShutdownDropped,
    ShutdownWhileStarting,
    ShutdownWhileBusy,
    DropWhileEnding,
    /// From here on nobody holds the agent.
    Drop,
}

const COMMANDS: [Command; 19] = [
    Command::Startup,
    Command::StartupTwice,
    Command::StartupKept,
    Command::StartupDropped,
    Command::Run,
    Command::Stream,
    Command::RunDropped,
    Command::RunCancelled,
    Command::RunTwice,
    Command::Handle,
    Command::Pause,
    Command::PauseWhileBusy,
    Command::Resume,
    Command::Shutdown,
    Command::ShutdownDropped,
    Command::ShutdownWhileStarting,
    Command::ShutdownWhileBusy,
    Command::DropWhileEnding,
    Command::Drop,
];

const MODELS: [Says; 7] = [
    Says::Done,
    Says::Calls("works"),
    Says::Calls("hangs"),
    Says::Repeats("works"),
    Says::Fails,
    Says::Fatal,
    Says::Hangs,
];

/// Where hooks fail, and how.
#[derive(Clone, Copy, Debug, Default)]
struct Faults {
    on_start: Fault,
    on_shutdown: Fault,
    before_agent: Fault,
    after_agent: Fault,
    on_transition: Fault,
    /// At the flush of a memory that has something to store.
    memory: Fault,
}

fn faults() -> Vec<Faults> {
    let none = Faults::default();
    let moment = Fault::After(Duration::from_millis(3));
    vec![
        none,
        Faults { on_start: Fault::Fails, ..none },
        Faults { on_start: Fault::Hangs, ..none },
        Faults { on_start: moment, on_shutdown: moment, after_agent: moment, ..none },
        Faults { on_shutdown: Fault::Panics, after_agent: Fault::Fails, ..none },
        Faults { on_shutdown: Fault::Hangs, after_agent: Fault::Hangs, ..none },
        Faults { before_agent: Fault::Panics, ..none },
        Faults { on_transition: Fault::Fails, ..none },
        Faults { on_transition: Fault::Panics, ..none },
        Faults { on_transition: moment, ..none },
        Faults { on_transition: Fault::Hangs, ..none },
        Faults { on_transition: Fault::Hangs, on_start: moment, on_shutdown: moment, ..none },
        Faults { memory: Fault::Fails, ..none },
        Faults { memory: Fault::Panics, on_transition: moment, ..none },
        Faults { memory: Fault::Hangs, on_shutdown: moment, ..none },
    ]
}

/// A memory that always has something to store, and meets its fault when it does.
struct Fails(Fault);

#[async_trait]
impl Memory for Fails {
    async fn load(&self, _namespace: &str) -> Result<BTreeMap<String, Value>, BoxError> {
        Ok(BTreeMap::new())
    }

    async fn store(
        &self,
        _namespace: &str,
        _changes: BTreeMap<String, Value>,
    ) -> Result<(), BoxError> {
        self.0.meet("memory").await.map_err(|error| error.to_string().into())
    }
}

/// Writes to memory at each start, and acquires something that takes a moment to release.
struct Acquires(Held);

#[async_trait]
impl AgentLifecycle for Acquires {
    fn points(&self) -> Points {
        Point::OnStart.into()
    }

    async fn on_start(&self, cx: InstanceCx<'_>) -> Result<(), HookError> {
        self.0.acquire(&cx);
        if let Some(memory) = cx.memory() {
            memory.update("facts", 1)?;
        }
        Ok(())
    }
}

/// A type of one's own, with the same faults.
struct Own {
    life: Lifecycle,
    faults: Faults,
    log: Log,
}

#[async_trait]
impl ManagedAgent for Own {
    fn lifecycle(&self) -> &Lifecycle {
        &self.life
    }

    async fn do_startup(&self, _config: &LifecycleConfig) -> Result<(), HookError> {
        self.log.add("watch", self.life.id(), Saw::Start);
        if let Some(memory) = self.life.memory() {
            memory.update("facts", 1)?;
        }
        self.faults.on_start.meet("own").await
    }

    async fn do_shutdown(&self, _timeout: Duration) -> Result<(), HookError> {
        self.log.add("watch", self.life.id(), Saw::Shutdown(ExitReason::Completed));
        self.faults.on_shutdown.meet("own").await
    }

    async fn process(&self, request: &str) -> Result<String, HookError> {
        self.faults.before_agent.meet("own").await?;
        Ok(request.to_owned())
    }
}

type Arrows = Vec<(Phase, Phase)>;

/// Keeps every transition that it is told of, by instance.
struct Arrow {
    seen: Arc<Mutex<HashMap<InstanceId, Arrows>>>,
    fault: Fault,
}

#[async_trait]
impl PhaseHook for Arrow {
    fn source(&self) -> PhasePattern {
        PhasePattern::Any
    }

    fn target(&self) -> PhasePattern {
        PhasePattern::Any
    }

    async fn execute(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        self.on_transition(cx).await
    }
}

#[async_trait]
impl AgentLifecycle for Arrow {
    fn points(&self) -> Points {
        Point::OnTransition.into()
    }

    fn name(&self) -> &str {
        "arrow"
    }

    async fn on_transition(&self, cx: PhaseCx<'_>) -> Result<(), HookError> {
        let arrow = (cx.from(), cx.to());
        self.seen.lock().unwrap().entry(cx.instance_id()).or_default().push(arrow);
        self.fault.meet("arrow").await
    }
}

/// Everything that is built once and used by many sequences.
struct Bench {
    blueprints: Vec<(Faults, Blueprint)>,
    held: Held,
    seen: Arc<Mutex<HashMap<InstanceId, Arrows>>>,
    log: Log,
    events: RefCell<Events>,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    fn new() -> Self {
        let (log, events, held) = (Log::default(), Events::new(), Held::default());
        let seen = Arc::default();
        let mut blueprints = Vec::new();
        for model in MODELS {
            for faults in faults() {
                let watch = Watch::new("watch", &log)
                    .on_start(faults.on_start)
                    .on_shutdown(faults.on_shutdown)
                    .before_agent(faults.before_agent)
                    .after_agent(faults.after_agent);
                let arrow = Arrow { seen: Arc::clone(&seen), fault: faults.on_transition };
                let blueprint = agent("agent", model)
                    .tool(Acts("works", Does::Works))
                    .tool(Acts("hangs", Does::Hangs))
                    .turn_limit(Duration::from_secs(1))
                    .max_steps(3)
                    .events(&events.bus)
                    .memory(Fails(faults.memory))
                    .with_lifecycle(Acquires(held.clone()))
                    .with_lifecycle(watch)
                    .with_lifecycle(arrow)
                    .blueprint()
                    .unwrap();
                blueprints.push((faults, blueprint));
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        Self { blueprints, held, seen, log, events: RefCell::new(events), runtime }
    }

    fn check(&self, which: usize, commands: &[Command]) {
        let (_, blueprint) = &self.blueprints[which];
        self.runtime.block_on(async {
            let mut agent = Some(blueprint.instance());
            let weak = agent.as_ref().map(Agent::downgrade).unwrap();
            for command in commands {
                let Some(held) = agent.take() else { break };
                agent = obey(held, *command).await;
            }
            drop(agent);
            blueprint.settled().await;
            assert!(weak.upgrade().is_none());
        });
        self.check_told();
    }

    /// The same for a type of one's own, held in an `Arc`.
    fn check_own(&self, which: usize, commands: &[Command]) {
        let faults = self.blueprints[which].0;
        self.runtime.block_on(async {
            let arrow = Arrow { seen: Arc::clone(&self.seen), fault: faults.on_transition };
            let life = Lifecycle::new("own")
                .with_events(self.events.borrow().bus.clone())
                .with_memory(Fails(faults.memory))
                .with_phase_hook(arrow);
            let own = Arc::new(Own { life, faults, log: self.log.clone() });
            let mut agent = Some(own_agent(&own));
            for command in commands {
                let Some(held) = agent.take() else { break };
                agent = obey(held, *command).await;
            }
            // A handle that is dropped is not the last: the type has one.
            own.shutdown(None).await;
            own_agent(&own).blueprint().settled().await;
        });
        self.check_told();
    }

    fn check_told(&self) {
        let mut events = self.events.borrow_mut();
        for (instance, arrows) in self.seen.lock().unwrap().drain() {
            check_arrows(&arrows);
            let told = events.phases(instance);
            assert_eq!(told, arrows, "hooks and events tell the same, in the same order");
        }
        events.clear();
        check_pairs(&self.log.take());
        let [acquired, released] = self.held.counts();
        assert_eq!(acquired, released, "something leaked");
    }
}

/// Only legal arrows, each from where the last one ended; `bootstrapping -> idle` at most once;
/// terminated is final, and everything that was started gets there.
fn check_arrows(arrows: &[(Phase, Phase)]) {
    let mut at = Phase::Uninitialized;
    for (from, to) in arrows {
        assert!(from.may_go_to(*to), "{from} -> {to} in {arrows:?}");
        assert_eq!(*from, at, "{from} -> {to} in {arrows:?}");
        at = *to;
    }
    let up = arrows.iter().filter(|it| **it == (Phase::Bootstrapping, Phase::Idle)).count();
    assert!(up <= 1, "started {up} times: {arrows:?}");
    assert_eq!(at, Phase::Terminated, "{arrows:?}");
}

/// Every attempted start has its shutdown, every entered turn its end (G1).
fn check_pairs(entries: &[crate::guarantees::support::Entry]) {
    let count = |which: fn(&Saw) -> bool| entries.iter().filter(|it| which(&it.saw)).count();
    let (starts, stops) =
        (count(|it| *it == Saw::Start), count(|it| matches!(it, Saw::Shutdown(_))));
    let (begins, ends) = (count(|it| *it == Saw::Before), count(|it| matches!(it, Saw::After(_))));
    assert_eq!((starts, begins), (stops, ends), "{entries:?}");
}

/// Does it. What fails is a typed error, and the agent stays usable or is over.
async fn obey(agent: Agent, command: Command) -> Option<Agent> {
    let moment = Duration::from_millis(2);
    match command {
        Command::Startup => drop(agent.startup().await),
        Command::StartupTwice => {
            let (one, two) = tokio::join!(agent.startup(), agent.startup());
            assert_eq!(one.is_ok(), two.is_ok());
        }
        Command::StartupKept => {
            let kept = LifecycleConfig::default().keep_on_error();
            drop(agent.startup_with(kept).await);
        }
        Command::StartupDropped => drop(timeout(moment, agent.startup()).await),
        Command::Run => drop(agent.run("go").await),
        Command::Stream => drop(agent.stream("go").finish().await),
        Command::RunDropped => drop(timeout(moment, agent.run("go")).await),
        Command::RunCancelled => {
            let _ = tokio::join!(agent.run("go"), async {
                sleep(moment).await;
                agent.cancel();
            });
        }
        Command::RunTwice => {
            let (one, two) = tokio::join!(agent.run("go"), agent.run("go"));
            let refused = [one, two].into_iter().flat_map(Result::err);
            let refused = refused.filter(|error| error.report().is_none()).count();
            assert!(refused > 0 || agent.metrics().total_requests > 1);
        }
        Command::Handle => {
            let _ = tokio::join!(agent.run("go"), agent.handle("too"));
        }
        Command::Pause => drop(agent.pause().await),
        Command::PauseWhileBusy => {
            let (_, paused) = tokio::join!(agent.run("go"), async {
                sleep(moment).await;
                let busy = agent.state() == AgentState::Busy;
                (busy, agent.pause().await)
            });
            assert!(!(paused.0 && paused.1.is_ok()), "a busy agent was paused");
        }
        Command::Resume => drop(agent.resume().await),
        Command::Shutdown => agent.shutdown().await,
        Command::ShutdownDropped => drop(timeout(moment, agent.shutdown()).await),
        Command::ShutdownWhileStarting => {
            let _ = tokio::join!(agent.startup(), async {
                sleep(moment).await;
                agent.shutdown().await;
            });
        }
        Command::ShutdownWhileBusy => {
            let _ = tokio::join!(agent.run("go"), async {
                sleep(moment).await;
                agent.shutdown().await;
            });
        }
        Command::DropWhileEnding => {
            let _ = timeout(moment * 2, agent.run("go")).await;
            return None;
        }
        Command::Drop => return None,
    }
    if agent.state() == AgentState::Terminated {
        assert!(agent.exit_reason().is_some());
        assert!(agent.startup().await.is_err(), "terminated is final");
        assert!(agent.run("go").await.is_err());
    }
    Some(agent)
}

#[test]
fn g1_random_lives_make_only_legal_transitions() {
    let sequences = cases(5_000, 100_000) as u32;
    let threads = std::thread::available_parallelism().map_or(4, |it| it.get()).clamp(1, 8) as u32;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let bench = Bench::new();
                let config = Config {
                    cases: sequences.div_ceil(threads),
                    failure_persistence: None,
                    ..Config::default()
                };
                let commands = prop::collection::vec(prop::sample::select(&COMMANDS[..]), 1..8);
                // Most lives begin with a start; else little would happen in them.
                let started = prop::bool::weighted(0.7);
                // One in eight is a type of one's own.
                let own = prop::bool::weighted(0.125);
                let sequence = (0..bench.blueprints.len(), started, own, commands);
                TestRunner::new(config)
                    .run(&sequence, |(which, started, own, mut commands)| {
                        if started {
                            commands.insert(0, Command::Startup);
                        }
                        if own {
                            bench.check_own(which, &commands);
                        } else {
                            bench.check(which, &commands);
                        }
                        Ok(())
                    })
                    .unwrap_or_else(|error| panic!("{error}"));
            });
        }
    });
}
