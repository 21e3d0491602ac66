//! Conversations with somebody who types what was written down before.

use super::converse::converse;
use super::editor::Edited;
use super::person::Person;
use serde_json::{Value, json};
use std::collections::VecDeque;
use tenure_core::ask::{Answer, Ask, PendingAsk};

/// Types these lines, and leaves.
#[derive(Default)]
struct Script {
    typed: VecDeque<String>,
    /// What the editor makes of what it is given, time after time.
    edits: VecDeque<fn(&str) -> Edited>,
    said: String,
}

impl Person for Script {
    fn say(&mut self, text: &str) {
        self.said.push_str(&anstream::adapter::strip_str(text).to_string());
    }

    async fn line(&mut self) -> Option<String> {
        let line = self.typed.pop_front()?;
        self.said.push_str(&format!("{line}\n"));
        Some(line)
    }

    async fn edit(&mut self, text: &str) -> Edited {
        self.edits.pop_front().map_or(Edited::NoEditor, |edit| edit(text))
    }

    fn columns(&self) -> usize {
        80
    }
}

/// What the person is told, and what comes out, if these lines are typed.
fn talk(ask: &PendingAsk, typed: &[&str]) -> (String, Option<Answer>) {
    talk_with(ask, typed, &[])
}

fn talk_with(
    ask: &PendingAsk,
    typed: &[&str],
    edits: &[fn(&str) -> Edited],
) -> (String, Option<Answer>) {
    let typed = typed.iter().map(|line| (*line).to_owned()).collect();
    let mut person = Script { typed, edits: edits.iter().copied().collect(), said: String::new() };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let answer = runtime.block_on(converse(ask, false, &mut person));
    (person.said, answer)
}

fn approval() -> PendingAsk {
    PendingAsk::new("clerk", Ask::approval("May I?", json!({ "path": "out.txt", "mode": 1 })))
}

fn input(schema: Value) -> PendingAsk {
    PendingAsk::new("clerk", Ask::input("Where to?").schema(schema))
}

fn respond(text: &str) -> Option<Answer> {
    Some(Answer::Respond(text.to_owned()))
}

#[test]
fn each_choice_gives_its_answer() {
    let cases: [(&[&str], Answer); 8] = [
        (&["a"], Answer::Approve),
        (&["Approve "], Answer::Approve),
        (&["reject", "no"], Answer::Reject("no".into())),
        (&["r", "too risky"], Answer::Reject("too risky".into())),
        (&["r", ""], Answer::Reject("rejected by the user".into())),
        (&["s", "use the other file"], Answer::Respond("use the other file".into())),
        (&["s", "", "a"], Answer::Approve),
        (&["e", "{\"path\": \"b\"}", "y"], Answer::Edit(json!({ "path": "b" }))),
    ];
    for (typed, expected) in cases {
        assert_eq!(talk(&approval(), typed).1, Some(expected), "{typed:?}");
    }
}

#[test]
fn only_what_the_question_allows_is_offered_and_taken() {
    let mut ask = approval();
    ask.ask.form = Some(json!({ "allowed_decisions": ["approve", "reject"] }));
    let (said, answer) = talk(&ask, &["s", "respond", "e", "a"]);
    assert_eq!(answer, Some(Answer::Approve));
    assert!(said.contains("  [a]pprove  [r]eject: s\n  please answer a or r\n"), "{said}");
    assert!(!said.contains("re[s]pond") && !said.contains("change it first"), "{said}");
}

#[test]
fn an_empty_line_approves_nothing() {
    let (said, answer) = talk(&approval(), &["", "r", ""]);
    assert_eq!(answer, Some(Answer::Reject("rejected by the user".into())));
    assert!(said.contains("please answer a, e, r or s"), "{said}");
}

#[test]
fn only_what_is_offered_is_taken() {
    for typed in ["y", "yes", "n", "no", "ok", "{\"path\": \"b\"}"] {
        let (said, answer) = talk(&approval(), &[typed]);
        assert_eq!(answer, None, "{typed}");
        assert!(said.contains("please answer a, e, r or s"), "{typed}: {said}");
    }
}

#[test]
fn a_mended_edit_is_what_is_done_and_never_what_was_asked_first() {
    let mended = Some(Answer::Edit(json!({ "path": "b" })));
    let typed = ["e", "{\"path\": \"b\"", "{\"path\": \"b\"}", "y"];
    assert_eq!(talk(&approval(), &typed).1, mended);
    // Not even words that mean something elsewhere lead back to the menu.
    let typed = ["e", "{", "a", "y", "yes", "{\"path\": \"b\"}", "y"];
    assert_eq!(talk(&approval(), &typed).1, mended);
    let (said, answer) = talk(&approval(), &["e", "{", "", "y"]);
    assert_eq!(answer, None);
    assert!(said.contains("nothing was changed"), "{said}");
    // The editor is had again where it is asked for.
    let typo: fn(&str) -> Edited = |_| Edited::Text("{".to_owned());
    let good: fn(&str) -> Edited = |_| Edited::Text("{\"path\": \"b\"}".to_owned());
    assert_eq!(talk_with(&approval(), &["e", "e", "y"], &[typo, good]).1, mended);
    assert_eq!(talk_with(&approval(), &["e", "{\"path\": \"b\"}", "y"], &[typo]).1, mended);
}

