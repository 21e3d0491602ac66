//! Runs that are killed with SIGKILL, again and again, until they are over. However often that
//! happens, and wherever: nothing that is on record is lost or done again, the result is that of the
//! run that nobody killed, everything that began ends once, and tools keep the promise of their class.
//!
//! The short form is part of the tests; `scripts/crash` is the long one. The environment variables
//! `TENURE_CRASH_KILLS` and `TENURE_CRASH_SEED` say how many kills, and by which chance;
//! `TENURE_CRASH_CASE` runs the one case of that seed again.

mod case;
mod check;
mod child;
mod ledger;
mod local;
mod random;
mod series;
mod subject;

use case::{Answers, Case, Kill, Ran};
use ledger::{Deed, Line};
use local::Local;
use series::{baselines, in_folder, series};
use std::time::Duration;
use subject::{Entry, Exit, Orders, Recorded, Recovery, Scenario, Subject as _};
use tenure_core::ask::Answer;
use tenure_store::fail::FAIL_POINTS;
use tenure_testkit::cases;

/// The test that is the process which is killed.
const CHILD: &str = "crash::a_run_that_nobody_kills_is_always_the_same";

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, and should be a number")))
}

/// This test is also the process that the others start and kill.
#[test]
fn a_run_that_nobody_kills_is_always_the_same() {
    if child::live() {
        return;
    }
    let baselines = baselines(&Local);
    let (steps, tools) = baselines.size();
    assert!(steps > 200 && tools > 20, "{steps} steps and {tools} calls are too few to tell");
    let mut cases = Scenario::ALL.map(Case::undisturbed).into_iter();
    let together = Case { scenarios: Scenario::ALL.to_vec(), ..Case::undisturbed(Scenario::Steps) };
    cases.by_ref().chain([together]).for_each(|case| {
        let (ran, folder) = in_folder(|folder| case.run(&Local, folder));
        let found = baselines.check(&case, &ran);
        assert!(found.is_empty(), "{case}: {found:#?} in {}", folder.keep().display());
    });
}

#[test]
fn runs_that_are_killed_at_random_moments_come_to_the_same() {
    let kills = number("TENURE_CRASH_KILLS").unwrap_or(cases(15, 40) as u64) as usize;
    let seed = number("TENURE_CRASH_SEED").unwrap_or(1);
    let only = number("TENURE_CRASH_CASE");
    let baselines = baselines(&Local);
    let span = baselines.span();
    eprintln!("{kills} kills, seed {seed}; undisturbed a run takes {span:?}");
    let tally = series(&Local, &baselines, |case, killed| match only {
        Some(only) => (case == 0).then(|| Case::random(only, span)),
        None => (killed < kills).then(|| Case::random(seed * 1_000_000 + case as u64, span)),
    });
    tally.assert_clean();
}

#[test]
fn runs_that_are_killed_at_each_fail_point_come_to_the_same() {
    let baselines = baselines(&Local);
    // How deep into the run; the long form goes everywhere.
    let is_long = number("TENURE_CRASH_KILLS").is_some_and(|kills| kills >= 500);
    let counts = |place: usize| -> Vec<u64> {
        match (is_long, place % 3) {
            (true, _) => (1..=12).chain([16, 20, 30, 45, 60, 90]).collect(),
            (false, 0) => vec![1, 7],
            (false, _) => vec![1],
        }
    };
    let cases: Vec<_> = FAIL_POINTS
        .iter()
        .enumerate()
        .flat_map(|(place, point)| {
            counts(place).into_iter().map(move |count| Case::at(point, count, count))
        })
        .collect();
    let tally = series(&Local, &baselines, |case, _| cases.get(case).cloned());
    tally.assert_clean();
    // One that nobody comes by tests nothing.
    let first = |case: &&Case| matches!(case.kills.last(), Some(Kill::At(_, 1)));
    let missed: Vec<_> = tally.survived.iter().filter(first).map(ToString::to_string).collect();
    assert_eq!(missed, Vec::<String>::new(), "these points were not passed");
}

