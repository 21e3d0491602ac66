//! Questions: on a terminal they are put, without one they are denied.

use crate::support::Sandbox;

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
    for part in ["clerk", "Write this note?", "\"text\": \"buy milk\"", "the end: written"] {
        assert!(shown.stdout.contains(part), "{part}\n{shown}");
    }
}

#[test]
fn it_can_be_edited() {
    let sandbox = clerk();
    let talk = [("[a]pprove", "e"), ("as JSON", "{\"text\": \"buy bread\"}")];
    sandbox.on_terminal(RUN, &talk).exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy bread\n");
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
