//! G10: what no hook implements costs nothing and changes nothing.

use crate::semantics::support::*;
use std::sync::Arc;
use tenure_core::agent::Agent;
use tenure_core::event::{EventBus, EventKind};
use tenure_core::hook::{self, AgentLifecycle, Point, Points};

/// Five hooks that implement nothing on the path of a turn.
fn idle_hooks() -> Vec<Arc<Probe>> {
    let points = Points::from(Point::BeforeChat).with(Point::AfterChat);
    let names = ["1", "2", "3", "4", "5"];
    names.map(|name| Arc::new(probe_at(name, &Log::default(), points))).into()
}

fn two_steps(hooks: Vec<Arc<Probe>>) -> tenure_core::agent::AgentBuilder {
    let replies = || [call(&["act"]), call(&["act", "act"]), say("done")];
    let model = script(replies().into_iter().chain(replies()));
    let builder = Agent::builder("agent").model(model).tool(ok_tool("act"));
    hooks.into_iter().fold(builder, |builder, probe| {
        builder.with_lifecycle(hook::Registration::shared(probe as Arc<dyn AgentLifecycle>))
    })
}

#[test]
fn g10_hooks_that_implement_nothing_on_the_path_allocate_nothing() {
    let measure = |hooks: Vec<Arc<Probe>>| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let agent = started(two_steps(hooks)).await;
            agent.run("warm up").await.unwrap();
        });
        let mut counts = Vec::new();
        for _ in 0..2 {
            let builder = two_steps(if counts.is_empty() { Vec::new() } else { idle_hooks() });
            let blueprint = builder.blueprint().unwrap();
            counts.push(allocation_counter::measure(|| {
                runtime.block_on(async {
                    let agent = blueprint.instance();
                    agent.startup().await.unwrap();
                    agent.run("go").await.unwrap();
                    agent.run("again").await.unwrap();
                    agent.shutdown().await;
                });
            }));
        }
        (counts[0].count_total, counts[1].count_total)
    };
    let (without, with) = measure(idle_hooks());
    assert!(without > 0, "the counter counts");
    assert_eq!(with, without, "hooks that implement nothing on the path cost allocations");
}

#[tokio::test(start_paused = true)]
async fn g10_zero_hooks_behave_as_no_hooks() {
    let run = async |hooks: Vec<Arc<Probe>>| {
        let bus = EventBus::new();
        let mut subscriber = bus.subscribe(1024);
        let agent = started(two_steps(hooks).events(&bus)).await;
        agent.run("go").await.unwrap();
        agent.run("again").await.unwrap();
        agent.shutdown().await;
        let kinds: Vec<_> =
            events(&mut subscriber).iter().map(|event| event.kind.clone()).collect();
        let kinds: Vec<String> = kinds
            .iter()
            .map(|kind| match kind {
                EventKind::TurnEnded { outcome, usage, .. } => format!("{outcome} {usage:?}"),
                other => format!("{other:?}"),
            })
            .collect();
        (serde_json::to_string(&agent.history()).unwrap(), kinds)
    };
    let (without, with) = (run(Vec::new()).await, run(idle_hooks()).await);
    assert_eq!(without.0, with.0, "the same messages");
    assert_eq!(without.1, with.1, "the same events");
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_only_continues_changes_no_message() {
    let all = probe("A", &Log::default());
    let (without, with) = (two_steps(Vec::new()), two_steps(Vec::new()).with_lifecycle(all));
    let mut histories = Vec::new();
    for builder in [without, with] {
        let agent = started(builder).await;
        agent.run("go").await.unwrap();
        histories.push(serde_json::to_string(&agent.history()).unwrap());
    }
    assert_eq!(histories[0], histories[1]);
}
