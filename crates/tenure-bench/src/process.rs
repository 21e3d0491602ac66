//! What the system knows about a process, and running this program again as a child.

use std::error::Error;
use std::fs;
use std::process::Command;

/// Runs this program with `arguments` and reads the number that it prints.
pub(crate) fn child(arguments: &[&str]) -> Result<f64, Box<dyn Error>> {
    let program = std::env::current_exe()?;
    let output = Command::new(program).args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let problem = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{arguments:?} failed: {problem}").into());
    }
    Ok(text.trim().parse()?)
}

/// The memory that is resident now, in bytes. Exact: it is counted page by page, where
/// `/proc/self/statm` may lag behind.
pub(crate) fn resident() -> Result<f64, Box<dyn Error>> {
    field("/proc/self/smaps_rollup", "Rss:")
}

/// The most memory that was ever resident, in bytes.
pub(crate) fn peak_resident() -> Result<f64, Box<dyn Error>> {
    field("/proc/self/status", "VmHWM:")
}

fn field(file: &str, name: &str) -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string(file)?;
    let kilobytes = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .ok_or_else(|| format!("{file} does not say {name}"))?;
    Ok(kilobytes.parse::<f64>()? * 1024.0)
}
