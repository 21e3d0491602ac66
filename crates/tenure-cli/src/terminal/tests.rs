//! What people see, for lives that were made up.

use super::line::{Weight, line_of};
use super::record::{Happening, Record};
use super::timeline::{Charset, timeline};
use super::usage;
use std::sync::Arc;
use std::time::Duration;
use tenure_core::event::{EventKind, LogStream};
use tenure_core::hook::Point;
use tenure_core::message::ToolStatus;
use tenure_core::model::Usage;
use tenure_core::phase::Phase;
use tenure_core::{ExitReason, InstanceId, Outcome};

/// A run that is made up, event by event.
#[derive(Default)]
pub(super) struct Tale {
    pub(super) record: Record,
    lines: Vec<(Weight, String)>,
}

impl Tale {
    pub(super) fn tell(&mut self, millis: u64, agent: &str, instance: InstanceId, kind: EventKind) {
        let at = Duration::from_millis(millis);
        let happening = Happening { at, agent, instance, kind: &kind };
        let took = self.record.note(happening);
        if let Some(line) = line_of(happening, took, &self.record) {
            self.lines.push((line.weight, plain(&line.render(None))));
        }
    }

    pub(super) fn phase(&mut self, millis: u64, agent: &str, instance: InstanceId, to: Phase) {
        let reason = (to == Phase::Terminated).then_some(ExitReason::Completed);
        let kind = EventKind::PhaseEntered { from: Phase::Idle, to, reason };
        self.tell(millis, agent, instance, kind);
    }

    fn hook(&mut self, at: (u64, u64), agent: &str, id: InstanceId, point: Point, how: Outcome) {
        let hook: Arc<str> = "audit".into();
        let started = EventKind::HookStarted { hook: hook.clone(), point };
        self.tell(at.0, agent, id, started);
        let took = Duration::from_millis(at.1 - at.0);
        self.tell(at.1, agent, id, EventKind::HookEnded { hook, point, outcome: how, took });
    }

    pub(super) fn model(&mut self, at: (u64, u64), agent: &str, id: InstanceId, usage: Usage) {
        self.tell(at.0, agent, id, EventKind::ModelStarted { step: 1 });
        let (outcome, reason) = (Outcome::Ok, None);
        self.tell(at.1, agent, id, EventKind::ModelEnded { step: 1, outcome, usage, reason });
    }

    fn tool(&mut self, at: (u64, u64), agent: &str, id: InstanceId, status: ToolStatus) {
        let (call, tool): (Arc<str>, Arc<str>) = ("c1".into(), "read_file".into());
        let started = EventKind::ToolStarted { call: call.clone(), tool: tool.clone() };
        self.tell(at.0, agent, id, started);
        if status == ToolStatus::Ok {
            let executing = EventKind::ToolExecuting { call: call.clone(), tool: tool.clone() };
            self.tell(at.0, agent, id, executing);
        }
        self.tell(at.1, agent, id, EventKind::ToolEnded { call, tool, status, reason: None });
    }

    fn all(&self) -> String {
        self.lines.iter().map(|(_, line)| line.as_str()).collect::<Vec<_>>().join("\n")
    }
}

pub(super) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn shown(lines: &[String]) -> String {
    plain(&lines.join("\n"))
}

/// One agent with everything in its life.
fn full_life() -> Tale {
    let (mut tale, id) = (Tale::default(), InstanceId::unique());
    let name = "greeter";
    tale.phase(0, name, id, Phase::Bootstrapping);
    tale.hook((2, 38), name, id, Point::OnStart, Outcome::Ok);
    let log = EventKind::Log {
        source: "start".into(),
        stream: LogStream::Stdout,
        line: "hello\x1b[2J from the hook".into(),
    };
    tale.tell(20, name, id, log);
    tale.phase(39, name, id, Phase::Idle);
    tale.tell(40, name, id, EventKind::TurnStarted);
    tale.model((42, 110), name, id, Usage::new(400, 12));
    tale.tool((112, 300), name, id, ToolStatus::Ok);
    tale.tool((301, 302), name, id, ToolStatus::Denied);
    let ask: Arc<str> = "1".into();
    let (prompt, tool) = ("Write it?".into(), Some("write_file".into()));
    tale.tell(
        310,
        name,
        id,
        EventKind::Asked { ask: ask.clone(), prompt, hook: None, tool, approval: true },
    );
    tale.tell(4210, name, id, EventKind::Answered { ask, decision: "approve" });
    let ended = EventKind::TurnEnded {
        outcome: Outcome::Ok,
        usage: Usage::new(400, 12),
        took: Duration::from_millis(4170),
        reason: None,
    };
    tale.tell(4220, name, id, ended);
    tale.phase(4223, name, id, Phase::ShuttingDown);
    tale.hook((4224, 4281), name, id, Point::OnShutdown, Outcome::TimedOut);
    tale.phase(4282, name, id, Phase::Terminated);
    tale
}

