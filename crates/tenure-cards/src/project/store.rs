//! `[store]` of `tenure.toml`: where runs are recorded, and what becomes of those that stopped.

use super::confine::{ConfineError, confine, plain};
use super::reader::Settings;
use crate::diagnostic::Code;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

pub(super) const STORE: &str = "store";

/// Where runs are recorded unless a project says otherwise, from its folder.
const FILE: &str = ".tenure/tenure.db";
const KEYS: &[&str] = &["record", "path", "on_start", "on_message", "durability"];
const FROM: &str = "the path starts from the folder of tenure.toml and stays beneath it";

/// What `[store]` of `tenure.toml` says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreSettings {
    /// Whether runs are recorded.
    pub record: bool,
    /// The file: absolute, and beneath the project, if the project says it. It need not be there
    /// yet.
    pub path: Option<PathBuf>,
    /// What becomes of runs that did not finish, when the next one is started.
    pub on_start: OnStart,
    /// What becomes of a run that waits for a person, when its conversation gets another message.
    pub on_message: OnMessage,
    /// What has to be lost for something that was recorded to be lost.
    pub durability: Durability,
}

impl StoreSettings {
    /// The file, for a project in the folder `root`.
    pub fn file(&self, root: &Path) -> PathBuf {
        self.path.clone().unwrap_or_else(|| root.join(FILE))
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            record: true,
            path: None,
            on_start: OnStart::default(),
            on_message: OnMessage::default(),
            durability: Durability::default(),
        }
    }
}

/// What becomes of runs that did not finish, when the next one is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnStart {
    /// They are left as they are, and a note says so.
    #[default]
    Keep,
    /// They go on first.
    Resume,
    /// They are ended first, as abandoned.
    Abandon,
}

/// What becomes of a run that waits for a person, when its conversation gets another message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMessage {
    /// It waits on, and the message is refused.
    #[default]
    Refuse,
    /// Its questions are taken back, and it is ended as cancelled.
    Cancel,
}

/// What has to be lost for something that was recorded to be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// The disk.
    #[default]
    Full,
    /// The machine's power: then the last moments may be gone. The death of a process loses nothing.
    Relaxed,
}

/// `folder` is the project's, resolved.
pub(super) fn read(reader: &mut Settings<'_>, root: &DeTable<'_>, folder: &Path) -> StoreSettings {
    let mut settings = StoreSettings::default();
    let Some(store) = reader.table(root, STORE) else { return settings };
    reader.only(store, "[store]", KEYS);
    if let Some(found) = store.get("record") {
        match found.get_ref().as_bool() {
            Some(record) => settings.record = record,
            None => reader.wrong("store.record", "true or false", found),
        }
    }
    if let Some((text, at)) = reader.text(store, "store.path", "path") {
        match file(folder, &text) {
            Ok(file) => settings.path = Some(file),
            Err(what) => {
                let message = format!("`store.path` names `{text}`, which {what}");
                reader.problem(Code::BadSetting, at, message, FROM);
            }
        }
    }
    let on_start =
        [("keep", OnStart::Keep), ("resume", OnStart::Resume), ("abandon", OnStart::Abandon)];
    let on_start = reader.one_of(store, "store.on_start", "on_start", &on_start);
    settings.on_start = on_start.unwrap_or_default();
    let on_message = [("refuse", OnMessage::Refuse), ("cancel", OnMessage::Cancel)];
    let on_message = reader.one_of(store, "store.on_message", "on_message", &on_message);
    settings.on_message = on_message.unwrap_or_default();
    let durability = [("full", Durability::Full), ("relaxed", Durability::Relaxed)];
    let durability = reader.one_of(store, "store.durability", "durability", &durability);
    settings.durability = durability.unwrap_or_default();
    settings
}

