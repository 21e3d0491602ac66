//! A circuit: closed, open, half open.

use super::backoff::later;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// When a circuit opens, and when it closes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    /// So many failures open it,
    pub(super) failures: usize,
    /// within this time,
    pub(super) window: Duration,
    /// for this time;
    pub(super) open_for: Duration,
    /// then so many calls have to succeed. One that takes longer than the circuit was open holds up
    /// no others.
    pub(super) probes: u32,
}

/// Where a circuit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    Closed,
    Open,
    HalfOpen,
}

impl Stand {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

enum State {
    Closed {
        failed: VecDeque<Instant>,
    },
    Open {
        until: Instant,
    },
    /// The probes that are under way, each with the time when it is no longer waited for.
    HalfOpen {
        under_way: Vec<(u64, Instant)>,
        succeeded: usize,
    },
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed,
    /// It says nothing: it was cancelled, or failed by itself.
    Unknown,
}

struct Machine {
    state: State,
    /// Counts the changes: the end of a call that began before one says nothing after it.
    changes: u64,
    /// Counts the probes.
    probes: u64,
}

/// A circuit that calls ask.
pub(super) struct Circuit {
    /// Whose calls they are.
    pub(super) of: Box<str>,
    machine: Mutex<Machine>,
}

/// What a circuit says to a call.
pub(super) struct Asked {
    /// The call may be made; or the time until it is worth asking again.
    pub(super) permit: Result<Permit, Duration>,
    /// Where the circuit stands now, if that changed.
    pub(super) changed: Option<Stand>,
}

impl Circuit {
    pub(super) fn new(of: &str) -> Self {
        let state = State::Closed { failed: VecDeque::new() };
        let machine = Mutex::new(Machine { state, changes: 0, probes: 0 });
        Self { of: of.into(), machine }
    }

    pub(super) fn ask(self: &Arc<Self>, settings: &Settings, now: Instant) -> Asked {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = machine.half_open_if_due(now);
        let Machine { state, probes, changes } = &mut *machine;
        let permit = match state {
            State::Closed { .. } => Ok(0),
            State::Open { until } => Err(*until - now),
            State::HalfOpen { under_way, succeeded } => {
                // A call that hangs must not keep the circuit like this for ever.
                under_way.retain(|(_, until)| *until > now);
                if under_way.len() + *succeeded < settings.probes as usize {
                    *probes += 1;
                    under_way.push((*probes, later(now, settings.open_for)));
                    Ok(*probes)
                } else {
                    // How long the calls take that are to tell is not known.
                    let expire = under_way.iter().map(|(_, until)| *until - now);
                    Err(expire.fold(settings.open_for.min(Duration::from_secs(1)), Duration::min))
                }
            }
        };
        let since = *changes;
        drop(machine);
        let circuit = || self.clone();
        let permit = permit.map(|probe| Permit { circuit: circuit(), since, probe, ended: false });
        Asked { permit, changed }
    }

    /// Where it stands.
    #[cfg(test)]
    pub(super) fn stand(&self) -> Stand {
        match self.machine.lock().unwrap_or_else(PoisonError::into_inner).state {
            State::Closed { .. } => Stand::Closed,
            State::Open { .. } => Stand::Open,
            State::HalfOpen { .. } => Stand::HalfOpen,
        }
    }
}

impl Machine {
    fn half_open_if_due(&mut self, now: Instant) -> Option<Stand> {
        match self.state {
            State::Open { until } if until <= now => {
                self.go_to(State::HalfOpen { under_way: Vec::new(), succeeded: 0 });
                Some(Stand::HalfOpen)
            }
            _ => None,
        }
    }

    fn go_to(&mut self, state: State) {
        self.state = state;
        self.changes += 1;
    }

    fn end(&mut self, settings: &Settings, probe: u64, end: End, now: Instant) -> Option<Stand> {
        let opens = match &mut self.state {
            State::Closed { failed } if end == End::Failed => {
                failed.push_back(now);
                let old = |at: &Instant| now.duration_since(*at) >= settings.window;
                while failed.front().is_some_and(old) {
                    failed.pop_front();
                }
                failed.len() >= settings.failures
            }
            State::HalfOpen { under_way, succeeded } => {
                // One that was given up says what it says all the same.
                under_way.retain(|(other, _)| *other != probe);
                if end == End::Succeeded {
                    *succeeded += 1;
                    if *succeeded >= settings.probes as usize {
                        self.go_to(State::Closed { failed: VecDeque::new() });
                        return Some(Stand::Closed);
                    }
                }
                end == End::Failed
            }
            _ => false,
        };
        opens.then(|| {
            self.go_to(State::Open { until: later(now, settings.open_for) });
            Stand::Open
        })
    }
}

/// A call that may be made. If its end is never told, it counts as one that says nothing.
pub(super) struct Permit {
    circuit: Arc<Circuit>,
    since: u64,
    /// Which probe it is, if it is one.
    probe: u64,
    ended: bool,
}

impl Permit {
    /// The call ended; returns where the circuit stands now, if that changed.
    pub(super) fn end(mut self, settings: &Settings, end: End, now: Instant) -> Option<Stand> {
        self.ended = true;
        let mut machine = self.circuit.machine.lock().unwrap_or_else(PoisonError::into_inner);
        match machine.changes == self.since {
            true => machine.end(settings, self.probe, end, now),
            false => None,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let mut machine = self.circuit.machine.lock().unwrap_or_else(PoisonError::into_inner);
        if machine.changes == self.since
            && let State::HalfOpen { under_way, .. } = &mut machine.state
        {
            under_way.retain(|(other, _)| *other != self.probe);
        }
    }
}

#[cfg(test)]
#[path = "circuit_tests.rs"]
mod tests;
