//! Which Python runs.

use crate::{Environment, HostError};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_process::{find_program, output_within};

/// The oldest version that the worker runs on.
const OLDEST: (u32, u32) = (3, 9);

/// How long an interpreter may take to say what it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// Prints the real executable and the version. A shim (pyenv, asdf) costs tens of milliseconds at
/// each start, so what it stands for is found once.
const PROBE: &str = "import sys; print(sys.executable); print('%d.%d.%d' % sys.version_info[:3])";

/// A Python interpreter that was found and asked for its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    path: PathBuf,
    version: String,
}

impl Interpreter {
    /// The interpreter of a project: its `.venv` or `venv`, else the active `VIRTUAL_ENV`, else
    /// `python3` on the `PATH`. It is run once, to ask for its version and for what it really is.
    pub fn find(project: &Path) -> Result<Interpreter, HostError> {
        Self::find_in(project, &Environment::new())
    }

    /// Finds it as [`find`](Self::find) does, and runs it with the environment that its workers have, under their rules:
    /// an interpreter may come with the project.
    pub fn find_in(project: &Path, environment: &Environment) -> Result<Interpreter, HostError> {
        let active = std::env::var_os("VIRTUAL_ENV").filter(|it| !it.is_empty()).map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self::find_among(project, active, &path, environment)
    }

    fn find_among(
        project: &Path,
        active: Option<PathBuf>,
        path: &OsStr,
        environment: &Environment,
    ) -> Result<Interpreter, HostError> {
        let probe = |python: &Path| probe_within(python, project, environment, PATIENCE);
        let own = [".venv", "venv"].map(|name| project.join(name));
        for folder in own.into_iter().chain(active) {
            let python = folder.join("bin").join("python");
            if python.exists() {
                return probe(&python).map_err(|why| {
                    HostError::new(format!(
                        "the virtual environment {} does not work: {why}; make it anew with \
                         `python3 -m venv {}`",
                        folder.display(),
                        folder.display()
                    ))
                });
            }
        }
        match find_program(&["python3", "python"], path) {
            Some(python) => probe(&python).map_err(|why| {
                HostError::new(format!("{} does not work: {why}", python.display()))
            }),
            None => Err(HostError::new(format!(
                "no Python was found: {} has no .venv, VIRTUAL_ENV is not set, and there is no \
                 python3 on the PATH; install Python {}.{} or later, or make a .venv",
                project.display(),
                OLDEST.0,
                OLDEST.1
            ))),
        }
    }

    /// An interpreter at a path, asked nothing. A wrong path shows when a worker is started.
    pub fn at(path: impl Into<PathBuf>) -> Interpreter {
        Interpreter { path: path.into(), version: String::new() }
    }

    /// The executable. In a virtual environment it is that environment's own.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version, as `3.11.7`; empty if it was never asked.
    pub fn version(&self) -> &str {
        &self.version
    }
}

fn probe_within(
    python: &Path,
    project: &Path,
    environment: &Environment,
    patience: Duration,
) -> Result<Interpreter, String> {
    let args = ["-I", "-S", "-c", PROBE];
    let dir = if project.is_dir() { project } else { Path::new("/") };
    // A relative path would be one from that folder.
    let python = &std::path::absolute(python).map_err(|error| error.to_string())?;
    let heard = output_within(python, &args, dir, environment, patience)?;
    let text = heard.out.text();
    let mut lines = text.lines();
    let (Some(executable), Some(version)) = (lines.next(), lines.next()) else {
        let said = heard.err.text();
        let last = said.lines().last().unwrap_or("it printed nothing");
        return Err(format!("it did not say its version ({}): {last}", heard.ended));
    };
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < OLDEST {
        return Err(format!("it is Python {version}, and {}.{} is needed", OLDEST.0, OLDEST.1));
    }
    // An executable that Python cannot name (it prints an empty line) is run as it was found.
    let path = if executable.is_empty() { python.to_owned() } else { PathBuf::from(executable) };
    Ok(Interpreter { path, version: version.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Instant;

    fn interpreter(folder: &Path, script: &str) -> PathBuf {
        std::fs::create_dir_all(folder).expect("made");
        let python = folder.join("python3");
        std::fs::write(&python, script).expect("written");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&python, mode).expect("made executable");
        // A virtual environment has it under this name.
        std::os::unix::fs::symlink(&python, folder.join("python")).expect("linked");
        python
    }

    #[test]
    fn the_projects_own_environment_comes_first_then_the_active_one_then_the_path() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| dir.path().join(name);
        let says = "#!/bin/sh\necho \"$0\"\necho 3.11.0\n";
        for folder in ["project/.venv/bin", "project/venv/bin", "active/bin", "path"] {
            interpreter(&at(folder), says);
        }
        let path = at("path").into_os_string();
        let found = |folder: &str| {
            let it = Interpreter::find_among(
                &at("project"),
                Some(at("active")),
                &path,
                &Environment::new(),
            );
            let it = it.expect("there is one");
            assert!(it.path().starts_with(at(folder)), "{folder}: {it:?}");
            assert_eq!(it.version(), "3.11.0");
            let _ = std::fs::remove_dir_all(at(folder));
        };
        for folder in ["project/.venv", "project/venv", "active", "path"] {
            found(folder);
        }
        let none = Interpreter::find_among(&at("project"), None, &path, &Environment::new());
        let none = none.expect_err("none is left");
        assert!(none.to_string().contains("no Python was found"), "{none}");
    }

    #[test]
    fn an_interpreter_that_never_answers_is_killed_with_what_it_started() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let script = "#!/bin/sh\nsleep 600 &\necho $! > \"$0.child\"\nwait\n";
        let python = interpreter(dir.path(), script);
        let since = Instant::now();
        let (environment, patience) = (Environment::new(), Duration::from_secs(1));
        let why = probe_within(&python, dir.path(), &environment, patience);
        let why = why.expect_err("it never answers");
        assert!(why.contains("did not answer within 1s"), "{why}");
        assert!(since.elapsed() < Duration::from_secs(8), "{:?}", since.elapsed());
        let child = std::fs::read_to_string(dir.path().join("python3.child")).expect("it began");
        let is_alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
            stat.is_ok_and(|stat| !stat.contains(") Z"))
        };
        while is_alive() {
            assert!(since.elapsed() < Duration::from_secs(20), "the child is left");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
