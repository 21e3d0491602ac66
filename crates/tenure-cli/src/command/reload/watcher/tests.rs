use super::*;
use tenure_cards::check::{LoadOptions, load};

const CARD: &str =
    "---\nname: a\nmodel: passthrough\nlifecycle_hooks:\n  on_start: hooks.py:start\n---\nx\n";

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().expect("a folder") };
        place.write("tenure.toml", "");
        place.write("cards/a.md", CARD);
        place.write("cards/hooks.py", "import helper\ndef start(ctx):\n    pass\n");
        place.write("cards/helper.py", "");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn team(&self) -> Team {
        let loaded = load(&self.path("cards"), &LoadOptions::default());
        Team::builder(loaded).build().expect("a team")
    }

    fn watcher(&self) -> Watcher {
        Watcher::new(&self.team()).expect("it watches")
    }

    fn polling(&self) -> Watcher {
        let bell = Arc::new(Notify::new());
        let eyes = Eyes::polling(&bell).expect("it polls");
        Watcher::with(&self.team(), bell, eyes, Some("no room".to_owned())).expect("it watches")
    }
}

/// The changes that are told within some seconds, as `name what`.
async fn told(watcher: &mut Watcher) -> Vec<String> {
    let changed = tokio::time::timeout(Duration::from_secs(20), watcher.changed()).await;
    changed.expect("a change is told");
    names(watcher)
}

fn names(watcher: &Watcher) -> Vec<String> {
    let name = |change: &FileChange| {
        let name = change.path().file_name().unwrap_or_default().to_string_lossy();
        format!("{name} {}", change.what())
    };
    watcher.changes().iter().map(name).collect()
}

/// Nothing is told for longer than a burst may last.
async fn nothing_is_told(watcher: &mut Watcher) {
    let quiet = LONGEST + QUIET + QUIET;
    let told = tokio::time::timeout(quiet, watcher.changed()).await;
    assert!(told.is_err(), "{:?}", names(watcher));
}

#[tokio::test]
async fn a_file_that_is_saved_by_rename_is_told() {
    let place = Place::new();
    let mut watcher = place.watcher();
    place.write("cards/.a.md.tmp", &CARD.replace("passthrough", "slow"));
    std::fs::rename(place.path("cards/.a.md.tmp"), place.path("cards/a.md")).expect("renamed");
    assert_eq!(told(&mut watcher).await, ["a.md changed"]);
    // And again: the file that is there now is another one.
    place.write("cards/.a.md.tmp", CARD);
    std::fs::rename(place.path("cards/.a.md.tmp"), place.path("cards/a.md")).expect("renamed");
    assert_eq!(told(&mut watcher).await, [""; 0], "it is as it was when it was taken");
}

#[tokio::test]
async fn fifty_writes_are_one_change() {
    let place = Place::new();
    let mut watcher = place.watcher();
    for number in 0..50 {
        place.write("cards/a.md", &format!("{CARD}{number}\n"));
    }
    assert_eq!(told(&mut watcher).await, ["a.md changed"]);
    nothing_is_told(&mut watcher).await;
}

#[tokio::test]
async fn what_is_no_source_and_what_is_written_as_it_was_is_not_told() {
    let place = Place::new();
    let mut watcher = place.watcher();
    place.write("cards/a.md", CARD);
    place.write("cards/log.txt", "a hook wrote this");
    place.write("cards/.a.md.swp", "an editor wrote this");
    place.write("cards/a.md~", "and this");
    place.write("cards/__pycache__/hooks.cpython-312.pyc", "Python wrote this");
    place.write(".tenure/journal.md", "the program wrote this");
    nothing_is_told(&mut watcher).await;
}

#[tokio::test]
async fn cards_and_modules_that_come_and_go_are_told() {
    let place = Place::new();
    let mut watcher = place.watcher();
    place.write("cards/b.md", &CARD.replace("name: a", "name: b"));
    assert_eq!(told(&mut watcher).await, ["b.md new"]);
    place.write("cards/package/__init__.py", "");
    assert_eq!(told(&mut watcher).await, ["b.md new", "__init__.py new"]);
    // A folder that was made meanwhile is watched too.
    place.write("cards/package/deep.py", "x = 1\n");
    assert_eq!(told(&mut watcher).await, ["b.md new", "__init__.py new", "deep.py new"]);
    std::fs::remove_file(place.path("cards/helper.py")).expect("removed");
    assert!(told(&mut watcher).await.contains(&"helper.py gone".to_owned()));
}

#[tokio::test]
async fn a_file_that_only_a_broken_card_names_is_waited_for() {
    let place = Place::new();
    let mut watcher = place.watcher();
    let card = CARD.replace("hooks.py:start", "../lib/more.py:start");
    place.write("cards/a.md", &card);
    assert_eq!(told(&mut watcher).await, ["a.md changed"]);
    let loaded = load(&place.path("cards"), &LoadOptions::default());
    assert!(loaded.report.has_errors(), "the file is not there");
    watcher.consider(&loaded);
    place.write("lib/more.py", "def start(ctx):\n    pass\n");
    assert_eq!(told(&mut watcher).await, ["a.md changed", "more.py new"]);
    let loaded = load(&place.path("cards"), &LoadOptions::default());
    assert!(!loaded.report.has_errors(), "it is there now");
    watcher.follow(&loaded);
    assert_eq!(watcher.changes(), []);
    place.write("cards/helper.py", "x = 2\n");
    nothing_is_told(&mut watcher).await;
    place.write("lib/more.py", "def start(ctx):\n    print()\n");
    assert_eq!(told(&mut watcher).await, ["more.py changed"]);
}

#[tokio::test]
async fn a_change_is_not_lost_when_nobody_waits() {
    let place = Place::new();
    let mut watcher = place.watcher();
    place.write("cards/helper.py", "x = 1\n");
    for _ in 0..20 {
        // Dropped in the middle of a burst, again and again.
        let _ = tokio::time::timeout(Duration::from_millis(10), watcher.changed()).await;
    }
    assert_eq!(told(&mut watcher).await, ["helper.py changed"]);
}

#[tokio::test]
async fn a_folder_that_is_put_in_the_place_of_another_is_watched() {
    let place = Place::new();
    let mut watcher = place.watcher();
    place.write("other/a.md", CARD);
    place.write("other/hooks.py", "import helper\ndef start(ctx):\n    pass\n");
    std::fs::rename(place.path("cards"), place.path("old")).expect("renamed");
    std::fs::rename(place.path("other"), place.path("cards")).expect("renamed");
    assert_eq!(told(&mut watcher).await, ["helper.py gone"]);
    place.write("cards/helper.py", "x = 3\n");
    assert_eq!(told(&mut watcher).await, ["helper.py changed"]);
}

#[tokio::test]
async fn where_the_system_does_not_tell_files_are_looked_at() {
    let place = Place::new();
    let mut watcher = place.polling();
    assert!(watcher.excuses[0].contains("(no room)"), "{:?}", watcher.excuses);
    nothing_is_told(&mut watcher).await;
    place.write("cards/.a.md.tmp", &CARD.replace("passthrough", "slow"));
    std::fs::rename(place.path("cards/.a.md.tmp"), place.path("cards/a.md")).expect("renamed");
    assert_eq!(told(&mut watcher).await, ["a.md changed"]);
    place.write("cards/b.md", &CARD.replace("name: a", "name: b"));
    assert_eq!(told(&mut watcher).await, ["a.md changed", "b.md new"]);
}
