//! The descent of this process: whether Tenure started it.

use crate::tree::MARK;

/// The name that a process of Tenure gives itself, which the system shows to every process.
///
/// The processes that it starts cannot change it, and cannot have another one shown in its place.
pub const PROCESS_NAME: &str = "tenure";

/// The names of the processes of Tenure: the program, and those that keep what it started and adopt its orphans.
const NAMES: [&str; 3] = [PROCESS_NAME, "tenure-keeper", "tenure-supervis"];

/// The sign by which a process is known to be beneath one of Tenure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lineage {
    /// It has the mark that Tenure sets in the environment of what it starts.
    Marked,
    /// An ancestor, by its process id, has that mark.
    BeneathMarked(u32),
    /// An ancestor, by its process id, is a process of Tenure.
    BeneathTenure(u32),
}

impl Lineage {
    /// Returns the sign that this process was started by Tenure, or by what Tenure started; none if it has none.
    ///
    /// The mark is inherited, so it tells of a process whose parents have ended, and is lost where the environment is
    /// emptied. The ancestors tell of one whose environment was emptied, and are lost where a parent ended and no
    /// process of Tenure adopts its children. A process that loses both is not known. Elsewhere than on Linux the mark
    /// alone is looked at.
    pub fn of_this_process() -> Option<Self> {
        if std::env::var_os(MARK).is_some() {
            return Some(Self::Marked);
        }
        ancestors().find_map(|pid| {
            if is_tenure(pid) {
                return Some(Self::BeneathTenure(pid));
            }
            is_marked(pid).then_some(Self::BeneathMarked(pid))
        })
    }
}

/// The ids of the parent of this process, its parent, and so on, as far as the system shows them.
fn ancestors() -> impl Iterator<Item = u32> {
    // A process that is read while its parent changes could lead in a circle.
    const MOST: usize = 4096;
    let parent = |pid: &u32| parent_of(*pid).filter(|parent| *parent > 0);
    std::iter::successors(parent(&std::process::id()), parent).take(MOST)
}

#[cfg(target_os = "linux")]
fn parent_of(pid: u32) -> Option<u32> {
    crate::tree::parent_of(pid)
}

#[cfg(not(target_os = "linux"))]
fn parent_of(_pid: u32) -> Option<u32> {
    None
}

fn is_marked(pid: u32) -> bool {
    let mark = format!("{MARK}=");
    std::fs::read(format!("/proc/{pid}/environ"))
        .is_ok_and(|all| all.split(|byte| *byte == 0).any(|it| it.starts_with(mark.as_bytes())))
}

/// Whether a process is one of Tenure, by its name and its program.
fn is_tenure(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if !NAMES.contains(&name.trim_end()) {
        return false;
    }
    // A script of the same name runs in a shell, whose program can be seen. That of Tenure can be seen by root alone.
    match std::fs::read_link(format!("/proc/{pid}/exe")) {
        Err(_) => true,
        Ok(program) => !is_interpreter(&program),
    }
}

/// Whether a program is one that scripts name in their first line, so that its process has the script's name.
fn is_interpreter(program: &std::path::Path) -> bool {
    const INTERPRETERS: [&str; 9] =
        ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox", "python", "node"];
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    INTERPRETERS.iter().any(|known| name.strip_prefix(known).is_some_and(is_version))
}

fn is_version(rest: &str) -> bool {
    rest.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_ancestors_begin_with_the_parent_and_end() {
        let all: Vec<u32> = ancestors().collect();
        assert_eq!(all.first().copied(), Some(std::os::unix::process::parent_id()));
        assert!(all.len() < 4096, "{all:?}");
    }

    #[test]
    fn a_shell_that_runs_a_script_of_the_same_name_is_told_from_the_program() {
        for (program, expected) in [
            ("/usr/bin/bash", true),
            ("/usr/bin/python3.12", true),
            ("/usr/bin/tenure", false),
            ("/tmp/shells/tenure (deleted)", false),
        ] {
            assert_eq!(is_interpreter(Path::new(program)), expected, "{program}");
        }
    }
}
