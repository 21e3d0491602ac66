//! Questions: on a terminal they are put, without one they are denied.

use crate::support::{Ran, Sandbox};

const CARD: &str = "---\nname: clerk\nmodel: script:clerk.json\nfunction_tools: [tools.py:write_note]\nhooks:\n  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }\n---\nx\n";
const SCRIPT: &str =
    "[{\"call\": \"write_note\", \"with\": {\"text\": \"buy milk\"}}, \"the end: {result}\"]";
const TOOLS: &str = "def write_note(text: str) -> str:\n    \"\"\"Writes.\"\"\"\n    open('note.txt', 'w').write(text + '\\n')\n    return 'written'\n";
const HOOKS: &str = "async def approve(ctx, next):
    answer = await ctx.ask('Write this note?', action=ctx.arguments)
    if answer.decision == 'approve':
        return await next()
    if answer.decision == 'edit':
        return await next(answer.value)
    if answer.decision == 'respond':
        return answer.value
    return {'deny': answer.value}


async def stop(ctx):
    open('stopped.txt', 'w').write('yes\\n')
";

fn clerk() -> Sandbox {
    let card =
        CARD.replace("hooks:\n", "lifecycle_hooks: { on_shutdown: hooks.py:stop }\nhooks:\n");
    Sandbox::with(&[
        ("clerk.md", &card),
        ("clerk.json", SCRIPT),
        ("tools.py", TOOLS),
        ("hooks.py", HOOKS),
    ])
}

const RUN: &[&str] = &["run", "clerk.md", "-m", "go", "--trust"];

/// Runs it on a terminal of the usual size, with an editor.
fn with_editor(sandbox: &Sandbox, editor: &str, talk: &[(&str, &str)]) -> Ran {
    let editor = format!("EDITOR={editor}");
    let usual = "stty rows 24 cols 80; exec \"$@\"";
    let before = ["/bin/sh", "-c", usual, "sh", "/usr/bin/env", "-u", "VISUAL", editor.as_str()];
    sandbox.on_terminal_as(&before, RUN, talk)
}

#[test]
fn without_a_terminal_it_is_denied_and_exits_5() {
    let sandbox = clerk();
    let ran = sandbox.run(RUN).exits(5).says("there is no terminal to answer on");
    assert_eq!(sandbox.read("note.txt"), "", "{ran}");
    assert_eq!(sandbox.read("stopped.txt"), "yes\n", "{ran}");
    let ran = sandbox.run(&[RUN, &["--json", "-q"]].concat()).exits(5);
    let result = ran.json_lines().pop().expect("a result");
    assert_eq!(result["exit_code"], 5);
    let error = result["error"].as_str().unwrap_or_default();
    assert!(error.contains("no terminal to ask a person on"), "{result}");
}

#[test]
fn what_was_typed_before_the_question_does_not_answer_it() {
    let sandbox = clerk();
    let hooks = HOOKS.replace(
        "    answer = await",
        "    import asyncio, os
    for name in ['one', 'two']:
        while not os.path.exists(name + '.txt'):
            await asyncio.sleep(0.01)
        if name == 'one':
            await ctx.ask('Go on?', action={})
    answer = await",
    );
    sandbox.write("hooks.py", &hooks);
    let go_on = |name| format!("$ touch {}", sandbox.path(name).display());
    let (one, two) = (go_on("one.txt"), go_on("two.txt"));
    let talk = [
        ("hook hooks.py:approve", "r"),
        ("", one.as_str()),
        ("[a]pprove", "a"),
        ("ANSWERED", "a"),
        ("", two.as_str()),
        ("[a]pprove", "r"),
        ("why?", "no"),
    ];
    let shown = sandbox.on_terminal(RUN, &talk).exits(0);
    assert_eq!(sandbox.read("note.txt"), "", "{shown}");
}

#[test]
fn it_is_put_plainly_and_can_be_approved() {
    let sandbox = clerk();
    let shown = sandbox.on_terminal(RUN, &[("[a]pprove", "a")]).exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "{shown}");
    let parts = [
        "clerk asks for approval",
        "the hook hooks.py:approve says: Write this note?",
        "the call of write_note:",
        "text: buy milk",
        "approve  do exactly this",
        "the end: written",
    ];
    for part in parts {
        assert!(plain(&shown).contains(part), "{part}\n{shown}");
    }
}

/// What was shown, without its colours.
fn plain(shown: &Ran) -> String {
    let mut text = String::new();
    let mut pieces = shown.stdout.split("\x1b[");
    text.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).map_or(piece.len(), |at| at + 1);
        text.push_str(&piece[end..]);
    }
    text
}

