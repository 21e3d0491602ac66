//! Whatever is planned, whoever fails, whatever the strategy.

use crate::contract::support::*;
use proptest::prelude::*;
use std::time::Duration;
use tenure_core::agent::Blueprint;
use tenure_core::event::EventBus;
use tenure_core::hook::{HookError, before_agent};
use tenure_core::model::{ModelError, ModelErrorKind, ModelResponse};
use tenure_core::{CancelToken, Error};
use tenure_flow::contract::{ErrorStrategy, Stage, Start, StepStatus, Task};
use tenure_models::{Hanging, Passthrough, Scripted};
use tenure_testkit::{Recorder, assert_paired};

/// How an agent behaves.
#[derive(Clone, Copy, Debug)]
enum Behaves {
    Well,
    FailsFor(usize),
    Broken,
    Fatally,
    Panics,
    Hangs,
    Refuses,
    NeverStarts,
}

fn behaves() -> impl Strategy<Value = Behaves> {
    prop_oneof![
        4 => Just(Behaves::Well),
        2 => (1..4_usize).prop_map(Behaves::FailsFor),
        1 => Just(Behaves::Broken),
        1 => Just(Behaves::Fatally),
        1 => Just(Behaves::Panics),
        1 => Just(Behaves::Hangs),
        1 => Just(Behaves::Refuses),
        1 => Just(Behaves::NeverStarts),
    ]
}

impl Behaves {
    fn blueprint(self, name: &str, log: &Log, bus: &EventBus) -> Blueprint {
        let agent = match self {
            Self::Well => log.agent(name, Passthrough::new()),
            Self::FailsFor(calls) => log.agent(
                name,
                Scripted::from_fn(move |_, call| match call < calls {
                    true => Err(ModelError::new(ModelErrorKind::Overloaded, "later")),
                    false => Ok(ModelResponse::text("at last")),
                }),
            ),
            Self::Broken => log.agent(name, broken()),
            Self::Fatally => {
                log.agent(name, tenure_models::Failing::new(ModelErrorKind::Auth).fatal())
            }
            Self::Panics => log.agent(
                name,
                Scripted::from_fn(|_, _| std::panic::resume_unwind(Box::new("it fell over"))),
            ),
            Self::Hangs => log.agent(name, Hanging::new()),
            Self::Refuses => {
                let refuse = before_agent(|_, _| {
                    Box::pin(async { Err(Error::denied("not in this house").into()) })
                });
                log.agent(name, Passthrough::new()).with_lifecycle(refuse)
            }
            Self::NeverStarts => {
                let fail = tenure_core::hook::on_start(|_| {
                    Box::pin(async { Err(HookError::new("the disk is full")) })
                });
                log.agent(name, Passthrough::new()).with_lifecycle(fail)
            }
        };
        built(agent.events(bus))
    }
}

/// Whom a task is for, and which earlier ones it depends on.
type Planned = (Option<usize>, Vec<prop::sample::Index>);

#[derive(Clone, Debug)]
struct Case {
    agents: Vec<Behaves>,
    tasks: Vec<Planned>,
    strategy: ErrorStrategy,
    start: Start,
    cancel_after: Option<u64>,
    limit: Option<u64>,
    cursor: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let strategy = prop_oneof![
        Just(ErrorStrategy::FailFast),
        Just(ErrorStrategy::Continue),
        (0..4_u32).prop_map(|attempts| ErrorStrategy::Retry {
            attempts,
            backoff: Duration::from_secs(1)
        }),
        Just(ErrorStrategy::Fallback),
    ];
    let task = (
        proptest::option::weighted(0.5, 0..4_usize),
        proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
    );
    (
        proptest::collection::vec(behaves(), 0..4),
        proptest::collection::vec(task, 0..6),
        strategy,
        prop_oneof![Just(Start::AtOnce), Just(Start::WhenNeeded)],
        proptest::option::weighted(0.2, 0..20_000_u64),
        proptest::option::weighted(0.2, 1..20_000_u64),
        0..5_u64,
    )
        .prop_map(|(agents, tasks, strategy, start, cancel_after, limit, cursor)| Case {
            agents,
            tasks,
            strategy,
            start,
            cancel_after,
            limit,
            cursor,
        })
}

