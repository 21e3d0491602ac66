//! A project and a home for one attack, and what it left there.

use crate::case::{self, Case};
use crate::processes::processes_of;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The time after which an attack is ended.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time that what was started may live after its program.
const AFTER: Duration = Duration::from_secs(1);

pub(crate) struct Scene<'a> {
    case: &'a Case,
    folder: TempDir,
}

impl<'a> Scene<'a> {
    /// The scene as the case says it.
    pub(crate) fn new(case: &'a Case) -> Self {
        let scene = Self { case, folder: tempfile::tempdir().expect("a temporary folder") };
        for part in ["project", "home"] {
            fs::create_dir(scene.path(part)).expect("a folder can be made");
        }
        if let Some(ground) = &case.ground {
            copy(&case::folder().join("grounds").join(ground), &scene.path("project"));
        }
        scene.lay(&case.folder);
        scene
    }

    /// The same without what defends.
    pub(crate) fn undefended(case: &'a Case) -> Self {
        let scene = Self::new(case);
        scene.lay(&case.control());
        scene
    }

    fn lay(&self, from: &Path) {
        for part in ["project", "home", "attack.sh"] {
            copy(&from.join(part), &self.path(part));
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A path as cases write it.
    fn named(&self, name: &str) -> PathBuf {
        match name.strip_prefix("~/") {
            Some(name) => self.path("home").join(name),
            None => self.path("project").join(name),
        }
    }

    /// Runs the attack, and looks at what it left.
    pub(crate) fn attack(self) -> Seen<'a> {
        let attack = self.path("attack.sh");
        if !attack.exists() {
            fs::write(&attack, &self.case.run).expect("it can be written");
        }
        let before = self.files();
        let program = Path::new(env!("CARGO_BIN_EXE_tenure")).parent().expect("a folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let said = self.path("said");
        let output = fs::File::create(&said).expect("it can be made");
        let mut command = Command::new("sh");
        command
            .arg(&attack)
            .current_dir(self.path("project"))
            .env_clear()
            .env("PATH", format!("{}:{path}", program.display()))
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .envs(&self.case.env)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a second handle"))
            .stderr(output)
            .process_group(0);
        // A version manager of Python needs to know where it lives.
        for name in ["PYENV_ROOT", "PYENV_VERSION"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let mut child = command.spawn().expect("a shell starts");
        let since = Instant::now();
        let is_over = loop {
            if child.try_wait().expect("it can be waited for").is_some() {
                break true;
            }
            if since.elapsed() > PATIENCE {
                // It may have ended just now.
                let _ = child.kill();
                let _ = child.wait();
                break false;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let left = self.left();
        let said = fs::read(said).expect("it was written");
        let said = String::from_utf8_lossy(&said).into_owned();
        Seen { after: self.files(), scene: self, before, said, is_over, left }
    }

    /// What of it still lives a second after the attack was over.
    fn left(&self) -> Vec<String> {
        let (mark, since) = (self.folder.path().to_string_lossy().into_owned(), Instant::now());
        loop {
            let left = processes_of(&mark);
            if left.is_empty() || since.elapsed() > AFTER {
                return left;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Every file of the project and the home.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path("project"), self.path("home")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() {
                    folders.push(entry.path());
                } else if kind.is_file() {
                    files.insert(entry.path(), fs::read(entry.path()).unwrap_or_default());
                }
            }
        }
        files
    }
}

/// Copies a file or a folder over what is there, with modes and links; what is not there is passed over.
fn copy(from: &Path, to: &Path) {
    if !from.exists() {
        return;
    }
    let mut source = from.as_os_str().to_owned();
    if from.is_dir() {
        source.push("/.");
    }
    let copied = Command::new("cp")
        .arg("-a")
        .arg("--no-preserve=ownership,timestamps")
        .arg(source)
        .arg(to)
        .status();
    assert!(copied.expect("cp starts").success(), "{} is copied", from.display());
}

/// What an attack left.
pub(crate) struct Seen<'a> {
    scene: Scene<'a>,
    before: BTreeMap<PathBuf, Vec<u8>>,
    after: BTreeMap<PathBuf, Vec<u8>>,
    said: String,
    is_over: bool,
    left: Vec<String>,
}

impl Seen<'_> {
    /// The signs that the attack got in.
    pub(crate) fn achieved(&self) -> Vec<String> {
        let never = &self.scene.case.never;
        let mut signs = Vec::new();
        let there = never.files.iter().filter(|name| self.scene.named(name).exists());
        signs.extend(there.map(|name| format!("- the file {name} is there")));
        let differs = |name: &&String| {
            let path = self.scene.named(name);
            self.before.get(&path) != self.after.get(&path)
        };
        let changed = never.changed.iter().filter(differs);
        signs.extend(changed.map(|name| format!("- the file {name} was changed")));
        let said = never.said.iter().filter(|text| self.said.contains(text.as_str()));
        signs.extend(said.map(|text| format!("- it said {text:?}")));
        for (path, bytes) in self.after.iter().filter(|(path, _)| !self.before.contains_key(*path))
        {
            let has = |text: &&String| contains(bytes, text.as_bytes());
            let found = never.written.iter().filter(has);
            signs.extend(found.map(|text| format!("- {text:?} is in {}", path.display())));
        }
        signs.extend(self.left.iter().map(|process| format!("- it lives on: {process}")));
        signs
    }

    /// What is wrong: the signs that it got in, and those that are missing of that it was tried.
    pub(crate) fn broken(&self) -> Vec<String> {
        let always = &self.scene.case.always;
        let mut broken = self.achieved();
        if !self.is_over {
            broken.push(format!("- it was not over after {PATIENCE:?}"));
        }
        let files = always.files.iter().filter(|name| !self.scene.named(name).exists());
        broken.extend(files.map(|name| format!("- the file {name} is missing")));
        let said = always.said.iter().filter(|text| !self.said.contains(text.as_str()));
        broken.extend(said.map(|text| format!("- it did not say {text:?}")));
        broken
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--- said\n{}", self.said)
    }
}
