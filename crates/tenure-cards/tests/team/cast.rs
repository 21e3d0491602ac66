//! Agents that somebody else starts, with what a workflow adds to them.

use crate::support::{Project, messages};
use std::sync::Arc;
use tenure_cards::Team;
use tenure_cards::build::{Attach, AttachHosts, Attached, AttachedEntry, StandIn};
use tenure_cards::source::Source;
use tenure_core::agent::AgentRegistry;
use tenure_core::hook::{self, Flow, Origin, hook};
use tenure_core::tool::{FnTool, ToolSpec};

const CARD: &str = "---\nname: echo\nmodel: passthrough\nhooks:\n  \
    - { on: before_agent, run: count.py:own, name: own }\n---\nYou repeat.\n";

const COUNT: &str = "
SEEN = []

def own(ctx):
    SEEN.append(ctx.agent_name)
    return {'input': ctx.input + ' own' + str(len(SEEN))}
";

/// Adds a hook before the card's own, a hook of the platform's before that, and a tool.
struct Added;

impl Attach for Added {
    fn attach(&self, agent: &str, _hosts: &AttachHosts<'_>) -> Attached {
        let mut attached = Attached::new();
        if agent != "echo" {
            return attached;
        }
        for (name, origin) in [("late", Origin::Workflow), ("early", Origin::Platform)] {
            let says = hook::before_agent(move |_, input| {
                input.content = format!("{} {name}", input.content.text()).into();
                Box::pin(async { Ok(Flow::Continue) })
            });
            let entry = AttachedEntry::new(name, hook(says).origin(origin), "says its name");
            attached.entries.push(entry.declared("tools.json:3").retries(2));
        }
        let tool = FnTool::new(ToolSpec::new("added", "A tool"), |_| Ok("done".into()));
        attached.tools.push(Arc::new(tool));
        attached
    }
}

#[tokio::test]
async fn what_is_attached_stands_between_the_platform_and_the_card() {
    let project = Project::new([("echo.md", CARD), ("count.py", COUNT)]);
    let cast = project.builder().attach(Arc::new(Added)).cast().await.expect("it can be built");
    let echo = cast.blueprint("echo").expect("the card is there");
    assert_eq!(echo.tools().iter().map(|it| &*it.name).collect::<Vec<_>>(), ["added"]);
    let agent = echo.instance();
    cast.join(&agent, "chat");
    agent.startup().await.expect("it starts");
    let report = agent.run("hello").await.expect("it answers");
    assert_eq!(report.output(), "hello early late own1");
    agent.shutdown().await;
    cast.shutdown().await;
}

#[test]
fn what_is_attached_is_explained_with_its_place() {
    let project = Project::new([("echo.md", CARD), ("count.py", COUNT)]);
    let team = project.builder().attach(Arc::new(Added)).build();
    let team = team.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    let explained = team.explain("echo").expect("it is there");
    let point = explained.points.iter().find(|it| it.point == "before_agent").expect("hooks");
    let names: Vec<_> = point.entries.iter().map(|it| (&*it.name, it.origin)).collect();
    assert_eq!(
        names,
        [("early", Origin::Platform), ("late", Origin::Workflow), ("own", Origin::Card)]
    );
    let late = &point.entries[1];
    assert_eq!((late.declared.as_deref(), late.retries), (Some("tools.json:3"), 2));
    assert_eq!(late.runs, "says its name");
}

#[tokio::test]
async fn each_group_has_a_worker_of_its_own_and_none_is_left_behind() {
    let project = Project::new([("echo.md", CARD), ("count.py", COUNT)]);
    let cast = project.builder().cast().await.expect("it can be built");
    let echo = cast.blueprint("echo").expect("the card is there");
    let python = cast.python().expect("a hook is in Python").clone();
    for round in 0..2 {
        for (group, said) in [("one", ["a own1", "b own2"]), ("two", ["a own1", "b own2"])] {
            for (text, said) in ["a", "b"].into_iter().zip(said) {
                let agent = echo.instance_in(Arc::new(AgentRegistry::new()));
                cast.join(&agent, group);
                agent.startup().await.expect("it starts");
                assert_eq!(agent.run(text).await.expect("it answers").output(), said, "{round}");
                agent.shutdown().await;
            }
        }
        assert_eq!((python.groups(), python.processes().len()), (2, 2));
        cast.leave("one").await;
        cast.leave("two").await;
        assert_eq!((python.groups(), python.processes().len()), (0, 0));
    }
    cast.leave("nobody").await;
    cast.shutdown().await;
}

#[tokio::test]
async fn an_agent_without_a_card_stands_beside_those_with_one() {
    let project = Project::new([("echo.md", CARD), ("count.py", COUNT)]);
    let file = Arc::new(Source::new("orchestrator.yaml", "pattern: any\n"));
    let stand_in = StandIn::new("desk.workflow", &file, project.path());
    let team = Team::builder(project.loaded()).stand_in(&stand_in);
    let cast = team.cast().await.expect("it can be built");
    assert_eq!(cast.names().collect::<Vec<_>>(), ["desk.workflow", "echo"]);
    assert!(cast.blueprint("desk.workflow").is_some());
    assert!(cast.history("desk.workflow").is_none());
    cast.shutdown().await;
}
