//! `tenure audit`.

use super::say;
use crate::args::{Audit, AuditAction, VerifyAudit};
use crate::exit::Exit;
use crate::terminal::style::{BAD, DIM, GOOD, paint};
use crate::terminal::text::clean_line;
use crate::terminal::{print_json, print_plain};
use anyhow::Result;
use serde_json::json;
use tenure_hooks::guard::{AuditLog, Broken, Verified};

pub(super) fn run(args: &Audit) -> Result<Exit> {
    match &args.action {
        AuditAction::Verify(args) => verify(args),
    }
}

fn verify(args: &VerifyAudit) -> Result<Exit> {
    match AuditLog::verify(&args.file) {
        Ok(log) => whole(args, &log),
        Err(broken) => Ok(told(args, &broken)),
    }
}

fn whole(args: &VerifyAudit, log: &Verified) -> Result<Exit> {
    if args.json {
        print_json(json!({ "result": "ok", "lines": log.lines, "head": log.head }));
        return Ok(Exit::Ok);
    }
    let lines = if log.lines == 1 { "line" } else { "lines" };
    let head = format!("{} {}", paint(DIM, "head"), log.head);
    say(&format!("{} {} {lines}, each as it was written\n{head}", paint(GOOD, "ok:"), log.lines))?;
    Ok(Exit::Ok)
}

fn told(args: &VerifyAudit, broken: &Broken) -> Exit {
    if args.json {
        let line = (broken.line > 0).then_some(broken.line);
        print_json(json!({ "result": "broken", "line": line, "reason": broken.why }));
    } else {
        let file = args.file.display();
        let why = clean_line(&format!("{file}: {broken}"));
        print_plain(&format!("{} {why}", paint(BAD, "broken:")));
    }
    Exit::Failed
}