/// A lead with many clones at its side.
fn crowd(clones: usize) -> Tale {
    let (mut tale, lead) = (Tale::default(), InstanceId::unique());
    tale.phase(0, "lead", lead, Phase::Bootstrapping);
    tale.tell(10, "lead", lead, EventKind::TurnStarted);
    for at in 0..clones {
        let (id, name) = (InstanceId::unique(), format!("worker#{}[tool]", at + 1));
        let from = 100 + 10 * at as u64;
        tale.phase(from, &name, id, Phase::Bootstrapping);
        tale.tell(from + 5, &name, id, EventKind::TurnStarted);
        tale.model((from + 6, from + 90), &name, id, Usage::new(1000, 20));
        tale.phase(from + 100, &name, id, Phase::Terminated);
    }
    let end = 300 + 10 * clones as u64;
    tale.phase(end, "lead", lead, Phase::Terminated);
    tale
}

#[test]
fn a_life_is_told_line_by_line() {
    insta::assert_snapshot!(full_life().all());
}

#[test]
fn a_live_display_keeps_only_what_lasts() {
    let tale = full_life();
    let lasting = tale.lines.iter().filter(|(weight, _)| *weight != Weight::Passing);
    let lasting: Vec<_> = lasting.map(|(_, line)| line.as_str()).collect();
    insta::assert_snapshot!(lasting.join("\n"));
}

#[test]
fn the_timeline_of_one_instance_fits_its_width() {
    let tale = full_life();
    for (width, charset) in [(80, Charset::Unicode), (60, Charset::Ascii)] {
        let lines = timeline(&tale.record, width, charset);
        let widest = lines.iter().map(|line| plain(line).chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} columns in {width}");
    }
    insta::assert_snapshot!(shown(&timeline(&tale.record, 80, Charset::Unicode)));
}

