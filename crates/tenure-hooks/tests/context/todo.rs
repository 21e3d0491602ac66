//! A list that the model keeps.

use crate::support::{hearing, made, refused, results};
use serde_json::{Value, json};
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::IntoRegistration;
use tenure_core::message::{Message, ToolCall, ToolStatus};
use tenure_core::model::ModelResponse;
use tenure_core::step::MemoryStepLog;
use tenure_hooks::context::{TodoList, TodoStatus};
use tenure_models::Scripted;
use tenure_testkit::{RecordedModel, Recorder};

fn list(entries: &[(&str, &str)]) -> Value {
    let entries: Vec<_> =
        entries.iter().map(|(it, status)| json!({ "content": it, "status": status })).collect();
    json!({ "todos": entries })
}

/// Works through a list of two, by what it hears.
fn working() -> (AgentBuilder, RecordedModel) {
    let heard = hearing(|request| {
        let written = request.messages.iter().filter(|it| matches!(it, Message::Tool(_))).count();
        let next = match written {
            0 => list(&[("plan", "in_progress"), ("build", "pending")]),
            1 => list(&[("plan", "completed"), ("build", "in_progress")]),
            2 => list(&[("plan", "completed"), ("build", "completed")]),
            _ => return ModelResponse::text("built"),
        };
        ModelResponse::calls([ToolCall::new(
            format!("c{written}"),
            "write_todos",
            next.to_string(),
        )])
    });
    let agent = Agent::builder("a").model(heard.clone()).instruction("Build.");
    (agent.with_lifecycle(TodoList::new().system_prompt("Keep the list with {tool}.")), heard)
}

#[tokio::test]
async fn the_list_is_shown_at_each_step_once_as_it_is_then() {
    let (bus, recorder) = Recorder::with_bus();
    let (agent, heard) = working();
    let agent = agent.events(&bus).build().unwrap();
    agent.startup().await.unwrap();
    assert_eq!(agent.run("go").await.unwrap().output(), "built");
    let told = |lines: &str| {
        format!("Build.\n\n<todo_list>\nKeep the list with write_todos.{lines}\n</todo_list>")
    };
    let now = "\nThe list as it is now:";
    assert_eq!(
        heard.instructions(),
        [
            told(""),
            told(&format!("{now}\n- [>] plan\n- [ ] build")),
            told(&format!("{now}\n- [x] plan\n- [>] build")),
            told(&format!("{now}\n- [x] plan\n- [x] build")),
        ]
    );
    assert_eq!(recorder.count("todo.changed"), 3);
    let list = TodoList::of(&agent);
    assert!(list.len() == 2 && list.iter().all(|it| it.status == TodoStatus::Completed));
    assert!(results(&agent)[0].1.contains("2 entries, 2 of them open"), "{:?}", results(&agent));
    agent.shutdown().await;
}

#[tokio::test]
async fn a_list_that_others_write_is_shown_too() {
    let heard = hearing(|_| ModelResponse::text("fine"));
    let todo = TodoList::new().system_prompt("");
    let agent =
        Agent::builder("a").model(heard.clone()).instruction("Be kind.").with_lifecycle(todo);
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    let sow = list(&[("sow", "pending")])["todos"].clone();
    let reap = list(&[("reap", "completed")])["todos"].clone();
    for todos in [json!([]), sow.clone(), sow, reap, json!("none"), json!(null)] {
        agent.set_state("_todos", todos).unwrap();
        agent.run("go").await.unwrap();
    }
    agent.shutdown().await;
    let told = |line: &str| {
        format!("Be kind.\n\n<todo_list>\nThe list as it is now:\n- {line}\n</todo_list>")
    };
    let none = "Be kind.".to_owned();
    let (sow, reap) = (told("[ ] sow"), told("[x] reap"));
    let expected = [none.clone(), sow.clone(), sow, reap, none.clone(), none];
    assert_eq!(heard.instructions(), expected);
}

#[tokio::test]
async fn the_list_is_json_to_whoever_reads_the_state() {
    let (agent, _) = working();
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    agent.run("go").await.unwrap();
    let expected = list(&[("plan", "completed"), ("build", "completed")]);
    assert_eq!(agent.state_value("_todos").as_ref(), Some(&expected["todos"]));
    agent.shutdown().await;
}

