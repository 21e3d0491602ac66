//! Events: built only for listeners, paired, in order, and never in the way.

use crate::semantics::drive::endings::drop_after;
use crate::semantics::support::*;
use tenure_core::agent::Agent;
use tenure_core::event::{EventBus, EventKind, Received};
use tenure_core::hook::Point;
use tenure_core::phase::Phase;

#[tokio::test(start_paused = true)]
async fn events_tell_the_whole_turn_in_order() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(1024);
    let agent = started(
        Agent::builder("agent").model(script([call(&["act"])])).tool(ok_tool("act")).events(&bus),
    )
    .await;
    events(&mut subscriber);
    agent.run("go").await.unwrap();
    let events = events(&mut subscriber);
    assert_paired(&events);
    let run = events[0].run;
    assert!(run.is_some() && events.iter().all(|event| event.run == run));
    assert!(events.windows(2).all(|pair| pair[1].id == pair[0].id + 1), "no gap");
    assert_eq!(
        names(&events),
        [
            "agent.turn.started",
            "agent.phase.processing_user_input_started",
            "agent.phase.awaiting_llm_response_started",
            "model.started",
            "model.ended",
            "agent.phase.analyzing_llm_response_started",
            "tool.started",
            "agent.phase.executing_tool_started",
            "tool.executing",
            "tool.ended",
            "agent.phase.processing_tool_result_started",
            "agent.phase.awaiting_llm_response_started",
            "model.started",
            "model.ended",
            "agent.phase.analyzing_llm_response_started",
            "agent.turn.ended",
            "agent.phase.idle_entered",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn g1_each_phase_is_announced_once_whatever_is_hooked() {
    let none = tenure_core::hook::Points::NONE;
    let shapes = [
        none,
        Point::AfterAgent.into(),
        Point::OnTransition.into(),
        none.with(Point::AfterAgent).with(Point::OnTransition),
    ];
    let mut told = Vec::new();
    for points in shapes {
        let bus = EventBus::new();
        let mut subscriber = bus.subscribe(1024);
        let agent = started(
            Agent::builder("agent").model(script([])).events(&bus).with_lifecycle(probe_at(
                "A",
                &Log::default(),
                points,
            )),
        )
        .await;
        events(&mut subscriber);
        agent.run("go").await.unwrap();
        let events = events(&mut subscriber);
        assert_paired(&events);
        let idle =
            |kind: &EventKind| matches!(kind, EventKind::PhaseEntered { to: Phase::Idle, .. });
        let idles = events.iter().filter(|event| idle(&event.kind)).count();
        assert_eq!(idles, 1, "{points:?}: {:?}", names(&events));
        let mut own: Vec<_> =
            names(&events).into_iter().filter(|name| !name.starts_with("hook.")).collect();
        own.sort_unstable();
        told.push(own);
    }
    assert!(told.iter().all(|names| *names == told[0]), "the same events: {told:?}");
}

#[tokio::test(start_paused = true)]
async fn g1_what_is_dropped_half_way_is_announced_as_ended() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(1024);
    let stuck_model = Agent::builder("model").model(script([Reply::Hang]));
    let stuck_tool = Agent::builder("tool")
        .model(script([call(&["slow", "slow"])]))
        .tool(slow_tool("slow", secs(60)));
    let stuck_hook = |point| {
        Agent::builder("hook").model(script([])).with_lifecycle(Broken {
            point,
            fault: Fault::Hang,
            after_next: true,
        })
    };
    let all = [
        stuck_model,
        stuck_tool,
        stuck_hook(Point::BeforeAgent),
        stuck_hook(Point::WrapModelCall),
        stuck_hook(Point::AfterModel),
    ];
    for builder in all {
        let agent = started(
            builder
                .events(&bus)
                .with_lifecycle(probe_at("A", &Log::default(), Point::WrapToolCall))
                .with_lifecycle(probe_at("B", &Log::default(), Point::AfterAgent)),
        )
        .await;
        drop_after(agent.run("go"), ms(10)).await;
        agent.ready().await.unwrap();
        agent.shutdown().await;
        assert_paired(&events(&mut subscriber));
    }
}

#[tokio::test(start_paused = true)]
async fn g1_failing_hooks_are_announced_as_ended_once() {
    for point in [
        Point::BeforeAgent,
        Point::BeforeModel,
        Point::WrapModelCall,
        Point::AfterModel,
        Point::WrapToolCall,
        Point::AfterAgent,
        Point::OnTransition,
    ] {
        for fault in Fault::ALL {
            let bus = EventBus::new();
            let mut subscriber = bus.subscribe(1024);
            let broken = Broken { point, fault, after_next: true };
            let agent = started(
                Agent::builder("agent")
                    .model(script([call(&["act"])]))
                    .tool(ok_tool("act"))
                    .events(&bus)
                    .with_lifecycle(tenure_core::hook::hook(broken).limit(ms(10))),
            )
            .await;
            let _ = agent.run("go").await;
            agent.shutdown().await;
            let events = events(&mut subscriber);
            assert_paired(&events);
            let ended = events.iter().find_map(|event| match &event.kind {
                EventKind::HookEnded { outcome, .. } => Some(*outcome),
                _ => None,
            });
            let expected = match fault {
                Fault::Error => tenure_core::Outcome::Failed,
                Fault::Panic => tenure_core::Outcome::Panicked,
                Fault::Hang => tenure_core::Outcome::TimedOut,
            };
            assert_eq!(ended, Some(expected), "{point} {fault:?}");
        }
    }
}

#[test]
fn events_are_built_only_if_somebody_listens() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let bus = EventBus::new();
    let measure = |builder: tenure_core::agent::AgentBuilder| {
        let blueprint = builder.blueprint().unwrap();
        allocation_counter::measure(|| {
            runtime.block_on(async {
                let agent = blueprint.instance();
                agent.startup().await.unwrap();
                agent.run("go").await.unwrap();
                agent.shutdown().await;
            });
        })
        .count_total
    };
    let agent = || Agent::builder("agent").model(script([call(&["act"])])).tool(ok_tool("act"));
    measure(agent());
    let unlistened = measure(agent().events(&bus));
    assert_eq!(measure(agent()), unlistened, "a bus without listeners costs nothing");
    let _subscriber = bus.subscribe(1024);
    assert!(measure(agent().events(&bus)) > unlistened, "with one, events are built");
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_is_told_what_it_missed_and_slows_nobody() {
    let bus = EventBus::new();
    let (mut slow, mut fast) = (bus.subscribe(3), bus.subscribe(1024));
    let agent = started(Agent::builder("agent").model(script([])).events(&bus)).await;
    agent.run("go").await.unwrap();
    let all = events(&mut fast);
    for expected in &all[..3] {
        let Some(Received::Event(event)) = slow.recv().await else { panic!("three events fit") };
        assert_eq!(event.id, expected.id);
    }
    let Some(Received::Missed(missed)) = slow.recv().await else { panic!("then it missed some") };
    assert_eq!(missed as usize, all.len() - 3);
    agent.run("again").await.unwrap();
    let Some(Received::Event(event)) = slow.recv().await else { panic!("then it goes on") };
    assert_eq!(event.id, all.last().unwrap().id + 1);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_well_says_why() {
    let bus = EventBus::new();
    let mut subscriber = bus.subscribe(1024);
    let model = script([call(&["act", "none"]), Reply::Fatal]);
    let builder = Agent::builder("agent").model(model).tool(failing_tool("act")).events(&bus);
    let error = started(builder).await.run("go").await.unwrap_err().to_string();
    let told = events(&mut subscriber);
    let reasons: Vec<_> = told
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::ModelEnded { reason, .. }
            | EventKind::ToolEnded { reason, .. }
            | EventKind::TurnEnded { reason, .. } => Some(reason.as_deref().unwrap_or("")),
            _ => None,
        })
        .collect();
    assert_eq!(reasons.len(), 5, "{reasons:?}");
    assert_eq!(reasons[0], "", "what ends well has none");
    assert!(reasons[1..3].contains(&"the tool failed"), "{reasons:?}");
    assert!(reasons[1..3].iter().any(|why| why.contains("there is no tool `none`")), "{reasons:?}");
    assert!(!error.is_empty() && error.starts_with(reasons[3]), "{reasons:?}");
    assert_eq!(reasons[4], error);
}
