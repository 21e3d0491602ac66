//! A model plans, members work, and the model makes one answer of it.

use crate::compose::support::*;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tenure_cards::compose::{Composition, Iterations, Member, PlanType};
use tenure_core::Outcome;
use tenure_core::agent::Agent;
use tenure_core::model::Model;
use tenure_models::{Scripted, Slow};

fn orchestrator(plan_type: PlanType, iterations: Option<usize>) -> Composition {
    let iterations = match iterations.and_then(NonZeroUsize::new) {
        Some(plans) => Iterations::AtMost(plans),
        None => Iterations::UntilComplete,
    };
    Composition::Orchestrator { agents: names(["a", "b"]), plan_type, iterations }
}

fn step(description: &str, tasks: &[(&str, &str)]) -> Value {
    let tasks: Vec<_> =
        tasks.iter().map(|(agent, what)| json!({ "description": what, "agent": agent })).collect();
    json!({ "description": description, "tasks": tasks })
}

fn plan(steps: &[Value], is_complete: bool) -> String {
    json!({ "steps": steps, "is_complete": is_complete }).to_string()
}

fn members(asked: &Asked) -> Vec<Member> {
    ["a", "b"].map(|who| member(who, asked, move |_, call| Ok(format!("{who}{}", call + 1)))).into()
}

async fn orchestrated(
    asked: &Asked,
    composition: Composition,
    members: &[Member],
    answers: Vec<String>,
) -> Stage {
    let llm: Arc<dyn Model> = Arc::new(model("llm", asked, move |_, call| {
        answers.get(call).cloned().ok_or_else(|| "the script is over".to_owned())
    }));
    stage_with(composition, members, Some(llm), |builder| builder).await
}

#[tokio::test(start_paused = true)]
async fn a_full_plan_runs_step_by_step_and_is_summed_up_at_the_end() {
    let asked = Asked::default();
    let steps = [step("look", &[("a", "left"), ("b", "right")]), step("write", &[("a", "it")])];
    let answers = vec![plan(&steps, false), plan(&[], true), "the sum".to_owned()];
    let composition = orchestrator(PlanType::Full, Some(5));
    let stage = orchestrated(&asked, composition, &members(&asked), answers).await;
    assert_eq!(stage.answer("find it").await, "the sum");
    assert_eq!(asked.who(), ["llm", "a", "b", "a", "llm", "llm"]);
    let second = &asked.of("a")[1];
    for part in ["find it", "Task: left", "agent='b'>\nb1\n", "Your task: it"] {
        assert!(second.contains(part), "{part} is missing in {second}");
    }
    let summed = &asked.of("llm")[2];
    assert!(summed.contains("Step 2: write") && summed.contains("a2"), "{summed}");
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn an_iterative_plan_is_made_one_step_at_a_time() {
    let asked = Asked::default();
    let answers = vec![
        step("one", &[("a", "x")]).to_string(),
        plan(&[step("two", &[("b", "y")]), step("ignored", &[("a", "z")])], false),
        json!({ "tasks": [], "is_complete": true }).to_string(),
        "done".to_owned(),
    ];
    let composition = orchestrator(PlanType::Iterative, None);
    let stage = orchestrated(&asked, composition, &members(&asked), answers).await;
    assert_eq!(stage.answer("go").await, "done");
    assert_eq!(asked.who(), ["llm", "a", "llm", "b", "llm", "llm"]);
    assert!(asked.of("llm")[1].contains("agent='a'>\na1\n"));
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_last_iteration_the_answer_is_made_of_what_there_is() {
    let asked = Asked::default();
    let more = plan(&[step("more", &[("a", "x")])], false);
    let answers = vec![more.clone(), more, "enough".to_owned()];
    let composition = orchestrator(PlanType::Full, Some(2));
    let stage = orchestrated(&asked, composition, &members(&asked), answers).await;
    assert_eq!(stage.answer("go").await, "enough");
    assert_eq!(asked.who(), ["llm", "a", "llm", "a", "llm"]);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_never_comes_to_an_end_is_ended_by_the_steps_of_the_turn() {
    let asked = Asked::default();
    let more = plan(&[step("more", &[("a", "x")])], false);
    let composition = orchestrator(PlanType::Iterative, None);
    let stage = orchestrated(&asked, composition, &members(&asked), vec![more; 200]).await;
    let error = stage.agent.run("go").await.expect_err("it never ends by itself");
    assert_eq!(error.outcome(), Outcome::MaxSteps);
    assert_eq!(asked.of("a").len(), 100);
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn the_tasks_of_a_step_are_done_at_the_same_time() {
    let asked = Asked::default();
    let slow = |who: &str| {
        let model = Slow::of(Scripted::new([who.to_owned()])).by(Duration::from_secs(5));
        built(Agent::builder(who).model(model))
    };
    let answers = vec![plan(&[step("both", &[("a", "x"), ("b", "y")])], true), "ok".to_owned()];
    let composition = orchestrator(PlanType::Full, Some(1));
    let stage = orchestrated(&asked, composition, &[slow("a"), slow("b")], answers).await;
    let before = tokio::time::Instant::now();
    assert_eq!(stage.answer("go").await, "ok");
    assert!(before.elapsed() < Duration::from_secs(6));
    stage.over().await;
}

#[tokio::test(start_paused = true)]
async fn a_bad_plan_is_corrected_once_and_then_it_fails() {
    let bad = plan(&[step("x", &[("nobody", "x")])], false);
    let good = plan(&[step("x", &[("a", "x")])], true);
    let asked = Asked::default();
    let composition = || orchestrator(PlanType::Full, Some(5));
    let answers = vec![bad.clone(), good, "ok".to_owned()];
    let stage = orchestrated(&asked, composition(), &members(&asked), answers).await;
    assert_eq!(stage.answer("go").await, "ok");
    assert!(asked.of("llm")[1].contains("`nobody`, which does not exist; there are `a`, `b`"));
    stage.over().await;

    for (said, why) in [
        (bad, "gave a task to the agent `nobody`, which does not exist; there are `a`, `b`"),
        ("no".to_owned(), "did not write a plan in JSON; it said: no"),
        (plan(&[], false), "wrote a plan without a task that is not complete either"),
        (
            plan(&vec![step("x", &[("a", "x")]); 40], false),
            "wrote a plan of 40 steps; at most 32 are possible",
        ),
    ] {
        let stage = orchestrated(&asked, composition(), &members(&asked), vec![said; 2]).await;
        let error = stage.failure("go").await;
        assert_eq!(error, format!("the model `scripted` was corrected once, and still {why}"));
        stage.over().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_shown_to_the_planner() {
    let asked = Asked::default();
    let members =
        [member("a", &asked, |_, _| Err("no paper".to_owned())), saying("b", &asked, ["fine"])];
    let answers = vec![plan(&[step("x", &[("a", "x"), ("b", "y")])], true), "so so".to_owned()];
    let composition = orchestrator(PlanType::Full, Some(5));
    let stage = orchestrated(&asked, composition, &members, answers).await;
    assert_eq!(stage.answer("go").await, "so so");
    assert!(asked.of("llm")[1].contains("agent='a'>\nerror: no paper\n"));
    stage.over().await;
}