#[test]
fn a_person_may_answer_while_nothing_runs_and_the_run_goes_on_by_itself() {
    let ((), _folder) = in_folder(|folder| {
        let scenarios = &[Scenario::Leave][..];
        let mut answered = 0;
        for life in 1.. {
            let orders = Orders { scenarios, recovery: Recovery::GoOn, fail_point: None, life };
            let mut process = Local.start(folder, &orders);
            let began = std::time::Instant::now();
            // Until it waits for somebody, or is over.
            let exit = loop {
                if let Some(exit) = Local.ended(&mut process) {
                    break Some(exit);
                }
                if !Local.questions(folder).is_empty() {
                    break None;
                }
                assert!(began.elapsed() < Duration::from_secs(30), "life {life} does not go on");
                std::thread::sleep(Duration::from_millis(5));
            };
            if let Some(exit) = exit {
                assert_eq!(exit, Exit::Done, "life {life}");
                break;
            }
            // It waits on, for as long as nobody answers.
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(Local.ended(&mut process), None, "it waits for an answer");
            Local.kill(&mut process);
            for question in Local.questions(folder) {
                let answer = match question.prompt.as_str() {
                    "May it be done?" => Answer::Approve,
                    _ => Answer::Respond("nothing".into()),
                };
                Local.answer(folder, &question.id, answer).unwrap();
                answered += 1;
            }
        }
        let whole = Local.record(folder).unwrap();
        let run = &whole.runs[&Scenario::Leave];
        assert_eq!((run.status.as_str(), &*whole.damage), ("ended", &[][..]));
        let output = run.output.as_ref().unwrap()["output"].as_str().unwrap();
        assert!(output.contains("which means nothing"), "{output}");
        assert_eq!(answered, run.questions.len(), "nothing was asked that was not answered");
    });
}

/// A check that finds nothing wrong in a record that is wrong shows nothing.
#[test]
fn what_is_wrong_is_found() {
    let baselines = baselines(&Local);
    let kills = vec![Kill::At("after_commit", 60)];
    let case = Case { kills, answers: Answers::Always, ..Case::undisturbed(Scenario::Steps) };
    let (ran, _folder) = in_folder(|folder| case.run(&Local, folder));
    assert_eq!(baselines.check(&case, &ran), Vec::<String>::new());
    assert_eq!((ran.lives.len(), ran.kills()), (2, 1), "it is killed half way");
    let spoilt = |spoil: &dyn Fn(&mut Ran, &mut Recorded)| {
        let mut spoilt = ran.clone();
        let mut after = spoilt.after.runs.remove(&Scenario::Steps).expect("the run is on record");
        spoil(&mut spoilt, &mut after);
        spoilt.after.runs.insert(Scenario::Steps, after);
        baselines.check(&case, &spoilt).join("\n")
    };
    let at = |run: &Recorded, of: &str| {
        run.entries.iter().position(|entry| entry.of == of).expect("there is such a row")
    };
    let lost = spoilt(&|_, run| drop(run.entries.remove(at(run, "step.recorded"))));
    assert!(lost.contains("is gone or different") && lost.contains("is not on record"), "{lost}");
    let twice = spoilt(&|_, run| {
        let again = run.entries[at(run, "step.recorded")].clone();
        run.entries.push(Entry { seq: run.entries.len() as u64 + 1, ..again });
    });
    assert!(twice.contains("is on record twice"), "{twice}");
    let unended = spoilt(&|_, run| run.entries.retain(|entry| entry.of != "scope.ended"));
    assert!(unended.contains("has 0 ends"), "{unended}");
    let other = spoilt(&|_, run| run.output = Some("another".into()));
    assert!(other.contains("it ended as"), "{other}");
    // Whatever the first life did and put on record, the second did again.
    let again = spoilt(&|ran, _| {
        let first = ran.lives[0].lines.clone();
        ran.lives[1].lines.extend(first);
    });
    for what in
        ["tool ", "model ", "before_model of", "step 0000", "and was done again", "ran again"]
    {
        assert!(again.contains(what), "`{what}` is not in:\n{again}");
    }
    let undelivered = spoilt(&|ran, _| ran.lives[1].lines.clear());
    for what in ["never ran", "never shut down", "its hook was never called"] {
        assert!(undelivered.contains(what), "`{what}` is not in:\n{undelivered}");
    }
    let often = spoilt(&|ran, _| {
        let sends = ran.lives[0].lines.iter().filter(|line| is_send(line)).cloned();
        let sends: Vec<_> = sends.collect();
        ran.lives[1].lines.extend(sends.iter().chain(&sends).cloned());
    });
    assert!(often.contains("may run once, and ran"), "{often}");
}

fn is_send(line: &Line) -> bool {
    matches!(&line.deed, Deed::Tool { tool, .. } if tool == "send")
}
