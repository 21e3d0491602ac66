//! Folders of cards.

use tenure_cards::card::{Card, Environ};
use tenure_cards::check::{LoadOptions, Loaded, load};
use tenure_cards::diagnostic::Color;
use tenure_testkit::TestFolder;

/// A project of files.
pub(crate) struct Folder(pub(crate) TestFolder);

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = TestFolder::new(&[("tenure.toml", "")]);
        for (name, text) in files {
            folder.write(name, text);
        }
        Self(folder)
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