/// Where the file is. It is made when it is first used, and so are its folders: what of them is
/// there must not lead out of the project.
fn file(root: &Path, text: &str) -> Result<PathBuf, String> {
    let full = plain(&root.join(text));
    if full == *root || text.ends_with('/') {
        return Err("is not a file".to_owned());
    }
    // What links lead to is looked at beneath the project only.
    for there in full.ancestors().take_while(|it| it.starts_with(root)) {
        match confine(root, root, there) {
            Ok(found) if there == full => {
                return if found.is_file() { Ok(found) } else { Err("is not a file".to_owned()) };
            }
            Ok(found) if found.is_dir() => {
                let rest = full.strip_prefix(there).unwrap_or(&full);
                return Ok(found.join(rest));
            }
            Ok(_) => return Err("is in no folder".to_owned()),
            // A link to a file that is not there would make the file wherever it leads.
            Err(ConfineError::Missing) if there.is_symlink() => {
                return Err("is a link to nothing".to_owned());
            }
            Err(ConfineError::Missing) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Err(ConfineError::Outside.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Project;

    fn project(text: &str) -> (tempfile::TempDir, Project) {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("data")).expect("a folder");
        std::fs::write(folder.path().join("a.md"), "x").expect("a file");
        std::os::unix::fs::symlink("/", folder.path().join("out")).expect("a link");
        std::os::unix::fs::symlink("gone", folder.path().join("nowhere")).expect("a link");
        std::fs::write(folder.path().join("tenure.toml"), text).expect("a file");
        let project = Project::find(folder.path());
        (folder, project)
    }

    #[test]
    fn a_project_that_says_nothing_of_it_records_beneath_its_folder() {
        let (_folder, project) = project("");
        let settings = &project.config.store;
        assert_eq!(*settings, StoreSettings::default());
        assert!(settings.record);
        assert_eq!(settings.file(&project.root), project.root.join(".tenure/tenure.db"));
    }

    #[test]
    fn everything_can_be_said() {
        let (_folder, project) = project(
            "[store]\nrecord = false\npath = \"data/deep/er/runs.db\"\non_start = \"abandon\"\n\
             on_message = \"cancel\"\ndurability = \"relaxed\"\n",
        );
        assert!(project.report().is_empty(), "{:?}", project.report());
        let file = project.root.join("data/deep/er/runs.db");
        assert_eq!(
            project.config.store,
            StoreSettings {
                record: false,
                path: Some(file.clone()),
                on_start: OnStart::Abandon,
                on_message: OnMessage::Cancel,
                durability: Durability::Relaxed,
            }
        );
        assert_eq!(project.config.store.file(&project.root), file);
    }

    #[test]
    fn what_is_wrong_with_it_is_said_where_it_stands() {
        let (_folder, found) = project(
            "[store]\nrecord = \"yes\"\npath = \"../runs.db\"\non_start = \"resum\"\n\
             on_message = 1\ndurability = \"best\"\nrecords = true\n",
        );
        let said: Vec<_> = found
            .report()
            .iter()
            .map(|it| {
                let line = it.source.line_col(it.span.start as usize).line;
                let help = it.help.as_deref().unwrap_or_default();
                format!("{line}: {} ({help})", it.message)
            })
            .collect();
        assert_eq!(
            said,
            [
                "2: `store.record` must be true or false, but is of type string (write true or \
                 false, without quotes)",
                "3: `store.path` names `../runs.db`, which is outside of the project (the path \
                 starts from the folder of tenure.toml and stays beneath it)",
                "4: `store.on_start` is `resum`, but must be `keep`, `resume` or `abandon` (did you \
                 mean `resume`?)",
                "5: `store.on_message` must be a text that is not empty, but is of type integer \
                 (write a text in quotes)",
                "6: `store.durability` is `best`, but must be `full` or `relaxed` (use `full` or \
                 `relaxed`)",
                "7: `records` is not a setting of [store] (did you mean `record`?)",
            ]
        );
        let paths = [
            ("data", "is not a file"),
            (".", "is not a file"),
            ("new/", "is not a file"),
            ("/etc/runs.db", "is outside of the project"),
            ("out/runs.db", "is a link that leads out of the project"),
            ("nowhere", "is a link to nothing"),
            ("nowhere/runs.db", "is a link to nothing"),
            ("a.md/runs.db", "is in no folder"),
        ];
        for (path, what) in paths {
            let (_folder, found) = project(&format!("[store]\npath = \"{path}\"\n"));
            let said: Vec<_> = found.report().iter().map(|it| it.message.to_string()).collect();
            assert_eq!(said, [format!("`store.path` names `{path}`, which {what}")]);
        }
    }
}
