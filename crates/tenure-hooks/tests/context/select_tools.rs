//! A model that chooses which tools another one gets to see.

use crate::context::stage::{shown, tool};
use crate::support::{hearing, made, refused, results};
use serde_json::json;
use std::time::Duration;
use tenure_core::agent::{Agent, AgentBuilder};
use tenure_core::hook::IntoRegistration;
use tenure_core::message::{Message, ToolCall, ToolStatus};
use tenure_core::model::{ModelErrorKind, ModelResponse};
use tenure_core::step::MemoryStepLog;
use tenure_hooks::context::{NoChoice, Often, SelectTools};
use tenure_models::{Failing, Hanging, Scripted};
use tenure_testkit::{RecordedModel, Recorder};

const TOOLS: [&str; 5] = ["map", "clock", "mail", "search", "weather"];

/// Calls these tools one after the other, then says `done`.
fn calling(names: &'static [&'static str]) -> (AgentBuilder, RecordedModel) {
    let heard = hearing(|request| {
        let made = request.messages.iter().filter(|it| matches!(it, Message::Tool(_))).count();
        let said = request.messages.last().map(|it| it.text().to_owned()).unwrap_or_default();
        match names.get(made) {
            Some(name) => ModelResponse::calls([ToolCall::new(format!("c{made}"), *name, "{}")]),
            None => ModelResponse::text(said),
        }
    });
    let agent = TOOLS
        .iter()
        .fold(Agent::builder("a").model(heard.clone()), |agent, it| agent.tool(tool(it)));
    (agent, heard)
}

fn chooses(answers: &[&str]) -> Scripted {
    Scripted::new(answers.iter().copied())
}

async fn run(agent: AgentBuilder, hook: SelectTools) -> Agent {
    let agent = agent.with_lifecycle(hook).build().expect("it works here");
    agent.startup().await.expect("it works here");
    agent.run("Is it going to rain?").await.expect("it works here");
    agent
}

