//! Folders that use everything at once: what a workflow adds to its agents arrives there.

use crate::examples::support::{loaded, messages};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tenure_core::ask::{Answer, Asker, PendingAsk};
use tenure_core::event::EventKind;
use tenure_flow::{ChatReport, ChatStatus, Workflow};
use tenure_testkit::{Recorder, TestFolder};

/// A project in a folder of its own.
pub(crate) struct Folder(pub(crate) TestFolder);

impl Folder {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let folder = TestFolder::new(&[("tenure.toml", "")]);
        for (name, text) in files {
            folder.write(name, text);
        }
        Self(folder)
    }

    pub(crate) fn workflow(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join("workflows").join(name)
    }
}

/// Says the same whatever it is asked, and keeps the questions.
#[derive(Clone)]
struct Says(Answer, Arc<Mutex<Vec<Value>>>);

#[async_trait]
impl Asker for Says {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        let form = ask.ask.form.clone().unwrap_or_default();
        self.1.lock().expect("nobody panics").push(form);
        Some(self.0.clone())
    }
}

pub(crate) async fn run(path: &Path, says: Answer) -> (ChatReport, Recorder, Vec<Value>) {
    let (bus, recorder) = Recorder::with_bus();
    let asked = Says(says, Arc::default());
    let workflow = Workflow::builder(loaded(path)).events(&bus).on_ask(asked.clone()).build();
    let workflow = workflow.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    let flow = workflow.open().await.unwrap_or_else(|error| panic!("{error}"));
    let report = flow.chat().id("c").user("u").app("a").message("begin").run().await;
    workflow.shutdown().await;
    tenure_testkit::assert_paired(&recorder);
    let asked = asked.1.lock().expect("nobody panics").clone();
    (report, recorder, asked)
}

pub(crate) const ONE: &str =
    "workflow_name: one\norchestration_pattern: RoundRobinPattern\nmax_turns: 1\n";

#[tokio::test]
async fn a_structured_output_calls_the_tool_of_an_agent_in_auto_tool_mode() {
    let folder = Folder::new(&[
        ("workflows/one/orchestrator.yaml", ONE),
        (
            "workflows/one/agents.yaml",
            "- { name: Maker, system_message: You make., model: \"script:made.yaml\", \
             auto_tool_mode: true }\n",
        ),
        ("workflows/one/made.yaml", "- '{\"title\": \"A\", \"pages\": 3}'\n"),
        (
            "workflows/one/structured_outputs.yaml",
            "structured_outputs:\n  models:\n    Book:\n      type: model\n      fields:\n        \
             title: { type: str }\n        pages: { type: int }\n  registry: { Maker: Book }\n",
        ),
        (
            "workflows/one/tools.yaml",
            "tools:\n  - { agent: Maker, file: keep.py, function: keep, tool_type: Agent_Tool, \
             auto_invoke: true, description: Keeps a book }\n",
        ),
        (
            "workflows/one/tools/keep.py",
            "def keep(title: str, pages: int, context_variables) -> str:\n    \"\"\"Keep it.\"\"\"\n    \
             context_variables.data['kept'] = [title, pages]\n    return 'kept'\n",
        ),
    ]);
    let (report, _, _) = run(&folder.workflow("one"), Answer::Approve).await;
    assert_eq!(report.status, ChatStatus::MaxTurns, "{:?}", report.error);
    assert_eq!(report.variables["kept"], json!(["A", 3]));
    assert_eq!(report.variables["structured_outputs"]["Maker"]["pages"], json!(3));
}

#[tokio::test]
async fn an_answer_to_a_ui_tool_reaches_its_function_and_its_variable() {
    let folder = Folder::new(&[
        ("workflows/one/orchestrator.yaml", ONE),
        (
            "workflows/one/agents.yaml",
            "- { name: Clerk, system_message: You ask., model: \"script:asks.yaml\" }\n",
        ),
        (
            "workflows/one/asks.yaml",
            "- { call: confirm, with: { what: the order } }\n- \"It said {result}.\"\n",
        ),
        (
            "workflows/one/tools.yaml",
            "tools:\n  - { agent: Clerk, file: confirm.py, function: confirm, tool_type: UI_Tool, \
             description: Confirm it, ui: { component: Confirm, mode: inline } }\n",
        ),
        (
            "workflows/one/tools/confirm.py",
            "def confirm(what: str, ui_response: dict) -> str:\n    \"\"\"Confirm it.\"\"\"\n    \
             return f\"{what}: {ui_response['ok']}\"\n",
        ),
        (
            "workflows/one/context_variables.yaml",
            "definitions:\n  - name: confirmed\n    type: boolean\n    source: { type: state, \
             default: false, triggers: [{ type: ui_response, tool: confirm, response_key: ok }] }\n",
        ),
    ]);
    let says = Answer::Edit(json!({ "ok": true }));
    let (report, _, asked) = run(&folder.workflow("one"), says).await;
    assert_eq!(report.output, "It said the order: True.", "{:?}", report.error);
    assert_eq!(report.variables["confirmed"], json!(true));
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["component"], "Confirm");
    assert_eq!(asked[0]["mode"], "inline");
    assert_eq!(asked[0]["arguments"], json!({ "what": "the order" }));
}

