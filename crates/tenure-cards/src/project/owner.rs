//! The owner of a `tenure.toml`: one that another user put above a project does not count.

use super::shown;
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::source::{Source, Span};
use std::path::Path;
use std::sync::Arc;

/// Whether a configuration above the folder `start` belongs to another user than the folder, than this process and
/// than root.
///
/// In a folder that several users can write, such as the one for temporary files, any of them could make a project of
/// everything beneath it. A project that belongs to another user as a whole is asked about like any other.
#[cfg(unix)]
pub(super) fn is_foreign(file: &Path, start: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    if file.parent() == Some(start) {
        return false;
    }
    // The file itself and not what it leads to: who may replace the link decides what is read.
    let Ok(owner) = file.symlink_metadata().map(|meta| meta.uid()) else { return true };
    let own = rustix::process::geteuid().as_raw();
    let of_start = start.metadata().map(|meta| meta.uid());
    ![own, 0].contains(&owner) && of_start.ok() != Some(owner)
}

#[cfg(not(unix))]
pub(super) fn is_foreign(_file: &Path, _start: &Path) -> bool {
    false
}

/// Says that a configuration is not read. Nothing of it is shown.
pub(super) fn report_foreign(file: &Path, here: Option<&Path>, report: &mut Report) {
    let source = Arc::new(Source::new(shown(file, here), ""));
    let message = "this tenure.toml above the project belongs to another user, so it is not read";
    let diagnostic = Diagnostic::new(Code::ForeignConfig, &source, Span::at(0), message);
    report.push(diagnostic.help(
        "put a tenure.toml of your own into the project; if this one is the project's, make it yours \
         (`chown`), or run Tenure from its folder",
    ));
}
