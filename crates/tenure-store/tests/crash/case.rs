//! One case: runs in a folder of their own, killed as a plan says, life after life, until they are
//! over; then everything is checked.

use crate::crash::child::result_of;
use crate::crash::ledger::{Ledger, Line};
use crate::crash::random::Random;
use crate::crash::subject::{Exit, Orders, Question, Recovery, Scenario, Subject, Whole};
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};
use tenure_core::Outcome;
use tenure_core::ask::Answer;
use tenure_store::fail::FAIL_POINTS;

/// What is killed, when, and who answers when.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) kills: Vec<Kill>,
    /// From which life on what is unfinished is given up, and how.
    pub(crate) gives_up: Option<(usize, GiveUp)>,
    pub(crate) answers: Answers,
}

/// How a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GiveUp {
    /// By whoever recovers it.
    Abandon,
    /// By somebody who wanted it cancelled while nothing ran.
    Cancel,
}

/// How a life ends.
#[derive(Clone, Debug)]
pub(crate) enum Kill {
    After(Duration),
    At(&'static str, u64),
}

/// When questions are answered, as long as there are kills to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    WhileItRuns,
    WhileNothingRuns,
    Always,
}

/// One process of a case.
#[derive(Clone)]
pub(crate) struct Life {
    /// The runs that it does not go on with.
    pub(crate) gives_up: BTreeSet<Scenario>,
    /// What was on record when it began.
    pub(crate) before: Whole,
    /// What it did.
    pub(crate) lines: Vec<Line>,
    pub(crate) killed: bool,
}

/// What came of a case.
#[derive(Clone)]
pub(crate) struct Ran {
    pub(crate) lives: Vec<Life>,
    pub(crate) after: Whole,
    pub(crate) took: Duration,
    pub(crate) problems: Vec<String>,
}

impl Ran {
    /// How the outcome of a run is called that a life did not go on with, if one did not.
    pub(crate) fn given_up(&self, case: &Case, scenario: Scenario) -> Option<Outcome> {
        let given_up = self.lives.iter().any(|life| life.gives_up.contains(&scenario));
        let outcome = |(_, how)| match how {
            GiveUp::Abandon => Outcome::Abandoned,
            GiveUp::Cancel => Outcome::Cancelled,
        };
        case.gives_up.filter(|_| given_up).map(outcome)
    }

    pub(crate) fn kills(&self) -> usize {
        self.lives.iter().filter(|life| life.killed).count()
    }
}

/// A life that is not killed is over by then, or something hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(2);

impl Case {
    /// Without a kill: what the others are compared with.
    pub(crate) fn undisturbed(scenario: Scenario) -> Self {
        let (kills, answers) = (Vec::new(), Answers::Always);
        Self { seed: 0, scenarios: vec![scenario], kills, gives_up: None, answers }
    }

    /// Killed once, at this point.
    pub(crate) fn at(point: &'static str, count: u64, seed: u64) -> Self {
        let scenarios = Scenario::ALL.to_vec();
        let mut kills = vec![Kill::At(point, count)];
        // These are passed by a second life only.
        let gives_up = (point == "recovery_half").then_some((2, GiveUp::Abandon));
        if point.starts_with("recovery") {
            kills.insert(0, Kill::After(Duration::from_millis(150 + 50 * (count % 8))));
            kills[1] = Kill::At(point, 1 + count % 4);
        }
        Self { seed, scenarios, kills, gives_up, answers: Answers::Always }
    }