#[tokio::test]
async fn the_chosen_tools_and_those_that_are_always_there_are_shown() {
    let (bus, recorder) = Recorder::with_bus();
    let (agent, heard) = calling(&["weather", "mail"]);
    let select = SelectTools::new()
        .model(chooses(&[r#"Sure: {"tools": ["weather", "weather"]}"#]))
        .max_tools(2)
        .always_include("mail")
        .always_include("not there");
    let agent = run(agent.events(&bus), select).await;
    // Chosen once, for all three steps; in the agent's order.
    assert_eq!(shown(&heard), vec![vec!["mail", "weather"]; 3]);
    assert!(results(&agent).iter().all(|(status, _)| *status == ToolStatus::Ok));
    assert_eq!(recorder.count("tools.selected"), 1);
    agent.shutdown().await;
}

#[tokio::test]
async fn where_there_are_few_tools_nothing_is_chosen() {
    let (agent, heard) = calling(&[]);
    let select = SelectTools::new()
        .model(Failing::new(ModelErrorKind::Auth))
        .max_tools(4)
        .always_include("map");
    let agent = run(agent, select.on_failure(NoChoice::Error)).await;
    assert_eq!(shown(&heard), [TOOLS]);
    agent.shutdown().await;
}

#[tokio::test]
async fn what_it_reads_names_the_tools_and_the_request() {
    let asked = hearing(|_| ModelResponse::text(r#"{"tools": ["clock"]}"#));
    let (agent, _) = calling(&[]);
    let select = SelectTools::new().model(asked.clone()).max_tools(1).prompt("Pick one.");
    run(agent, select).await.shutdown().await;
    let asked = asked.requests();
    let instruction = asked[0].instruction.as_deref().unwrap();
    assert!(
        instruction.starts_with("Pick one.") && instruction.contains("- clock: What clock does")
    );
    assert_eq!(asked[0].messages.last().unwrap().text(), "Is it going to rain?");
    assert!(asked[0].tools.is_empty());
    let schema = asked[0].params.output_schema.as_deref().unwrap();
    assert_eq!(schema["properties"]["tools"]["items"]["enum"], json!(TOOLS));
}

#[tokio::test]
async fn names_that_do_not_exist_are_asked_for_again_and_then_dropped() {
    let (agent, heard) = calling(&[]);
    let better = chooses(&[r#"{"tools": ["radar"]}"#, r#"{"tools": ["weather"]}"#]);
    let agent = run(agent, SelectTools::new().model(better).max_tools(2)).await;
    assert_eq!(shown(&heard), [["weather"]]);
    agent.shutdown().await;

    let (agent, heard) = calling(&[]);
    let stubborn = chooses(&[r#"{"tools": ["map", "radar"]}"#, r#"{"tools": ["radar"]}"#]);
    let agent = run(agent, SelectTools::new().model(stubborn).max_tools(2)).await;
    assert_eq!(shown(&heard), [["map"]]);
    agent.shutdown().await;
}

#[tokio::test]
async fn more_than_may_be_chosen_are_cut_to_the_first() {
    let (agent, heard) = calling(&[]);
    let greedy = chooses(&[r#"{"tools": ["weather", "map", "clock", "mail"]}"#]);
    let agent = run(agent, SelectTools::new().model(greedy).max_tools(2)).await;
    assert_eq!(shown(&heard), [["map", "weather"]]);
    agent.shutdown().await;
}

#[tokio::test]
async fn without_a_choice_it_goes_on_as_is_said() {
    let bad = || chooses(&["I like them all", "really"]);
    for (then, expected) in [(NoChoice::All, TOOLS.to_vec()), (NoChoice::None, vec!["search"])] {
        for fails in [false, true] {
            let (agent, heard) = calling(&[]);
            let select = SelectTools::new().max_tools(2).always_include("search").on_failure(then);
            let select = match fails {
                true => select.model(Failing::new(ModelErrorKind::Overloaded)),
                false => select.model(bad()),
            };
            let agent = run(agent, select).await;
            assert_eq!(shown(&heard), std::slice::from_ref(&expected), "{then:?}");
            agent.shutdown().await;
        }
    }
    let (agent, heard) = calling(&[]);
    let select = SelectTools::new().model(bad()).max_tools(2).on_failure(NoChoice::Error);
    let agent = agent.with_lifecycle(select).build().unwrap();
    let error = agent.scoped(async |agent| agent.run("hello").await).await.unwrap_err();
    assert!(error.to_string().contains("did not choose among 5 tools"), "{error}");
    assert!(heard.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_is_given_up() {
    let (agent, _) = calling(&[]);
    let select = SelectTools::new().model(Hanging::new()).max_tools(2);
    let agent = agent.with_lifecycle(select).build().unwrap();
    let began = tokio::time::Instant::now();
    let error = agent.scoped(async |agent| agent.run("hello").await).await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(began.elapsed() <= Duration::from_secs(130), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_tool_that_was_not_shown_cannot_be_called_unless_that_is_allowed() {
    let choose = || chooses(&[r#"{"tools": ["weather"]}"#]);
    let (agent, _) = calling(&["mail", "weather"]);
    let agent = run(agent, SelectTools::new().model(choose()).max_tools(1)).await;
    let results_now = results(&agent);
    assert_eq!(results_now[0].0, ToolStatus::Denied);
    let expected = "the tool `mail` is not available here; there are: weather";
    assert_eq!(results_now[0].1, expected);
    assert_eq!(results_now[1].0, ToolStatus::Ok);
    agent.shutdown().await;

    let (agent, _) = calling(&["mail"]);
    let agent = run(agent, SelectTools::new().model(choose()).max_tools(1).lenient()).await;
    assert_eq!(results(&agent)[0].0, ToolStatus::Ok);
    agent.shutdown().await;
}

#[tokio::test]
async fn tools_may_be_chosen_at_every_step() {
    let (agent, heard) = calling(&["map", "mail"]);
    let choose =
        chooses(&[r#"{"tools": ["map"]}"#, r#"{"tools": ["mail"]}"#, r#"{"tools": ["clock"]}"#]);
    let agent = run(agent, SelectTools::new().model(choose).max_tools(1).often(Often::Step)).await;
    assert_eq!(shown(&heard), [["map"], ["mail"], ["clock"]]);
    assert!(results(&agent).iter().all(|(status, _)| *status == ToolStatus::Ok));
    agent.shutdown().await;
}

#[tokio::test]
async fn each_turn_has_a_choice_of_its_own() {
    let (agent, heard) = calling(&[]);
    let choose = chooses(&[r#"{"tools": ["map"]}"#, r#"{"tools": ["mail"]}"#]);
    let agent = run(agent, SelectTools::new().model(choose).max_tools(1)).await;
    agent.run("Write to Ada").await.unwrap();
    assert_eq!(shown(&heard), [["map"], ["mail"]]);
    agent.shutdown().await;
}

#[tokio::test]
async fn a_run_that_goes_on_shows_what_was_chosen_and_asks_nobody_again() {
    let build = |answers: &[&str]| {
        let (agent, heard) = calling(&["weather", "mail"]);
        let select = SelectTools::new().model(chooses(answers)).max_tools(1);
        (agent.with_lifecycle(select).build().unwrap(), heard)
    };
    let answer = r#"{"tools": ["weather"]}"#;
    let log = MemoryStepLog::new();
    let (agent, _) = build(&[answer]);
    agent.startup().await.unwrap();
    agent.request("rain?").steps(log.clone()).run().await.unwrap();
    let before = results(&agent);
    agent.shutdown().await;
    let count = log.keys().len();
    assert!(count >= 5, "{count}");
    for cut in 0..=count {
        let known = log.keys()[..cut].iter().any(|key| key.name.contains("select"));
        // Whoever is asked again has nothing to say.
        let answers = if known { Vec::new() } else { vec![answer] };
        let (agent, heard) = build(&answers);
        agent.startup().await.unwrap();
        agent.request("rain?").steps(log.cut_after(cut)).run().await.unwrap();
        assert!(shown(&heard).iter().all(|tools| *tools == ["weather"]), "cut {cut}");
        assert_eq!(results(&agent), before, "cut {cut}");
        agent.shutdown().await;
    }
}

#[test]
fn options_are_checked() {
    assert!(made("select_tools", json!({})).is_ok());
    assert_eq!(refused("select_tools", json!({ "max_tools": 0 })), "max_tools");
    assert_eq!(refused("select_tools", json!({ "attempts": 0 })), "attempts");
    assert_eq!(refused("select_tools", json!({ "prompt": "" })), "prompt");
    assert_eq!(refused("select_tools", json!({ "model": "nobody" })), "model");
    assert_eq!(refused("select_tools", json!({ "on_failure": "guess" })), "on_failure");
}

#[tokio::test]
async fn two_choices_of_an_agent_do_not_undo_each_other() {
    let (agent, _) = calling(&["map"]);
    let chooses = chooses(&[r#"{"tools": ["weather", "mail"]}"#]);
    let narrow = SelectTools::new().model(chooses).max_tools(2).into_registration().named("first");
    // It sees few enough to show them all, and forbids nothing.
    let wide = SelectTools::new().model(Failing::new(ModelErrorKind::Auth)).max_tools(4);
    let agent = run(agent.with_lifecycle(narrow), wide).await;
    let (status, told) = results(&agent).remove(0);
    assert_eq!(status, ToolStatus::Denied, "{told}");
    agent.shutdown().await;
}