#[test]
fn the_timeline_needs_nothing_but_ascii_where_that_is_all_there_is() {
    let text = shown(&timeline(&full_life().record, 80, Charset::Ascii));
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn twenty_instances_have_a_row_each_and_a_hundred_and_fifty_are_collapsed() {
    let few = timeline(&crowd(20).record, 100, Charset::Unicode);
    assert_eq!(few.len(), 21 + 2);
    let many = timeline(&crowd(149).record, 100, Charset::Unicode);
    insta::assert_snapshot!(shown(&many));
}

#[test]
fn many_agents_of_different_names_are_summed_up() {
    let mut tale = Tale::default();
    for at in 0..60 {
        let (id, name) = (InstanceId::unique(), format!("agent-{at}"));
        tale.phase(at, &name, id, Phase::Bootstrapping);
        tale.phase(at + 100, &name, id, Phase::Terminated);
    }
    let lines = timeline(&tale.record, 100, Charset::Unicode);
    assert_eq!(lines.len(), 24 + 2);
    assert!(lines[24].contains("+37 more agents"), "{}", lines[24]);
    let table = usage::table(&tale.record, 100);
    assert!(table[24].contains("+37 more agents"), "{}", table[24]);
}

#[test]
fn usage_has_a_row_for_each_agent_and_a_total() {
    insta::assert_snapshot!(shown(&usage::table(&crowd(3).record, 100)));
}

#[test]
fn what_calls_cost_is_a_column_and_calls_without_a_price_are_counted() {
    let (mut tale, id, other) = (crowd(2), InstanceId::unique(), InstanceId::unique());
    let price = |nanos, unpriced| {
        let cost = tenure_core::model::Cost::from_nano_usd(nanos);
        Usage { cost, unpriced, ..Usage::new(1000, 20) }
    };
    tale.model((10, 20), "writer", id, price(4_200_000, 0));
    tale.model((20, 30), "writer", id, price(0, 1));
    tale.model((20, 30), "critic", other, price(0, 2));
    let record = &tale.record;
    let summary = plain(&usage::summary(record, 200));
    assert!(summary.ends_with("tokens · $0.0042 · + 3 calls without a price"), "{summary}");
    insta::assert_snapshot!(shown(&usage::table(record, 100)));
}

#[test]
fn what_hooks_ask_of_models_is_counted() {
    let (mut tale, id) = (Tale::default(), InstanceId::unique());
    tale.model((10, 20), "writer", id, Usage::new(100, 20));
    let beside = |error: Option<&str>, usage: Usage| EventKind::Announced {
        name: "hook.model_called",
        data: serde_json::json!({ "for": "c", "model": "m", "usage": usage, "error": error }),
    };
    tale.tell(30, "writer", id, beside(None, Usage::new(50, 5)));
    tale.tell(40, "writer", id, beside(Some("down"), Usage::default()));
    let table = shown(&usage::table(&tale.record, 100));
    let total: Vec<_> = table.lines().last().unwrap_or_default().split_whitespace().collect();
    assert_eq!(total[..6], ["TOTAL", "150", "25", "3", "(1", "failed)"], "{table}");
    let summary = plain(&usage::summary(&tale.record, 200));
    assert!(summary.contains("175 tokens"), "{summary}");
}

#[test]
fn the_last_line_sums_up() {
    insta::assert_snapshot!(plain(&usage::summary(&full_life().record, 200)).trim());
}

#[test]
fn an_empty_run_shows_nothing() {
    let record = Record::default();
    assert!(timeline(&record, 80, Charset::Unicode).is_empty());
    assert!(usage::table(&record, 80).is_empty());
}

#[test]
fn each_failing_end_has_its_word() {
    let words = [
        (ExitReason::StartupFailed, "NOT STARTED"),
        (ExitReason::Fatal, "FATAL"),
        (ExitReason::Forced, "FORCED"),
        (ExitReason::Crashed, "CRASHED"),
        (ExitReason::Completed, "STOPPED"),
    ];
    for (reason, word) in words {
        let (mut tale, id) = (Tale::default(), InstanceId::unique());
        let (from, to) = (Phase::ShuttingDown, Phase::Terminated);
        let kind = EventKind::PhaseEntered { from, to, reason: Some(reason) };
        tale.tell(1, "a", id, kind);
        assert!(tale.all().contains(word), "{}", tale.all());
    }
}

/// The columns of the widest line.
fn widest(lines: &[String]) -> usize {
    let lines = lines.iter().flat_map(|line| line.lines());
    lines.map(|line| plain(line).chars().count()).max().unwrap_or(0)
}

#[test]
fn everything_at_the_end_fits_a_narrow_terminal() {
    let mut long = full_life();
    let (id, name) = (InstanceId::unique(), "an-agent-with-quite-a-long-name");
    long.phase(0, name, id, Phase::Bootstrapping);
    long.model((42, 110), name, id, Usage::new(1_400_000, 120_000));
    for tale in [&full_life(), &crowd(20), &crowd(149), &long] {
        for width in 40..120 {
            let record = &tale.record;
            let all = [
                timeline(record, width, Charset::Unicode),
                usage::table(record, width),
                vec![usage::summary(record, width)],
            ];
            for lines in &all {
                assert!(widest(lines) <= width, "{width}:\n{}", shown(lines));
            }
            assert!(shown(&all[1]).contains("Out"), "what it cost is never left out");
        }
    }
    insta::assert_snapshot!(shown(&timeline(&long.record, 40, Charset::Unicode)));
}

#[test]
fn long_lines_of_hooks_are_cut_and_folded() {
    let (mut record, id) = (Record::default(), InstanceId::unique());
    let text = "word ".repeat(400);
    let kind = EventKind::Log { source: "h.py:f".into(), stream: LogStream::Stdout, line: text };
    let at = Duration::from_millis(5);
    let happening = Happening { at, agent: "a", instance: id, kind: &kind };
    record.note(happening);
    let line = line_of(happening, None, &record).expect("a line");
    let plainly = plain(&line.render(None));
    assert_eq!(plainly.lines().count(), 1);
    assert!(plainly.chars().count() < 560 && plainly.ends_with('…'), "{plainly}");
    let narrow = plain(&line.render(Some(40)));
    assert!(widest(std::slice::from_ref(&narrow)) <= 40, "{narrow}");
    assert!(narrow.ends_with('…') && narrow.matches("word").count() > 80, "{narrow}");
}

#[test]
fn why_something_failed_is_told_once() {
    let (mut tale, lead, clone) = (Tale::default(), InstanceId::unique(), InstanceId::unique());
    let why = |text: &str| Some(text.to_owned());
    let (call, tool): (Arc<str>, Arc<str>) = ("c1".into(), "agent__child".into());
    tale.tell(1, "lead", lead, EventKind::TurnStarted);
    tale.tell(2, "child#1[tool]", clone, EventKind::TurnStarted);
    let (outcome, usage, took) = (Outcome::Failed, Usage::default(), Duration::ZERO);
    let reason = why("the model broke");
    tale.tell(3, "child#1[tool]", clone, EventKind::ModelEnded { step: 1, outcome, usage, reason });
    let reason = why("the model broke");
    tale.tell(4, "child#1[tool]", clone, EventKind::TurnEnded { outcome, usage, took, reason });
    tale.phase(5, "child#1[tool]", clone, Phase::Terminated);
    let (status, reason) = (ToolStatus::Error, why("child failed: the model broke"));
    let ended =
        |reason| EventKind::ToolEnded { call: call.clone(), tool: tool.clone(), status, reason };
    tale.tell(6, "lead", lead, ended(reason));
    tale.tell(7, "lead", lead, ended(why("no such part")));
    let all = tale.all();
    assert!(all.contains("call 1") && all.contains("failed: the model broke"), "{all}");
    assert_eq!(all.matches("the model broke").count(), 1, "{all}");
    assert!(all.contains("error: no such part"), "{all}");
}

#[test]
fn calls_that_came_to_nothing_are_counted_too() {
    let (mut tale, id) = (Tale::default(), InstanceId::unique());
    for outcome in [Outcome::Failed, Outcome::Cancelled] {
        let (usage, reason) = (Usage::default(), None);
        tale.tell(5, "a", id, EventKind::ModelEnded { step: 1, outcome, usage, reason });
    }
    tale.model((6, 7), "a", id, Usage::new(10, 1));
    let table = shown(&usage::table(&tale.record, 100));
    assert!(table.contains("3 (1 failed, 1 cancelled)"), "{table}");
    assert!(table.contains("+ 1 call without a price"), "{table}");
}

#[test]
fn an_agent_that_is_only_cloned_is_not_counted_and_who_was_cancelled_is_apart() {
    let (mut tale, spare) = (Tale::default(), InstanceId::unique());
    tale.phase(0, "child", spare, Phase::Bootstrapping);
    for (at, outcome) in [Outcome::Ok, Outcome::Failed, Outcome::Cancelled].into_iter().enumerate()
    {
        let (id, name) = (InstanceId::unique(), format!("child#{at}[tool]"));
        tale.tell(1, &name, id, EventKind::TurnStarted);
        let (usage, took, reason) = (Usage::default(), Duration::ZERO, None);
        tale.tell(2, &name, id, EventKind::TurnEnded { outcome, usage, took, reason });
        tale.phase(3, &name, id, Phase::Terminated);
    }
    tale.phase(4, "child", spare, Phase::Terminated);
    let summary = plain(&usage::summary(&tale.record, 200));
    assert!(summary.contains("3 instances: 1 completed · 1 failed · 1 cancelled"), "{summary}");
    let table = shown(&usage::table(&tale.record, 100));
    assert!(table.contains("child, 3 clones"), "{table}");
}

#[test]
fn who_died_in_another_process_is_told_its_end_and_not_counted() {
    let mut tale = Tale::default();
    let (dead, id) = (InstanceId::unique(), InstanceId::unique());
    tale.hook((0, 1), "worker", dead, Point::OnShutdown, Outcome::Ok);
    let at_work = |tale: &Tale| tale.record.alive().filter(|(_, it)| it.is_at_work()).count();
    assert_eq!(at_work(&tale), 0, "its line is gone with its hook");
    let started = EventKind::HookStarted { hook: "more".into(), point: Point::OnShutdown };
    tale.tell(1, "worker", dead, started);
    assert_eq!(at_work(&tale), 1, "another hook of it goes on");
    let (hook, took): (Arc<str>, _) = ("more".into(), Duration::ZERO);
    let ended = EventKind::HookEnded { hook, point: Point::OnShutdown, outcome: Outcome::Ok, took };
    tale.tell(2, "worker", dead, ended);
    tale.phase(3, "worker", id, Phase::Bootstrapping);
    assert_eq!(at_work(&tale), 1);
    tale.tell(4, "worker", id, EventKind::TurnStarted);
    let (usage, took, reason) = (Usage::default(), Duration::ZERO, None);
    tale.tell(5, "worker", id, EventKind::TurnEnded { outcome: Outcome::Ok, usage, took, reason });
    tale.hook((6, 7), "worker", id, Point::OnShutdown, Outcome::Ok);
    tale.phase(8, "worker", id, Phase::Terminated);
    let summary = plain(&usage::summary(&tale.record, 200));
    assert!(summary.contains("1 instance: 1 completed · 3 hook calls"), "{summary}");
    let table = shown(&usage::table(&tale.record, 100));
    assert!(!table.contains('×'), "{table}");
    let drawn = shown(&timeline(&tale.record, 80, Charset::Unicode));
    assert_eq!(drawn.matches("worker").count(), 1, "{drawn}");
}