#[test]
fn the_end_of_input_is_no_answer() {
    for typed in [&[][..], &["r"], &["e"], &["e", "{\"path\": 1}"]] {
        assert_eq!(talk(&approval(), typed).1, None, "{typed:?}");
    }
    assert_eq!(talk(&input(json!({ "type": "integer" })), &["many"]).1, None);
}

#[test]
fn what_was_edited_is_shown_as_a_difference_and_must_be_confirmed() {
    let edit: fn(&str) -> Edited = |text| Edited::Text(text.replace("out.txt", "b.txt"));
    let again: fn(&str) -> Edited = |text| {
        assert!(text.contains("b.txt"), "the draft is kept: {text}");
        Edited::Text(text.replace("b.txt", "c.txt"))
    };
    let (said, answer) = talk_with(&approval(), &["e", "", "e", "y"], &[edit, again]);
    assert_eq!(answer, Some(Answer::Edit(json!({ "path": "c.txt", "mode": 1 }))));
    insta::assert_snapshot!(said);
    let (said, answer) = talk_with(&approval(), &["e", "n", "a"], &[edit]);
    assert_eq!(answer, Some(Answer::Approve), "a no goes back, and what was asked is unchanged");
    assert!(said.contains("nothing was changed"), "{said}");
}

#[test]
fn an_edit_that_does_not_fit_is_told_why() {
    let mut ask = approval();
    let path = json!({ "type": "string" });
    ask.parameters = Some(
        json!({ "type": "object", "required": ["path"], "properties": { "path": path } }).into(),
    );
    let cases: [(&[&str], &str); 4] = [
        (&["e", "{", "", "a"], "this is not JSON"),
        (&["e", "[1]", "", "a"], "this is no object"),
        (&["e", "{}", "", "a"], "`path`: this is required"),
        (&["e", "{\"path\": 3}", "", "a"], "`path`: this is a number"),
    ];
    for (typed, why) in cases {
        let (said, answer) = talk(&ask, typed);
        assert!(said.contains(why), "{why}: {said}");
        assert_eq!(answer, Some(Answer::Approve));
    }
    // It is not the arguments that are asked about, so their schema does not count.
    ask.ask.action = Some(json!({ "target": "x" }));
    let (_, answer) = talk(&ask, &["e", "{\"target\": 3}", "y"]);
    assert_eq!(answer, Some(Answer::Edit(json!({ "target": 3 }))));
}

#[test]
fn an_edit_that_changes_nothing_or_fails_goes_back() {
    let same: fn(&str) -> Edited = |text| Edited::Text(text.to_owned());
    let (said, answer) = talk_with(&approval(), &["e", "a"], &[same]);
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(answer, Some(Answer::Approve));
    let failed: fn(&str) -> Edited = |_| Edited::Failed("it crashed".to_owned());
    let (said, answer) = talk_with(&approval(), &["e", "", "a"], &[failed]);
    assert!(said.contains("it crashed") && said.contains("as JSON"), "{said}");
    assert_eq!(answer, Some(Answer::Approve));
}

#[test]
fn input_without_a_form_is_taken_as_it_is_typed() {
    let ask = PendingAsk::new("clerk", Ask::input("Which city?"));
    assert_eq!(talk(&ask, &["", "Bern "]).1, respond("Bern "));
    assert_eq!(talk(&ask, &["/reject"]).1, Some(Answer::Reject("rejected by the user".into())));
    assert_eq!(talk(&ask, &["/reject no time"]).1, Some(Answer::Reject("no time".into())));
    assert_eq!(talk(&ask, &["/rejected"]).1, respond("/rejected"));
    assert_eq!(talk(&input(json!({ "type": "integer" })), &["many", "3"]).1, respond("3"));
    let list = json!({ "type": "array", "items": { "type": "integer" }, "default": [1] });
    assert_eq!(talk(&input(list.clone()), &["1", "[1, 2]"]).1, respond("[1, 2]"));
    assert_eq!(talk(&input(list), &[""]).1, respond("[1]"));
}

