//! Projects that are written for one test, loaded and run as a program would.

use crate::examples::support::messages;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tenure_cards::LoadOptions;
use tenure_cards::card::Environ;
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tenure_flow::{ChatReport, ChatStatus, LoadedWorkflow, Workflow, load, trust_items};

/// A project of these files, each a path and its text.
fn project(files: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().expect("there is room");
    write(dir.path(), "tenure.toml", "");
    for (path, text) in files {
        write(dir.path(), path, text);
    }
    dir
}

fn write(root: &Path, path: &str, text: impl AsRef<[u8]>) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("there is room");
    std::fs::write(path, text).expect("there is room");
}

const ORCHESTRATOR: (&str, &str) =
    ("workflows/w/orchestrator.yaml", "workflow_name: w\nmax_turns: 1\n");
const AGENTS: (&str, &str) =
    ("workflows/w/agents.yaml", "- {name: a, model: passthrough, system_message: hi}\n");

fn opened(dir: &TempDir, name: &str) -> LoadedWorkflow {
    let options = LoadOptions::default().environ(Environ::empty());
    let loaded = load(&dir.path().join("workflows").join(name), &options);
    assert!(!loaded.report.has_errors(), "{:#?}", messages(&loaded.report));
    loaded
}

fn built(dir: &TempDir, name: &str) -> Workflow {
    let workflow = Workflow::builder(opened(dir, name)).build();
    workflow.unwrap_or_else(|report| panic!("{:#?}", messages(&report)))
}

async fn ran(workflow: &Workflow) -> ChatReport {
    let flow = workflow.open().await.unwrap_or_else(|error| panic!("{error}"));
    let report = flow.chat().message("hello").run().await;
    workflow.shutdown().await;
    report
}

/// Everything that is asked to be trusted, a line each.
fn trusted(dir: &TempDir) -> Vec<String> {
    let found = trust_items(&opened(dir, "w"));
    let line = |it: &tenure_cards::trust::Item| {
        format!("{:?} {} {:?} {:?}", it.kind, it.what, it.sha256, it.used_by)
    };
    found.items.iter().map(line).collect()
}

#[test]
fn what_a_workflow_takes_reaches_and_runs_is_asked_to_be_trusted() {
    let dir = project(&[
        (
            "tenure.toml",
            "[context]\nconcept_overview = \"concept.md\"\nschema_overview = \"schema.md\"\n",
        ),
        ("concept.md", "hello"),
        ("schema.md", "a table"),
        (
            "workflows/w/orchestrator.yaml",
            "workflow_name: w\norchestration_pattern: AutoPattern\nmax_turns: 2\n\
             selector_model: openai.gpt-4o\n",
        ),
        AGENTS,
        (
            "workflows/w/tools.yaml",
            "lifecycle_tools:\n- {trigger: before_chat, agent: null, run: [echo, started]}\n",
        ),
        (
            "workflows/w/hooks.yaml",
            "- {hook_type: process_last_received_message, hook_agent: a, filename: own.py, \
             function: heard}\n",
        ),
        ("workflows/w/tools/own.py", "def heard(message):\n    return message\n"),
        (
            "workflows/w/context_variables.yaml",
            "definitions:\n\
             - {name: seen, type: str, source: {type: config, env_var: SEEN_KEY, default: x}}\n\
             - {name: kept, type: str, source: {type: config, env_var: KEPT_KEY, default: x}}\n\
             agents:\n- {agent: a, variables: [seen]}\n",
        ),
    ]);
    let found = trusted(&dir);
    for part in [
        "Environment SEEN_KEY: its value goes into the context variable `seen`, read by a ",
        "Environment KEPT_KEY: its value goes into the context variable `kept` ",
        "Address openai requests go to api.openai.com with your key OPENAI_API_KEY",
        "Data concept.md Some(",
        "Data schema.md Some(",
        "Command echo started ",
        "process_last_received_message of a heard",
    ] {
        assert!(found.iter().any(|line| line.contains(part)), "no `{part}` in {found:#?}");
    }
    assert!(found.iter().any(|line| line.contains("w: selector")), "{found:#?}");
    // Whoever changes one of them asks again.
    write(dir.path(), "concept.md", "another");
    assert_ne!(trusted(&dir), found);
    let sources = format!("{:?}", tenure_flow::sources(&opened(&dir, "w")));
    assert!(sources.contains("concept.md") && sources.contains("schema.md"), "{sources}");
}

