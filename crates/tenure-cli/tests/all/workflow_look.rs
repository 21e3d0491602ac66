//! What only looks at workflows: `check`, `explain`, `trust`, `doctor`; and `init`.

use crate::flows::{AGENTS, HANDOFFS, TOOLS, story};
use crate::support::Sandbox;
use serde_json::Value;

#[test]
fn check_covers_a_workflow_and_a_project_covers_its_cards_and_all_workflows() {
    let sandbox = story(&[]);
    let ran = sandbox.run(&["check", "workflows/story"]).exits(0);
    let ran = ran.prints("1 workflow, 2 agents, 3 lifecycle tools checked");
    assert!(ran.stdout.contains("no problems"), "{ran}");
    sandbox.write("card.md", "---\nname: a\nmodel: passthrough\n---\nx\n");
    sandbox.run(&["check"]).exits(0).prints("1 card, 0 hooks, 1 workflow, 2 agents");
}

#[test]
fn check_of_a_project_covers_the_pack_of_its_workflows() {
    let sandbox = story(&[]);
    let pack = r#"{"version": 2, "workflows": [{"id": "story"}, {"id": "stroy"}], "journeys": []}"#;
    sandbox.write("workflows/_pack/workflow_graph.json", pack);
    let ran = sandbox.run(&["check"]).exits(3).prints("workflows/_pack/workflow_graph.json:1");
    assert!(ran.stdout.contains("the workflow `stroy`, which is not there"), "{ran}");
    assert!(ran.stdout.contains("1 error"), "{ran}");
    sandbox.run(&["check", "workflows/story"]).exits(0);
}

/// Three mistakes in three files.
fn broken() -> Sandbox {
    let tools = TOOLS.replace("function: count", "function: cuont");
    let handoffs = HANDOFFS.replace("target_agent: editor", "target_agent: editr");
    let agents = AGENTS.replace("model: script:writer.json", "modl: script:writer.json");
    story(&[("tools.yaml", &tools), ("handoffs.yaml", &handoffs), ("agents.yaml", &agents)])
}

#[test]
fn every_mistake_of_every_file_is_found_at_once_with_file_and_line() {
    let sandbox = broken();
    for path in [".", "workflows/story"] {
        let ran = sandbox.run(&["check", path]).exits(3);
        for part in ["tools.yaml:4", "cuont", "handoffs.yaml:2", "editr", "agents.yaml:3", "modl"] {
            assert!(ran.stdout.contains(part), "{part}: {ran}");
        }
    }
    let ran = sandbox.run(&["check", ".", "--format", "json"]).exits(3);
    let found = ran.json_lines();
    assert!(found.len() >= 3, "{ran}");
    let ran = sandbox.run(&["check", ".", "--format", "sarif"]).exits(3);
    let sarif: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(sarif["runs"][0]["results"].as_array().map(Vec::len), Some(found.len()), "{ran}");
}

#[test]
fn a_broken_workflow_is_not_run_and_the_mistakes_are_told() {
    let sandbox = broken();
    let ran = sandbox.run(&["run", "workflows/story", "--trust"]).exits(3).says("cuont");
    assert_eq!(ran.stdout, "");
    assert_eq!(sandbox.read("began.txt"), "", "nothing of it was executed");
    let ran = sandbox.run(&["run", "workflows/story", "--trust", "--json", "-q"]).exits(3);
    let lines = ran.json_lines();
    assert!(lines.iter().any(|line| line["type"] == "diagnostic"), "{ran}");
    let result = lines.last().expect("a result");
    assert_eq!((&result["status"], &result["exit_code"]), (&Value::Null, &3.into()));
}

#[test]
fn g12_a_workflow_is_explained_with_its_handoffs_and_what_is_called_when() {
    let variables = "definitions:\n  - name: approved\n    type: boolean\n    source: { type: state, default: false }\nagents:\n  - agent: editor\n    variables: [approved]\n";
    let handoffs = format!(
        "{HANDOFFS}  - {{ source_agent: editor, target_agent: writer, handoff_type: condition, condition_type: expression, condition: \"${{approved}} == False\" }}\n"
    );
    let sandbox = story(&[("context_variables.yaml", variables), ("handoffs.yaml", &handoffs)]);
    let ran = sandbox.run(&["explain", "workflows/story"]).exits(0);
    insta::assert_snapshot!(ran.stdout);
    assert_eq!(sandbox.run(&["explain", "."]).exits(0).stdout, ran.stdout);
    let of_one = sandbox.run(&["explain", ".", "--agent", "editor", "--point", "after_agent"]);
    let of_one = of_one.exits(0);
    assert!(of_one.stdout.contains("desk.py:count"), "{of_one}");
    assert!(!of_one.stdout.contains("open_desk") && !of_one.stdout.contains("writer"), "{of_one}");
    sandbox.run(&["explain", ".", "--agent", "x"]).exits(2).says("writer, editor");
}

