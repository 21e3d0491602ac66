//! What the store promises.

use super::*;
use std::os::unix::fs::MetadataExt as _;

fn item(what: &str, sha256: &str) -> Item {
    Item {
        kind: "python file".into(),
        what: what.into(),
        sha256: Some(sha256.into()),
        used_by: vec!["a".into()],
    }
}

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let store = Store::at(dir.path().join("tenure/trust.json")).expect("an empty store");
    (dir, store)
}

const ROOT: &str = "/some/project";

#[test]
fn a_project_is_trusted_for_what_was_accepted() {
    let (_dir, mut store) = store();
    let root = Path::new(ROOT);
    let items = [item("start", "aa"), item("stop", "aa")];
    assert_eq!(store.standing(root, &items), Standing::Unknown);
    store.accept(root, &items).expect("it is written");
    let again = Store::at(store.path().to_owned()).expect("it is read");
    assert_eq!(again.standing(root, &items), Standing::Trusted);
    assert_eq!(again.standing(Path::new("/other"), &items), Standing::Unknown);
}

#[test]
fn what_is_new_or_changed_is_asked_about_again() {
    let (_dir, mut store) = store();
    let root = Path::new(ROOT);
    store.accept(root, &[item("start", "aa"), item("stop", "aa")]).expect("it is written");
    let now = [item("start", "bb"), item("audit", "cc")];
    assert_eq!(
        store.standing(root, &now),
        Standing::Changed(vec![
            Change::Changed { now: item("start", "bb"), was: item("start", "aa") },
            Change::Added(item("audit", "cc")),
        ])
    );
}

#[test]
fn accepting_one_card_keeps_what_was_accepted_for_another() {
    let (_dir, mut store) = store();
    let root = Path::new(ROOT);
    store.accept(root, &[item("start", "aa")]).expect("it is written");
    store.accept(root, &[item("stop", "bb")]).expect("it is written");
    let both = [item("start", "aa"), item("stop", "bb")];
    assert_eq!(store.standing(root, &both), Standing::Trusted);
    store.accept(root, &[item("start", "cc")]).expect("it is written");
    assert_eq!(store.standing(root, &[item("start", "cc")]), Standing::Trusted);
    assert_ne!(store.standing(root, &both), Standing::Trusted, "the old contents are forgotten");
}

#[test]
fn the_same_file_at_a_new_place_is_asked_about_too() {
    let (_dir, mut store) = store();
    let root = Path::new(ROOT);
    let used = |by: &[&str]| Item {
        used_by: by.iter().map(|it| (*it).to_owned()).collect(),
        ..item("hooks.py", "aa")
    };
    store.accept(root, &[used(&["a: on_start"])]).expect("it is written");
    let now = [used(&["a: on_start", "a: wrap_tool_call"])];
    assert_ne!(store.standing(root, &now), Standing::Trusted);
    store.accept(root, &[used(&["a: wrap_tool_call"])]).expect("it is written");
    assert_eq!(store.standing(root, &now), Standing::Trusted);
}

#[test]
fn a_project_that_executes_nothing_needs_no_trust() {
    let (_dir, store) = store();
    assert_eq!(store.standing(Path::new(ROOT), &[]), Standing::Trusted);
    assert!(!store.path().exists(), "reading creates nothing");
}

#[test]
fn only_the_user_can_read_and_write_it() {
    let (_dir, mut store) = store();
    store.accept(Path::new(ROOT), &[item("start", "aa")]).expect("it is written");
    let mode = |path: &Path| std::fs::metadata(path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(store.path()), 0o600);
    assert_eq!(mode(store.path().parent().expect("a folder")), 0o700);
}

#[test]
fn a_store_that_others_can_write_is_refused() {
    let (_dir, mut store) = store();
    store.accept(Path::new(ROOT), &[item("start", "aa")]).expect("it is written");
    std::fs::set_permissions(store.path(), Permissions::from_mode(0o666)).expect("chmod");
    let error = Store::at(store.path().to_owned()).expect_err("it is refused");
    assert!(error.to_string().contains("can be written by others"), "{error}");
}

