//! A place to run the program in: a folder of its own, a home of its own.

use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const PYTHON: &str = "python3 is needed for this test";

pub(crate) struct Sandbox {
    dir: TempDir,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(dir.path().join("project")).expect("a project folder");
        std::fs::create_dir(dir.path().join("home")).expect("a home folder");
        Self { dir }
    }

    /// A sandbox with these files in its project.
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let sandbox = Self::new();
        for (name, text) in files {
            sandbox.write(name, text);
        }
        sandbox
    }

    /// The project's folder, which is where the program is run.
    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.home().join("data/tenure/trust.json")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("its folder");
        std::fs::write(path, text).expect("a file");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The program, about to be run in the project.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(args);
        self.prepare(&mut command);
        command
    }

    /// Any program, in the same place and with the same environment.
    pub(crate) fn other(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args);
        self.prepare(&mut command);
        command
    }

    fn prepare(&self, command: &mut Command) {
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("XDG_DATA_HOME", self.home().join("data"))
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null());
        // A version manager of Python needs to know where it lives.
        for name in ["PYENV_ROOT", "PYENV_VERSION"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command(args).output().expect("the program starts"))
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        stdin.write_all(input.as_bytes()).expect("it reads");
        drop(stdin);
        Ran::of(child.wait_with_output().expect("it ends"))
    }

    /// Runs the program where namespaces are refused: landlock alone confines what it starts.
    pub(crate) fn run_without_namespaces(&self, args: &[&str]) -> Ran {
        let [python, script] = self.without_namespaces();
        let mut all = vec![&*script, env!("CARGO_BIN_EXE_tenure")];
        all.extend(args);
        Ran::of(self.other(&python, &all).output().expect(PYTHON))
    }

    /// What stands before a program so that namespaces are refused to it.
    pub(crate) fn without_namespaces(&self) -> [String; 2] {
        let script = self.home().join("no_namespaces.py");
        std::fs::write(&script, include_str!("no_namespaces.py")).expect("the script");
        ["python3".to_owned(), script.to_string_lossy().into_owned()]
    }

    /// Runs the program on a pseudo-terminal. `talk` is pairs of what to wait for and what to type
    /// then; `^C` and `^D` are those keys, and `$ …` is a shell command that is run instead.
    pub(crate) fn on_terminal(&self, args: &[&str], talk: &[(&str, &str)]) -> Ran {
        self.on_terminal_as(&[], args, talk)
    }

    /// The same with more variables in its environment.
    pub(crate) fn on_terminal_with(
        &self,
        variables: &[(&str, &str)],
        args: &[&str],
        talk: &[(&str, &str)],
    ) -> Ran {
        Ran::of(
            self.terminal(&[], args, talk).envs(variables.iter().copied()).output().expect(PYTHON),
        )
    }

    /// The same, started by another program: `before` is its path and its arguments.
    pub(crate) fn on_terminal_as(
        &self,
        before: &[&str],
        args: &[&str],
        talk: &[(&str, &str)],
    ) -> Ran {
        Ran::of(self.terminal(before, args, talk).output().expect(PYTHON))
    }

    fn terminal(&self, before: &[&str], args: &[&str], talk: &[(&str, &str)]) -> Command {
        let script = self.home().join("terminal.py");
        std::fs::write(&script, include_str!("terminal.py")).expect("the script");
        let talk = serde_json::to_string(&talk).expect("JSON");
        let script = script.to_string_lossy().into_owned();
        let mut all = vec![script.as_str(), talk.as_str()];
        all.extend(before);
        all.push(env!("CARGO_BIN_EXE_tenure"));
        all.extend(args);
        self.other("python3", &all)
    }

    /// Waits until `name` is there, and gives its text.
    pub(crate) fn wait_for(&self, name: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.read(name);
            if text.ends_with('\n') {
                return text;
            }
            assert!(Instant::now() < until, "`{name}` never came");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// How a run of the program went.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Fails unless it ended with this code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Every line of standard output as JSON.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|it| panic!("{it}: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    #[track_caller]
    pub(crate) fn says(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "standard error lacks {part:?}\n{self}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "standard output lacks {part:?}\n{self}");
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}

/// Whether any process has `text` in its command line or environment.
pub(crate) fn processes_with(text: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let pids = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own);
    let has = |pid: &String, file: &str| {
        std::fs::read(Path::new("/proc").join(pid).join(file))
            .is_ok_and(|all| String::from_utf8_lossy(&all).contains(text))
    };
    pids.filter(|pid| has(pid, "cmdline") || has(pid, "environ")).collect()
}

/// Waits until no process has `text` in its command line or environment.
#[track_caller]
pub(crate) fn nobody_is_left_with(text: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = processes_with(text);
        if left.is_empty() {
            return;
        }
        assert!(Instant::now() < until, "processes are left: {left:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
