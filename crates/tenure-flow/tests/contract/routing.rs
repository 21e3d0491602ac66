//! Who does a task: decided, checked, recorded.

use crate::contract::support::*;
use tenure_core::Error;
use tenure_flow::contract::{
    Candidate, ErrorStrategy, FirstFit, Manual, Orchestrator, SHORTEST_REASON, Stage, Task, Worker,
};
use tenure_flow::route::{RoutingDecision, Target};

fn three() -> Orchestrator {
    orchestrator(|it| it.agent(echo("w1")).agent(echo("w2")).agent(echo("w3")))
}

#[tokio::test]
async fn the_same_question_has_the_same_answer_and_the_cursor_moves_it_on() {
    let it = three();
    let agents = it.agents();
    let task = Task::new("t", "anything");
    let context = context();
    let mut targets = Vec::new();
    for cursor in 0..7 {
        let ask = || it.routing_decision(&task, &context, &agents, cursor);
        let decision = ask().await.expect("a decision");
        assert_eq!(ask().await.expect("a decision"), decision, "asking changes nothing");
        targets.push(decision.target.to_string());
    }
    assert_eq!(targets, ["w1", "w2", "w3", "w1", "w2", "w3", "w1"]);
}

#[tokio::test]
async fn two_orchestrations_of_the_same_goal_go_to_the_same_agents() {
    let it = orchestrator(|it| {
        let tasks = vec![Task::new("a", "1"), Task::new("b", "2")];
        it.agent(echo("w1")).agent(echo("w2")).agent(echo("w3")).planner(tasks)
    });
    let (_, first) = run(it.orchestrate("goal", context())).await;
    let (_, second) = run(it.orchestrate("goal", context())).await;
    assert_eq!(first.routing, second.routing);
    assert_eq!(first.cursor, 2);
    // To go on is said, not kept in secret.
    let (_, third) = run(it.orchestrate("goal", context()).cursor(first.cursor)).await;
    let targets: Vec<_> = third.routing.iter().map(|it| it.decision.target.to_string()).collect();
    assert_eq!(targets, ["w3", "w1"]);
    assert_eq!((third.routing[0].cursor, third.cursor), (2, 4));
}

#[tokio::test]
async fn a_decision_has_a_reason_and_another_agent_to_fall_back_to() {
    let (it, context) = (three(), context());
    let task = Task::new("t", "anything");
    for count in 1..=3 {
        let agents = &it.agents()[..count];
        for cursor in 0..4 {
            let decision = it.routing_decision(&task, &context, agents, cursor).await;
            let decision = decision.expect("a decision");
            assert!(decision.reason.chars().count() > SHORTEST_REASON, "{}", decision.reason);
            match decision.fallback {
                Some(fallback) => assert_ne!(&*fallback, decision.target.as_str()),
                None => assert_eq!(count, 1),
            }
        }
    }
}

#[tokio::test]
async fn a_task_goes_to_the_agent_it_names_and_to_one_that_can_do_it() {
    let it = orchestrator(|it| {
        it.agent(echo("w1"))
            .agent(Worker::from(echo("w2")).can("sum"))
            .agent(Worker::from(echo("w3")).can("sum").can("draw"))
            .router(FirstFit)
    });
    let (agents, context) = (it.agents(), context());
    let routed = async |task: Task| it.routing_decision(&task, &context, &agents, 5).await;
    let named = routed(Task::new("t", "").agent("w3")).await.expect("a decision");
    assert_eq!((named.target.as_str(), named.fallback), ("w3", None));
    let able = routed(Task::new("t", "").capability("sum")).await.expect("a decision");
    assert_eq!((able.target.as_str(), able.fallback.as_deref()), ("w2", Some("w3")));
    let one = routed(Task::new("t", "").capability("draw")).await.expect("a decision");
    assert_eq!((one.target.as_str(), one.fallback), ("w3", None));
    let any = routed(Task::new("t", "")).await.expect("a decision");
    assert_eq!((any.target.as_str(), any.fallback.as_deref()), ("w1", Some("w2")));
    for (task, expected) in [
        (Task::new("t", "").agent("w9"), "agent `w9`, but there is no such agent; there are: `w1`"),
        (Task::new("t", "").capability("fly"), "an agent that can `fly`, but none of `w1`"),
        (Task::new("t", "").agent("w1").capability("sum"), "agent `w1` if it can `sum`"),
    ] {
        let error = routed(task).await.expect_err("nobody fits");
        assert_eq!(error.stage, Stage::Route);
        assert!(error.message.contains(expected), "{error}");
        assert_eq!(error.task.as_deref(), Some("t"));
    }
}

