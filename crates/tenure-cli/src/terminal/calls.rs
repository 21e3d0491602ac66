//! Calls of child agents, counted: many of them are one line, as their clones are.

use super::group::CROWD;
use super::text::plural;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::message::ToolStatus;

/// What the names of tools that are agents begin with.
const AGENT: &str = "agent__";

/// How the end of a call is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Told {
    /// In a line of its own.
    #[default]
    Alone,
    /// With the others, once they have ended.
    Later,
    /// With all the others, now: how many there were and how they ended, and whether all of them
    /// ended well.
    Together(String, bool),
}

/// The calls of child agents that are under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(HashMap<Arc<str>, Tool>);

/// The calls of one child agent.
#[derive(Clone, Debug, Default)]
struct Tool {
    begun: usize,
    open: usize,
    /// How many clones have come to life since.
    cloned: usize,
    /// Who calls, by place.
    by: HashMap<usize, Batch>,
}

/// The calls that one instance makes at a time.
#[derive(Clone, Debug, Default)]
struct Batch {
    begun: usize,
    open: usize,
    failed: usize,
    cancelled: usize,
    since: Duration,
}

impl Calls {
    pub(super) fn began(&mut self, place: usize, tool: &Arc<str>, at: Duration) {
        if !tool.starts_with(AGENT) {
            return;
        }
        let tool = self.0.entry(tool.clone()).or_default();
        let batch = tool.by.entry(place).or_insert_with(|| Batch { since: at, ..Batch::default() });
        (tool.begun, tool.open) = (tool.begun + 1, tool.open + 1);
        (batch.begun, batch.open) = (batch.begun + 1, batch.open + 1);
    }

    /// A clone of this agent has come to life.
    pub(super) fn cloned(&mut self, agent: &str) {
        if let Some(tool) = self.0.get_mut(tool_name(agent).as_str()) {
            tool.cloned += 1;
        }
    }

    pub(super) fn ended(
        &mut self,
        place: usize,
        name: &str,
        status: ToolStatus,
        at: Duration,
    ) -> Told {
        let Some(tool) = self.0.get_mut(name) else { return Told::Alone };
        let Some(batch) = tool.by.get_mut(&place) else { return Told::Alone };
        tool.open -= 1;
        batch.open -= 1;
        match status {
            ToolStatus::Ok => {}
            ToolStatus::Cancelled => batch.cancelled += 1,
            _ => batch.failed += 1,
        }
        let told = match batch {
            Batch { begun, .. } if *begun <= CROWD => Told::Alone,
            Batch { open: 0, .. } => batch.together(at),
            _ => Told::Later,
        };
        if batch.open == 0 {
            tool.by.remove(&place);
        }
        if tool.open == 0 {
            self.0.remove(name);
        }
        told
    }

    /// How many calls of this agent wait for a place: no clone has come to life for them.
    pub(crate) fn waiting(&self, agent: &str) -> usize {
        let tool = self.0.get(tool_name(agent).as_str());
        tool.map_or(0, |tool| tool.begun.saturating_sub(tool.cloned).min(tool.open))
    }
}

impl Batch {
    fn together(&self, at: Duration) -> Told {
        let mut text = plural(self.begun, "call");
        for (number, how) in [(self.failed, "failed"), (self.cancelled, "cancelled")] {
            if number > 0 {
                text.push_str(&format!(" · {number} {how}"));
            }
        }
        let took = super::text::human(at.saturating_sub(self.since));
        Told::Together(format!("{text} · {took}"), self.failed + self.cancelled == 0)
    }
}

/// The name under which an agent is a tool.
fn tool_name(agent: &str) -> String {
    let odd = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    format!("{AGENT}{}", agent.replace(odd, "_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(begun: usize) -> Calls {
        let mut calls = Calls::default();
        (0..begun).for_each(|_| calls.began(0, &"agent__my_child".into(), Duration::ZERO));
        calls
    }

    #[test]
    fn many_calls_are_told_together_and_few_alone() {
        for (begun, first, last) in [
            (20, Told::Alone, Told::Alone),
            (
                21,
                Told::Later,
                Told::Together("21 calls · 1 failed · 19 cancelled · 5ms".into(), false),
            ),
        ] {
            let mut calls = after(begun);
            let mut end =
                |status| calls.ended(0, "agent__my_child", status, Duration::from_millis(5));
            assert_eq!(end(ToolStatus::Ok), first);
            assert_eq!(end(ToolStatus::Error), first);
            (3..begun).for_each(|_| assert_eq!(end(ToolStatus::Cancelled), first));
            assert_eq!(end(ToolStatus::Cancelled), last);
            assert!(calls.0.is_empty());
        }
    }

    #[test]
    fn calls_without_a_clone_wait_for_a_place() {
        let mut calls = after(5);
        assert_eq!(calls.waiting("my child"), 5);
        calls.cloned("my child");
        calls.cloned("my child");
        assert_eq!(calls.waiting("my child"), 3);
        // The clone is gone before its call is, and nobody waits any more for that.
        calls.ended(0, "agent__my_child", ToolStatus::Ok, Duration::ZERO);
        assert_eq!(calls.waiting("my child"), 3);
        assert_eq!(calls.waiting("other"), 0);
    }
}
