//! `again_on_resume`, as cards say it.

use crate::resume::support::*;

fn project(hook: &str) -> Project {
    let hooks = "def h(ctx):\n    pass\ndef w(ctx, next):\n    return next()\n";
    let card = format!("---\nname: a\n{hook}\n---\nx\n");
    noting([("hooks.py", hooks), ("a.md", &card)])
}

#[test]
fn a_hook_that_is_called_again_is_explained_so_where_it_means_something() {
    let on = "[before_chat, before_agent, before_model, after_model, after_agent]";
    let hook = format!("hooks: [{{ on: {on}, run: 'hooks.py:h', again_on_resume: true }}]");
    let project = project(&hook);
    assert!(project.loaded().report.is_empty(), "{:?}", messages(&project.loaded().report));
    let team = built(project.builder());
    let explanation = team.explain("a").expect("it is there");
    for point in &explanation.points {
        let own = point.entries.iter().find(|entry| entry.name == "hooks.py:h");
        if let Some(own) = own {
            assert_eq!(own.again_on_resume, point.point != "after_agent", "{}", point.point);
        }
    }
}

#[test]
fn where_it_means_nothing_that_is_said() {
    let listed = |on: &str, run: &str| {
        format!("hooks: [{{ on: {on}, run: 'hooks.py:{run}', again_on_resume: true }}]")
    };
    let life = |point: &str| {
        format!("lifecycle_hooks: {{ {point}: {{ run: 'hooks.py:h', again_on_resume: true }} }}")
    };
    for (hook, said) in [
        (life("on_start"), "means nothing at on_start: it is called again anyway"),
        (life("on_shutdown"), "means nothing at on_shutdown: an end comes once"),
        (listed("after_chat", "h"), "means nothing at after_chat: an end comes once"),
        (listed("wrap_tool_call", "w"), "means nothing at wrap_tool_call: it is called again"),
        (listed("on_transition", "h"), "means nothing at on_transition"),
    ] {
        let loaded = project(&hook).loaded();
        assert!(!loaded.report.has_errors());
        let found = messages(&loaded.report).join("\n");
        assert!(found.contains("T0904") && found.contains(said), "{hook}: {found}");
        assert!(
            found.contains("`before_chat`, `before_agent`, `before_model` and `after_model`"),
            "{found}"
        );
    }
    let loaded =
        project("hooks: [{ on: before_chat, run: 'hooks.py:h', again_on_resume: yes please }]");
    assert!(loaded.loaded().report.has_errors(), "it is true or false");
}
