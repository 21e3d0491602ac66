//! A case as its files say it.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The attack of a case that says none.
const USUAL: &str = "tenure run agent.md -m go --trust -q";

/// An attack, and what must not come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The part and the name: the folder beneath `redteam`.
    #[serde(skip)]
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) part: String,
    #[serde(skip)]
    pub(crate) folder: PathBuf,
    /// The attack in a sentence.
    pub(crate) about: String,
    /// A folder of `redteam/grounds` that the project begins with.
    pub(crate) ground: Option<String>,
    /// The attack as a line for a shell in the project; a file `attack.sh` takes its place.
    #[serde(default = "usual")]
    pub(crate) run: String,
    /// Variables of the terminal that the attack is run from.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) never: Never,
    #[serde(default)]
    pub(crate) always: Always,
}

/// Signs that the attack got in. A path is one of the project, or of the home if it begins with `~/`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Never {
    /// Files that are there.
    pub(crate) files: Vec<String>,
    /// Files that are no longer as they were.
    pub(crate) changed: Vec<String>,
    /// Texts in what the attack printed.
    pub(crate) said: Vec<String>,
    /// Texts in a file that was not there before, anywhere in the project and the home.
    pub(crate) written: Vec<String>,
}

/// Signs that the attack was tried.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Always {
    pub(crate) files: Vec<String>,
    pub(crate) said: Vec<String>,
}

fn usual() -> String {
    USUAL.to_owned()
}

/// The folder `redteam`.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../redteam")
}

/// Every case, by name.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for part in folders(&folder()).into_iter().filter(|part| name(part) != "grounds") {
        cases.extend(folders(&part).into_iter().map(|folder| Case::read(folder, &name(&part))));
    }
    cases
}

impl Case {
    fn read(folder: PathBuf, part: &str) -> Self {
        let file = folder.join("case.toml");
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{} cannot be read: {error}", file.display()));
        let case: Self =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let case = Self {
            name: format!("{part}/{}", name(&folder)),
            part: part.to_owned(),
            folder,
            ..case
        };
        let Never { files, changed, said, written } = &case.never;
        let signs = files.len() + changed.len() + said.len() + written.len();
        assert!(signs > 0 || part == "ends", "{}: `never` says nothing", file.display());
        case
    }

    /// Whether there are files that take the defence away.
    pub(crate) fn has_control(&self) -> bool {
        self.control().is_dir()
    }

    pub(crate) fn control(&self) -> PathBuf {
        self.folder.join("control")
    }
}

fn name(path: &Path) -> String {
    path.file_name().expect("a folder has a name").to_string_lossy().into_owned()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("the folder is there").flatten();
    let mut folders: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}
