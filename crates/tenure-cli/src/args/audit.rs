//! The command line of what looks after audit logs.

use super::help;
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;

/// `tenure audit`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    /// What to do.
    #[command(subcommand)]
    pub(crate) action: AuditAction,
}

/// What can be done with an audit log.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditAction {
    /// Follow its chain of hashes from the first line to the last. Changes nothing.
    #[command(after_help = help::AUDIT)]
    Verify(VerifyAudit),
}

/// `tenure audit verify`.
#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyAudit {
    /// The log.
    pub(crate) file: PathBuf,
    /// Print what was found as a line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