#[test]
fn a_selector_that_nobody_needs_reaches_nothing() {
    let orchestrator = "workflow_name: w\norchestration_pattern: RoundRobinPattern\n\
                        max_turns: 2\nselector_model: openai.gpt-4o\n";
    let dir = project(&[("workflows/w/orchestrator.yaml", orchestrator), AGENTS]);
    assert_eq!(trusted(&dir), Vec::<String>::new());
}

/// An outer workflow whose only agent is a chat of the inner one; both declare these variables.
async fn nested(outer: &str, inner: &str) -> ChatReport {
    let dir = project(&[]);
    for (name, agent, first, variables) in [
        ("outer", "- {name: sub, workflow: inner}\n", "sub", outer),
        ("inner", "- {name: a, model: passthrough, system_message: hi}\n", "a", inner),
    ] {
        let folder = format!("workflows/{name}");
        let orchestrator = format!(
            "workflow_name: {name}\norchestration_pattern: DefaultPattern\ninitial_agent: {first}\n\
             max_turns: 2\n"
        );
        write(dir.path(), &format!("{folder}/orchestrator.yaml"), orchestrator);
        write(dir.path(), &format!("{folder}/agents.yaml"), agent);
        let rules = format!(
            "handoff_rules:\n- {{source_agent: {first}, target_agent: terminate, handoff_type: \
             after_work}}\n"
        );
        write(dir.path(), &format!("{folder}/handoffs.yaml"), rules);
        write(dir.path(), &format!("{folder}/context_variables.yaml"), variables);
    }
    ran(&built(&dir, "outer")).await
}

#[tokio::test]
async fn what_both_workflows_only_read_is_not_handed_over() {
    let variables = "definitions:\n\
        - {name: region, type: str, source: {type: config, env_var: NO_SUCH_REGION, default: eu}}\n\
        - {name: most, type: int, source: {type: static, value: 3}}\n\
        - {name: twice, type: int, source: {type: computed, computation: '${most} * 2'}}\n";
    let report = nested(variables, variables).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(report.variables["twice"], 6);
}

#[tokio::test]
async fn what_both_workflows_write_is_one_thing_to_both() {
    let outer = "definitions:\n\
        - {name: done, type: bool, source: {type: state, default: false}}\n\
        - {name: limit, type: int, source: {type: static, value: 3}}\n";
    let inner = "definitions:\n\
        - {name: done, type: bool, source: {type: state, default: false, triggers: [{type: \
        agent_text, agent: a, match: {contains: hello}}]}}\n\
        - {name: limit, type: int, source: {type: state, default: 9}}\n";
    let report = nested(outer, inner).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(report.variables["done"], true, "the inner one's came out");
    assert_eq!(report.variables["limit"], 3, "what the outer one only reads stays");
}

/// Answers with these, one after the other, and keeps the schemas.
#[derive(Clone, Default)]
struct Person {
    says: Arc<Mutex<Vec<&'static str>>>,
    schemas: Arc<Mutex<Vec<Option<Value>>>>,
}

#[async_trait]
impl Asker for Person {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        self.schemas.lock().expect("nobody panics").push(ask.ask.schema.clone());
        Some(Answer::Respond(self.says.lock().expect("nobody panics").remove(0).to_owned()))
    }
}

