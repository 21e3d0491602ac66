//! Whether everything that began has ended.

use super::Recorder;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use tenure_core::InstanceId;
use tenure_core::event::{Event, EventKind};
use tenure_core::phase::Phase;

/// Says that everything that began has ended exactly once, and that every agent went only where the
/// table allows:
///
/// - every turn, model call, tool call, hook call and chat that started has ended, and none ended
///   that had not started;
/// - every agent that began its startup is terminated, once, and nothing began in it afterwards;
/// - every phase that was entered may follow the one before it.
///
/// A chat of a recorded run begins in one life and may end in another; each is announced once, so that a chat
/// which was parked pairs over the recorders of all lives, and not in one of them.
///
/// Call it when the agents are down; what is still going on has not ended yet.
///
/// # Panics
///
/// With an account of everything that does not hold.
#[track_caller]
pub fn assert_paired(recorder: &Recorder) {
    let events = recorder.events();
    let faults = faults(&events);
    if !faults.is_empty() {
        panic!(
            "do not fit together ({}):\n  - {}\nwhat happened ({} events):\n  {}",
            faults.len(),
            faults.join("\n  - "),
            events.len(),
            account(&events)
        );
    }
}

/// How many events are worth reading.
const READABLE: usize = 200;

fn account(events: &[Arc<Event>]) -> String {
    let line = |event: &Arc<Event>| format!("{} {} {:?}", event.id, event.agent, event.kind);
    let mut lines: Vec<_> = events.iter().take(READABLE).map(line).collect();
    if events.len() > READABLE {
        lines.push(format!("… and {} more", events.len() - READABLE));
    }
    lines.join("\n  ")
}

pub(super) fn faults(events: &[Arc<Event>]) -> Vec<String> {
    let mut check = Check::default();
    for event in events {
        check.scopes(event);
        check.life(event);
    }
    check.finish()
}

#[derive(Default)]
struct Check {
    /// How many are open of each thing that began.
    open: BTreeMap<String, u64>,
    lives: BTreeMap<InstanceId, Life>,
    faults: Vec<String>,
}

struct Life {
    agent: Arc<str>,
    phase: Phase,
    started: bool,
}

/// What an event says about something that has a beginning and an end.
enum Edge {
    Begins(String),
    Ends(String),
}

fn edge(event: &Event) -> Option<Edge> {
    use Edge::{Begins, Ends};
    let place = match event.run {
        Some(run) => format!("in turn {run} of `{}` ({})", event.agent, event.instance),
        None => format!("in `{}` ({})", event.agent, event.instance),
    };
    Some(match &event.kind {
        EventKind::TurnStarted => Begins(format!("the turn {place}")),
        EventKind::TurnEnded { .. } => Ends(format!("the turn {place}")),
        EventKind::ModelStarted { step } => Begins(format!("model call {step} {place}")),
        EventKind::ModelEnded { step, .. } => Ends(format!("model call {step} {place}")),
        EventKind::ToolStarted { call, tool } => {
            Begins(format!("call {call} of tool `{tool}` {place}"))
        }
        EventKind::ToolEnded { call, tool, .. } => {
            Ends(format!("call {call} of tool `{tool}` {place}"))
        }
        EventKind::HookStarted { hook, point } => {
            Begins(format!("hook `{hook}` at {point} {place}"))
        }
        EventKind::HookEnded { hook, point, .. } => {
            Ends(format!("hook `{hook}` at {point} {place}"))
        }
        EventKind::ChatStarted { chat } => Begins(format!("chat `{chat}`")),
        EventKind::ChatEnded { chat, .. } => Ends(format!("chat `{chat}`")),
        _ => return None,
    })
}

impl Check {
    fn scopes(&mut self, event: &Event) {
        match edge(event) {
            Some(Edge::Begins(what)) => {
                let over = self
                    .lives
                    .get(&event.instance)
                    .is_some_and(|life| life.phase == Phase::Terminated);
                if over && !matches!(event.kind, EventKind::ChatStarted { .. }) {
                    self.faults.push(format!("{what} began after the agent was terminated"));
                }
                if matches!(event.kind, EventKind::TurnStarted) && self.open.contains_key(&what) {
                    self.faults.push(format!("{what} began twice"));
                }
                *self.open.entry(what).or_default() += 1;
            }
            Some(Edge::Ends(what)) => match self.open.entry(what) {
                Entry::Occupied(mut open) if *open.get() > 1 => *open.get_mut() -= 1,
                Entry::Occupied(open) => {
                    open.remove();
                }
                Entry::Vacant(missing) => {
                    let what = missing.into_key();
                    self.faults.push(format!("{what} ended without being open"));
                }
            },
            None => {}
        }
    }

    fn life(&mut self, event: &Event) {
        let EventKind::PhaseEntered { from, to, .. } = event.kind else {
            return;
        };
        // The first one seen may be in the middle of a life: the recorder came later.
        let life = self.lives.entry(event.instance).or_insert_with(|| Life {
            agent: event.agent.clone(),
            phase: from,
            started: false,
        });
        for came in [from, life.phase] {
            if !came.may_go_to(to) {
                self.faults.push(format!(
                    "`{}` ({}) went from {came} to {to}, which the table does not allow",
                    event.agent, event.instance
                ));
                break;
            }
        }
        life.phase = to;
        life.started |= to == Phase::Bootstrapping;
    }

    fn finish(mut self) -> Vec<String> {
        for (what, times) in self.open {
            self.faults.push(match times {
                1 => format!("{what} began and did not end"),
                times => format!("{what} began and did not end, {times} times"),
            });
        }
        for (instance, life) in self.lives {
            if life.started && life.phase != Phase::Terminated {
                self.faults.push(format!(
                    "`{}` ({instance}) began its startup and is not terminated; it is {}",
                    life.agent, life.phase
                ));
            }
        }
        self.faults
    }
}
