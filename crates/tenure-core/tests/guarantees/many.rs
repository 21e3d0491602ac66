//! Thousands of agents at once, some of them broken in every way: each start has its stop.

use crate::guarantees::support::{Events, Fault, Log, Saw, Says, Watch, agent, cases};
use futures_util::future::join_all;
use std::collections::HashMap;
use std::time::Duration;
use tenure_core::agent::{Agent, Blueprint};
use tenure_core::event::EventKind;
use tenure_core::phase::{AgentState, Phase};
use tenure_core::{ExitReason, InstanceId};

/// What is wrong with one agent in a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fine,
    FailingStart,
    FailingShutdown,
    PanickingStart,
    PanickingShutdown,
    HangingStart,
    HangingShutdown,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Fine,
        Kind::FailingStart,
        Kind::FailingShutdown,
        Kind::PanickingStart,
        Kind::PanickingShutdown,
        Kind::HangingStart,
        Kind::HangingShutdown,
    ];

    /// One in a hundred each fails to start, fails to stop, panics and hangs; the last two at the
    /// start or at the stop, in turn.
    fn of(number: usize) -> Self {
        match (number % 100, number / 100 % 2) {
            (0, _) => Self::FailingStart,
            (1, _) => Self::FailingShutdown,
            (2, 0) => Self::PanickingStart,
            (2, _) => Self::PanickingShutdown,
            (3, 0) => Self::HangingStart,
            (3, _) => Self::HangingShutdown,
            _ => Self::Fine,
        }
    }

    fn starts(self) -> bool {
        !matches!(self, Self::FailingStart | Self::PanickingStart | Self::HangingStart)
    }

    fn blueprint(self, log: &Log, events: &Events) -> Blueprint {
        let watch = Watch::new("watch", log);
        let watch = match self {
            Self::Fine => watch,
            Self::FailingStart => watch.on_start(Fault::Fails),
            Self::FailingShutdown => watch.on_shutdown(Fault::Fails),
            Self::PanickingStart => watch.on_start(Fault::Panics),
            Self::PanickingShutdown => watch.on_shutdown(Fault::Panics),
            Self::HangingStart => watch.on_start(Fault::Hangs),
            Self::HangingShutdown => watch.on_shutdown(Fault::Hangs),
        };
        agent("agent", Says::Done)
            .events(&events.bus)
            .with_lifecycle(Watch::new("outer", log).on_start(Fault::After(Duration::from_secs(1))))
            .with_lifecycle(watch)
            .with_lifecycle(Watch::new("inner", log))
            .blueprint()
            .unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn g1_thousands_of_agents_each_start_has_its_stop() {
    let count = cases(2_000, 10_000);
    let (log, mut events) = (Log::default(), Events::new());
    let blueprints = Kind::ALL.map(|kind| (kind, kind.blueprint(&log, &events)));
    let blueprint = |kind| &blueprints.iter().find(|(it, _)| *it == kind).unwrap().1;
    let agents: Vec<(Kind, Agent)> =
        (0..count).map(Kind::of).map(|kind| (kind, blueprint(kind).instance())).collect();

    let started = join_all(agents.iter().map(|(_, agent)| agent.startup())).await;
    for ((kind, agent), started) in agents.iter().zip(started) {
        assert_eq!(started.is_ok(), kind.starts(), "{kind:?}");
        let state = if kind.starts() { AgentState::Ready } else { AgentState::Terminated };
        assert_eq!(agent.state(), state, "{kind:?}");
    }
    // Half of them are shut down, the other half is dropped.
    let (stopped, dropped): (Vec<_>, Vec<_>) =
        agents.into_iter().enumerate().partition(|(number, _)| number / 4 % 2 == 0);
    let kinds: HashMap<InstanceId, Kind> =
        stopped.iter().chain(&dropped).map(|(_, (kind, agent))| (agent.id(), *kind)).collect();
    drop(dropped);
    join_all(stopped.iter().map(|(_, (_, agent))| agent.shutdown())).await;
    drop(stopped);
    for (_, blueprint) in &blueprints {
        blueprint.settled().await;
    }

    let mut seen: HashMap<(InstanceId, String), Vec<Saw>> = HashMap::new();
    for entry in log.take() {
        seen.entry((entry.instance, entry.hook)).or_default().push(entry.saw);
    }
    let mut ends: HashMap<InstanceId, Vec<ExitReason>> = HashMap::new();
    for event in events.all() {
        if let EventKind::PhaseEntered { to: Phase::Terminated, reason, .. } = event.kind {
            ends.entry(event.instance).or_default().push(reason.unwrap());
        }
    }
    assert_eq!(kinds.len(), count);
    for (id, kind) in kinds {
        let reason = if kind.starts() { ExitReason::Completed } else { ExitReason::StartupFailed };
        let whole = vec![Saw::Start, Saw::Shutdown(reason)];
        for hook in ["outer", "watch"] {
            assert_eq!(seen.get(&(id, hook.to_owned())), Some(&whole), "{kind:?}: {hook}");
        }
        let inner = kind.starts().then_some(&whole);
        assert_eq!(seen.get(&(id, "inner".to_owned())), inner, "{kind:?}: inner");
        assert_eq!(ends.get(&id), Some(&vec![reason]), "{kind:?}");
    }
    let peak = peak_kilobytes();
    assert!(peak < 1 << 20, "{peak} kB were in use");
}

/// The most memory that the process ever held; zero where the system does not tell.
fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
