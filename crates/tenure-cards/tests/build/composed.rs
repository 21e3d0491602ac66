//! Cards that put agents together, run.

use crate::support::*;

async fn answer(project: &Project, agent: &str, message: &str) -> Result<String, String> {
    let (team, recorder) = project.recorded();
    team.start().await.expect("it starts");
    let result = team.run(Some(agent), message).await;
    team.shutdown().await;
    tenure_testkit::assert_paired(&recorder);
    result.map(|run| run.output).map_err(|error| error.to_string())
}

const ECHO: &str = "---\nmodel: passthrough\nuse_history: false\n---\nx\n";

#[tokio::test]
async fn every_type_runs_from_its_card() {
    let planner = "turns:
  - when: What has been done so far
    replies: [the sum]
  - replies: ['{\"tasks\": [{\"description\": \"t\", \"agent\": \"up\"}], \"is_complete\": true}']
";
    let files = [
        ("echo.md", ECHO),
        ("up.md", "---\nmodel: script:up.yml\ndescription: Shouts\n---\nx\n"),
        ("up.yml", "- 'UP {input}'\n"),
        ("judge.md", "---\nmodel: script:judge.yml\n---\nx\n"),
        ("judge.yml", "- EXCELLENT\n"),
        ("pick.yml", "- '{\"agent\": \"up\"}'\n"),
        ("plan.yml", planner),
        ("chain.yaml", "type: chain\nname: chain\nsequence: [up, up]\n"),
        (
            "parallel.yaml",
            "type: parallel\nname: parallel\nfan_out: [up, echo]\nfan_in: echo\ninclude_request: false\n",
        ),
        ("eval.yaml", "type: evaluator_optimizer\nname: eval\ngenerator: up\nevaluator: judge\n"),
        ("router.yaml", "type: router\nname: router\nagents: [up, echo]\nmodel: script:pick.yml\n"),
        ("orch.yaml", "type: orchestrator\nname: orch\nagents: [up]\nmodel: script:plan.yml\n"),
        (
            "iter.yaml",
            "type: iterative_planner\nname: iter\nagents: [up]\nmodel: script:plan.yml\n",
        ),
        ("maker.yaml", "type: MAKER\nname: maker\nworker: up\nk: 2\n"),
    ];
    let project = Project::new(files);
    for (agent, expected) in [
        ("chain", "UP UP go"),
        (
            "parallel",
            "<fastagent:response agent='up'>\nUP go\n</fastagent:response>\n\n\
             <fastagent:response agent='echo'>\ngo\n</fastagent:response>",
        ),
        ("eval", "UP go"),
        ("router", "UP go"),
        ("orch", "the sum"),
        ("iter", "the sum"),
        ("maker", "UP go"),
    ] {
        assert_eq!(answer(&project, agent, "go").await.as_deref(), Ok(expected), "{agent}");
    }
}

#[tokio::test]
async fn a_composed_card_has_hooks_of_its_own() {
    let project = Project::new([
        ("echo.md", ECHO),
        (
            "chain.yaml",
            "type: chain\nname: chain\nsequence: [echo]\nhooks:\n  - { on: before_agent, run: [echo, '{\"input\": \"changed\"}'] }\n",
        ),
    ]);
    assert_eq!(answer(&project, "chain", "go").await.as_deref(), Ok("changed"));
}

#[tokio::test]
async fn compositions_nest() {
    let project = Project::new([
        ("echo.md", ECHO),
        ("up.md", "---\nmodel: script:up.yml\n---\nx\n"),
        ("up.yml", "- 'UP {input}'\n"),
        ("inner.yaml", "type: chain\nname: inner\nsequence: [up, up]\n"),
        ("outer.yaml", "type: chain\nname: outer\nsequence: [inner, up, echo]\n"),
    ]);
    assert_eq!(answer(&project, "outer", "go").await.as_deref(), Ok("UP UP UP go"));
}

#[test]
fn messages_of_a_type_without_a_model_are_warned_about() {
    let project = Project::new([
        ("echo.md", ECHO),
        ("past.txt", "---USER\nhi\n---ASSISTANT\nhello\n"),
        ("maker.yaml", "type: MAKER\nname: maker\nworker: echo\nmessages: past.txt\n"),
    ]);
    let team = project.team();
    assert_eq!(
        messages(team.warnings()),
        ["T0904 `messages` mean nothing to a MAKER: it has no model of its own"]
    );
}
