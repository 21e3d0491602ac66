//! `kill -9` of the program at random moments of runs with confined commands, a shell, Python workers and what these
//! leave behind on purpose: after a second nothing of it lives.
//!
//! The store's own suite (`tenure-store`, `crash`) checks that nothing is lost or done twice by a kill; this one looks at
//! processes alone. `TENURE_PROCESS_KILLS` says how many kills, and `TENURE_CRASH_SEED` by which chance; the long form is
//! `scripts/crash --processes`.

use crate::processes::processes_of;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time that what was started may live after its program.
const AFTER: Duration = Duration::from_secs(1);
const PROGRESS: Duration = Duration::from_secs(5);
const AT_ONCE: usize = 3;
/// Kills of one project: the first of a run, the others of its next lives.
const LIVES: usize = 3;

/// The files of the project that is killed.
const FILES: [(&str, &str); 6] = [
    ("tenure.toml", ""),
    ("agent.md", include_str!("killed/agent.md")),
    ("agent.json", include_str!("killed/agent.json")),
    ("leave.sh", include_str!("killed/leave.sh")),
    ("deeds.py", include_str!("killed/deeds.py")),
    ("guard.py", include_str!("killed/guard.py")),
];

/// A project, whose path is the mark of every process that it starts.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("tenure-killed-").tempdir();
        let project = Self { folder: folder.expect("a temporary folder") };
        for folder in ["project", "home"] {
            fs::create_dir(project.root().join(folder)).expect("a folder can be made");
        }
        let place = project.root().join("project");
        for (name, text) in FILES {
            fs::write(place.join(name), text).expect("a file can be written");
        }
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.join("leave.sh"), mode).expect("the file is ours");
        project
    }

    fn root(&self) -> &Path {
        self.folder.path()
    }

    fn mark(&self) -> String {
        self.root().to_string_lossy().into_owned()
    }

    fn start(&self, life: usize) -> Child {
        let mark = self.mark();
        let args: &[&str] = match life {
            0 => &["run", "agent.md", "-m", &mark, "--trust", "-q"],
            _ => &["run", "--resume", "--trust", "-q"],
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(args).current_dir(self.root().join("project")).env_clear();
        for name in ["PATH", "PYENV_ROOT", "PYENV_VERSION"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.env("HOME", self.root().join("home")).stdin(Stdio::null());
        let output = fs::File::create(self.root().join(format!("said-{life}")));
        let output = output.expect("a file can be made");
        command.stdout(output.try_clone().expect("a second handle")).stderr(output);
        command.spawn().expect("the program starts")
    }

    /// The time until nothing of it lives; an error with what lives on after a second.
    fn gone(&self) -> Result<Duration, Vec<String>> {
        let since = Instant::now();
        loop {
            let (elapsed, left) = (since.elapsed(), processes_of(&self.mark()));
            if left.is_empty() {
                return Ok(elapsed);
            }
            if elapsed > AFTER {
                return Err(left);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// What came of the kills.
#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    /// Processes that lived when their program was killed, itself left out.
    beside: usize,
    slowest: Duration,
    failures: Vec<String>,
}

impl Tally {
    fn line(&self) -> String {
        let Self { kills, beside, slowest, failures } = self;
        format!(
            "{kills} kills, {beside} processes beside the program, gone after {slowest:?} at the latest, {} failed",
            failures.len()
        )
    }
}

fn number(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, and should be a number")))
}

/// A number below `end`, by chance.
fn below(state: &mut u64, end: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % end.max(1)
}

#[test]
fn after_a_kill_nothing_of_the_program_lives_for_a_second() {
    let kills = number("TENURE_PROCESS_KILLS").unwrap_or(9);
    let seed = number("TENURE_CRASH_SEED").unwrap_or(1) as u64;
    let span = undisturbed();
    eprintln!("{kills} kills, seed {seed}; undisturbed a run takes {span:?}");
    let (tally, told) = (Mutex::new(Tally::default()), Mutex::new(Instant::now()));
    let work = |worker: u64| {
        let mut chance = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(worker);
        let is_enough = || {
            let tally = tally.lock().expect("no worker panics here");
            tally.kills >= kills || tally.failures.len() > 5
        };
        while !is_enough() {
            let project = Project::new();
            for life in 0..LIVES {
                let wait = below(&mut chance, span.as_millis() as u64);
                kill_after(&project, life, Duration::from_millis(wait), &tally);
            }
            let mut told = told.lock().expect("no worker panics here");
            if told.elapsed() > PROGRESS {
                *told = Instant::now();
                eprintln!("{}", tally.lock().expect("no worker panics here").line());
            }
        }
    };
    let work = &work;
    std::thread::scope(|scope| {
        (0..AT_ONCE as u64).for_each(|at| drop(scope.spawn(move || work(at))))
    });
    let tally = tally.into_inner().expect("no worker panicked");
    eprintln!("{}", tally.line());
    assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n"));
    assert!(tally.beside > tally.kills, "there was little to end: {}", tally.line());
}

/// Runs it once to its end, and returns the time that it took.
fn undisturbed() -> Duration {
    let (project, since) = (Project::new(), Instant::now());
    let ended = project.start(0).wait().expect("it ends");
    let took = since.elapsed();
    let said = fs::read_to_string(project.root().join("said-0")).unwrap_or_default();
    assert!(ended.success(), "{ended}: {said}");
    if let Err(left) = project.gone() {
        panic!("after its own end there is {left:#?}");
    }
    took
}

fn kill_after(project: &Project, life: usize, wait: Duration, tally: &Mutex<Tally>) {
    let mut child = project.start(life);
    std::thread::sleep(wait);
    let own = child.id().to_string();
    let living = processes_of(&project.mark());
    let beside = living.iter().filter(|line| line.split(' ').next() != Some(&own)).count();
    let was_over = child.try_wait().expect("it can be waited for").is_some();
    // It may have ended just now, which is no kill.
    let _ = child.kill();
    let _ = child.wait();
    let gone = project.gone();
    let mut tally = tally.lock().expect("no worker panics here");
    if !was_over {
        tally.kills += 1;
        tally.beside += beside;
    }
    match gone {
        Ok(after) => tally.slowest = tally.slowest.max(after),
        Err(left) => {
            tally.failures.push(format!("life {life}, killed after {wait:?}, left {left:#?}"));
        }
    }
}
