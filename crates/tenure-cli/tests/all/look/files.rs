//! `tenure export` and `tenure db`.

use super::{done, signed};
use std::io::{Seek as _, SeekFrom, Write as _};

#[test]
fn a_run_is_exported_whole_and_never_over_another_file() {
    let sandbox = done();
    let events = sandbox.run(&["events", "last", "--json"]).exits(0).json_lines();
    let lines = sandbox.run(&["export", "last"]).exits(0).json_lines();
    assert_eq!(lines.len(), events.len() + 2, "the run, its records, its question");
    assert_eq!(lines[0]["type"], "run");
    assert_eq!(lines[0]["output"], "the end: written");
    assert_eq!(lines[1..=events.len()], events);
    assert_eq!(lines[events.len() + 1]["type"], "ask");
    assert_eq!(lines[events.len() + 1]["by"], signed("ada"));
    sandbox.run(&["export", "last", "-o", "run.jsonl"]).exits(0).says("written: run.jsonl");
    let written = sandbox.read("run.jsonl");
    assert_eq!(written.lines().count(), lines.len());
    sandbox.write("run.jsonl", "mine\n");
    let ran = sandbox.run(&["export", "last", "-o", "run.jsonl"]).exits(2);
    ran.says("is there already").says("--force");
    assert_eq!(sandbox.read("run.jsonl"), "mine\n");
    sandbox.run(&["export", "last", "-o", "run.jsonl", "--force"]).exits(0);
    assert_eq!(sandbox.read("run.jsonl"), written);
}

#[test]
fn a_transcript_reads_from_top_to_bottom() {
    let sandbox = done();
    let ran = sandbox.run(&["export", "last", "--format", "markdown"]).exits(0);
    let parts = [
        "# clerk · run ",
        "| status | ok |",
        "## What was asked\n\n> go\n",
        "### clerk\n",
        "> Write this note?\n",
        &format!("**approved by {}, ", signed("ada")),
        "*Life 2: goes on.*",
        "- tool `write_note`\n\n  ```json\n  {\"text\":\"buy milk\"}\n  ```\n\n  ```text\n  written\n  ```\n",
        "> the end: written\n",
        "## What came of it\n\n> the end: written\n",
    ];
    let mut from = 0;
    for part in parts {
        let at =
            ran.stdout[from..].find(part).unwrap_or_else(|| panic!("{part:?} is missing\n{ran}"));
        from += at;
    }
    assert!(!ran.stdout.contains("set aside"), "{ran}");
}

#[test]
fn a_whole_file_is_told_from_a_damaged_one() {
    let sandbox = done();
    sandbox.run(&["db", "verify"]).exits(0).prints("whole: .tenure/tenure.db · 1 run and ");
    let whole = sandbox.run(&["db", "verify", "--json"]).exits(0).json_lines();
    assert_eq!((&whole[0]["whole"], &whole[0]["runs"]), (&true.into(), &1.into()));
    sandbox.run(&["db", "backup", "copy.db"]).exits(0).prints("written: copy.db");
    sandbox.run(&["db", "backup", "copy.db"]).exits(1).says("such a file already");
    let copied = sandbox.run(&["show", "last", "--store", "copy.db"]).exits(0);
    copied.prints("the end: written");
    // Text that is written nowhere else than in a record.
    let path = sandbox.path("copy.db");
    let bytes = std::fs::read(&path).expect("a file");
    let needle = b"\"kind\":\"card\",\"name\":\"clerk\",\"life\":1";
    let places = bytes.windows(needle.len()).enumerate().filter(|(_, it)| it == needle);
    let places: Vec<_> = places.map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "the record is there");
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).expect("a file");
    for at in places {
        file.seek(SeekFrom::Start(at as u64 + 8)).expect("a place");
        file.write_all(b"C").expect("a byte");
    }
    drop(file);
    let ran = sandbox.run(&["db", "verify", "--store", "copy.db"]).exits(1);
    ran.prints("damaged: ").prints("checksum").says("put a backup in its place");
    let ran = sandbox.run(&["show", "last", "--store", "copy.db"]).exits(1);
    ran.says("is damaged").says("tenure db verify");
}

#[test]
fn what_is_long_over_is_forgotten_but_what_came_of_it_stays() {
    let sandbox = done();
    let kept = sandbox.run(&["db", "compact", "--older-than", "30d"]).exits(0);
    kept.prints("no run lost its records");
    let ran = sandbox.run(&["db", "compact", "--keep", "0", "--json"]).exits(0).json_lines();
    assert_eq!(ran[0]["runs"], 1);
    sandbox.run(&["runs"]).exits(0).prints("go → the end: written");
    sandbox.run(&["show", "last"]).exits(0).prints("deleted by `tenure db compact`");
    sandbox.run(&["db", "verify"]).exits(0);
    sandbox.run(&["db", "compact", "--older-than", "soon"]).exits(2).says("30d");
}