#[test]
fn g12_a_workflow_as_json() {
    let ran = story(&[]).run(&["explain", ".", "--json"]).exits(0);
    let all: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let flow = &all[0];
    assert_eq!(flow["workflow"], "story");
    assert_eq!(flow["handoffs"][1]["target"], "terminate");
    assert_eq!(flow["agents"][0]["agent"]["agent"], "writer");
    let points = flow["points"].to_string();
    assert!(points.contains("open_desk") && points.contains("tools.yaml:3"), "{points}");
}

/// Of lifecycle tools of the chat and of agents, and of message hooks.
#[test]
fn g12_what_a_tool_of_a_workflow_is_for_is_explained() {
    let tools = TOOLS
        .replace("function: open_desk", "function: open_desk, description: Opens the desk")
        .replace("function: count", "function: count, description: \"Counts\\n the turns \"");
    let hooks = "hooks:\n  - { hook_type: update_agent_state, hook_agent: writer, filename: state.py, function: tell, description: Tells the date }\n";
    let state = "def tell(agent, messages):\n    pass\n";
    let files = [("tools.yaml", &*tools), ("hooks.yaml", hooks), ("state.py", state)];
    let sandbox = story(&files);
    let ran = sandbox.run(&["explain", "workflows/story"]).exits(0);
    for part in
        ["Opens the desk · limit 30s", "Counts the turns · limit 5s", "Tells the date · limit"]
    {
        assert!(ran.stdout.contains(part), "{part}: {ran}");
    }
    let ran = sandbox.run(&["explain", ".", "--json"]).exits(0);
    let all: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let entry = |points: &Value, point: &str, name: &str| {
        let points = points.as_array().expect("a list").iter();
        let entries =
            points.filter(|at| at["point"] == point).flat_map(|at| at["entries"].as_array());
        let found = entries.flatten().find(|entry| entry["name"] == name).cloned();
        found.unwrap_or_else(|| panic!("no {name} at {point}: {ran}"))
    };
    let opens = entry(&all[0]["points"], "before_chat", "lifecycle_tools.open_desk");
    assert_eq!(opens["description"], "Opens the desk");
    let starts = entry(&all[0]["points"], "before_chat", "platform.log_workflow_start");
    assert_eq!(starts.get("description"), None, "it has none");
    let of_writer = &all[0]["agents"][0]["agent"]["points"];
    let counts = entry(of_writer, "after_agent", "lifecycle_tools.count");
    assert_eq!(counts["description"], "Counts\n the turns");
}

#[test]
fn g13_an_untrusted_workflow_is_not_run_and_an_accepted_one_is() {
    let sandbox = story(&[]);
    let ran = sandbox.run(&["run", "workflows/story"]).exits(4).says("tools/desk.py");
    assert_eq!(sandbox.read("began.txt"), "", "{ran}");
    sandbox.run(&["trust", "status", "workflows/story"]).exits(4);
    let review = sandbox.run(&["trust", "review", "."]).exits(0).prints("tools/desk.py");
    let word = review.stdout.split_whitespace().skip_while(|word| *word != "--fingerprint").nth(1);
    let fingerprint = word.expect("a fingerprint").to_owned();
    sandbox.run(&["trust", "accept", ".", "--fingerprint", &fingerprint]).exits(0);
    sandbox.run(&["run", "workflows/story", "-q"]).exits(0);
    assert_ne!(sandbox.read("began.txt"), "");
    sandbox.write(
        "workflows/story/tools/desk.py",
        "def open_desk():\n    pass\n\n\ndef count():\n    pass\n\n\ndef close_desk():\n    pass\n",
    );
    sandbox.run(&["run", "workflows/story"]).exits(4).says("changed since you trusted it");
}

