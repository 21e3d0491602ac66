//! A dump loses nothing, and a dump of a dump is that dump.

use std::sync::Arc;

use proptest::prelude::*;

use super::order::{fields, rank};
use super::scalar::{entry, flow, inline, quoted};
use super::write::alike;
use super::{Format, dump_document};
use crate::diagnostic::{Color, Report};
use crate::source::{Document, Node, Source, Value, parse};

fn read(path: &str, text: &str) -> Document {
    let mut report = Report::new();
    let document = parse(&Arc::new(Source::new(path, text)), &mut report);
    assert!(report.is_empty(), "{text}\n{}", report.render_text(Color::Never));
    document.expect("without a diagnostic there is a document")
}

fn path_of(format: Format) -> &'static str {
    match format {
        Format::Markdown => "dump.md",
        Format::Yaml => "dump.yaml",
    }
}

fn dump(document: &Document, format: Format) -> String {
    dump_document(document, "stem", format)
}

/// Both dumps of a document, after proving that they keep it and that they are stable.
fn proven(document: &Document) -> (String, String) {
    let formats = [Format::Markdown, Format::Yaml];
    let first = formats.map(|format| dump(document, format));
    for (format, text) in formats.into_iter().zip(&first) {
        let again = read(path_of(format), text);
        assert!(
            alike(document, &again),
            "lost something:\n{}\n---->\n{text}",
            document.source.text()
        );
        for (other, expected) in formats.into_iter().zip(&first) {
            let second = dump(&again, other);
            let source = document.source.text();
            assert_eq!(&second, expected, "{format:?} to {other:?} of\n{source}\n---->\n{text}");
        }
    }
    let [markdown, yaml] = first;
    (markdown, yaml)
}

fn markdown(path: &str, text: &str) -> String {
    proven(&read(path, text)).0
}

fn yaml(path: &str, text: &str) -> String {
    proven(&read(path, text)).1
}

#[test]
fn entries_are_copied_in_canonical_order_with_their_comments() {
    let text = "\
---
# the team's agent

shell: true   # careful
# which model
# is cheap
model: ${MODEL:cheap}
custom: [1,   2]
type:    agent
api_key: \"${SECRET}\"
---
You are helpful.
";
    let expected = "\
---
# the team's agent

type:    agent
name: stem
# which model
# is cheap
model: ${MODEL:cheap}
api_key: \"${SECRET}\"
shell: true   # careful
custom: [1,   2]
---

You are helpful.
";
    assert_eq!(markdown("a.md", text), expected);
}

#[test]
fn a_body_becomes_a_block_and_a_block_a_body() {
    let text = "---\nname: a\n---\n# Title\n\n  indented\n\n---\n- x: y\n";
    let expected = "name: a\ninstruction: |-\n  # Title\n\n    indented\n\n  ---\n  - x: y\n";
    assert_eq!(yaml("a.md", text), expected);
    assert_eq!(
        markdown("a.yaml", expected),
        "---\nname: a\n---\n\n# Title\n\n  indented\n\n---\n- x: y\n"
    );
}

#[test]
fn an_instruction_becomes_the_body_however_it_was_written() {
    for written in [
        "hello there",
        "'hello there'",
        "\"hello\\x20there\"",
        "|-\n  hello there",
        "hello\n  there",
    ] {
        let text = format!("instruction: {written}\nname: a\n");
        assert_eq!(markdown("a.yaml", &text), "---\nname: a\n---\n\nhello there\n", "{written}");
        assert_eq!(yaml("a.yaml", &text), "name: a\ninstruction: |-\n  hello there\n", "{written}");
    }
}

#[test]
fn an_instruction_that_a_body_would_change_stays_a_field() {
    for written in [
        "|\n  with a last line break\n",
        "' padded '\n",
        "\"---SYSTEM\\nx\"\n",
        "|-\n  a\n  ---USER\n  b\n",
        "the key is ${SECRET}\n",
        "hello # why\n",
        "5\n",
        "''\n",
        "!!str hello\n",
    ] {
        let text = format!("name: a\ninstruction: {written}");
        assert!(markdown("a.yaml", &text).contains("\ninstruction:"), "{written}");
    }
}

