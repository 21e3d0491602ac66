//! Says whether an audit log is as it was written: `verify_audit audit.jsonl [head]`.
//!
//! With the hash of a line that somebody kept (`Verified::head`) it also says whether that line is
//! still there: lines that are missing at the end do not show otherwise.

use std::process::ExitCode;
use tenure_hooks::guard::AuditLog;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        eprintln!("usage: verify_audit <file> [hash of a line that has to be there]");
        return ExitCode::from(2);
    };
    let verified = match AuditLog::verify(&path) {
        Ok(verified) => verified,
        Err(broken) => {
            eprintln!("{path}: {broken}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(kept) = arguments.next() {
        let begins = format!("{{\"hash\":\"{kept}\",");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if !text.lines().any(|line| line.starts_with(&begins)) {
            eprintln!("{path}: no line has the hash {kept}; lines are missing at the end");
            return ExitCode::FAILURE;
        }
    }
    println!("{path}: {} lines, head {}", verified.lines, verified.head);
    ExitCode::SUCCESS
}
