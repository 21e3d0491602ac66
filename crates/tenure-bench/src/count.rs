//! Counting instructions: wall time wavers on a busy machine, the number of instructions does not.
//!
//! The paths themselves are those of `tenure-counts`.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many instructions something takes: all of them, and those outside of the C library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instructions {
    pub(crate) total: u64,
    pub(crate) own: u64,
}

/// What was committed of a step, in `counts/figures.txt`.
pub(crate) fn committed_step() -> Result<Instructions, Box<dyn Error>> {
    let line = include_str!("../counts/figures.txt").lines().find(|it| it.starts_with("step "));
    let mut numbers = line.unwrap_or_default().split(' ').skip(1).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(total), Some(own)) => Ok(Instructions { total: total?, own: own? }),
        _ => Err("counts/figures.txt has no line `step TOTAL OWN`".into()),
    }
}

/// Counts the instructions of a step, by callgrind, as `scripts/counts` does: of few and of many.
pub(crate) fn instructions_of_a_step() -> Result<Instructions, Box<dyn Error>> {
    const FEW: u64 = 200;
    const MANY: u64 = 1_200;
    let program = built()?;
    let few = counted(&program, "step", FEW)?;
    let many = counted(&program, "step", MANY)?;
    let each = |many: u64, few: u64| many.saturating_sub(few) / (MANY - FEW);
    Ok(Instructions { total: each(many.total, few.total), own: each(many.own, few.own) })
}

/// Builds the program whose instructions are counted, by itself: built together with others it would
/// have the features that they want of its dependencies.
fn built() -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../tenure-counts/Cargo.toml");
    let build = Command::new(cargo)
        .args([
            "build",
            "--release",
            "--quiet",
            "--message-format=json",
            "--manifest-path",
            manifest,
        ])
        .stderr(Stdio::inherit())
        .output()?;
    let said = String::from_utf8_lossy(&build.stdout);
    let of_program = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    };
    said.lines().find_map(of_program).ok_or_else(|| "tenure-counts cannot be built".into())
}

fn counted(program: &Path, path: &str, times: u64) -> Result<Instructions, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("out");
    let run = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args([path, &times.to_string()])
        .output()
        .map_err(|error| format!("valgrind cannot be run, install it: {error}"))?;
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        return Err(format!("valgrind: {}: {said}", run.status).into());
    }
    let program = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(read_counts(&std::fs::read_to_string(out)?, &program))
}

/// A cost line is a position and a number; the one behind `calls=` is the callee's and counted there.
/// The name of an object is given once, for a caller or a callee, and numbered from then on.
fn read_counts(text: &str, program: &str) -> Instructions {
    let mut names = HashMap::new();
    let (mut here, mut of_callee) = (String::new(), false);
    let mut counts = Instructions { total: 0, own: 0 };
    for line in text.lines() {
        if let Some((which, object)) = line.split_once("ob=").filter(|(it, _)| it.len() < 2) {
            let (number, name) = object.split_once(' ').unwrap_or((object, ""));
            if !name.is_empty() {
                names.insert(number.to_owned(), name.to_owned());
            }
            if which.is_empty() {
                here = names.get(number).cloned().unwrap_or_default();
            }
        } else if line.starts_with("calls=") {
            of_callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split(' ').nth(1).and_then(|it| it.parse::<u64>().ok());
            let cost = cost.filter(|_| !std::mem::take(&mut of_callee)).unwrap_or(0);
            counts.total += cost;
            if here.ends_with(program) {
                counts.own += cost;
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_counted_where_they_arise_and_by_whose_they_are() {
        let text = "ob=(1) /usr/bin/tenure-bench\nfn=(1) main\n16 5\n+3 2\ncob=(2) /lib/libc.so\n\
                    calls=1 9\n* 40\nob=(2)\n9 40\nob=(1)\n-1 1\n";
        let counts = read_counts(text, "tenure-bench");
        assert_eq!(counts, Instructions { total: 48, own: 8 });
    }

    #[test]
    fn the_committed_count_of_a_step_is_there() {
        let step = committed_step().expect("it is committed");
        assert!(step.own > 0 && step.total >= step.own, "{step:?}");
    }
}
