//! Which file a command runs, and why it cannot.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The file that `name` stands for: relative to `dir` if it has a `/`, else from the `PATH` that
/// the command itself gets to see; a relative folder there counts for nothing, because it would mean
/// one of the project. An error says what to do.
pub(crate) fn resolve(
    name: &str,
    dir: &Path,
    variables: &[(OsString, OsString)],
) -> Result<PathBuf, String> {
    if name.is_empty() {
        return Err("the command is empty; write the program to run".to_owned());
    }
    if !dir.is_dir() {
        return Err(format!("its folder {} does not exist; create it", dir.display()));
    }
    if name.contains('/') {
        let path = dir.join(name);
        return match std::fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!(
                "`{name}` does not exist (looked for {}); create it, or correct the path",
                path.display()
            )),
            Err(error) => Err(format!("{} cannot be opened: {error}", path.display())),
            Ok(found) if !found.is_file() => {
                Err(format!("{} is not a file; name the program to run", path.display()))
            }
            Ok(found) if found.permissions().mode() & 0o111 == 0 => Err(format!(
                "{} is not executable; run `chmod +x {}`",
                path.display(),
                path.display()
            )),
            Ok(_) => Ok(path),
        };
    }
    let paths = variables.iter().rev().find(|(key, _)| key == "PATH").map(|(_, value)| value);
    find_program(&[name], paths.map_or(OsStr::new(""), |it| it)).ok_or_else(|| {
        let beside = if dir.join(name).is_file() {
            format!("; to run the one in {}, write `./{name}`", dir.display())
        } else {
            "; install it, or write its path with a `/`".to_owned()
        };
        format!("there is no program `{name}` on the PATH{beside}")
    })
}

/// Returns the first program of one of these names in the folders of a search path, folder by folder.
///
/// A relative folder counts for nothing, because it would mean one of the project; nor does a file that is not
/// executable, which the system would pass over too.
pub fn find_program(names: &[&str], path: &OsStr) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let mut files = folders.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    files.find(|file| {
        std::fs::metadata(file).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    })
}

const E2BIG: i32 = 7;
const ENOEXEC: i32 = 8;

/// Another process still has the file open for writing; that passes.
pub(crate) fn is_busy(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ExecutableFileBusy
}

/// Why a file that is there could not be started, and what to do.
pub(crate) fn not_started(path: &Path, error: &io::Error) -> String {
    let shown = path.display();
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::NotFound, _) => match shebang(path) {
            Some(interpreter) => format!(
                "the interpreter in the first line of {shown}, `{interpreter}`, does not exist; \
                 install it, or correct that line"
            ),
            None => format!("{shown}, or the loader that it needs, does not exist: {error}"),
        },
        (_, Some(ENOEXEC)) => format!(
            "{shown} is neither a program for this machine nor a script with a `#!` line; a shell \
             script begins with `#!/bin/sh`"
        ),
        (_, Some(E2BIG)) => format!("{shown} was given too long arguments or environment: {error}"),
        (io::ErrorKind::PermissionDenied, _) => format!(
            "{shown} may not be executed: {error}; look at the permissions of the file, of the \
             interpreter in its first line, and of the file system that it is on"
        ),
        _ => format!("{shown} could not be started: {error}"),
    }
}

/// The interpreter that the first line of a script names.
fn shebang(path: &Path) -> Option<String> {
    use std::io::Read;
    let mut head = Vec::new();
    std::fs::File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let text = String::from_utf8_lossy(&head).into_owned();
    let line = text.strip_prefix("#!")?.lines().next()?;
    // A file from another system ends its lines with a carriage return, which is hard to see.
    Some(line.trim_matches(' ').escape_debug().to_string())
}