#[test]
fn g13_in_a_terminal_a_person_is_asked_before_a_workflow_runs() {
    let sandbox = story(&[]);
    let run = ["run", "workflows/story", "-q"];
    sandbox.on_terminal(&run, &[("Trust it and go on?", "n")]).exits(4);
    assert_eq!(sandbox.read("began.txt"), "");
    let shown = sandbox.on_terminal(&run, &[("Trust it and go on?", "y")]).exits(0);
    assert!(shown.stdout.contains("it is good"), "{shown}");
    sandbox.run(&run).exits(0);
}

#[test]
fn doctor_looks_at_workflows_too() {
    let sandbox = story(&[]);
    let ran = sandbox.run(&["doctor", "."]).exits(0).prints("1 workflow, 2 agents");
    assert!(ran.stdout.contains("not trusted yet"), "{ran}");
    let agents = AGENTS.replace("script:writer.json", "anthropic.claude-sonnet");
    let ran = story(&[("agents.yaml", &agents)]).run(&["doctor", "workflows/story"]);
    assert!(ran.stdout.contains("used by writer"), "{ran}");
}

#[test]
fn the_workflow_template_runs_as_it_was_written() {
    let sandbox = Sandbox::new();
    sandbox.run(&["init", "workflow"]).exits(0).prints("tenure run workflow");
    let ran = sandbox.run(&["run", "workflow"]).exits(0);
    let said = ["First draft, about a lighthouse", "More sea", "Second draft", "APPROVED"];
    let places: Vec<_> = said.iter().map(|part| ran.stdout.find(part)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{ran}");
    let ran = ran.says("a new sheet for local").says("it took 2 drafts");
    assert!(!ran.stderr.contains("warning:"), "{ran}");
    sandbox.run(&["check", "workflow", "--deny-warnings"]).exits(0);
    sandbox.run(&["explain", "workflow"]).exits(0).prints("${approved} == True");
}

#[test]
fn what_a_hook_that_a_lifecycle_tool_uses_would_run_and_reach_is_part_of_what_is_trusted() {
    let tools = "lifecycle_tools:\n\
        - { trigger: after_agent, agent: null, use: notify, with: { command: [sh, notify.sh], env: { MODE: \"${SECRET_MODE:x}\" } } }\n\
        - { trigger: after_agent, agent: null, name: post, use: notify, with: { url: \"https://x.example/hook\", unsigned: true } }\n";
    let sandbox = story(&[("tools.yaml", tools)]);
    sandbox.write("notify.sh", "cat > /dev/null\n");
    let review = |sandbox: &Sandbox| {
        let mut command = sandbox.command(&["trust", "review", "workflows/story"]);
        let output = command.env("SECRET_MODE", "hush").env("COLUMNS", "300").output();
        crate::support::Ran::of(output.expect("it starts")).exits(0)
    };
    let ran = review(&sandbox);
    for part in [
        "command               sh notify.sh",
        "file of a command     notify.sh",
        "address of a hook     notify: requests go to https://x.example/hook",
        "MODE=${SECRET_MODE:x}: commands of the hook notify get it",
        "lifecycle tool after_agent use notify (with command [\"sh\",\"notify.sh\"], with env)",
    ] {
        assert!(ran.stdout.contains(part), "{part}\n{ran}");
    }
    assert!(!ran.stdout.contains("hush"), "{ran}");
    sandbox.run(&["trust", "accept", "workflows/story"]).exits(0);
    let other = tools.replace("x.example", "y.example");
    sandbox.write("workflows/story/tools.yaml", &other);
    sandbox.run(&["trust", "status", "workflows/story"]).exits(4);
    review(&sandbox).prints("requests go to https://y.example/hook").prints("GONE");
    sandbox.write("workflows/story/tools.yaml", tools);
    sandbox.run(&["trust", "status", "workflows/story"]).exits(0);
    sandbox.write("notify.sh", "rm -rf .\n");
    sandbox.run(&["trust", "status", "workflows/story"]).exits(4);
}

#[test]
fn the_files_of_a_workflow_are_part_of_what_is_trusted() {
    let sandbox = story(&[]);
    sandbox.run(&["trust", "accept", "workflows/story"]).exits(0);
    sandbox.run(&["run", "workflows/story", "-q"]).exits(0);
    for (file, text) in [("agents.yaml", AGENTS), ("handoffs.yaml", HANDOFFS)] {
        let file = format!("workflows/story/{file}");
        sandbox.write(&file, &format!("{text}# another\n"));
        let ran = sandbox.run(&["run", "workflows/story"]).exits(4);
        assert!(ran.stderr.contains("instruction") && ran.stderr.contains(&file), "{ran}");
        sandbox.write(&file, text);
    }
}
