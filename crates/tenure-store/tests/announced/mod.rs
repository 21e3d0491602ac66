//! The announcements of a chat over all lives of its run: each is on record once, in the order of a run that was not
//! interrupted, wherever its processes were killed. A life shows what no earlier life has recorded, and nothing else.

mod child;
mod flow;

use child::{Announcement, Ended};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tenure_store::fail::{self, FAIL_POINTS};
use tenure_testkit::cases;

/// The test that is also the process which is killed.
const CHILD: &str = "announced::a_chat_that_was_not_killed_is_announced_the_same_every_time";

/// The agents of the chat itself. Those of its children speak at the same time, in no order.
const PARENT: [&str; 4] = ["parent.workflow", "host", "cook", "user"];

#[test]
fn a_chat_that_was_not_killed_is_announced_the_same_every_time() {
    if child::live() {
        return;
    }
    let first = unbroken();
    for name in [
        "chat.started",
        "chat.ended",
        "chat.message",
        "select_speaker",
        "context.changed",
        "ui_tool.response",
        "journey.fan_out",
        "journey.child",
        "journey.fan_in",
        "orchestrator.complete",
    ] {
        assert!(first.iter().any(|it| it.name == name), "{name} is missing: {first:#?}");
    }
    assert_eq!(differences(&unbroken(), &first), Vec::<String>::new());
}

#[test]
fn a_chat_that_is_killed_at_a_fail_point_is_announced_once_over_all_lives() {
    let whole = unbroken();
    let whole = &whole;
    // The processes of a point mostly wait for the disk, so all points are tried at the same time.
    let faults: Vec<String> = std::thread::scope(|scope| {
        let points = FAIL_POINTS.map(|point| scope.spawn(move || faults_at(point, whole)));
        let found =
            points.into_iter().map(|point| point.join().expect("its processes come to an end"));
        found.flatten().collect()
    });
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

/// Dies at each passage of a point; in the short form at the first ones.
fn faults_at(point: &'static str, whole: &[Announcement]) -> Vec<String> {
    // No run passes a point as often as that.
    let deepest = cases(3, 10_000);
    let mut faults = Vec::new();
    for passage in 1..=deepest {
        let kills = match point {
            // Passed by a later life only.
            fail::RECOVERY_BEGUN => {
                vec![format!("{}:{passage}", fail::AFTER_COMMIT), format!("{point}:1")]
            }
            _ => vec![format!("{point}:{passage}")],
        };
        let Some(found) = killed(&kills, whole) else { break };
        let case = kills.join(", then ");
        faults.extend(found.into_iter().map(|fault| format!("{case}: {fault}")));
    }
    faults
}

/// Kills a life at each of these points, lets the next one come to the end, and compares. `None` if a life did not come
/// by its point.
fn killed(kills: &[String], whole: &[Announcement]) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for kill in kills {
        match child::start(folder.path(), Some(kill)) {
            Ended::Killed => {}
            Ended::Over(_) => return None,
        }
    }
    let before = child::recorded(folder.path());
    let Ended::Over(shown) = child::start(folder.path(), None) else {
        panic!("{kills:?}: a life was killed without a fail point");
    };
    let after = child::recorded(folder.path());
    let recorded = differences(&after, whole).into_iter().map(|fault| format!("on record {fault}"));
    let shown = differences(&shown, &after[before.len()..]);
    let shown = shown.into_iter().map(|fault| format!("shown by the last life {fault}"));
    Some(recorded.chain(shown).collect())
}

fn unbroken() -> Vec<Announcement> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let Ended::Over(shown) = child::start(folder.path(), None) else { panic!("nothing kills it") };
    let recorded = child::recorded(folder.path());
    assert_eq!(differences(&shown, &recorded), Vec::<String>::new());
    recorded
}

/// Returns what is missing, what is too much, and what is not in its order: of each agent, and of the chat itself over
/// all of its agents.
fn differences(got: &[Announcement], expected: &[Announcement]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut count: BTreeMap<String, i64> = BTreeMap::new();
    for announcement in expected {
        *count.entry(announcement.to_string()).or_default() += 1;
    }
    for announcement in got {
        *count.entry(announcement.to_string()).or_default() -= 1;
    }
    for (announcement, missing) in count {
        if missing != 0 {
            faults.push(format!("{:+}: {announcement}", -missing));
        }
    }
    let of = |all: &[Announcement], agents: &[&str]| -> Vec<String> {
        let here = all.iter().filter(|it| agents.contains(&it.agent.as_str()));
        here.map(ToString::to_string).collect()
    };
    let agents: BTreeSet<&str> = expected.iter().map(|it| it.agent.as_str()).collect();
    for agents in agents.iter().map(std::slice::from_ref).chain([&PARENT[..]]) {
        if faults.is_empty() && of(got, agents) != of(expected, agents) {
            faults.push(format!("in another order, of {agents:?}: {:#?}", of(got, agents)));
        }
    }
    faults
}

fn file(folder: &Path) -> PathBuf {
    folder.join("tenure.db")
}