#[test]
fn an_instruction_that_stays_a_field_stays_as_it_is_written() {
    let text = "name: a\ninstruction: |\n  First line.\n\n  Last line.\nmodel: x\n";
    let expected = "name: a\nmodel: x\ninstruction: |\n  First line.\n\n  Last line.\n";
    assert_eq!(yaml("a.yaml", text), expected);
    assert_eq!(markdown("a.yaml", text), format!("---\n{expected}---\n"));
}

#[test]
fn a_variable_in_a_body_is_not_expanded_as_a_field() {
    let text = "---\nname: a\n---\n\necho ${HOME} ${1} $x\n";
    assert_eq!(yaml("a.md", text), "name: a\ninstruction: |-\n  echo ${DOLLAR:$}{HOME} ${1} $x\n");
    assert_eq!(markdown("a.md", text), text);
}

#[test]
fn a_body_that_a_block_cannot_hold_is_quoted() {
    let text = "---\nname: a\n---\na\u{7}b\rc\u{2028}d\u{feff}\n";
    let expected = "name: a\ninstruction: \"a\\u0007b\\rc\\u2028d\\uFEFF\"\n";
    assert_eq!(yaml("a.md", text), expected);
}

#[test]
fn comments_of_a_moved_instruction_stay() {
    let text = "name: a\n# the prompt\ninstruction: hi\n# behind\nmodel: x\n";
    let dumped = markdown("a.yaml", text);
    assert_eq!(dumped, "---\nname: a\n# the prompt\n# behind\nmodel: x\n---\n\nhi\n");
}

#[test]
fn a_comment_is_never_swallowed_by_a_text_that_comes_before_it() {
    let text = "model: x\n  # about the type\ntype: agent\ndescription: |\n  one\n  # two\n    # about the shell\nshell: true\n";
    let dumped = yaml("a.yaml", text);
    let description = read("a.yaml", &dumped).tree.field("description").cloned();
    assert_eq!(description.expect("there").text(), Some("one\n# two\n  # about the shell\n"));
    assert!(dumped.ends_with("model: x\n  # about the type\nshell: true\n"), "{dumped}");
}

#[test]
fn documents_with_links_keep_their_order() {
    let text = "model: &m x\nsubagent_model: *m\ntype: agent\n";
    assert_eq!(yaml("a.yaml", text), format!("name: stem\n{text}"));
    let text = "---\nrequest_params: &p {a: 1}\nvariables:\n  <<: *p\nname: a\n---\nHello\n";
    let expected =
        "request_params: &p {a: 1}\nvariables:\n  <<: *p\nname: a\ninstruction: |-\n  Hello\n";
    assert_eq!(yaml("a.md", text), expected);
}

#[test]
fn a_name_that_comes_by_a_merge_is_not_added_again() {
    let text = "<<: {name: a, model: b}\nshell: true\n";
    assert_eq!(yaml("a.yaml", text), text);
}

#[test]
fn a_root_in_braces_is_kept_as_it_is() {
    assert_eq!(
        yaml("a.yaml", "{model: x, type: agent}\n"),
        "{name: stem, model: x, type: agent}\n"
    );
    assert_eq!(
        yaml("a.md", "---\n{model: x}\n---\nHi \"you\"\n"),
        "{instruction: \"Hi \\\"you\\\"\", name: stem, model: x}\n"
    );
    assert_eq!(yaml("a.md", "---\n{}\n---\n"), "{name: stem, }\n");
    assert_eq!(
        markdown("a.yaml", "--- {model: [\n----\n]} # c\n... # d\n"),
        "---\n    {name: stem, model: [\n ----\n]} # c\n# d\n---\n"
    );
}

#[test]
fn odd_roots_are_kept_as_they_are() {
    for text in [
        "? name\n: a\n? model\n: b\n",
        "!!map\nmodel: b\n",
        "&all\nmodel: b\n",
        "!!str model: b\nname: x\n",
        "&k model: b\nother: *k\n",
        "  model: b\n  type: agent\n",
        "model: b\rtype: agent\r",
    ] {
        proven(&read("a.yaml", text));
        let body = text.replace('\r', "\n");
        proven(&read("a.md", &format!("---\n{body}---\nHello\n\nthere\n")));
    }
}

