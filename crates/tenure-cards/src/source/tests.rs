//! Every rule of reading a card's text.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::diagnostic::{Code, Diagnostic, Report};

fn read_as(path: &str, text: &str) -> (Option<Document>, Vec<Diagnostic>) {
    let mut report = Report::new();
    let document = parse(&Arc::new(Source::new(path, text)), &mut report);
    (document, report.into_iter().collect())
}

fn tree(text: &str) -> Node {
    let (document, report) = read_as("a.yaml", text);
    assert!(report.is_empty(), "{text:?}: {report:?}");
    document.expect("without a diagnostic there is a document").tree
}

fn field(text: &str, key: &str) -> Value {
    tree(text).field(key).expect("the field is there").value.clone()
}

/// Code, place and message of the one diagnostic.
fn only(path: &str, text: &str) -> (Code, Place, String) {
    let (_, report) = read_as(path, text);
    let [found] = &report[..] else { panic!("{text:?}: one diagnostic expected: {report:?}") };
    assert!(found.help.is_some(), "{text:?}: a remedy is missing");
    (found.code, found.source.line_col(found.span.start as usize), found.message.clone())
}

fn code(path: &str, text: &str) -> Code {
    only(path, text).0
}

fn at(line: usize, column: usize) -> Place {
    Place { line, column }
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[test]
fn values_become_what_they_look_like_and_quoted_ones_stay_text() {
    let yaml = "a: yes\nb: 'yes'\nc: 12\nd: \"12\"\ne: 1.5\nf: ~\ng:\nh: word\ni: |\n  12\n";
    assert_eq!(field(yaml, "a"), Value::Bool(true));
    assert_eq!(field(yaml, "b"), text("yes"));
    assert_eq!(field(yaml, "c"), Value::Int(12));
    assert_eq!(field(yaml, "d"), text("12"));
    assert_eq!(field(yaml, "e"), Value::Float(1.5));
    assert_eq!(field(yaml, "f"), Value::Null);
    assert_eq!(field(yaml, "g"), Value::Null);
    assert_eq!(field(yaml, "h"), text("word"));
    assert_eq!(field(yaml, "i"), text("12\n"));
}

#[test]
fn every_scalar_keeps_what_was_written() {
    let root = tree("a: 0x1F\nb: Yes\nc: ~\nd: 1_0.50\ne: text\n");
    let written: Vec<_> =
        root.map().expect("a mapping").iter().map(|(_, node)| node.scalar()).collect();
    assert_eq!(written, [Some("0x1F"), Some("Yes"), Some("~"), Some("1_0.50"), Some("text")]);
}

#[test]
fn keys_stay_text() {
    let root = tree("on: 1\nyes: 2\n3: x\nnull: 4\n1.5: 5\n");
    let keys: Vec<_> =
        root.map().expect("a mapping").iter().map(|(key, _)| key.text.as_str()).collect();
    assert_eq!(keys, ["on", "yes", "3", "null", "1.5"]);
}

#[test]
fn spans_cover_keys_and_values() {
    let yaml =
        "first: one\nlist:\n  - a\n  - {b: 'c d'}\ntext: |\n  two\n  lines\n\n\nlast: é x # why\n";
    let root = tree(yaml);
    let source = Source::new("a.yaml", yaml);
    let slice = |span| source.slice(span);
    let (key, value) = root.entry("first").expect("there");
    assert_eq!((slice(key.span), slice(value.span)), ("first", "one"));
    let list = root.field("list").expect("there");
    assert_eq!(slice(list.span), "- a\n  - {b: 'c d'}");
    let map = &list.list().expect("a list")[1];
    assert_eq!(slice(map.span), "{b: 'c d'}");
    assert_eq!(slice(map.field("b").expect("there").span), "'c d'");
    assert_eq!(slice(root.field("text").expect("there").span), "|\n  two\n  lines");
    assert_eq!(slice(root.field("last").expect("there").span), "é x");
}

#[test]
fn spans_of_front_matter_are_places_in_the_file() {
    let (document, report) =
        read_as("a.md", "\u{feff}\n---\r\nname: x\r\nmodel: é y\r\n---\r\nBody\r\nhere\r\n");
    assert!(report.is_empty(), "{report:?}");
    let document = document.expect("a document");
    let model = document.tree.field("model").expect("there");
    assert_eq!(document.source.slice(model.span), "é y");
    assert_eq!(document.source.line_col(model.span.start as usize), at(4, 8));
    let body = document.body.expect("a body");
    assert_eq!(body.text, "Body\nhere");
    assert_eq!(document.source.slice(body.span), "Body\r\nhere");
}

#[test]
fn aliases_are_copies_of_what_they_name() {
    let root = tree("a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]\nd: &s word\n*s : yes\n");
    assert_eq!(root.field("b").expect("b").to_json(), serde_json::json!({"k": [1, 2]}));
    assert_eq!(root.field("c").expect("c").list().expect("a list").len(), 2);
    assert_eq!(root.field("word").expect("the key by alias").value, Value::Bool(true));
}

#[test]
fn an_anchor_may_be_defined_again() {
    assert_eq!(field("a: &x 1\nb: &x 2\nc: *x\n", "c"), Value::Int(2));
}

#[test]
fn merge_keys_merge_and_own_keys_win() {
    let yaml = "base: &b {x: 1, y: 2}\nother: &o {y: 9, z: 9}\none: {<<: *b, y: 3}\nboth: {<<: [*b, *o]}\nplain: {'<<': 1}\n";
    let root = tree(yaml);
    let json = |key: &str| root.field(key).expect("there").to_json();
    assert_eq!(json("one"), serde_json::json!({"x": 1, "y": 3}));
    assert_eq!(json("both"), serde_json::json!({"x": 1, "y": 2, "z": 9}));
    assert_eq!(json("plain"), serde_json::json!({"<<": 1}));
}

#[test]
fn a_merge_of_something_else_is_reported() {
    let (found, place, message) = only("a.yaml", "a: {<<: 5}\n");
    assert_eq!((found, place), (Code::BadMerge, at(1, 9)));
    assert_eq!(message, "`<<` merges mappings, and this is a number");
    assert_eq!(code("a.yaml", "b: &b {x: 1}\na: {<<: [*b, word]}\n"), Code::BadMerge);
}

#[test]
fn a_key_given_twice_names_both_places_and_keeps_the_first() {
    let (found, place, message) = only("a.md", "---\nname: a\nmodel: x\nname: b\n---\n");
    assert_eq!((found, place), (Code::DuplicateKey, at(4, 1)));
    assert_eq!(message, "`name` is given twice, first on line 2, column 1");
    let (document, _) = read_as("a.yaml", "name: a\nname: b\n");
    let tree = document.expect("still read").tree;
    assert_eq!(tree.map().expect("a mapping").len(), 1);
    assert_eq!(tree.field("name").expect("there").text(), Some("a"));
}

#[test]
fn keys_given_twice_are_found_in_every_mapping() {
    let (_, report) = read_as("a.yaml", "a: {x: 1, x: 2}\nb:\n  - y: 1\n    y: 2\na: 3\n");
    assert_eq!(report.iter().filter(|found| found.code == Code::DuplicateKey).count(), 3);
}

#[test]
fn a_key_that_is_no_text_is_reported() {
    for yaml in ["? [a]\n: 1\nb: 2\n", "{{x}}: 1\n", ": 1\n", "instruction: {{x}}\n"] {
        let (_, report) = read_as("a.yaml", yaml);
        assert!(report.iter().any(|found| found.code == Code::KeyNotText), "{yaml:?}: {report:?}");
    }
}

#[test]
fn tags_of_the_core_are_understood_and_others_reported() {
    let yaml = "a: !!str 5\nb: !!int '5'\nc: !!float 5\nd: !!bool 'yes'\ne: !!null ''\nf: !!seq [1]\ng: !!map {a: 1}\nh: ! 5\n";
    assert_eq!(field(yaml, "a"), text("5"));
    assert_eq!(field(yaml, "b"), Value::Int(5));
    assert_eq!(field(yaml, "c"), Value::Float(5.0));
    assert_eq!(field(yaml, "d"), Value::Bool(true));
    assert_eq!(field(yaml, "e"), Value::Null);
    assert_eq!(field(yaml, "h"), text("5"));
    let (found, place, message) = only("a.yaml", "a: !!python/object:os.system x\n");
    assert_eq!((found, place), (Code::UnknownTag, at(1, 4)));
    assert_eq!(message, "unknown tag `!!python/object:os.system`");
    assert_eq!(code("a.yaml", "a: !env HOME\n"), Code::UnknownTag);
    assert_eq!(code("a.yaml", "a: !thing [1]\n"), Code::UnknownTag);
    assert_eq!(code("a.yaml", "a: !!int x\n"), Code::TagMismatch);
    assert_eq!(code("a.yaml", "a: !!map [1]\n"), Code::TagMismatch);
}

#[test]
fn a_second_document_is_reported_and_the_first_is_read() {
    let (found, place, _) = only("a.yaml", "---\na: 1\n---\nb: 2\n");
    assert_eq!((found, place), (Code::SeveralDocuments, at(3, 1)));
    let (document, _) = read_as("a.yaml", "a: 1\n---\nb: 2\n");
    assert_eq!(document.expect("the first").tree.to_json(), serde_json::json!({"a": 1}));
    assert_eq!(tree("---\na: 1\n...\n").to_json(), serde_json::json!({"a": 1}));
}

#[test]
fn an_unknown_alias_and_one_inside_itself_are_reported() {
    assert_eq!(code("a.yaml", "a: *x\n"), Code::UnknownAnchor);
    assert_eq!(code("a.yaml", "description: **bold** text\n"), Code::UnknownAnchor);
    let (found, place, _) = only("a.yaml", "a: &x [1, *x]\n");
    assert_eq!((found, place), (Code::RecursiveAlias, at(1, 11)));
    assert_eq!(code("a.yaml", "a: &x {<<: *x}\n"), Code::RecursiveAlias);
}

#[test]
fn syntax_errors_have_a_place_and_a_remedy() {
    let table = [
        ("description: first: second\n", 1),
        ("a: [1, 2\n", 2),
        ("a: 'open\n", 1),
        ("a: 1\n\tb: 2\n", 2),
        ("a: 1\n  b: 2\n", 2),
        ("a: @x\n", 1),
        ("a: \"\\q\"\n", 1),
        ("a: 1\nword\nb: 2\n", 2),
        ("%YAML 1.1\n---\na: 1\n", 1),
        ("a: 1\0\nb: 2\n", 1),
        ("a: \u{1b}[31m\n", 1),
    ];
    for (yaml, line) in table {
        let (found, place, message) = only("a.yaml", yaml);
        assert_eq!(found, Code::YamlSyntax, "{yaml:?}");
        assert!(place.line.abs_diff(line) <= 1, "{yaml:?} at {place:?}: {message}");
    }
}

#[test]
fn a_file_without_fields_is_empty_and_one_that_is_no_mapping_is_named() {
    assert_eq!(code("a.yaml", ""), Code::EmptyFile);
    assert_eq!(code("a.yaml", " \n\n"), Code::EmptyFile);
    assert_eq!(code("a.yaml", "# only a comment\n"), Code::EmptyFile);
    assert_eq!(code("a.md", ""), Code::EmptyFile);
    assert_eq!(code("a.md", "\u{feff}\r\n"), Code::EmptyFile);
    let (found, place, message) = only("a.md", "---\n- a\n---\n");
    assert_eq!((found, place), (Code::NotAMapping, at(2, 1)));
    assert_eq!(message, "a card's fields are a mapping, and this is a list");
    assert_eq!(code("a.yaml", "word\n"), Code::NotAMapping);
    assert_eq!(code("a.yaml", "~\n"), Code::NotAMapping);
}

#[test]
fn front_matter_may_be_empty() {
    let (document, report) = read_as("a.md", "---\n---\nHello\n");
    assert!(report.is_empty(), "{report:?}");
    let document = document.expect("a card of defaults");
    assert_eq!(document.tree.map(), Some(&[][..]));
    assert_eq!(document.body.expect("a body").text, "Hello");
}

#[test]
fn each_fault_of_front_matter_has_its_own_code() {
    assert_eq!(code("a.md", "# Title\n"), Code::NoFrontMatter);
    assert_eq!(code("a.md", "  ---\nname: a\n---\n"), Code::NoFrontMatter);
    let (found, place, _) = only("a.md", "\n---\nname: a\n\nText\n");
    assert_eq!((found, place), (Code::UnterminatedFrontMatter, at(2, 1)));
    assert_eq!(code("a.md", "+++\nname = 'a'\n+++\n"), Code::TomlFrontMatter);
    assert_eq!(code("skill.MD", "---\nname: a\n---\n"), Code::SkillManifest);
    assert_eq!(code("a.txt", "---\nname: a\n---\n"), Code::UnknownSuffix);
    assert_eq!(code("a", "---\nname: a\n---\n"), Code::UnknownSuffix);
}

#[test]
fn the_suffix_counts_in_any_case() {
    for path in ["C.MD", "c.Markdown", "c.YAML", "c.Yml"] {
        assert!(FileKind::of(std::path::Path::new(path)).is_some(), "{path}");
    }
    let (document, report) = read_as("C.MD", "---\nname: a\n---\n");
    assert!(document.is_some() && report.is_empty());
}

#[test]
fn the_body_is_trimmed_and_loses_a_first_line_system() {
    let body = |text: &str| {
        let (document, report) = read_as("a.md", &format!("---\nname: a\n---\n{text}"));
        assert!(report.is_empty(), "{report:?}");
        document.expect("a card").body.map(|body| body.text)
    };
    assert_eq!(body(""), None);
    assert_eq!(body("\n \n"), None);
    assert_eq!(body("\n\n one\n\ntwo \n\n").as_deref(), Some("one\n\ntwo"));
    assert_eq!(body("\n---SYSTEM  \n\nHello\n").as_deref(), Some("Hello"));
    assert_eq!(body("---SYSTEM\n").as_deref(), None);
    assert_eq!(body("Hello\n---SYSTEM\n").as_deref(), Some("Hello\n---SYSTEM"));
    assert_eq!(body("---SYSTEMS\n").as_deref(), Some("---SYSTEMS"));
    assert_eq!(body("a\n---\nb ${HOME} $x\n").as_deref(), Some("a\n---\nb ${HOME} $x"));
}

#[test]
fn a_conversation_in_the_body_is_reported_line_by_line() {
    let (document, report) =
        read_as("a.md", "---\nname: a\n---\nHello\n---USER\nhi\n---ASSISTANT \nho\n---RESOURCE\n");
    assert!(document.is_some());
    let places: Vec<_> = report
        .iter()
        .map(|found| (found.code, found.source.line_col(found.span.start as usize)))
        .collect();
    assert_eq!(places, [5, 7, 9].map(|line| (Code::InlineHistory, at(line, 1))));
}

#[test]
fn faults_of_fields_and_of_the_body_are_reported_together() {
    let (_, report) = read_as("a.md", "---\nname: a\nname: b\n---\n---USER\n");
    let codes: Vec<_> = report.iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::DuplicateKey, Code::InlineHistory]);
}