fn plan(tasks: &[Planned]) -> Vec<Task> {
    let task = |(at, (agent, depends)): (usize, &Planned)| {
        let mut task = Task::new(format!("t{at}"), format!("do {at}"));
        if let Some(agent) = agent {
            task = task.agent(format!("w{agent}"));
        }
        if at > 0 {
            for index in depends {
                task = task.after(format!("t{}", index.index(at)));
            }
        }
        task
    };
    tasks.iter().enumerate().map(task).collect()
}

async fn holds(case: &Case) {
    let (log, bus) = (Log::default(), EventBus::new());
    let recorder = Recorder::new(&bus);
    let it = orchestrator(|mut it| {
        for (at, behaves) in case.agents.iter().enumerate() {
            it = it.agent(behaves.blueprint(&format!("w{at}"), &log, &bus));
        }
        let it = it.start(case.start).planner(plan(&case.tasks)).events(&bus);
        it.task_limit(Duration::from_secs(5))
    });
    let token = CancelToken::new();
    let mut running = it.orchestrate("goal", context()).error_strategy(case.strategy);
    running = running.cursor(case.cursor).cancel_on(&token);
    if let Some(limit) = case.limit {
        running = running.limit(Duration::from_millis(limit));
    }
    let cancel = async {
        if let Some(after) = case.cancel_after {
            tokio::time::sleep(Duration::from_millis(after)).await;
            token.cancel();
        }
    };
    // Stages legal, one of them terminal, counts consistent: see there.
    let ((_, report), ()) = tokio::join!(run(running), cancel);

    log.assert_ended();
    if !case.agents.iter().any(|it| matches!(it, Behaves::Fatally)) {
        // An agent ends by itself at once if its error is fatal.
        log.assert_ended_in_reverse();
    }
    assert_paired(&recorder);
    let names = recorder.names();
    let terminal = ["orchestrator.complete", "orchestrator.failed", "orchestrator.cancelled"];
    let ends = terminal.iter().map(|name| recorder.count(name)).sum::<usize>();
    assert_eq!(ends, 1, "{names:?}");

    assert_eq!(report.cursor, case.cursor + report.metrics.routing_decisions);
    if report.stage == Stage::Cancelled {
        assert!(case.cancel_after.is_some());
    }
    let failed = report.steps.iter().filter(|step| step.status == StepStatus::Failed).count();
    match case.strategy {
        ErrorStrategy::FailFast => assert!(failed <= 1 && report.metrics.retries == 0),
        ErrorStrategy::Continue => assert_eq!(report.metrics.retries, 0),
        ErrorStrategy::Retry { attempts, .. } => {
            assert!(report.steps.iter().all(|step| step.attempts <= attempts + 1));
            assert!(failed <= 1);
        }
        ErrorStrategy::Fallback => {
            assert!(report.steps.iter().all(|step| step.attempts <= 2));
            assert!(failed <= 1);
        }
        other => panic!("{other} has no rule here"),
    }
    if case.strategy != ErrorStrategy::Continue {
        assert_eq!(report.is_success(), report.stage == Stage::Complete);
    }
    for step in report.steps.iter().filter(|step| step.is_done()) {
        for id in &step.task.depends_on {
            assert!(report.step(id).is_some_and(|it| it.is_done()), "{id} came after {step:?}");
        }
    }
    for routed in &report.routing {
        let decision = &routed.decision;
        assert!(decision.reason.chars().count() > 10);
        assert_ne!(decision.fallback.as_deref(), Some(decision.target.as_str()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_orchestration_ends_once_and_leaves_nobody_behind(case in cases()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(holds(&case));
    }
}
