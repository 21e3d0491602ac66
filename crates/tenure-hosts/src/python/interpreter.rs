//! Which Python runs.

use crate::{Environment, HostError};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The oldest version that the worker runs on.
const OLDEST: (u32, u32) = (3, 9);

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
        let own = [".venv", "venv"].map(|name| project.join(name));
        let active = std::env::var_os("VIRTUAL_ENV").filter(|it| !it.is_empty()).map(PathBuf::from);
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
        let path = std::env::var_os("PATH").unwrap_or_default();
        match on_path(&path) {
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

fn on_path(path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .flat_map(|folder| ["python3", "python"].map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

fn probe(python: &Path) -> Result<Interpreter, String> {
    let output = Command::new(python)
        .args(["-I", "-S", "-c", PROBE])
        .env_clear()
        .envs(Environment::new().variables())
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let (Some(executable), Some(version)) = (lines.next(), lines.next()) else {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("it printed nothing");
        return Err(format!("it did not say its version ({}): {last}", output.status));
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