#[test]
fn without_an_editor_it_is_edited_in_a_line_of_json() {
    let sandbox = clerk();
    let talk = [
        ("[a]pprove", "e"),
        ("as JSON", "{\"text\": 3}"),
        ("`text`: this is a number", "e"),
        ("instead, as JSON", "{\"text\": \"buy bread\""),
        // What is typed next is the change, and not a way back to what was asked first.
        ("type it as JSON", "{\"text\": \"buy bread\"}"),
        ("do this instead?", "y"),
    ];
    let shown = sandbox.on_terminal(RUN, &talk).exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy bread\n", "{shown}");
    let said = plain(&shown);
    assert!(said.contains("- text: buy milk") && said.contains("+ text: buy bread"), "{shown}");
}

#[test]
fn it_is_edited_in_the_editor_and_confirmed() {
    let sandbox = clerk();
    let editor = "stat -c '%a %n' \"$1\" >seen.txt\nsed -i s/milk/cheese/ \"$1\"\n";
    sandbox.write("editor.sh", editor);
    let editor = format!("sh {}", sandbox.path("editor.sh").display());
    let talk = [("[a]pprove", "e"), ("do this instead?", "y")];
    let shown = with_editor(&sandbox, &editor, &talk).exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy cheese\n", "{shown}");
    let seen = sandbox.read("seen.txt");
    let file = seen.trim().strip_prefix("600 ").expect("nobody else can read the file");
    assert!(!std::path::Path::new(file).exists(), "the file is gone: {file}");
}

#[test]
fn what_is_typed_into_an_editor_does_not_answer_the_question() {
    let sandbox = clerk();
    let editor = "read line </dev/tty\necho \"$line\" >typed.txt\nsed -i s/milk/tea/ \"$1\"\n";
    sandbox.write("editor.sh", &format!("echo EDITOR IS UP >/dev/tty\n{editor}"));
    let editor = format!("sh {}", sandbox.path("editor.sh").display());
    let talk = [("[a]pprove", "e"), ("EDITOR IS UP", "a"), ("do this instead?", "n")];
    let talk = [&talk[..], &[("[a]pprove", "r"), ("why?", "no")]].concat();
    let shown = with_editor(&sandbox, &editor, &talk).exits(0);
    assert_eq!(sandbox.read("typed.txt"), "a\n", "{shown}");
    assert_eq!(sandbox.read("note.txt"), "", "{shown}");
}

#[test]
fn a_question_that_expires_says_so_and_ends_the_editor() {
    let sandbox = clerk();
    let expiring = HOOKS.replace("action=ctx.arguments", "action=ctx.arguments, expires='2s'");
    sandbox.write("hooks.py", &expiring);
    sandbox.write("editor.sh", "echo $$ >editor.pid\nexec sleep 60\n");
    let editor = format!("sh {}", sandbox.path("editor.sh").display());
    let shown = with_editor(&sandbox, &editor, &[("[a]pprove", "e")]).exits(0);
    let said = plain(&shown);
    for part in ["denied if nobody answers in 2s", "nobody answered in time", "the end:"] {
        assert!(said.contains(part), "{part}\n{shown}");
    }
    assert_eq!(sandbox.read("note.txt"), "", "{shown}");
    let pid = sandbox.wait_for("editor.pid");
    let editor = std::path::Path::new("/proc").join(pid.trim());
    let until = std::time::Instant::now() + crate::support::PATIENCE;
    while editor.exists() {
        assert!(std::time::Instant::now() < until, "the editor is still there");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn what_is_typed_after_a_question_has_expired_answers_nothing() {
    let sandbox = clerk();
    let hooks = HOOKS.replace(
        "    answer = await ctx.ask('Write this note?', action=ctx.arguments)",
        "    import asyncio, os
    await ctx.ask('Quick?', action={}, expires='300ms')
    while not os.path.exists('typed.txt'):
        await asyncio.sleep(0.01)
    answer = await ctx.ask('Write this note?', action=ctx.arguments)",
    );
    sandbox.write("hooks.py", &hooks);
    let typed = format!("$ touch {}", sandbox.path("typed.txt").display());
    let talk = [("nobody answered in time", "a"), ("", typed.as_str())];
    let talk = [&talk[..], &[("[a]pprove", "r"), ("why?", "no")]].concat();
    let shown = sandbox.on_terminal(RUN, &talk).exits(0);
    assert_eq!(sandbox.read("note.txt"), "", "{shown}");
}

#[test]
fn input_is_a_form_that_is_filled_in_field_by_field() {
    let sandbox = clerk();
    let schema = "{'type': 'object', 'required': ['city', 'days'], 'properties': {
        'city': {'type': 'string', 'title': 'City', 'enum': ['Bern', 'Basel']},
        'days': {'type': 'integer', 'minimum': 1, 'default': 2},
        'dry': {'type': 'boolean'}}}";
    let hooks = format!(
        "async def approve(ctx, next):
    answer = await ctx.ask('Where to?', schema={schema})
    open('form.txt', 'w').write(answer.decision + ' ' + answer.value + '\\n')
    return 'noted'


async def stop(ctx):
    pass
"
    );
    sandbox.write("hooks.py", &hooks);
    let talk = [("City", "7"), ("1 to 2", "$ true"), ("City", "2"), ("days", ""), ("dry", "n")];
    let shown = sandbox.on_terminal(RUN, &talk).exits(0);
    let form = sandbox.read("form.txt");
    let json = form.strip_prefix("respond ").expect("a reply");
    let form: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let expected = serde_json::json!({ "city": "Basel", "days": 2, "dry": false });
    assert_eq!(form, expected, "{shown}");
    let shown = sandbox.on_terminal(RUN, &[("City", "/reject not now")]).exits(0);
    assert_eq!(sandbox.read("form.txt"), "reject not now\n", "{shown}");
}

