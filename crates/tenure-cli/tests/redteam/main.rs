//! The attacks of the folder `redteam`, each by the real program in a project and a home of its own.
//!
//! Where a case has a control that is run too: the same attack with the defence taken away, which has to get in, because a
//! case that cannot fail shows nothing. `TENURE_REDTEAM=all` runs every case with its control (`scripts/redteam`);
//! `TENURE_REDTEAM=words` those whose names have one of these words, and shows what each of them said; else one case of each
//! part is run, without its control.

mod case;
mod kills;
mod processes;
mod scene;

use case::Case;
use scene::Scene;
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Instant;

/// The parts that the suite has to attack.
const PARTS: [&str; 9] =
    ["records", "trust", "answers", "confinement", "ends", "locks", "files", "secrets", "replies"];

/// Most of an attack is waiting.
const AT_ONCE: usize = 3;

/// What is to be run.
enum Choice {
    /// One case of each part.
    Sample,
    All,
    /// Those that have one of these words in their names.
    Named(Vec<String>),
}

impl Choice {
    fn of_environment() -> Self {
        match std::env::var("TENURE_REDTEAM").unwrap_or_default().as_str() {
            "" => Self::Sample,
            "all" => Self::All,
            words => Self::Named(words.split_whitespace().map(str::to_owned).collect()),
        }
    }

    fn cases(&self) -> Vec<Case> {
        let mut parts = BTreeSet::new();
        let is_chosen = |case: &Case| match self {
            Self::Sample => parts.insert(case.part.clone()),
            Self::All => true,
            Self::Named(words) => words.iter().any(|word| case.name.contains(word)),
        };
        case::all().into_iter().filter(is_chosen).collect()
    }
}

#[test]
fn no_attack_gets_in() {
    let choice = Choice::of_environment();
    let cases = choice.cases();
    assert!(!cases.is_empty(), "no case has such a name");
    let (count, began) = (cases.len(), Instant::now());
    let (cases, failures) = (Mutex::new(cases.into_iter()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = cases.lock().expect("no case panics here").next();
            let Some(case) = next else { break };
            let since = Instant::now();
            let failure = attack(&case, &choice).err();
            let how = if failure.is_some() { "GOT IN" } else { "held" };
            eprintln!("{how:7} {:5.1} s  {}", since.elapsed().as_secs_f64(), case.name);
            failures.lock().expect("no case panics here").extend(failure);
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().expect("no case panicked");
    eprintln!("{count} attacks in {:.0} s", began.elapsed().as_secs_f64());
    assert!(
        failures.is_empty(),
        "{} of {count} failed:\n\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}

/// Fails with what the attack achieved, or if it achieves nothing where nothing defends.
fn attack(case: &Case, choice: &Choice) -> Result<(), String> {
    let seen = Scene::new(case).attack();
    if matches!(choice, Choice::Named(_)) {
        eprintln!("{}: {}\n{seen}", case.name, case.about);
    }
    let broken = seen.broken();
    if !broken.is_empty() {
        return Err(format!("{}: {}\n{}\n{seen}", case.name, case.about, broken.join("\n")));
    }
    if !matches!(choice, Choice::Sample) && case.has_control() {
        let seen = Scene::undefended(case).attack();
        if seen.achieved().is_empty() {
            let why = "its control got in nowhere, so the case shows nothing";
            return Err(format!("{}: {why}\n{seen}", case.name));
        }
    }
    Ok(())
}

#[test]
fn every_part_is_attacked() {
    let cases = case::all();
    let parts: BTreeSet<_> = cases.iter().map(|case| case.part.as_str()).collect();
    assert_eq!(parts, PARTS.into_iter().collect());
    assert!(cases.len() >= 30, "{} cases", cases.len());
}
