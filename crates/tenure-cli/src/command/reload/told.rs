//! How a reload is told.

use super::super::cards::print_diagnostics;
use super::super::project::complain_about;
use super::{ReloadWishes, Telling, Why};
use crate::terminal::print_json;
use crate::terminal::style::{BAD, BOLD, DIM, GOOD, WARN, paint};
use crate::terminal::text::{clean_block, clean_line, human, plural};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::check::Loaded;
use tenure_cards::diagnostic::Report;
use tenure_cards::sources::FileChange;
use tenure_cards::team::Team;

/// No line names more files or agents than these.
const MOST: usize = 5;
/// What is said whenever the old team stays.
const STAY: &str = "the running agents stay as they are";

/// One reload, as it is told.
pub(super) struct Told<'a> {
    wishes: &'a ReloadWishes,
    /// The files, as the project knows them, and what became of each.
    files: Vec<(String, &'static str)>,
}

impl<'a> Told<'a> {
    pub(super) fn new(wishes: &'a ReloadWishes, loaded: &Loaded, changes: &[FileChange]) -> Self {
        let file = |change: &FileChange| {
            (clean_line(&loaded.project.relative(change.path())), change.what())
        };
        // What lies elsewhere, such as the record of what is trusted, is none of the project's.
        let own = changes.iter().filter(|it| it.path().starts_with(&loaded.project.root));
        Self { wishes, files: own.map(file).collect() }
    }

    /// The files are again as they were when the running agents were made.
    pub(super) fn unchanged(&self) {
        if self.wishes.telling == Telling::Words {
            self.say("reload", "the files are as the running agents know them; nothing to do");
        }
        self.json(|it| it["outcome"] = "unchanged".into());
    }

    pub(super) fn warnings(&self, report: &Report) {
        if self.wishes.telling != Telling::Problems && !report.is_empty() {
            let _quiet = self.wishes.screen.hold();
            complain_about(report);
        }
    }

    pub(super) fn replaced(
        &self,
        old: &Team,
        new: &Team,
        touched: &BTreeSet<Arc<str>>,
        took: Duration,
    ) {
        let (before, after) = (old.agents(), new.agents());
        let lacks = |names: &[&str], name: &str| !names.contains(&name);
        let added: Vec<_> = after.iter().copied().filter(|it| lacks(&before, it)).collect();
        let gone: Vec<_> = before.iter().copied().filter(|it| lacks(&after, it)).collect();
        let both = after.iter().copied().filter(|it| !lacks(&before, it));
        let changed: Vec<_> = both.filter(|it| touched.contains(*it)).collect();
        if self.wishes.telling == Telling::Words {
            let mut parts = vec![self.listed_files()];
            for (what, names) in [("new", &added), ("changed", &changed), ("gone", &gone)] {
                if !names.is_empty() {
                    let names: Vec<_> = names.iter().map(|name| clean_line(name)).collect();
                    parts.push(format!("{what}: {}", listed(&names)));
                }
            }
            let same = after.len() - added.len() - changed.len();
            if same > 0 && added.is_empty() && changed.is_empty() && gone.is_empty() {
                parts.push("no agent changed".to_owned());
            }
            parts.push(paint(DIM, human(took)));
            self.say("reloaded", &parts.join("; "));
        }
        self.json(|it| {
            it["outcome"] = "replaced".into();
            it["new"] = json!(added);
            it["changed"] = json!(changed);
            it["gone"] = json!(gone);
            it["duration_ms"] = json!(took.as_secs_f64() * 1e3);
        });
    }

    pub(super) fn kept(&self, why: Why) {
        let error = match &why {
            Why::Stopped => return,
            Why::Broken(_) => "the check found errors".to_owned(),
            Why::Refused(_) => "the cards cannot be run".to_owned(),
            Why::Said(text) => clean_block(text),
            Why::Cancelled => "it was cancelled".to_owned(),
        };
        {
            let _quiet = self.wishes.screen.hold();
            match &why {
                Why::Broken(opened) => drop(opened.complain()),
                Why::Refused(report) => complain_about(report),
                _ => {}
            }
        }
        if let Why::Said(_) = &why {
            self.wishes.screen.print(&format!("{} {error}", paint(BAD, "error:")));
        }
        let files = self.listed_files();
        let label = if matches!(why, Why::Cancelled) { "cancelled:" } else { "not reloaded:" };
        self.wishes.screen.print(&format!("{} {files}; {}", paint(WARN, label), paint(BOLD, STAY)));
        if self.wishes.telling == Telling::Json {
            match &why {
                Why::Broken(opened) => print_diagnostics(opened.report()),
                Why::Refused(report) => print_diagnostics(report),
                _ => {}
            }
        }
        self.json(|it| {
            it["outcome"] = "kept".into();
            it["error"] = anstream::adapter::strip_str(&error).to_string().into();
        });
    }

    fn say(&self, label: &str, text: &str) {
        self.wishes.screen.print(&format!("{} {text}", paint(GOOD, format_args!("{label}:"))));
    }

    fn listed_files(&self) -> String {
        let file = |(name, what): &(String, &str)| match *what {
            "changed" => name.clone(),
            what => format!("{name} ({what})"),
        };
        listed(&self.files.iter().map(file).collect::<Vec<_>>())
    }

    fn json(&self, fill: impl FnOnce(&mut Value)) {
        if self.wishes.telling != Telling::Json {
            return;
        }
        let file = |(name, what): &(String, &str)| json!({ "path": name, "what": what });
        let files: Vec<_> = self.files.iter().map(file).collect();
        let mut line = json!({ "type": "reload", "files": files });
        fill(&mut line);
        print_json(line);
    }
}

/// The first of them, and how many more there are.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {}", plural(more, "other")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_says_how_long_it_is() {
        let names: Vec<_> = (0..7).map(|at| at.to_string()).collect();
        assert_eq!(listed(&names), "0, 1, 2, 3, 4 and 2 others");
        assert_eq!(listed(&names[..2]), "0, 1");
    }
}