#[test]
fn two_questions_at_once_are_put_one_after_the_other() {
    let sandbox = clerk();
    let calls = "[{\"calls\": [{\"call\": \"write_note\", \"with\": {\"text\": \"one\"}}, \
                 {\"call\": \"write_note\", \"with\": {\"text\": \"two\"}}]}, \"the end\"]";
    sandbox.write("clerk.json", calls);
    let tools = TOOLS.replace("open('note.txt', 'w')", "open(text + '.txt', 'w')");
    sandbox.write("tools.py", &tools);
    // The hook does not ask before both calls have come as far.
    let hooks = HOOKS.replace(
        "    answer = await",
        "    import asyncio, os
    open('at-' + ctx.arguments['text'], 'w').close()
    while not (os.path.exists('at-one') and os.path.exists('at-two')):
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2 if ctx.arguments['text'] == 'two' else 0.1)
    answer = await",
    );
    sandbox.write("hooks.py", &hooks);
    let talk =
        [(": one", "$ sleep 0.5"), ("[a]pprove", "a"), (": two", "$ true"), ("[a]pprove", "r")];
    let talk = [&talk[..], &[("why?", "enough")]].concat();
    let shown = sandbox.on_terminal(RUN, &talk).exits(0);
    assert_eq!(
        (sandbox.read("one.txt"), sandbox.read("two.txt")),
        ("one\n".into(), "".into()),
        "{shown}"
    );
}

#[test]
fn it_can_be_rejected_with_a_reason() {
    let sandbox = clerk();
    let shown = sandbox.on_terminal(RUN, &[("[a]pprove", "r"), ("why?", "too dear")]).exits(0);
    assert_eq!(sandbox.read("note.txt"), "");
    assert!(shown.stdout.contains("the end:") && shown.stdout.contains("too dear"), "{shown}");
}

#[test]
fn it_can_be_answered_in_words() {
    let sandbox = clerk();
    let shown = sandbox.on_terminal(RUN, &[("[a]pprove", "s"), ("your answer", "later")]).exits(0);
    assert_eq!(sandbox.read("note.txt"), "");
    assert!(shown.stdout.contains("the end: later"), "{shown}");
}

#[test]
fn ctrl_c_while_asking_stops_the_run() {
    let sandbox = clerk();
    let shown = sandbox.on_terminal(RUN, &[("[a]pprove", "^C")]).exits(130);
    assert!(shown.stdout.contains("stopping; press Ctrl-C again to kill"), "{shown}");
    assert_eq!(sandbox.read("note.txt"), "", "{shown}");
    assert_eq!(sandbox.read("stopped.txt"), "yes\n", "{shown}");
}

#[test]
fn leaving_the_question_cancels_the_run_and_exits_8() {
    let sandbox = clerk();
    let shown = sandbox.on_terminal(RUN, &[("[a]pprove", "^D")]).exits(8);
    assert_eq!(sandbox.read("note.txt"), "", "{shown}");
    assert_eq!(sandbox.read("stopped.txt"), "yes\n", "{shown}");
}