    /// By chance. A run takes about `span`.
    pub(crate) fn random(seed: u64, span: Duration) -> Self {
        let mut random = Random::new(seed);
        let scenarios = match random.below(10) {
            0..4 => vec![*random.pick(&Scenario::ALL)],
            4..6 => vec![*random.pick(&Scenario::ALL[..2]), *random.pick(&Scenario::ALL[2..])],
            _ => Scenario::ALL.to_vec(),
        };
        let kills: Vec<_> = (0..2 + random.below(6)).map(|_| kill(&mut random, span)).collect();
        let gives_up = random.percent(30).then(|| {
            let how = *random.pick(&[GiveUp::Abandon, GiveUp::Cancel]);
            (2 + random.below(2) as usize, how)
        });
        let answers = [Answers::WhileItRuns, Answers::WhileNothingRuns, Answers::Always];
        let answers = *random.pick(&answers);
        Self { seed, scenarios, kills, gives_up, answers }
    }

    /// Runs it until everything is over.
    pub(crate) fn run<S: Subject>(&self, subject: &S, folder: &Path) -> Ran {
        let began = Instant::now();
        let mut ran = Ran {
            lives: Vec::new(),
            after: Whole::default(),
            took: began.elapsed(),
            problems: Vec::new(),
        };
        let (mut kills, mut cancelled) = (self.kills.iter(), BTreeSet::new());
        loop {
            let before = self.record(subject, folder, &mut ran.problems);
            let known = Ledger::read(folder).len();
            let number = ran.lives.len() + 1;
            let kill = kills.next();
            let unfinished = before.runs.iter().filter(|(_, run)| run.status != "ended");
            let unfinished: BTreeSet<_> = unfinished.map(|(scenario, _)| *scenario).collect();
            let (recovery, gives_up) = match self.gives_up {
                Some((from, GiveUp::Abandon)) if number >= from => (Recovery::Abandon, unfinished),
                Some((from, GiveUp::Cancel)) if number >= from => {
                    if number == from {
                        self.cancel(subject, folder, &unfinished, &mut ran.problems);
                        cancelled = unfinished.clone();
                    }
                    (Recovery::GoOn, &cancelled & &unfinished)
                }
                _ => (Recovery::GoOn, BTreeSet::new()),
            };
            let fail_point = match kill {
                Some(Kill::At(point, count)) => Some(format!("{point}:{count}")),
                _ => None,
            };
            let orders = Orders { scenarios: &self.scenarios, recovery, fail_point, life: number };
            let exit = self.live(subject, folder, &orders, kill, &mut ran.problems);
            let lines = Ledger::read(folder).split_off(known);
            ran.lives.push(Life { gives_up, before, lines, killed: exit == Exit::Killed });
            match exit {
                Exit::Killed if kill.is_some() => {}
                Exit::Done => break,
                Exit::Killed => {
                    ran.problems.push(format!("life {number} was killed by somebody else"))
                }
                Exit::Broken(how) => ran.problems.push(format!("life {number}: {how}")),
            }
            if !ran.problems.is_empty() {
                break;
            }
            if self.answers != Answers::WhileItRuns {
                self.answer(subject, folder, &mut ran.problems);
            }
        }
        ran.after = self.record(subject, folder, &mut ran.problems);
        ran.took = began.elapsed();
        ran
    }

    /// One life, until it is over or killed.
    fn live<S: Subject>(
        &self,
        subject: &S,
        folder: &Path,
        orders: &Orders<'_>,
        kill: Option<&Kill>,
        problems: &mut Vec<String>,
    ) -> Exit {
        let began = Instant::now();
        let mut process = subject.start(folder, orders);
        let answers = kill.is_none() || self.answers != Answers::WhileNothingRuns;
        let mut looked = began;
        loop {
            if let Some(exit) = subject.ended(&mut process) {
                return exit;
            }
            let lived = began.elapsed();
            let due = match kill {
                Some(Kill::After(after)) => lived >= *after,
                // It waits for a person who does not come; or it never comes to its point.
                Some(Kill::At(..)) if !answers => lived >= Duration::from_millis(900),
                _ => false,
            };
            if due {
                subject.kill(&mut process);
                return Exit::Killed;
            }
            if lived > PATIENCE {
                subject.kill(&mut process);
                return Exit::Broken(format!("it was not over after {PATIENCE:?}"));
            }
            if answers && looked.elapsed() > Duration::from_millis(25) {
                self.answer(subject, folder, problems);
                looked = Instant::now();
            }
            std::thread::sleep(LOOK);
        }
    }

