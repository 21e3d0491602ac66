//! What a person hears of filters that take nothing, and of servers that are not there.

use crate::support::Sandbox;

/// Nothing is typed.
const NOTHING: &str = "= ";
/// A server with two tools and a prompt.
const SERVER: &str = r#"import json, sys
OFFER = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "add")],
         "prompts": [{"name": "review"}]}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    kind, _, does = message["method"].partition("/")
    if kind == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}},
                            "serverInfo": {"name": "s", "version": "1"}}
    elif does == "list" and kind in OFFER:
        answer["result"] = {kind: OFFER[kind]}
    else:
        answer["error"] = {"code": -32601, "message": "there is no " + message["method"]}
    print(json.dumps(answer), flush=True)
"#;

fn project() -> Sandbox {
    let card = "---\nname: clerk\nmodel: passthrough\nservers: [web, gone]\ntools: { web: [eccho] }\n\
                prompts: { web: [reviews] }\n---\nx\n";
    let config = "[mcp.servers.web]\ncommand = [\"python3\", \"serve.py\"]\n\
                  [mcp.servers.gone]\ncommand = [\"no-such-program-anywhere\"]\n";
    Sandbox::with(&[("clerk.md", card), ("tenure.toml", config), ("serve.py", SERVER)])
}

#[test]
fn a_run_warns_of_a_filter_that_takes_nothing() {
    let ran = project().run(&["run", "clerk.md", "-m", "hi", "--trust"]).exits(0);
    let said = "`eccho` matches none of the 2 tools of `web`; did you mean `echo`?";
    assert_eq!(ran.stderr.matches(said).count(), 1, "{ran}");
    ran.says("`reviews` does not match the one prompt of `web`; did you mean `review`?")
        .says("it is tried again, and until it is there, its tools are missing");
}

#[test]
fn a_chat_shows_what_is_not_taken_and_what_is_not_there() {
    let sandbox = project();
    let talk = [
        ("clerk> ", "/servers"),
        (", retried in ", NOTHING),
        ("2 tools, 0 taken", NOTHING),
        ("clerk> ", "/tools"),
        ("it has no tools", NOTHING),
        ("`eccho` matches none of the 2 tools", NOTHING),
        ("`gone` is not connected", NOTHING),
        ("clerk> ", "/prompts"),
        ("its servers offer 1 prompt, and its card takes none", NOTHING),
        ("did you mean `review`?", NOTHING),
        ("clerk> ", "^D"),
    ];
    sandbox.on_terminal(&["chat", "clerk.md", "--trust"], &talk).exits(0);
}