#[test]
fn markers_of_the_document_go_and_their_comments_stay() {
    let text = "# head\n--- # start\nmodel: b\ndescription: |+\n  x\n\n...\n\n  # end\n";
    assert_eq!(
        yaml("a.yaml", text),
        "name: stem\ndescription: |+\n  x\n\n# head\n# start\nmodel: b\n# end\n"
    );
}

#[test]
fn nasty_cards_are_kept() {
    let nasty = [
        (
            "a.md",
            "\u{feff}\r\n---\r\nname: a\r\ndescription: |\r\n  x\r\n  y\r\n---\r\n\r\nBody\r\nhere\r\n",
        ),
        ("a.md", "---\n---\n"),
        ("a.md", "---\n# only a comment\n---\nbody"),
        ("a.md", "---\nname: a\n---\n---SYSTEM\n---SYSTEM\nx\n"),
        ("a.md", "-----\nname: a\n----\n---\nx\n---\n"),
        ("a.md", "---\nname: a\n---\n\u{85}x\n"),
        ("a.yaml", "a: |\n  x"),
        ("a.yaml", "b: 1\na: |+\n  x\n\n\n\n"),
        ("a.yaml", "model: |+\n\n\n# c\nname: 1\n"),
        ("a.yaml", "model: >\n  folded\n  text\n\n  more\ntype: agent"),
        ("a.yaml", "shell: yes\nmodel: 'it''s'\ntype: \"a\\\n  b\"\n"),
        ("a.yaml", "model: \"a\n\n  # no comment\"\n# yes\ntype: agent\n"),
        ("a.yaml", "model: a\n  # no\n\n\n# free\n\ntype: agent # t\n# last"),
        ("a.yaml", "model:\n- 1\n- 2\n# c\ntype: {a: [1,\n  2]} # d\n"),
        ("a.yaml", "model:\ntype:\n\nshell: ~\n"),
        ("a.yaml", "'name': a\n\"model\": b\ninstruction: >-\n  folded\n  text\n"),
        ("a.yaml", "instruction: |2-\n    padded\n  text\nname: a\n"),
        ("a.yaml", "instruction: &i hello\ndescription: *i\n"),
        ("a.yaml", "x: .nan\ny: 0x1F\nz: 017\nw: 1_000\nv: !!float 3\n"),
        ("a.yaml", "instruction:\n  hello\n\n\n# c\n"),
        ("a.yaml", "---\nname: a\n...\n"),
        ("a.md", "---\ninstruction:\nname: a\n---\nx\n"),
        ("a.md", "---\n# c\ninstruction: ~\n---\nx\n"),
        ("a.md", "---\ninstruction: # why\nname: a\n---\nx\n"),
        ("a.yaml", "\u{feff}name: a\n"),
        ("a.yaml", "name: a\ninstruction: |-\n  a\n  \t\n  \tb  \n     \n  c\n"),
    ];
    for (path, text) in nasty {
        proven(&read(path, text));
    }
}

#[test]
fn the_name_is_quoted_where_it_must_be() {
    let document = read("a.yaml", "model: x\n");
    for (name, written) in [
        ("plain_name-1.x", "plain_name-1.x"),
        ("yes", "\"yes\""),
        ("12", "\"12\""),
        ("a: b", "\"a: b\""),
        ("#x", "\"#x\""),
        ("é", "\"é\""),
        ("-", "\"-\""),
    ] {
        let dumped = dump_document(&document, name, Format::Yaml);
        assert_eq!(dumped, format!("name: {written}\nmodel: x\n"));
        assert_eq!(read("a.yaml", &dumped).tree.field("name").and_then(Node::text), Some(name));
    }
}

#[test]
fn values_written_anew_are_the_same_values() {
    let text = "a: {'x y': [1, .nan, ~, 'yes', \"\\e\"], b: 0x1F}\nc: \"line\\nbreak\"\nd:\n";
    let tree = read("a.yaml", text).tree;
    let again = read("a.yaml", &format!("root: {}\n", flow(&tree))).tree;
    let again = again.field("root").expect("there").clone();
    assert_eq!(flow(&tree), flow(&again));
    assert_eq!(tree.to_json(), again.to_json());
}