#[tokio::test]
async fn round_robin_goes_round_those_who_may_do_the_task() {
    let it = orchestrator(|it| {
        it.agent(Worker::from(echo("w1")).can("sum"))
            .agent(echo("w2"))
            .agent(Worker::from(echo("w3")).can("sum"))
            .planner(vec![
                Task::new("a", "1").capability("sum"),
                Task::new("b", "2").capability("sum"),
                Task::new("c", "3").capability("sum"),
            ])
    });
    let (_, report) = run(it.orchestrate("goal", context())).await;
    let done: Vec<_> = report.steps.iter().filter_map(|step| step.agent.as_deref()).collect();
    assert_eq!(done, ["w1", "w3", "w1"]);
}

#[tokio::test]
async fn a_function_may_decide_and_what_it_decides_is_checked() {
    type Decide = fn() -> Result<RoutingDecision, Error>;
    let good: Decide = || Ok(RoutingDecision::agent("w2", "somebody said that it is w2's"));
    let cases: [(Decide, Option<&str>); 7] = [
        (good, None),
        (|| Ok(RoutingDecision::agent("w2", "because")), Some("more than 10 characters")),
        (|| Ok(RoutingDecision::agent("w2", "")), Some("more than 10 characters")),
        (
            || Ok(RoutingDecision::agent("w9", "a long enough reason")),
            Some("routed to `w9`, which is none of those who may do it: `w1`, `w2`, `w3`"),
        ),
        (
            || Ok(RoutingDecision::new(Target::User, "a long enough reason")),
            Some("routed to `user`, which is none of those"),
        ),
        (
            || Ok(RoutingDecision::agent("w2", "a long enough reason").fallback("w2")),
            Some("fallback `w2`, which is not another one"),
        ),
        (|| Err(Error::orchestration("the map is lost")), Some("the map is lost")),
    ];
    for (decide, expected) in cases {
        let it = orchestrator(|it| {
            let workers = it.agent(echo("w1")).agent(echo("w2")).agent(echo("w3"));
            workers.router(Manual::new(move |_| decide()))
        });
        let (events, report) = run(it.orchestrate("goal", context())).await;
        match expected {
            None => {
                assert_eq!(report.steps[0].agent.as_deref(), Some("w2"));
                assert_eq!(report.routing[0].decision.fallback.as_deref(), Some("w3"));
            }
            Some(expected) => {
                let error = report.error().expect("it failed");
                assert!(error.message.contains(expected), "{error}");
                assert_eq!((error.stage, report.stage), (Stage::Route, Stage::Failed));
                assert!(!stages(&events).contains(&Stage::Execute));
                assert!(report.routing.is_empty());
            }
        }
    }
}

#[tokio::test]
async fn without_workers_it_fails_at_route() {
    for strategy in [
        ErrorStrategy::FailFast,
        ErrorStrategy::Continue,
        ErrorStrategy::RETRY,
        ErrorStrategy::Fallback,
    ] {
        let it = orchestrator(|it| it);
        let (events, report) =
            run(it.orchestrate("goal", context()).error_strategy(strategy)).await;
        assert_eq!(stages(&events), [Stage::Initialize, Stage::Plan, Stage::Failed], "{strategy}");
        assert_eq!(events[0].data["workers"], 0);
        let error = report.error().expect("it failed");
        assert_eq!(error.stage, Stage::Route);
        assert!(error.message.starts_with("no workers configured"), "{error}");
    }
}

#[test]
fn two_agents_of_one_name_are_refused() {
    let builder = Orchestrator::builder("twice").agent(echo("w1")).agent(echo("w1"));
    let error = builder.build().expect_err("it cannot be built").to_string();
    assert!(error.contains("two of its agents are called `w1`"), "{error}");
}

#[test]
fn a_candidate_fits_if_name_and_capability_do() {
    let candidate = Candidate::new("w1").can("sum");
    assert!(candidate.fits(&Task::new("t", "")));
    assert!(candidate.fits(&Task::new("t", "").agent("w1").capability("sum")));
    assert!(!candidate.fits(&Task::new("t", "").agent("w2").capability("sum")));
    assert!(!candidate.fits(&Task::new("t", "").capability("draw")));
}
