//! The readers of files and messages that nobody has to trust, each as a function of bytes.
//!
//! A reader takes any bytes and returns: no panic, no endless loop, no heap of memory. Three things call these
//! functions: the targets of `cargo fuzz` in `fuzz/`, the test of this crate, which replays the corpus in
//! `fuzz/corpus`, and the program of this crate, which mutates the corpus for as long as it is told to (`scripts/fuzz`).

mod cost;
mod mutate;
mod readers;
mod worker;

pub use cost::{Cost, MAX_CPU, MAX_MEMORY};
pub use mutate::Mutator;
pub use worker::{Verdict, Worker, serve};

use std::path::PathBuf;

/// A reader by its name, with words that mean something to it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Target {
    /// Its name, which is also that of its corpus.
    pub name: &'static str,
    /// Reads the bytes.
    pub run: fn(&[u8]),
    /// Words that the mutator strews in.
    pub words: &'static [&'static str],
}

const YAML: &[&str] = &[
    "---\n",
    "- ",
    ": ",
    "&a ",
    "*a",
    "<<: *a",
    "{",
    "}",
    "[",
    "]",
    "!!str ",
    "|\n",
    ">-\n",
    "? ",
    "# ",
    "'",
    "\"",
    "${A}",
    "${A:b}",
    "{{file:a.txt}}",
    "{{env}}",
    "\t",
    "\u{feff}",
    "\u{e0041}",
    "name",
    "hooks:\n  - ",
    "run: ",
    "when: ",
    "on: ",
    "agents: ",
    "use: ",
    "with: ",
];
const JSON: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\\ud800",
    "\\u0000",
    "\"name\"",
    "{\"$ref\":\"#\"}",
    "/*",
    "//",
];
const CODE: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "not ",
    " and ",
    " or ",
    " in ",
    " is ",
    "-",
    "+",
    "*",
    "**",
    "~",
    "|",
    ".",
    "<",
    "==",
    "'",
    "\"",
    "\\",
    ",",
    ":",
    " if ",
    " else ",
    "loop",
    "range(9)",
    "100000000",
    "'a'",
    "[1]",
    "a",
    "tool",
    "|replace('a','aa')",
    "|join",
    "|tojson",
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "for x in ",
    "endfor",
    "set x = ",
];
const PYTHON: &[&str] = &[
    "def f(ctx):\n    ",
    "async ",
    "class A(B):\n    ",
    "import a\n",
    "from . import *\n",
    "lambda: ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "@",
    ":=",
    "\"\"\"",
    "f'{",
    "}'",
    "\n    ",
    "\t",
    "\\\n",
    "return ",
    "yield ",
    "await ",
    "if ",
    "else:\n",
    "-> ",
    "**k",
    "*a",
    "x: list[int] = 1",
    "Literal[\"a\"]",
    "= ",
    ";",
    "#",
    "match x:\n case ",
];
const BYTES: &[&str] =
    &["\0\0\0\0", "\u{1}\0\0\0", "{\"id\":1}", "\u{7f}", "{\"allow\":true}", "\"r\":"];

/// Every reader.
pub const TARGETS: &[Target] = &[
    Target { name: "cards", run: readers::card, words: YAML },
    Target { name: "workflows", run: readers::workflow, words: JSON },
    Target {
        name: "toml",
        run: readers::toml,
        words: &["[", "]", "=", "\"", "'''", ".", "{", "}", ",", "[[", "#", "a"],
    },
    Target { name: "python", run: readers::python, words: PYTHON },
    Target { name: "when", run: readers::when, words: CODE },
    Target { name: "templates", run: readers::template, words: CODE },
    Target { name: "frames", run: tenure_hosts::fuzz::frames, words: BYTES },
    Target { name: "replies", run: tenure_hosts::fuzz::reply, words: JSON },
    Target { name: "journal", run: readers::journal, words: JSON },
];

/// Returns the reader of this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Gives bytes to the reader of this name.
///
/// # Panics
///
/// If there is no such reader, if it has a defect, or if it takes more than [`MAX_CPU`] or [`MAX_MEMORY`].
pub fn run(name: &str, data: &[u8]) {
    let target = target(name).expect("a reader of this name");
    let cost = Cost::of(|| (target.run)(data));
    assert!(cost.is_within_limits(), "{name} took {cost:?} for {} bytes", data.len());
}

/// The folder of a reader's corpus.
pub fn corpus(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

/// The files of a folder, in the order of their names; none if it is not there.
pub fn files(folder: &std::path::Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}