#[test]
fn the_order_has_each_field_once_and_the_unknown_last() {
    let known = fields();
    for (at, field) in known.iter().enumerate() {
        assert_eq!(rank(field), at, "{field} is there twice");
    }
    assert!(rank("zebra") >= known.len());
    assert!(rank("instruction") > rank("zebra"));
}

/// Any text, with what is special to YAML and to cards more often than not.
fn any_text() -> impl Strategy<Value = String> {
    let bit = prop_oneof![
        Just("\n".to_owned()),
        Just("  ".to_owned()),
        Just("---".to_owned()),
        Just("---SYSTEM".to_owned()),
        Just("\n---USER\n".to_owned()),
        Just("# x".to_owned()),
        Just(": ".to_owned()),
        Just("${HOME}".to_owned()),
        Just("${DOLLAR:$}".to_owned()),
        Just("\t".to_owned()),
        Just("\r".to_owned()),
        "[a-z]{1,6}",
        "[\"'\\\\{}\\[\\]|>&*!%@`,?-]",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(bit, 0..8).prop_map(|bits| bits.concat())
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any_text().prop_map(|text| quoted(&text)),
        Just("~ # null".to_owned()),
        any_text().prop_map(|text| entry("k", &text, "")["k: ".len()..].trim_end().to_owned()),
        Just("|+\n  keep\n\n".to_owned()),
        Just("|\n  clip # no\n # yes\n".to_owned()),
        Just(">-\n  fold\n  ed\n".to_owned()),
        Just("[1, 'b', {c: ~}] # list".to_owned()),
        Just("\n  nested: yes\n  # inside\n  list:\n  - 1\n  - 2".to_owned()),
        Just("\n- on\n- off\n\n# free\n".to_owned()),
        Just("".to_owned()),
        Just("0x1F".to_owned()),
        "[a-z]{1,8}",
    ]
}

fn any_entries() -> impl Strategy<Value = String> {
    let keys = prop::sample::subsequence(
        vec![
            "type",
            "name",
            "model",
            "shell",
            "hooks",
            "instruction",
            "zebra",
            "description",
            "cwd",
        ],
        0..9,
    )
    .prop_shuffle();
    let comment = prop_oneof![
        3 => Just(""),
        1 => Just("# above\n"),
        1 => Just("   # indented\n"),
        1 => Just("\n# free\n\n"),
        1 => Just("\n\n"),
    ];
    (keys, prop::collection::vec((comment, any_value()), 9)).prop_map(|(keys, values)| {
        let entries = keys.iter().zip(values);
        entries.map(|(key, (comment, value))| format!("{comment}{key}: {value}\n")).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tenure_testkit::cases(100, 300) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_dump_keeps_everything_and_is_a_fixpoint(
        entries in any_entries(),
        body in any_text(),
        crlf in any::<bool>(),
        as_yaml in any::<bool>(),
    ) {
        let text = if as_yaml { entries } else { format!("---\n{entries}---\n{body}\n") };
        let text = if crlf { text.replace('\n', "\r\n") } else { text };
        let path = if as_yaml { "a.yaml" } else { "a.md" };
        let mut report = Report::new();
        let document = parse(&Arc::new(Source::new(path, text)), &mut report);
        if let Some(document) = document.filter(|_| report.is_empty()) {
            let both = document.body.is_some() && document.tree.field("instruction").is_some();
            if !both {
                proven(&document);
            }
        }
    }

    #[test]
    fn any_text_is_read_back_from_each_way_of_writing_it(text in any_text()) {
        for written in [format!("k: {}\n", inline(&text)), format!("k: {}\n", quoted(&text)), entry("k", &text, ""), entry("k", &text, "   ")] {
            let tree = read("a.yaml", &written).tree;
            prop_assert_eq!(&tree.field("k").expect("there").value, &Value::Text(text.clone()));
        }
    }
}
