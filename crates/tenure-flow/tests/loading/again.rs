//! `again_on_resume` in files.

use crate::loading::support::Project;
use tenure_cards::Code;

#[test]
fn begins_may_be_called_again_and_for_ends_that_means_nothing() {
    let project = Project::with(
        "=== tools.yaml\nlifecycle_tools:\n\
         - {trigger: before_chat, agent: null, run: [\"true\"], name: opens, again_on_resume: true}\n\
         - {trigger: before_agent, agent: null, run: [\"true\"], name: looks}\n",
    );
    let loaded = project.load();
    assert!(!loaded.report.has_errors(), "{}", project.report(&loaded));
    let tools = &loaded.workflow.lifecycle;
    let again: Vec<_> = tools.iter().map(|tool| (&*tool.name, tool.again_on_resume)).collect();
    assert_eq!(again, [("opens", true), ("looks", false)]);

    let project = Project::with(
        "=== tools.yaml\nlifecycle_tools:\n\
         - {trigger: after_chat, agent: null, run: [\"true\"], again_on_resume: true}\n",
    );
    let loaded = project.load();
    let found: Vec<_> = loaded.report.iter().map(|it| (it.code, it.message.clone())).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, Code::MeaninglessField);
    assert!(found[0].1.contains("after_chat: an end is told once"), "{found:?}");
}
