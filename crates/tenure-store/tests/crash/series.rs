//! Many cases, several at a time.

use crate::crash::case::{Case, Ran};
use crate::crash::check::Baselines;
use crate::crash::subject::{Scenario, Subject};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What came of many cases.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) cases: usize,
    pub(crate) kills: usize,
    pub(crate) lives: usize,
    pub(crate) runs: usize,
    pub(crate) given_up: usize,
    /// The cases that were over before all of their kills came.
    pub(crate) survived: Vec<Case>,
    pub(crate) failures: Vec<String>,
}

/// So many cases may fail before the rest is left alone.
const ENOUGH: usize = 5;
const PROGRESS: Duration = Duration::from_secs(5);

/// Runs every scenario without a kill.
pub(crate) fn baselines<S: Subject>(subject: &S) -> Baselines {
    let alone = |scenario: Scenario| {
        let (ran, folder) = in_folder(|folder| Case::undisturbed(scenario).run(subject, folder));
        if !ran.problems.is_empty() {
            eprintln!("{scenario}: what is left is in {}", folder.keep().display());
        }
        (scenario, ran)
    };
    std::thread::scope(|scope| {
        let running = Scenario::ALL.map(|scenario| scope.spawn(move || alone(scenario)));
        Baselines::of(running.map(|run| run.join().expect("the undisturbed run is checked")))
    })
}

/// Runs cases until `next` has no more of them, which is told how many kills there were.
pub(crate) fn series<S: Subject>(
    subject: &S,
    baselines: &Baselines,
    next: impl Fn(usize, usize) -> Option<Case> + Sync,
) -> Tally {
    let (began, tally) = (Instant::now(), Mutex::new(Tally::default()));
    let started = Mutex::new((0, began));
    let workers = std::thread::available_parallelism().map_or(2, usize::from) + 1;
    let work = || {
        loop {
            let case = {
                let mut started = started.lock().expect("no worker panics here");
                let tally = tally.lock().expect("no worker panics here");
                if started.1.elapsed() > PROGRESS {
                    started.1 = Instant::now();
                    eprintln!("{} ({:.0} s)", tally.line(), began.elapsed().as_secs_f64());
                }
                let case = next(started.0, tally.kills).filter(|_| tally.failures.len() < ENOUGH);
                started.0 += 1;
                case
            };
            let Some(case) = case else { break };
            let (ran, folder) = in_folder(|folder| case.run(subject, folder));
            let found = baselines.check(&case, &ran);
            let mut tally = tally.lock().expect("no worker panics here");
            tally.add(&case, &ran);
            if !found.is_empty() {
                let failure = failure(&case, &ran, &found, &folder.keep());
                eprintln!("{failure}");
                tally.failures.push(failure);
            }
        }
    };
    std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    let tally = tally.into_inner().expect("no worker panicked");
    eprintln!("{} ({:.0} s)", tally.line(), began.elapsed().as_secs_f64());
    tally
}

impl Tally {
    fn add(&mut self, case: &Case, ran: &Ran) {
        self.cases += 1;
        self.kills += ran.kills();
        self.lives += ran.lives.len();
        self.runs += ran.after.runs.len();
        self.given_up +=
            ran.lives.iter().flat_map(|life| &life.gives_up).collect::<BTreeSet<_>>().len();
        if ran.kills() < case.kills.len() {
            self.survived.push(case.clone());
        }
    }

    fn line(&self) -> String {
        let Self { cases, kills, lives, runs, given_up, failures, .. } = self;
        let failed = failures.len();
        format!(
            "{kills} kills in {cases} cases: {lives} lives of {runs} runs, {given_up} runs given up, \
             {failed} failed"
        )
    }

    /// Fails with what was found, if anything was.
    pub(crate) fn assert_clean(&self) {
        let failures = &self.failures;
        assert!(
            failures.is_empty(),
            "{} cases failed:\n\n{}",
            failures.len(),
            failures.join("\n\n")
        );
    }
}

fn failure(case: &Case, ran: &Ran, found: &[String], folder: &Path) -> String {
    let mut text = format!("{case}\n  {} lives", ran.lives.len());
    for (number, life) in ran.lives.iter().enumerate() {
        let how = if life.killed { "killed" } else { "over" };
        let rows: usize = life.before.runs.values().map(|run| run.entries.len()).sum();
        let deeds = life.lines.len();
        text.push_str(&format!("; {}: {rows} rows before it, {deeds} deeds, {how}", number + 1));
    }
    for finding in found.iter().take(20) {
        text.push_str(&format!("\n  - {finding}"));
    }
    if found.len() > 20 {
        text.push_str(&format!("\n  - and {} more", found.len() - 20));
    }
    text.push_str(&format!("\n  what is left is in {}", folder.display()));
    text
}

/// In a folder of its own, which is removed when the result is dropped.
pub(crate) fn in_folder<T>(body: impl FnOnce(&Path) -> T) -> (T, TempDir) {
    let folder = tempfile::Builder::new().prefix("tenure-crash-").tempdir();
    let folder = folder.expect("a folder can be made");
    (body(folder.path()), folder)
}
