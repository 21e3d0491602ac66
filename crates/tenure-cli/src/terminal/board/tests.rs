//! What is drawn while many are at work.

use super::super::tests::{Tale, plain};
use super::*;
use std::sync::Arc;
use tenure_core::event::EventKind;
use tenure_core::phase::Phase;
use tenure_core::{InstanceId, Outcome};

/// A lead with so many clones at its side, in all kinds of states: of ten one waits for a person,
/// one has failed, three are done, and the others are at it.
fn crowd(clones: usize) -> Tale {
    let (mut tale, lead) = (Tale::default(), InstanceId::unique());
    tale.phase(0, "lead", lead, Phase::Bootstrapping);
    tale.tell(10, "lead", lead, EventKind::TurnStarted);
    let (call, tool): (Arc<str>, Arc<str>) = ("c0".into(), "child".into());
    tale.tell(20, "lead", lead, EventKind::ToolExecuting { call, tool });
    for at in 0..clones {
        let (id, name) = (InstanceId::unique(), format!("child#{}[tool]", at + 1));
        let from = 100 + at as u64;
        tale.phase(from, &name, id, Phase::Bootstrapping);
        tale.tell(from + 200, &name, id, EventKind::TurnStarted);
        let usage = Usage { cost: Cost::from_nano_usd(120_000), ..Usage::new(1000, 20) };
        tale.model((from + 300, from + 400), &name, id, usage);
        let (call, tool): (Arc<str>, Arc<str>) = ("c1".into(), "read_file".into());
        let ended = |outcome| EventKind::TurnEnded {
            outcome,
            usage,
            took: Duration::from_millis(100),
            reason: None,
        };
        let late = 700 + at as u64;
        match at % 10 {
            3 => {
                let (prompt, tool) = ("May I?".into(), Some(tool));
                let kind =
                    EventKind::Asked { ask: "1".into(), prompt, hook: None, tool, approval: true };
                tale.tell(late, &name, id, kind);
            }
            5 => {
                tale.tell(late, &name, id, ended(Outcome::TimedOut));
                tale.phase(late, &name, id, Phase::Terminated);
            }
            6..=8 => {
                tale.tell(late, &name, id, ended(Outcome::Ok));
                tale.phase(late, &name, id, Phase::Terminated);
            }
            0 => tale.tell(late, &name, id, EventKind::ModelStarted { step: 2 }),
            1 => {
                let executing = EventKind::ToolExecuting { call: call.clone(), tool: tool.clone() };
                tale.tell(late, &name, id, executing);
                let message = Some("reading the third of ten rather long files".to_owned());
                let (done, total) = (3.0, Some(10.0));
                let kind = EventKind::ToolProgress { call, tool, done, total, message };
                tale.tell(late, &name, id, kind);
            }
            _ => tale.tell(late, &name, id, EventKind::ToolExecuting { call, tool }),
        }
    }
    tale
}

const NOW: Moment = Moment { now: Duration::from_millis(3210), turn: 3 };

fn room(columns: usize, rows: usize) -> Room {
    Room { columns, rows }
}

fn drawn(tale: &Tale, room: Room) -> Vec<String> {
    let mut board = Board::new(20, Charset::Unicode);
    board.frame(&tale.record, NOW, room).iter().map(|line| plain(line)).collect()
}

#[test]
fn one_clone_has_a_line_beside_its_lead() {
    insta::assert_snapshot!(drawn(&crowd(1), room(80, 24)).join("\n"));
}

#[test]
fn five_clones_have_a_line_each() {
    insta::assert_snapshot!(drawn(&crowd(5), room(80, 24)).join("\n"));
}

#[test]
fn twenty_clones_fit_a_usual_terminal() {
    insta::assert_snapshot!(drawn(&crowd(20), room(80, 24)).join("\n"));
}

#[test]
fn of_a_hundred_and_fifty_those_that_need_somebody_are_shown_first() {
    let frame = drawn(&crowd(150), room(80, 24));
    assert_eq!(frame.len(), 18, "a quarter of the screen is left for what stays");
    insta::assert_snapshot!(frame.join("\n"));
}

#[test]
fn forty_columns_are_enough() {
    insta::assert_snapshot!(drawn(&crowd(150), room(40, 24)).join("\n"));
}

#[test]
fn a_wide_terminal_shows_no_more_instances_than_the_card_wants() {
    let frame = drawn(&crowd(150), room(200, 100));
    // The counts, twenty lines, and how many more there are.
    assert_eq!(frame.len(), 22, "{}", frame.join("\n"));
}

#[test]
fn it_fits_every_terminal() {
    for clones in [0, 1, 5, 20, 150] {
        let tale = crowd(clones);
        for columns in (20..80).step_by(3).chain([100, 120]) {
            for rows in [1, 2, 3, 4, 5, 6, 8, 12, 24, 60] {
                let frame = drawn(&tale, room(columns, rows));
                assert!(frame.len() <= rows.saturating_sub(4).max(1), "{rows}: {}", frame.len());
                let widest = frame.iter().map(|line| columns_of(line)).max().unwrap_or(0);
                assert!(widest < columns, "{widest} of {columns}:\n{}", frame.join("\n"));
            }
        }
    }
}

#[test]
fn a_line_stays_where_it_is_for_as_long_as_its_instance_is_at_work() {
    let (mut tale, mut board) = (Tale::default(), Board::new(4, Charset::Ascii));
    let ids: Vec<_> = (0..6).map(|_| InstanceId::unique()).collect();
    let name = |at: usize| format!("child#{at}[tool]");
    for (at, id) in ids.iter().enumerate() {
        tale.phase(at as u64, &name(at), *id, Phase::Bootstrapping);
        tale.tell(10, &name(at), *id, EventKind::TurnStarted);
    }
    let shown = |board: &mut Board, tale: &Tale| {
        board.frame(&tale.record, NOW, room(80, 24));
        board.slots.clone()
    };
    assert_eq!(shown(&mut board, &tale), [0, 1, 2, 3], "the first that came");
    tale.tell(50, &name(5), ids[5], EventKind::ModelStarted { step: 1 });
    assert_eq!(shown(&mut board, &tale), [0, 1, 2, 3], "nobody is pushed out");
    tale.phase(60, &name(1), ids[1], Phase::Terminated);
    assert_eq!(shown(&mut board, &tale), [0, 5, 2, 3], "the busiest takes the free line");
    let kind = EventKind::Asked {
        ask: "1".into(),
        prompt: "?".into(),
        hook: None,
        tool: None,
        approval: false,
    };
    tale.tell(70, &name(4), ids[4], kind);
    let now = shown(&mut board, &tale);
    assert!(now.contains(&4), "who waits for a person is always shown: {now:?}");
    let kept = [0, 5, 2, 3].into_iter().zip(&now).filter(|(old, new)| old == *new).count();
    assert_eq!(kept, 3, "and the others stay where they are: {now:?}");
}

#[test]
fn nothing_at_work_is_nothing_to_draw() {
    let (mut tale, id) = (Tale::default(), InstanceId::unique());
    assert!(drawn(&tale, room(80, 24)).is_empty());
    tale.phase(0, "a", id, Phase::Idle);
    assert!(drawn(&tale, room(80, 24)).is_empty());
}

#[test]
fn a_frame_of_thousands_takes_no_time() {
    let tale = crowd(10_000);
    let mut board = Board::new(20, Charset::Unicode);
    let begun = std::time::Instant::now();
    for turn in 0..100 {
        board.frame(&tale.record, Moment { turn, ..NOW }, room(80, 24));
    }
    // Without optimisation, on a busy machine: still far from what ten frames a second allow.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}
