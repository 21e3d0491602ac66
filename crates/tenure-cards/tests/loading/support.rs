//! Folders of cards.

use std::fs;
use std::path::Path;
use tenure_cards::card::{Card, Environ};
use tenure_cards::check::{LoadOptions, Loaded, load};
use tenure_cards::diagnostic::Color;

pub(crate) struct Folder(pub(crate) tempfile::TempDir);

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = Self(tempfile::tempdir().expect("a temporary folder"));
        folder.write("tenure.toml", "");
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    pub(crate) fn load(&self, path: &str) -> Loaded {
        let environ = Environ::of([("KEY", "sk-secret"), ("MODEL", "silent")]);
        load(&self.0.path().join(path), &LoadOptions::default().environ(environ))
    }

    pub(crate) fn card(&self, path: &str) -> Card {
        let loaded = self.load(path);
        assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
        loaded.cards.into_iter().find(|card| card.source.path().ends_with(path)).expect("loaded")
    }
}

pub(crate) fn codes(loaded: &Loaded) -> Vec<&'static str> {
    loaded.report.iter().map(|found| found.code.as_str()).collect()
}

#[cfg(unix)]
pub(crate) fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}