#[tokio::test]
async fn several_calls_at_once_are_all_refused() {
    let (one, two) = (list(&[("a", "pending")]), list(&[("b", "pending")]));
    let model = Scripted::empty()
        .call("write_todos", list(&[("kept", "pending")]))
        .calls([("write_todos", one), ("write_todos", two)])
        .text("sorry");
    let agent = Agent::builder("a").model(model).with_lifecycle(TodoList::new()).build().unwrap();
    agent.startup().await.unwrap();
    agent.run("go").await.unwrap();
    let [first, rest @ ..] = &*results(&agent) else { panic!("three results") };
    assert_eq!(first.0, ToolStatus::Ok);
    assert_eq!(rest.len(), 2);
    for (status, said) in rest {
        assert_eq!(*status, ToolStatus::Error);
        assert!(said.contains("called 2 times at once") && said.contains("call it once"), "{said}");
    }
    assert_eq!(TodoList::of(&agent)[0].content, "kept");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_list_that_makes_no_sense_is_refused_and_the_old_one_stays() {
    let long = "x".repeat(1001);
    let many: Vec<_> = (0..101).map(|_| ("x", "pending")).collect();
    let model = Scripted::empty()
        .call("write_todos", list(&[("kept", "pending")]))
        .call("write_todos", list(&[("a", "later")]))
        .call("write_todos", json!({ "list": [] }))
        .call("write_todos", list(&[("a", "pending"), ("  ", "pending")]))
        .call("write_todos", list(&[(&long, "pending")]))
        .call("write_todos", list(&many))
        .text("sorry");
    let agent = Agent::builder("a").model(model).with_lifecycle(TodoList::new()).build().unwrap();
    agent.startup().await.unwrap();
    agent.run("go").await.unwrap();
    let results = results(&agent);
    for (at, part) in [(1, "later"), (2, "todos"), (3, "entry 2"), (4, "1000"), (5, "100 fit")] {
        assert_eq!(results[at].0, ToolStatus::Error);
        assert!(results[at].1.contains(part), "{:?}", results[at]);
    }
    assert_eq!(TodoList::of(&agent)[0].content, "kept");
    agent.shutdown().await;
}

#[tokio::test]
async fn a_run_that_goes_on_has_its_list() {
    let log = MemoryStepLog::new();
    let (agent, heard) = working();
    let agent = agent.build().unwrap();
    agent.startup().await.unwrap();
    agent.request("go").steps(log.clone()).run().await.unwrap();
    agent.shutdown().await;
    let before = heard.instructions();
    let count = log.keys().len();
    assert!(count > 6, "{count}");
    for cut in 0..=count {
        let (agent, heard) = working();
        let agent = agent.build().unwrap();
        agent.startup().await.unwrap();
        let report = agent.request("go").steps(log.cut_after(cut)).run().await.unwrap();
        assert_eq!(report.output(), "built");
        let heard = heard.instructions();
        assert_eq!(heard, before[before.len() - heard.len()..], "cut {cut}");
        let list = TodoList::of(&agent);
        assert!(list.len() == 2 && list.iter().all(|it| it.status == TodoStatus::Completed));
        agent.shutdown().await;
    }
}

#[tokio::test]
async fn names_and_texts_are_options() {
    let with = json!({ "tool_name": "plan", "tool_description": "Plans.", "system_prompt": "" });
    let heard = hearing(|_| ModelResponse::text("fine"));
    let agent = Agent::builder("a")
        .model(heard.clone())
        .instruction("Be kind.")
        .with_lifecycle(made("todo", with).unwrap())
        .build()
        .unwrap();
    agent.scoped(async |agent| agent.run("hello").await).await.unwrap();
    let heard = heard.requests();
    assert_eq!(heard[0].instruction.as_deref(), Some("Be kind."));
    assert_eq!((&*heard[0].tools[0].name, &*heard[0].tools[0].description), ("plan", "Plans."));
}

#[test]
fn options_are_checked() {
    assert!(made("todo", json!({})).is_ok());
    assert_eq!(refused("todo", json!({ "tool_name": "" })), "tool_name");
    assert_eq!(refused("todo", json!({ "tool_name": "my tool" })), "tool_name");
    assert_eq!(refused("todo", json!({ "tool_description": " " })), "tool_description");
}

#[tokio::test]
async fn an_agent_may_have_two_lists_with_tools_of_their_own() {
    let heard = hearing(|request| {
        let made = request.messages.iter().filter(|it| matches!(it, Message::Tool(_))).count();
        let write = |tool: &str, what: &str| {
            let with = list(&[(what, "pending")]).to_string();
            ModelResponse::calls([ToolCall::new(format!("c{made}"), tool, with)])
        };
        match made {
            0 => write("write_todos", "sow"),
            1 => write("plan", "harvest"),
            _ => ModelResponse::text("done"),
        }
    });
    let second = TodoList::new().tool_name("plan").into_registration().named("second");
    let agent = Agent::builder("a")
        .model(heard.clone())
        .with_lifecycle(TodoList::new())
        .with_lifecycle(second)
        .build()
        .unwrap();
    agent.startup().await.unwrap();
    agent.run("go").await.unwrap();
    assert_eq!(TodoList::of(&agent)[0].content, "sow");
    assert_eq!(TodoList::of_tool(&agent, "plan")[0].content, "harvest");
    let told = heard.instructions().pop().unwrap();
    assert!(told.contains("- [ ] sow") && told.contains("- [ ] harvest"), "{told}");
    agent.shutdown().await;
}
