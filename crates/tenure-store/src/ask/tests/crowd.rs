//! Many processes that answer the same questions at once.

use super::*;
use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Instant;

const PROCESSES: usize = 20;
const THIS: &str =
    "ask::tests::crowd::of_twenty_processes_that_answer_the_same_questions_one_decides_each";

/// A number that nothing but 2 and 5 divides: see the stride below.
fn questions() -> usize {
    tenure_testkit::cases(1_000, 5_000)
}

/// In a child: the folder, and which child it is.
const FOLDER: &str = "TENURE_STORE_CROWD_FOLDER";
const NUMBER: &str = "TENURE_STORE_CROWD_NUMBER";

#[test]
fn of_twenty_processes_that_answer_the_same_questions_one_decides_each() {
    if let Ok(folder) = env::var(FOLDER) {
        return answer_all(Path::new(&folder));
    }
    let (folder, store) = new_store();
    let run = RunId::unique();
    let ids = ask_all(&store, run);

    let children: Vec<Process> = (0..PROCESSES).map(|n| Process::start(folder.path(), n)).collect();
    let begun = Instant::now();
    let deadline = begun + Duration::from_secs(120);
    children.iter().for_each(|child| child.wait_for(&child.ready, deadline));
    fs::write(folder.path().join("go"), "").unwrap();
    let said: Vec<Vec<String>> =
        children.into_iter().map(|child| child.outcome(deadline)).collect();

    let mut winners: HashMap<usize, usize> = HashMap::new();
    for (process, said) in said.iter().enumerate() {
        assert_eq!(said.len(), questions());
        for (question, _) in said.iter().enumerate().filter(|(_, said)| *said == "accepted") {
            let other = winners.insert(question, process);
            assert_eq!(other, None, "question {question} was decided by {process}, too");
        }
    }
    assert_eq!(winners.len(), questions(), "every question is decided");
    for (process, said) in said.iter().enumerate() {
        for (question, said) in said.iter().enumerate() {
            let winner = winners[&question];
            let expected = if winner == process { "accepted".into() } else { winner.to_string() };
            assert_eq!(*said, expected, "process {process}, question {question}");
        }
    }
    let decided = store.asks(&AskQuery::all()).unwrap();
    let by_id: HashMap<&str, &AskInfo> = decided.iter().map(|ask| (&*ask.id, ask)).collect();
    for (question, id) in ids.iter().enumerate() {
        let expected = respond(&winners[&question].to_string());
        assert_eq!(by_id[&**id].answer, Some(expected));
    }
    // The record of the run has each answer once, and no gap.
    let records = store.records(run, 0, usize::MAX).unwrap();
    let answers = records.iter().filter(|record| record.name == "ask.answered");
    assert_eq!(answers.count(), questions());
    assert_eq!(records.len(), 2 * questions());
    let wins = (0..PROCESSES).filter(|n| winners.values().any(|winner| winner == n)).count();
    let questions = questions();
    eprintln!("{questions} answers by {wins} of {PROCESSES} processes in {:?}", begun.elapsed());
}

fn ask_all(store: &Store, run: RunId) -> Vec<String> {
    let name = |n: usize| format!("q{n}");
    let asks: Vec<NewAsk> = (0..questions())
        .map(|n| {
            let question = PendingAsk::new("clerk", Ask::input(format!("Number {n}?")));
            NewAsk::new(store, run, &key(&name(n)), &question).unwrap()
        })
        .collect();
    let ids: Vec<String> = (0..questions()).map(|n| key(&name(n)).id(run)).collect();
    fs::write(store.path().with_file_name("ids"), ids.join("\n")).unwrap();
    store.write_with(move |tx| asks.iter().try_for_each(|ask| open(tx, ask).map(drop))).unwrap();
    ids
}

/// What a child does: answers every question, in an order of its own.
fn answer_all(folder: &Path) {
    let number: usize = env::var(NUMBER).unwrap().parse().unwrap();
    let store = crate::testing::open_existing(folder.join("tenure.db")).unwrap();
    let ids = fs::read_to_string(folder.join("ids")).unwrap();
    let ids: Vec<&str> = ids.lines().collect();
    fs::write(folder.join(format!("ready{number}")), "").unwrap();
    let go = folder.join("go");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !go.exists() {
        assert!(Instant::now() < deadline, "nobody said go");
        sleep(Duration::from_millis(1));
    }
    let mut said = vec![String::new(); ids.len()];
    // Neither 2 nor 5 divides the stride, so every question comes once.
    let stride = 10 * (37 * number + 11) + 3;
    for step in 0..ids.len() {
        let at = (number * 997 + step * stride) % ids.len();
        let signalled = store.answer(ids[at], respond(&number.to_string()), "crowd").unwrap();
        said[at] = match signalled {
            Signalled::Accepted => "accepted".to_owned(),
            Signalled::AlreadyDecided(Answer::Respond(winner)) => winner,
            other => panic!("{other:?}"),
        };
    }
    let done = folder.join(format!("done{number}"));
    fs::write(done.with_extension("part"), said.join("\n")).unwrap();
    fs::rename(done.with_extension("part"), done).unwrap();
}

/// A child, which does not outlive the test.
struct Process {
    child: Child,
    ready: PathBuf,
    done: PathBuf,
}

impl Process {
    fn start(folder: &Path, number: usize) -> Self {
        let child = Command::new(env::current_exe().unwrap())
            .args([THIS, "--exact", "--nocapture"])
            .env(FOLDER, folder)
            .env(NUMBER, number.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let named = |name: &str| folder.join(format!("{name}{number}"));
        Self { child, ready: named("ready"), done: named("done") }
    }

    fn wait_for(&self, file: &Path, deadline: Instant) {
        while !file.exists() {
            assert!(Instant::now() < deadline, "{} does not come", file.display());
            sleep(Duration::from_millis(5));
        }
    }

    fn outcome(mut self, deadline: Instant) -> Vec<String> {
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => {
                    assert!(status.success(), "a process failed: {status}");
                    break;
                }
                None => {
                    assert!(Instant::now() < deadline, "a process does not end");
                    sleep(Duration::from_millis(5));
                }
            }
        }
        let said = fs::read_to_string(&self.done).unwrap();
        said.lines().map(str::to_owned).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
