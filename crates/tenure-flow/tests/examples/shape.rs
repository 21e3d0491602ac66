//! What can be said of the examples without running them, and what many chats at once leave behind.

use crate::examples::support::{folder, loaded, messages};
use tenure_cards::team::PointExplanation;
use tenure_flow::{ChatStatus, Workflow, sources, trust_items};

const ALL: [&str; 5] =
    ["workflow_logger", "data_processor", "metrics_cleanup", "agent_logger", "support_desk"];

#[test]
fn every_example_is_good_as_it_is() {
    for name in ALL {
        let inspection = Workflow::builder(loaded(&folder(name))).inspect();
        assert_eq!(messages(&inspection.report), Vec::<String>::new(), "{name}");
        assert_eq!(messages(&inspection.needs), Vec::<String>::new(), "{name}");
        assert_eq!(inspection.workflow.workflow, name);
        assert!(!inspection.workflow.agents.is_empty());
    }
}

fn names(points: &[PointExplanation], point: &str) -> Vec<String> {
    let found = points.iter().find(|it| it.point == point);
    found.map(|it| it.entries.iter().map(|it| it.name.clone()).collect()).unwrap_or_default()
}

#[test]
fn what_runs_around_a_chat_is_explained_under_the_workflow_and_the_rest_under_its_agents() {
    let workflow = Workflow::builder(loaded(&folder("metrics_cleanup"))).build();
    let workflow = workflow.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    let explained = workflow.explain();
    assert_eq!(explained.pattern, "DefaultPattern");
    assert_eq!(explained.max_turns, 10);
    let after = names(&explained.points, "after_chat");
    assert_eq!(
        after,
        [
            "lifecycle_tools.submit_workflow_metrics",
            "lifecycle_tools.cleanup_temporary_files",
            "platform.log_workflow_completion",
        ]
    );
    let desk = Workflow::builder(loaded(&folder("support_desk"))).inspect().workflow;
    let billing = desk.agents.iter().find(|it| it.name == "Billing").expect("it is there");
    let points = &billing.agent.as_ref().expect("it is an agent").points;
    assert_eq!(names(points, "after_agent"), ["lifecycle_tools.note_answer"]);
    let point = points.iter().find(|it| it.point == "after_agent").expect("it has one");
    let entry = &point.entries[0];
    assert_eq!(entry.when.as_deref(), Some("outcome == 'ok'"));
    assert!(entry.declared.as_deref().is_some_and(|it| it.ends_with("tools.yaml:15")), "{entry:?}");
    let opened = desk.points.iter().find(|it| it.point == "before_chat").expect("it has one");
    let ticket = opened.entries.iter().find(|it| it.name.ends_with("open_ticket"));
    assert_eq!(ticket.map(|it| (it.retries, it.limit.as_secs())), Some((2, 5)));
    let kinds: Vec<_> = desk.handoffs.iter().map(|it| it.kind).collect();
    let after = "after_work";
    assert_eq!(kinds, ["expression", "expression", after, after, after, after]);
}

#[test]
fn everything_that_would_run_is_in_the_inventory_with_its_contents() {
    let loaded = loaded(&folder("data_processor"));
    let items = trust_items(&loaded).items;
    let python: Vec<_> = items
        .iter()
        .filter(|it| it.kind == tenure_cards::trust::ItemKind::Python)
        .map(|it| (it.what.rsplit('/').next().unwrap_or_default(), it.used_by.join("; ")))
        .collect();
    assert_eq!(
        python,
        [
            (
                "cleanup_data_context.py",
                "data_processor: after_agent of DataProcessorAgent release_data_resources".into()
            ),
            ("orders.py", "DataProcessorAgent: tool count_orders".to_owned()),
            (
                "setup_data_context.py",
                "data_processor: before_agent of DataProcessorAgent allocate_data_resources".into()
            ),
        ]
    );
    assert!(items.iter().filter(|it| it.what.ends_with(".py")).all(|it| it.sha256.is_some()));
    let found = sources(&loaded);
    for file in ["orchestrator.json", "tools.json", "tools/setup_data_context.py"] {
        let folders = found.folders();
        let file = folder("data_processor").join(file);
        assert!(folders.contains(file.parent().expect("a folder")), "{file:?} in {folders:?}");
    }
}

#[tokio::test]
async fn chats_at_once_have_workers_of_their_own_and_leave_none_behind() {
    let workflow = Workflow::builder(loaded(&folder("data_processor"))).build();
    let workflow = workflow.unwrap_or_else(|report| panic!("{:#?}", messages(&report)));
    let flow = workflow.open().await.unwrap_or_else(|error| panic!("{error}"));
    let chats = (0..4).map(|at| flow.chat().id(format!("chat_{at}")).run());
    for report in futures_util::future::join_all(chats).await {
        assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
        assert_eq!(report.output, "Open orders: 2");
    }
    assert_eq!(workflow.workers(), Some(0));
    workflow.shutdown().await;
}