    fn answer<S: Subject>(&self, subject: &S, folder: &Path, problems: &mut Vec<String>) {
        for question in subject.questions(folder) {
            let answer = answer_to(&question, self.seed);
            if let Err(error) = subject.answer(folder, &question.id, answer) {
                problems.push(format!("question {}: {error}", question.id));
            }
        }
    }

    fn cancel<S: Subject>(
        &self,
        subject: &S,
        folder: &Path,
        runs: &BTreeSet<Scenario>,
        problems: &mut Vec<String>,
    ) {
        for scenario in runs {
            if let Err(error) = subject.cancel(folder, *scenario) {
                problems.push(format!("{scenario} cannot be cancelled: {error}"));
            }
        }
    }

    fn record<S: Subject>(&self, subject: &S, folder: &Path, problems: &mut Vec<String>) -> Whole {
        subject.record(folder).unwrap_or_else(|error| {
            problems.push(format!("the record cannot be read: {error}"));
            Whole::default()
        })
    }
}

fn kill(random: &mut Random, span: Duration) -> Kill {
    let span = span.as_micros() as u64;
    match random.below(10) {
        0..6 => Kill::After(Duration::from_micros(random.below(span))),
        // While it begins, or recovers.
        6 => Kill::After(Duration::from_micros(random.below(span / 4))),
        _ => {
            let point: &'static str = random.pick::<&'static str>(&FAIL_POINTS);
            let most = 1 + random.below(30);
            Kill::At(point, 1 + random.below(most))
        }
    }
}

/// How a question begins that asks what came of a call.
const UNKNOWN: &str = "the process stopped while";

impl Question {
    /// Whether it asks what came of a call that was made when a process died.
    pub(crate) fn is_of_unknown_outcome(&self) -> bool {
        self.prompt.starts_with(UNKNOWN)
    }

    /// Whether somebody said that the call may be made once more.
    pub(crate) fn allows_another(&self) -> bool {
        self.answer == Some(Answer::Respond("again".to_owned()))
    }

    /// The call that it is about.
    pub(crate) fn call(&self) -> Option<&str> {
        self.form.as_ref()?["call"].as_str()
    }
}

/// What the person says: always the same to the same question, and of a call whose outcome nobody
/// knows what the tool itself would have said, or that it may be made again.
fn answer_to(question: &Question, seed: u64) -> Answer {
    if question.is_of_unknown_outcome() {
        let form = question.form.as_ref().expect("the question says which call it is about");
        let number = u64::from_str_radix(&question.id, 16).unwrap_or(0);
        let (tool, what) = (&form["tool"], &form["arguments"]["message"]);
        return match Random::new(seed ^ number).percent(40) {
            true => Answer::Respond("again".to_owned()),
            false => Answer::Respond(result_of(
                tool.as_str().unwrap_or_default(),
                what.as_str().unwrap_or_default(),
            )),
        };
    }
    match question.prompt.as_str() {
        "May it be done?" => Answer::Approve,
        prompt => Answer::Respond(format!("an answer to <{prompt}>")),
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scenarios: Vec<_> = self.scenarios.iter().map(|it| it.name()).collect();
        write!(f, "seed {} ({}; answers {:?}", self.seed, scenarios.join(", "), self.answers)?;
        if let Some((from, how)) = self.gives_up {
            write!(f, "; {how:?} from life {from} on")?;
        }
        f.write_str("), killed")?;
        for kill in &self.kills {
            match kill {
                Kill::After(after) => write!(f, " after {:.1} ms", after.as_secs_f64() * 1e3)?,
                Kill::At(point, count) => write!(f, " at {point}:{count}")?,
            }
        }
        Ok(())
    }
}
