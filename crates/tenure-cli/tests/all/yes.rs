//! `--yes`: what it approves, and what it does not.

use crate::support::Sandbox;

const CARD: &str = "---\nname: clerk\nmodel: script:clerk.json\nfunction_tools: [tools.py:write_note, tools.py:drop_note]\nhooks:\n  - { on: wrap_tool_call, run: hooks.py:approve, policy: deny }\n---\nx\n";
const SCRIPT: &str = "[{\"call\": \"write_note\", \"with\": {\"text\": \"buy milk\"}}, {\"call\": \"drop_note\", \"with\": {}}, \"the end: {result}\"]";
const TOOLS: &str = "def write_note(text: str) -> str:\n    \"\"\"Writes.\"\"\"\n    open('note.txt', 'w').write(text + '\\n')\n    return 'written'\n\n\ndef drop_note() -> str:\n    \"\"\"Drops.\"\"\"\n    open('dropped.txt', 'w').write('yes\\n')\n    return 'dropped'\n";
const HOOKS: &str = "async def approve(ctx, next):
    answer = await ctx.ask('May I?', action=ctx.arguments)
    if answer.decision == 'approve':
        return await next()
    return {'deny': answer.value}
";

fn clerk() -> Sandbox {
    Sandbox::with(&[
        ("clerk.md", CARD),
        ("clerk.json", SCRIPT),
        ("tools.py", TOOLS),
        ("hooks.py", HOOKS),
    ])
}

const RUN: &[&str] = &["run", "clerk.md", "-m", "go", "--trust"];

#[test]
fn the_named_tool_is_approved_with_a_line_and_no_other_is() {
    let sandbox = clerk();
    let ran = sandbox.run(&[RUN, &["--yes", "write_note"]].concat()).exits(5);
    let ran = ran
        .says("approved by --yes: clerk write_note {\"text\":\"buy milk\"}")
        .says("denied: clerk asks \"May I?\"")
        .says("or approve every call with `--yes drop_note`");
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "{ran}");
    assert_eq!(sandbox.read("dropped.txt"), "", "{ran}");
}

#[test]
fn several_tools_are_named_together_or_one_by_one() {
    for yes in
        [&["--yes", "write_note,drop_note"][..], &["--yes", "write_note", "--yes", "drop_note"]]
    {
        let sandbox = clerk();
        let ran = sandbox.run(&[RUN, yes].concat()).exits(0).prints("the end: dropped");
        assert_eq!(sandbox.read("dropped.txt"), "yes\n", "{ran}");
        assert_eq!(ran.stderr.matches("approved by --yes:").count(), 2, "{ran}");
    }
}

#[test]
fn quietly_it_approves_without_a_word_and_as_json_with_events() {
    let sandbox = clerk();
    let yes = ["--yes", "write_note,drop_note"];
    let ran = sandbox.run(&[RUN, &yes, &["-q"]].concat()).exits(0);
    assert_eq!(ran.stderr, "", "{ran}");
    let ran = sandbox.run(&[RUN, &yes, &["-q", "--json"]].concat()).exits(0);
    let lines = ran.json_lines();
    let asked = lines.iter().find(|line| line["name"] == "ask.requested").expect("a question");
    assert_eq!(asked["data"]["tool"], "write_note");
    assert_eq!(asked["data"]["approval"], true);
    let usage = &lines.last().expect("a result")["usage"];
    assert!(usage["cost"].is_u64() && usage["unpriced"].is_u64(), "{usage}");
}

#[test]
fn what_is_not_about_a_tool_is_not_approved() {
    let sandbox = clerk();
    let card = CARD.replace("on: wrap_tool_call", "on: before_agent");
    sandbox.write("clerk.md", &card);
    let hooks = "async def approve(ctx):
    answer = await ctx.ask('May I begin?', action={'tool': 'write_note'})
    if answer.decision != 'approve':
        return {'deny': answer.value}
";
    sandbox.write("hooks.py", hooks);
    let ran = sandbox.run(&[RUN, &["--yes", "write_note"]].concat()).exits(5);
    assert_eq!(sandbox.read("note.txt"), "", "{ran}");
    assert!(!ran.stderr.contains("approved by --yes"), "{ran}");
}

#[test]
fn everything_and_nothing_cannot_be_approved() {
    let sandbox = clerk();
    for yes in [&["--yes"][..], &["--yes", "all"], &["--yes", "*"]] {
        sandbox.run(&[RUN, yes].concat()).exits(2).says("there is no yes to everything");
    }
    let ran = sandbox.run(&[RUN, &["--yes", "writenote"]].concat()).exits(2);
    let ran = ran.says("there is no tool `writenote` to say --yes to");
    let ran = ran.says("there are: drop_note, write_note");
    assert_eq!(sandbox.read("note.txt"), "", "{ran}");
}

#[test]
fn a_tool_of_a_server_may_come_later_and_is_noted() {
    let sandbox = clerk();
    let yes = &[RUN, &["--yes", "files__read"]].concat();
    let ran = sandbox.run(yes).exits(2);
    ran.says("there is no tool `files__read` to say --yes to; there are: drop_note, write_note");
    sandbox.write("tenure.toml", "[mcp.servers.files]\ncommand = [\"false\"]\n");
    sandbox.run(yes).exits(2).says("there is no tool `files__read`");
    sandbox.write("clerk.md", &CARD.replace("hooks:\n", "servers: [files]\nhooks:\n"));
    sandbox.run(&[RUN, &["--yes", "file__read"]].concat()).exits(2);
    let ran = sandbox.run(&[yes, &["--no-store"][..]].concat()).exits(5);
    ran.says("note: --yes files__read: tools of MCP servers are known once those are connected");
}

#[test]
fn on_a_terminal_everything_else_is_still_asked() {
    let sandbox = clerk();
    let talk = [("approved by --yes", "$ true"), ("[a]pprove", "r"), ("why?", "no")];
    let shown = sandbox.on_terminal(&[RUN, &["--yes", "write_note"]].concat(), &talk).exits(0);
    assert_eq!(sandbox.read("note.txt"), "buy milk\n", "{shown}");
    assert_eq!(sandbox.read("dropped.txt"), "", "{shown}");
}