#[test]
fn a_store_in_a_folder_that_others_can_write_is_refused() {
    let (dir, mut store) = store();
    store.accept(Path::new(ROOT), &[item("start", "aa")]).expect("it is written");
    let folder = store.path().parent().expect("a folder");
    for at in [folder, dir.path()] {
        let before = std::fs::metadata(at).expect("it is there").permissions();
        std::fs::set_permissions(at, Permissions::from_mode(0o777)).expect("chmod");
        let error = Store::at(store.path().to_owned()).expect_err("it is refused");
        let said = format!("{} can be written by others", at.display());
        assert!(error.to_string().contains(&said), "{error}");
        std::fs::set_permissions(at, before).expect("chmod");
    }
    Store::at(store.path().to_owned()).expect("it counts again");
    // In a folder like that of temporary files no user can replace what others have there.
    std::fs::set_permissions(dir.path(), Permissions::from_mode(0o1777)).expect("chmod");
    Store::at(store.path().to_owned()).expect("it counts");
}

#[test]
fn a_store_that_belongs_to_another_user_is_refused() {
    let (_dir, mut store) = store();
    store.accept(Path::new(ROOT), &[item("start", "aa")]).expect("it is written");
    let folder = store.path().parent().expect("a folder").to_owned();
    for at in [store.path().to_owned(), folder] {
        if std::os::unix::fs::chown(&at, Some(12345), None).is_err() {
            eprintln!("only root can give a file away, so this is tested as root alone");
            return;
        }
        let error = Store::at(store.path().to_owned()).expect_err("it is refused");
        assert!(error.to_string().contains("belongs to another user (uid 12345"), "{error}");
        std::os::unix::fs::chown(&at, Some(0), None).expect("chown");
    }
}

#[test]
fn a_store_in_the_project_is_refused_however_it_is_reached() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let root = dir.path().canonicalize().expect("its path");
    let (project, elsewhere) = (root.join("project"), root.join("elsewhere"));
    std::fs::create_dir_all(project.join("data")).expect("made");
    std::os::unix::fs::symlink(project.join("data"), &elsewhere).expect("linked");
    for store in [project.join("data/tenure/trust.json"), elsewhere.join("tenure/trust.json")] {
        let error = owner::ensure_outside(&store, &project).expect_err("it is refused");
        assert!(error.to_string().contains("is inside the project"), "{error}");
    }
    owner::ensure_outside(&root.join("home/tenure/trust.json"), &project).expect("it is outside");
}

#[test]
fn a_damaged_store_trusts_nothing_and_is_not_overwritten() {
    let (_dir, mut store) = store();
    store.accept(Path::new(ROOT), &[item("start", "aa")]).expect("it is written");
    std::fs::write(store.path(), "{ \"version\": 1, ").expect("damage");
    let error = Store::at(store.path().to_owned()).expect_err("it is refused");
    assert!(error.to_string().contains("is damaged"), "{error}");
    assert!(store.accept(Path::new("/b"), &[item("x", "y")]).is_err());
    let text = std::fs::read_to_string(store.path()).expect("it is still there");
    assert_eq!(text, "{ \"version\": 1, ");
}

#[test]
fn two_who_accept_at_the_same_time_both_count() {
    let (dir, first) = store();
    let path = first.path().to_owned();
    let threads: Vec<_> = (0..8)
        .map(|at| {
            let path = path.clone();
            std::thread::spawn(move || {
                let mut store = Store::at(path).expect("it is read");
                store.accept(Path::new(&format!("/p{at}")), &[item("a", "b")])
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic").expect("it is written");
    }
    assert_eq!(Store::at(path).expect("it is read").projects().len(), 8);
    drop(dir);
}

#[test]
fn revoking_forgets() {
    let (_dir, mut store) = store();
    let root = Path::new(ROOT);
    assert!(!store.revoke(root).expect("nothing to do"));
    store.accept(root, &[item("start", "aa")]).expect("it is written");
    assert!(store.revoke(root).expect("it is written"));
    assert_eq!(store.standing(root, &[item("start", "aa")]), Standing::Unknown);
}