#[tokio::test]
async fn hooks_of_the_orchestrator_and_message_hooks_stand_in_one_chain() {
    let folder = Folder::new(&[
        (
            "workflows/one/orchestrator.yaml",
            &format!(
                "{ONE}hooks:\n  - {{ on: before_chat, run: marks.py:chat, name: chat }}\n  \
                 - {{ on: before_agent, run: marks.py:turn, name: turn }}\n"
            ),
        ),
        (
            "workflows/one/agents.yaml",
            "- { name: Echo, system_message: You repeat., model: passthrough }\n",
        ),
        (
            "workflows/one/marks.py",
            "def chat(ctx, context_variables):\n    context_variables.data['marks'] = ['chat']\n\n\
             def turn(ctx, context_variables):\n    \
             context_variables.data['marks'] = context_variables.data['marks'] + [ctx.agent_name]\n",
        ),
        (
            "workflows/one/hooks.json",
            r#"{"hooks": [{"hook_type": "process_last_received_message", "hook_agent": "all",
                "filename": "words.py", "function": "loud"}]}"#,
        ),
        ("workflows/one/words.py", "def loud(message):\n    return message.upper()\n"),
        (
            "workflows/one/context_variables.yaml",
            "definitions:\n  - { name: hours, type: string, source: { type: static, value: 9 to 5 } }\n\
             agents: { Echo: [hours] }\n",
        ),
    ]);
    let (report, recorder, _) = run(&folder.workflow("one"), Answer::Approve).await;
    assert_eq!(report.output, "BEGIN", "{:?}", report.error);
    assert_eq!(report.variables["marks"], json!(["chat", "Echo"]));
    assert_eq!(report.variables["hours"], json!("9 to 5"));
    assert!(recorder.count("lifecycle.tool_result") == 2, "the platform's two");
}

#[tokio::test]
async fn an_agent_can_be_a_chat_of_another_workflow() {
    let folder = Folder::new(&[
        (
            "workflows/outer/orchestrator.yaml",
            "workflow_name: outer\norchestration_pattern: RoundRobinPattern\nmax_turns: 1\n",
        ),
        ("workflows/outer/agents.yaml", "- { name: Team, workflow: inner }\n"),
        (
            "workflows/inner/orchestrator.yaml",
            "workflow_name: inner\norchestration_pattern: DefaultPattern\nstartup_mode: BackendOnly\n",
        ),
        (
            "workflows/inner/agents.yaml",
            "- { name: Worker, system_message: You work., model: passthrough }\n",
        ),
        (
            "workflows/inner/tools.yaml",
            "lifecycle_tools:\n  - { trigger: before_agent, agent: null, file: w.py, function: w }\n",
        ),
        ("workflows/inner/w.py", "def w():\n    return 'inside'\n"),
    ]);
    let path = folder.workflow("outer");
    let (report, recorder, _) = run(&path, Answer::Approve).await;
    assert_eq!(report.output, "begin", "{:?}", report.error);
    let inside = recorder.events().into_iter().any(|event| match &event.kind {
        EventKind::Announced { data, .. } => data["result"] == "inside",
        _ => false,
    });
    assert!(inside);
    let items = tenure_flow::trust_items(&loaded(&path)).items;
    assert!(items.iter().any(|it| it.what == "workflows/inner/w.py"), "{items:#?}");
    let inspection = Workflow::builder(loaded(&path)).inspect();
    assert_eq!(inspection.workflow.agents[0].workflow.as_deref(), Some("inner"));
    assert_eq!(inspection.nested[0].workflow.workflow, "inner");
}

#[tokio::test]
async fn a_project_can_bring_the_platforms_lines_along() {
    let folder = Folder::new(&[
        ("workflows/one/orchestrator.yaml", ONE),
        (
            "workflows/one/agents.yaml",
            "- { name: Echo, system_message: You repeat., model: passthrough }\n",
        ),
        (
            "logs/workflow_lifecycle.py",
            "def log_workflow_start(context_variables):\n    \
             print('own start', context_variables.data['workflow_name'])\n",
        ),
    ]);
    let path = folder.workflow("one");
    let (_, recorder, _) = run(&path, Answer::Approve).await;
    let lines: Vec<_> = recorder
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Log { line, .. } => Some(line.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(lines[0], "own start one");
    assert!(lines[1].contains("Workflow Ended | workflow=one"), "{lines:?}");
    let items = tenure_flow::trust_items(&loaded(&path)).items;
    assert!(items.iter().any(|it| it.what == "logs/workflow_lifecycle.py"), "{items:#?}");
}

#[tokio::test]
async fn the_model_of_the_selector_picks_the_speakers_of_an_auto_pattern() {
    let folder = Folder::new(&[
        (
            "workflows/one/orchestrator.yaml",
            "workflow_name: one\norchestration_pattern: AutoPattern\ninitial_agent: First\n\
             selector_model: \"script:pick.yaml\"\n",
        ),
        ("workflows/one/pick.yaml", "- terminate\n"),
        (
            "workflows/one/agents.yaml",
            "- { name: First, system_message: You begin., model: passthrough }\n\
             - { name: Second, system_message: You go on., model: passthrough }\n",
        ),
    ]);
    let path = folder.workflow("one");
    let (report, _, _) = run(&path, Answer::Approve).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(report.turns, 1);
    assert_eq!(report.routing[1].reason, "the model picked it");
    let inspection = Workflow::builder(loaded(&path)).inspect();
    let others: Vec<_> = inspection.workflow.others.iter().map(|it| &*it.agent).collect();
    assert_eq!(others, ["one.selector"]);
    fs::remove_file(path.join("pick.yaml")).expect("it was there");
    let inspection = Workflow::builder(loaded(&path)).inspect();
    let wrong = messages(&inspection.report);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].contains("orchestrator.yaml") && wrong[0].contains("pick.yaml"), "{wrong:?}");
}