#[test]
fn a_flat_schema_is_a_form() {
    let ask = input(json!({
        "type": "object",
        "required": ["city", "days", "fast"],
        "properties": {
            "city": { "type": "string", "title": "City", "description": "Where to start" },
            "days": { "type": "integer", "minimum": 1, "default": 3 },
            "fast": { "type": "boolean" },
            "pace": { "type": "string", "enum": ["slow", "steady"], "enumNames": ["Slow", "Steady"] },
            "tags": { "type": "array", "items": { "oneOf": [
                { "const": "a", "title": "Art" }, { "const": "f", "title": "Food" }] } },
            "note": { "type": "string" },
        },
    }));
    let typed = ["", "Bern", "0", "", "maybe", "y", "3", "2", "1, Food", ""];
    let (said, answer) = talk(&ask, &typed);
    insta::assert_snapshot!(said);
    let expected =
        json!({ "city": "Bern", "days": 3, "fast": true, "pace": "steady", "tags": ["a", "f"] });
    let Some(Answer::Respond(text)) = answer else { panic!("{answer:?}") };
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), expected);
    assert_eq!(talk(&ask, &["Bern", "/reject later"]).1, Some(Answer::Reject("later".into())));
}

#[test]
fn a_default_that_is_a_choice_is_shown_as_the_choice() {
    let ask = input(json!({
        "type": "object",
        "properties": {
            "pet": { "type": "string", "enum": ["pet-1", "pet-2"], "default": "pet-2" },
            "food": { "oneOf": [{ "const": "h", "title": "Hay" }], "default": "h" },
            "days": { "type": "array", "items": { "enum": ["mo", "tu"] }, "default": ["mo", "tu"] },
        },
    }));
    let (said, answer) = talk(&ask, &["", "", ""]);
    for part in ["[2 pet-2]", "[1 Hay]", "[1 mo, 2 tu]"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let Some(Answer::Respond(text)) = answer else { panic!("{answer:?}") };
    let expected = json!({ "pet": "pet-2", "food": "h", "days": ["mo", "tu"] });
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), expected);
}

#[test]
fn a_field_with_a_format_is_asked_for_until_it_has_it() {
    let ask = input(json!({
        "type": "object",
        "required": ["day"],
        "properties": { "day": { "type": "string", "format": "date" } },
    }));
    let (said, answer) = talk(&ask, &["tomorrow", "2026-02-30", "2026-02-28"]);
    assert_eq!(said.matches("2024-05-31").count(), 2, "{said}");
    assert_eq!(answer, respond("{\"day\":\"2026-02-28\"}"));
}

#[test]
fn a_schema_that_is_no_flat_form_is_shown_and_answered_in_one_line() {
    let ask = input(json!({
        "type": "object",
        "properties": { "home": { "type": "object", "properties": {} } },
    }));
    let (said, answer) = talk(&ask, &["{\"home\": 1}", "{\"home\": {}}"]);
    assert!(said.contains("the answer has this form"), "{said}");
    assert!(said.contains("`home`: this is a number"), "{said}");
    assert_eq!(answer, respond("{\"home\": {}}"));
}

/// The person's own turn in a chat.
fn turn() -> PendingAsk {
    let mut ask = PendingAsk::new("user", Ask::input("writer: a draft"));
    ask.hook = Some("ask_person".into());
    ask
}

#[test]
fn in_their_own_turn_a_person_may_say_something_or_nothing_or_refuse_or_leave() {
    let cases: [(&[&str], Option<Answer>); 4] = [
        (&["  more sea "], respond("more sea")),
        (&[""], respond("")),
        (&["/reject enough"], Some(Answer::Reject("enough".into()))),
        (&[], None),
    ];
    for (typed, expected) in cases {
        assert_eq!(talk(&turn(), typed).1, expected, "{typed:?}");
    }
}

#[test]
fn what_was_just_said_is_not_repeated_in_the_persons_turn() {
    let lines = |words| {
        let shown = super::show::put(&turn(), (1, 1), None, words, 80).lines.join("\n");
        anstream::adapter::strip_str(&shown).to_string()
    };
    assert_eq!(lines(super::show::Words::Seen), "\n? it is your turn");
    let unseen = lines(super::show::Words::Unseen);
    assert_eq!(unseen, "\n? it is your turn\n  the last one said: writer: a draft");
}

#[test]
fn what_a_tool_shows_to_a_person_is_shown() {
    let form = json!({ "tool": "pick", "component": "Picker", "arguments": { "plan": "a to b" } });
    let mut ask = PendingAsk::new("planner", Ask::input("Is this right?").form(form));
    ask.tool = Some("pick".into());
    let shown = super::show::put(&ask, (1, 1), None, super::show::Words::Unseen, 80);
    let shown = anstream::adapter::strip_str(&shown.lines.join("\n")).to_string();
    let expected =
        "\n? planner asks you\n  the tool pick says: Is this right?\n  it shows:\n    plan: a to b";
    assert_eq!(shown, expected);
}