#[tokio::test]
async fn an_answer_has_the_form_that_the_function_declares() {
    for (kind, says, expected) in [
        ("dict", vec!["yes", r#"{"ok": true}"#], "dict {'ok': True}"),
        ("str", vec!["42"], "str 42"),
        ("int", vec!["many", "42"], "int 42"),
    ] {
        let function = format!(
            "def confirm(what: str, ui_response: {kind}):\n    \
             return f\"{{type(ui_response).__name__}} {{ui_response}}\"\n"
        );
        let dir = project(&[
            ORCHESTRATOR,
            (
                "workflows/w/agents.yaml",
                "- {name: a, model: 'script:a.json', system_message: hi}\n",
            ),
            ("workflows/w/a.json", r#"[{"call": "confirm", "with": {"what": "it"}}, "{result}"]"#),
            (
                "workflows/w/tools.yaml",
                "tools:\n- {agent: a, file: own.py, function: confirm, tool_type: UI_Tool, ui: \
                 {component: Confirm, mode: inline}}\n",
            ),
            ("workflows/w/tools/own.py", &function),
        ]);
        let asked = says.len();
        let person = Person { says: Arc::new(Mutex::new(says)), ..Person::default() };
        let workflow = Workflow::builder(opened(&dir, "w")).on_ask(person.clone()).build();
        let workflow = workflow.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
        let report = ran(&workflow).await;
        assert_eq!(report.output, expected, "{kind}: {:?}", report.error);
        let schemas = person.schemas.lock().expect("nobody panics").clone();
        assert_eq!(schemas.len(), asked, "{kind}");
        assert!(schemas.iter().all(|it| it.as_ref().is_some_and(|it| it["type"] != json!(null))));
    }
}

#[test]
fn a_person_takes_part_where_the_files_say_so() {
    for (says, expected) in [("true", true), ("false", false)] {
        let orchestrator = format!(
            "workflow_name: w\norchestration_pattern: RoundRobinPattern\nmax_turns: 1\n\
             human_in_the_loop: {says}\n"
        );
        let dir = project(&[("workflows/w/orchestrator.yaml", &orchestrator), AGENTS]);
        let explained = serde_json::to_string(&built(&dir, "w").explain()).expect("it is JSON");
        assert_eq!(explained.contains("ask_person"), expected, "{explained}");
    }
}

const LIFECYCLE: &str = "logs/workflow_lifecycle.py";

#[test]
fn a_project_replaces_what_its_file_defines_however_that_is_written() {
    let text = "\"\"\"Not this one:\ndef log_workflow_completion(\n\"\"\"\n\
                async def log_workflow_start (context_variables):\n    return None\n";
    let dir = project(&[ORCHESTRATOR, AGENTS, (LIFECYCLE, text)]);
    let explained = serde_json::to_string(&built(&dir, "w").explain()).expect("it is JSON");
    assert!(explained.contains("workflow_lifecycle.py:log_workflow_start"), "{explained}");
    assert!(!explained.contains("workflow_lifecycle.py:log_workflow_completion"), "{explained}");
}

#[test]
fn what_cannot_be_read_in_place_of_the_platforms_own_is_told() {
    let dir = project(&[ORCHESTRATOR, AGENTS]);
    write(dir.path(), LIFECYCLE, [b'#', 0xff, b'\n']);
    let refused = |dir: &TempDir| match Workflow::builder(opened(dir, "w")).build() {
        Ok(_) => panic!("it was ignored"),
        Err(report) => messages(&report),
    };
    let [said] = &refused(&dir)[..] else { panic!("not one: {:#?}", refused(&dir)) };
    assert!(said.contains("is not UTF-8 at byte 1"), "{said}");
    write(dir.path(), LIFECYCLE, "def log_workflow_start(\n");
    assert!(refused(&dir).iter().any(|said| said.contains("cannot be parsed")));
    let outside = tempfile::tempdir().expect("there is room");
    write(outside.path(), "own.py", "def log_workflow_start():\n    pass\n");
    std::fs::remove_file(dir.path().join(LIFECYCLE)).expect("it is there");
    std::os::unix::fs::symlink(outside.path().join("own.py"), dir.path().join(LIFECYCLE))
        .expect("it can be linked");
    let said = refused(&dir);
    assert!(said.iter().any(|said| said.contains("leads out of the project")), "{said:#?}");
    assert!(!said.iter().any(|said| said.contains("def log_workflow_start")), "{said:#?}");
}

#[test]
fn the_secrets_of_variables_are_known_those_of_nested_workflows_too() {
    let dir = project(&[
        ("workflows/w/orchestrator.yaml", "workflow_name: w\nmax_turns: 1\n"),
        ("workflows/w/agents.yaml", "- {name: sub, workflow: inner}\n"),
        ("workflows/inner/orchestrator.yaml", "workflow_name: inner\nmax_turns: 1\n"),
        ("workflows/inner/agents.yaml", AGENTS.1),
        (
            "workflows/inner/context_variables.yaml",
            "definitions:\n- {name: k, type: str, source: {type: config, env_var: SHOP_API_KEY}}\n",
        ),
    ]);
    let environ = Environ::of([("SHOP_API_KEY", "sk-0123456789")]);
    let options = LoadOptions::default().environ(environ);
    let loaded = load(&dir.path().join("workflows/w"), &options);
    assert!(!loaded.report.has_errors(), "{:#?}", messages(&loaded.report));
    let said = loaded.redactor().redact("the key is sk-0123456789");
    assert!(!said.contains("sk-0123456789"), "{said}");
}
