//! The engine on this machine: real processes, a file, SIGKILL.

use crate::crash::child;
use crate::crash::subject::{
    Entry, Exit, Orders, Question, Recorded, Recovery, Scenario, Subject, Whole,
};
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tenure_core::ask::Answer;
use tenure_core::engine::Signalled;
use tenure_store::{AskInfo, AskQuery, StoreError, Wish, fail};

/// `LocalEngine`, in processes that are this program again.
pub(crate) struct Local;

/// A process, and where it says what.
pub(crate) struct Process {
    child: Child,
    log: std::path::PathBuf,
}

impl Drop for Process {
    /// A case that fails half way leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const SIGKILL: i32 = 9;

impl Subject for Local {
    type Process = Process;

    fn start(&self, folder: &Path, orders: &Orders<'_>) -> Process {
        let scenarios: Vec<_> = orders.scenarios.iter().map(|it| it.name()).collect();
        let recovery = match orders.recovery {
            Recovery::GoOn => "go_on",
            Recovery::Abandon => "abandon",
        };
        let log = folder.join(format!("life-{}.log", orders.life));
        let output = File::create(&log).expect("a log can be written");
        let errors = output.try_clone().expect("a file can be shared");
        let program = std::env::current_exe().expect("a program knows itself");
        let mut command = Command::new(program);
        command
            .args(["--exact", crate::crash::CHILD, "--nocapture", "--test-threads=1"])
            .env(child::FOLDER, folder)
            .env(child::SCENARIOS, scenarios.join(","))
            .env(child::RECOVERY, recovery)
            .env("RUST_BACKTRACE", "1")
            .env_remove(fail::VARIABLE)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        if let Some(point) = &orders.fail_point {
            command.env(fail::VARIABLE, point);
        }
        Process { child: command.spawn().expect("this program can be started again"), log }
    }

    fn ended(&self, process: &mut Process) -> Option<Exit> {
        let status = process.child.try_wait().expect("a child can be waited for")?;
        Some(match status.signal() {
            Some(SIGKILL) => Exit::Killed,
            None if status.success() => Exit::Done,
            _ => {
                let said = std::fs::read_to_string(&process.log).unwrap_or_default();
                Exit::Broken(format!("it ended with {status}, and said:\n{said}"))
            }
        })
    }

    fn kill(&self, process: &mut Process) {
        process.child.kill().expect("a child can be killed");
        process.child.wait().expect("a child can be waited for");
    }

    fn questions(&self, folder: &Path) -> Vec<Question> {
        let asks = || -> Result<Vec<AskInfo>, StoreError> {
            crate::keys::open_existing(child::file(folder))?.asks(&AskQuery::open())
        };
        // The file may be about to be made.
        let asks = asks().unwrap_or_default();
        asks.into_iter().map(|ask| question(ask, None)).collect()
    }

    fn answer(&self, folder: &Path, question: &str, answer: Answer) -> Result<(), String> {
        let store =
            crate::keys::open_existing(child::file(folder)).map_err(|error| error.to_string())?;
        match store.answer(question, answer, "the harness") {
            // A run that was given up meanwhile has taken its questions back.
            Ok(Signalled::Accepted | Signalled::AlreadyDecided(_)) => Ok(()),
            Ok(other) => Err(format!("the answer is {other:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn cancel(&self, folder: &Path, scenario: Scenario) -> Result<(), String> {
        let store =
            crate::keys::open_existing(child::file(folder)).map_err(|error| error.to_string())?;
        match store.request(scenario.run(), Wish::Cancel) {
            Ok(true) => Ok(()),
            Ok(false) => Err("there is no such run that is not over".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn record(&self, folder: &Path) -> Result<Whole, String> {
        let path = child::file(folder);
        if !path.exists() {
            return Ok(Whole::default());
        }
        read(&path).map_err(|error| error.to_string())
    }
}

fn read(path: &Path) -> Result<Whole, StoreError> {
    // A process may have died before the file had anything in it: it is made whole here.
    let store = crate::keys::open(path)?;
    let mut whole = Whole::default();
    let verified = store.verify()?;
    whole.damage.extend(verified.faults.iter().map(ToString::to_string));
    for scenario in Scenario::ALL {
        let Some(info) = store.run(scenario.run())? else { continue };
        let entries: Vec<_> = store
            .records(info.id, 0, usize::MAX)?
            .into_iter()
            .map(|it| Entry {
                seq: it.seq,
                of: it.name,
                step: it.step,
                scope: it.scope,
                data: it.data,
            })
            .collect();
        let place = |id: &str| {
            let opened = entries
                .iter()
                .find(|entry| entry.of == "ask.opened" && entry.data["ask"].as_str() == Some(id));
            opened.and_then(|entry| entry.step.as_ref()).map(|step| step.path.to_string())
        };
        let asks = store.asks(&AskQuery::all().run(info.id))?;
        let questions = asks.into_iter().map(|ask| {
            let place = place(&ask.id);
            question(ask, place)
        });
        let recorded = Recorded {
            status: info.status.to_string(),
            outcome: info.outcome,
            output: info.output,
            error: info.error,
            questions: questions.collect(),
            entries,
        };
        whole.runs.insert(scenario, recorded);
    }
    Ok(whole)
}

fn question(ask: AskInfo, path: Option<String>) -> Question {
    Question { id: ask.id, path, prompt: ask.prompt, form: ask.form, answer: ask.answer }
}
