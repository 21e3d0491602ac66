//! What every agent has, which no guard is warned of.

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_is_not_warned_of_what_the_worker_gives_to_agents_and_runners() {
    let hooks = r#"
import os
PATH = os.path.join(os.path.dirname(__file__), "log.txt")

async def look(ctx):
    with open(PATH, "a") as file:
        for of, it in (("agent", ctx.agent), ("runner", ctx.runner)):
            for name in dir(it):
                if not name.startswith("_"):
                    file.write(f"{of}.{name}\n")
"#;
    let card = "---\nname: a\ntool_hooks: { before_llm_call: 'hooks.py:look' }\n---\nx\n";
    let project = Project::new([("hooks.py", hooks), ("a.md", card)]);
    let team = project.team();
    team.start().await.expect("it starts");
    team.run(None, "go").await.expect("it goes on");
    team.shutdown().await;
    let given = project.log();
    assert!(given.len() > 15, "{given:?}");
    let sets = given.iter().map(|it| format!("    ctx.{it} = 1\n")).collect::<String>();
    let reads = given.iter().map(|it| format!("    ctx.{it}\n")).collect::<String>();
    let hooks = format!(
        "def sets(ctx):\n{sets}    ctx.agent.own = 1\n\ndef guard(ctx):\n{reads}    ctx.agent.own\n"
    );
    let card = "---
name: a
hooks:
  - { on: before_agent, run: 'hooks.py:sets' }
  - { on: before_agent, run: 'hooks.py:guard', policy: deny }
---
x
";
    let project = Project::new([("hooks.py", &hooks), ("a.md", card)]);
    let found = messages(&project.loaded().report);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("T0913 the guard `guard` reads `ctx.agent.own`"), "{found:#?}");
}