/// The text ends in a diagnostic of this code, soon.
fn bounded(what: &str, text: &str, expected: Code) {
    let begun = Instant::now();
    let (_, report) = read_as("bomb.yaml", text);
    let took = begun.elapsed();
    assert!(report.iter().any(|found| found.code == expected), "{what}: {report:?}");
    assert!(report.len() <= 40, "{what}: {} diagnostics", report.len());
    assert!(took < Duration::from_secs(5), "{what}: {took:?}");
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let list = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    bounded("billion laughs", &laughs, Code::TooManyNodes);

    let mut merges = "a0: &a0 {x0: 1, y0: 1, z0: 1}\n".to_owned();
    for level in 1..60 {
        let last = level - 1;
        merges.push_str(&format!(
            "a{level}: &a{level} {{<<: *a{last}, x{level}: *a{last}, y{level}: *a{last}}}\n"
        ));
    }
    bounded("merges of merges", &merges, Code::TooManyNodes);

    let wide = format!("a: &a '{}'\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 50_000].join(","));
    bounded("a long text many times", &wide, Code::TooManyNodes);
}

#[test]
fn aliases_of_a_large_list_cost_no_more_than_the_limit() {
    let list = vec!["1"; 1_000].join(",");
    let aliases = vec!["*a"; 90].join(",");
    let root = tree(&format!("a: &a [{list}]\nb: [{aliases}]\n"));
    assert_eq!(root.field("b").expect("b").list().expect("a list").len(), 90);
}

#[test]
fn deep_nesting_is_refused() {
    bounded("flow lists", &format!("a: {}", "[".repeat(100_000)), Code::TooDeep);
    bounded("flow mappings", &format!("a: {}", "{a: ".repeat(100_000)), Code::TooDeep);
    bounded("list entries", &format!("a:\n {}x\n", "- ".repeat(100_000)), Code::TooDeep);
    let steps: String = (0..300).map(|step| format!("{}k:\n", " ".repeat(step))).collect();
    bounded("block mappings", &steps, Code::TooDeep);
    let mut chain = "a0: &a0 [1]\n".to_owned();
    for level in 1..80 {
        chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    bounded("nesting through aliases", &chain, Code::TooDeep);
    assert!(read_as("a.yaml", &format!("a: {}1{}\n", "[".repeat(63), "]".repeat(63))).1.is_empty());
}

#[test]
fn ten_thousand_keys_given_twice_make_one_short_report() {
    let yaml = "key: 1\n".repeat(10_001);
    bounded("duplicates", &yaml, Code::DuplicateKey);
    let (_, report) = read_as("a.yaml", &yaml);
    assert_eq!(report.len(), 21);
    assert!(
        report[20].message.starts_with("9980 more faults of this kind"),
        "{}",
        report[20].message
    );
}

#[test]
fn many_faults_of_one_kind_make_a_short_report() {
    bounded("tags", &"- !x 1\n".repeat(20_000), Code::UnknownTag);
    bounded("merges", &format!("<<: [{}]\n", "1,".repeat(20_000)), Code::BadMerge);
    bounded("keys", &"? []\n: 1\n".repeat(10_000), Code::KeyNotText);
    let (_, report) = read_as("a.md", &format!("---\n---\n{}", "---USER\n".repeat(50_000)));
    assert_eq!(report.len(), 21);
}

#[test]
fn many_values_are_refused_and_a_long_text_is_read() {
    bounded("values", &format!("a: [{}]\n", "1,".repeat(200_000)), Code::TooManyNodes);
    let long = "x".repeat(MAX_FILE - 10);
    assert_eq!(field(&format!("a: {long}\n"), "a"), Value::Text(long));
}

#[test]
fn a_file_is_read_with_the_path_to_show() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("a.md");
    std::fs::write(&path, "---\nname: a\n---\n").expect("written");
    let mut report = Report::new();
    let source = read(&path, "cards/a.md", &mut report).expect("read");
    assert_eq!(source.path(), std::path::Path::new("cards/a.md"));
    assert!(report.is_empty());
}

#[test]
fn a_file_that_cannot_be_read_has_a_code_for_each_reason() {
    let dir = tempfile::tempdir().expect("a folder");
    let read_bytes = |name: &str, bytes: Option<&[u8]>| {
        let path = dir.path().join(name);
        if let Some(bytes) = bytes {
            std::fs::write(&path, bytes).expect("written");
        }
        let mut report = Report::new();
        assert!(read(&path, name, &mut report).is_none());
        let found = report.into_iter().next().expect("a diagnostic");
        (found.code, found.message, found.help.unwrap_or_default())
    };
    assert_eq!(read_bytes("missing.md", None).0, Code::PathMissing);
    assert_eq!(read_bytes(".", None).0, Code::Unreadable);
    assert_eq!(read_bytes("large.md", Some(&vec![b'a'; MAX_FILE + 1])).0, Code::TooLarge);
    let (found, message, help) = read_bytes("latin.md", Some(b"---\nname: caf\xe9\n---\n"));
    assert_eq!(found, Code::NotUtf8);
    assert_eq!(message, "the file is not valid UTF-8: byte 0xe9 at offset 13");
    assert_eq!(help, "save it as UTF-8");
    assert!(read_bytes("wide.md", Some(b"\xff\xfe-\0-\0")).1.contains("UTF-16"));
}
