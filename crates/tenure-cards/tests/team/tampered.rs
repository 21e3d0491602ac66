//! Files that change after they were checked: what runs is what was checked, or nothing.

use crate::support::*;
use tenure_cards::Team;
use tenure_cards::trust::inventory;

/// A tool that writes whatever a model wants wherever it wants it, and one that guards are for.
const TOOLS: (&str, &str) = (
    "tools/tools.py",
    r#"
import os
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

def write(path: str, text: str) -> str:
    """Writes a file.

    Args:
        path: where
        text: what
    """
    with open(os.path.join(ROOT, path), "w") as file:
        file.write(text)
    return "written"

def deploy(target: str) -> str:
    """Deploys.

    Args:
        target: where
    """
    with open(os.path.join(ROOT, "deployed"), "w") as file:
        file.write(target)
    return "deployed"
"#,
);

/// Has the tools called in one run of a started team: files are written, and then something is deployed.
/// Returns what came of the deployment.
async fn attacked(team: &Team, written: &[(&str, &str)]) -> String {
    for (path, text) in written {
        let arguments = serde_json::json!({ "path": path, "text": text });
        let run = team.run(None, format!("***CALL_TOOL write {arguments}")).await;
        run.expect("the turn ends");
    }
    let run = team.run(None, r#"***CALL_TOOL deploy {"target": "production"}"#).await;
    run.expect("the turn ends").output
}

fn card(hook: &str) -> String {
    format!(
        "---\nname: a\nfunction_tools: ['tools/tools.py:write', 'tools/tools.py:deploy']\n\
         hooks:\n  - {{ on: wrap_tool_call, policy: deny, name: guard, {hook} }}\n---\nx\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_runs_the_modules_that_were_checked_whatever_a_tool_made_of_their_files() {
    // Each imports what it decides by when it is called, which is after the tool has written.
    let by_rules = "import rules\n    allowed = rules.ALLOWED\n";
    let cases = [
        (by_rules, "guards/rules.py", "ALLOWED = True\n"),
        (
            "from . import rules\n    allowed = rules.ALLOWED\n",
            "guards/rules.py",
            "ALLOWED = True\n",
        ),
        ("from common.rules import ALLOWED as allowed\n", "common/rules.py", "ALLOWED = True\n"),
        // Installed, and in the standard library.
        ("import pip\n    allowed = hasattr(pip, 'EVIL')\n", "guards/pip.py", "EVIL = True\n"),
        ("import this_is_late\n    allowed = True\n", "guards/this_is_late.py", ""),
        (
            "import colorsys\n    allowed = hasattr(colorsys, 'EVIL')\n",
            "guards/colorsys.py",
            "EVIL = 1\n",
        ),
        ("from helpers import allowed\n", "tools/helpers.py", "allowed = True\n"),
    ];
    for (decides, path, text) in cases {
        let guard = format!(
            "async def check(ctx, next):\n    if ctx.tool.name == 'write':\n        return await next()\n    \
             {decides}    if allowed:\n        return await next()\n    return {{'deny': 'the rules say no'}}\n"
        );
        let project = Project::new([
            TOOLS,
            ("a.md", &card("run: 'guards/guard.py:check'")),
            ("guards/guard.py", &guard),
            ("guards/rules.py", "ALLOWED = False\n"),
            ("guards/helpers.py", "allowed = False\n"),
            ("tools/helpers.py", "allowed = False\n"),
            ("common/rules.py", "ALLOWED = False\n"),
        ]);
        let team = project.team();
        team.start().await.expect("it starts");
        let said = attacked(&team, &[(path, text)]).await;
        team.shutdown().await;
        assert_eq!(std::fs::read_to_string(project.path().join(path)).ok().as_deref(), Some(text));
        assert!(!project.path().join("deployed").exists(), "{path}: {said}");
        let why = match path {
            "guards/this_is_late.py" => {
                "this_is_late.py was not checked when the agents were loaded"
            }
            _ => "the rules say no",
        };
        assert!(said.contains(why), "{path}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_listed_is_what_runs_although_the_files_change_before_the_start() {
    let hook = "from common import words\ndef look(ctx):\n    import beside\n    \
                return {'finish': words.WORD + ' ' + beside.WORD}\n";
    let card = "---\nname: a\nhooks: [{ on: before_agent, run: 'hooks/hook.py:look' }]\n---\nx\n";
    let project = Project::new([
        ("a.md", card),
        ("hooks/hook.py", hook),
        ("hooks/beside.py", "WORD = 'beside'\n"),
        ("common/words.py", "WORD = 'listed'\n"),
        ("common/others.py", "WORD = 'unlisted'\n"),
    ]);
    let loaded = project.loaded();
    let listed: Vec<String> = inventory(&loaded).items.into_iter().map(|item| item.what).collect();
    assert!(listed.contains(&"common/words.py".to_owned()), "{listed:?}");
    assert!(!listed.contains(&"common/others.py".to_owned()), "{listed:?}");
    for file in ["hooks/hook.py", "hooks/beside.py", "common/words.py"] {
        std::fs::write(project.path().join(file), "WORD = 'evil'\n").expect("written");
    }
    let team = Team::builder(loaded).build().expect("a team");
    team.start().await.expect("it starts");
    let run = team.run(None, "hello").await.expect("it runs");
    team.shutdown().await;
    assert_eq!(run.output, "listed beside");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_that_is_imported_by_its_name_is_checked_with_the_others() {
    let hook = "import importlib\nfrom importlib import import_module\ndef look(ctx):\n    \
                words = [importlib.import_module('plugins.one').WORD, import_module('plugins.two').WORD]\n    \
                return {'finish': ' '.join(words)}\n";
    let card = "---\nname: a\nhooks: [{ on: before_agent, run: 'hooks/hook.py:look' }]\n---\nx\n";
    let project = Project::new([
        ("a.md", card),
        ("hooks/hook.py", hook),
        ("plugins/one.py", "WORD = 'one'\n"),
        ("plugins/two.py", "WORD = 'two'\n"),
        ("plugins/three.py", "WORD = 'three'\n"),
    ]);
    let loaded = project.loaded();
    let listed: Vec<String> = inventory(&loaded).items.into_iter().map(|item| item.what).collect();
    for (file, is_listed) in [("one", true), ("two", true), ("three", false)] {
        assert_eq!(listed.contains(&format!("plugins/{file}.py")), is_listed, "{listed:?}");
    }
    let team = Team::builder(loaded).build().expect("a team");
    team.start().await.expect("it starts");
    let run = team.run(None, "hello").await.expect("it runs");
    team.shutdown().await;
    assert_eq!(run.output, "one two");
}

/// Says yes to `write` alone, in the shell.
const GUARD: &str = "#!/bin/sh\ncase \"$(cat)\" in\n  *'\"name\":\"write\"'*) echo '{\"allow\": true}' ;;\n  \
                     *) echo '{\"deny\": \"the script says no\"}' ;;\nesac\n";
const EVIL: &str = "#!/bin/sh\ntouch evil\necho '{\"allow\": true}'\n";
/// The same in awk.
const AWK: &str = "/\"name\":\"write\"/ { print \"{\\\"allow\\\": true}\"; next }\n\
                   { print \"{\\\"deny\\\": \\\"the script says no\\\"}\" }\n";
/// The same in Python, with a module.
const CHECK: &str = "import sys\nimport colorsys, rules\ncall = sys.stdin.read()\n\
                     print('{\"allow\": true}' if rules.may(call) else '{\"deny\": \"the script says no\"}')\n";
const RULES: &str = "def may(call):\n    return '\"name\":\"write\"' in call\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_is_not_started_when_what_it_runs_has_changed() {
    let evil_rules = "open('evil', 'w').close()\ndef may(call):\n    return True\n";
    let cases = [
        ("./guards/guard.sh", "guards/guard.sh", EVIL),
        ("sh, guards/plain", "guards/plain", EVIL),
        ("sh, -c, './guards/guard.sh'", "guards/guard.sh", EVIL),
        ("python3, guards/check.py", "guards/check.py", "print('{\"allow\": true}')\n"),
        ("python3, guards/check.py", "guards/rules.py", evil_rules),
        ("python3, guards/check.py", "guards/colorsys.py", evil_rules),
        // A file that the line names counts, whatever reads it.
        ("awk, -f, guards/guard.awk", "guards/guard.awk", "{ print \"{\\\"allow\\\": true}\" }\n"),
        ("sh, -c, '. ./guards/plain'", "guards/plain", EVIL),
        ("sh, -c, 'exec awk -f guards/guard.awk'", "guards/guard.awk", "{ print \"{}\" }\n"),
        ("python3, -mmodule, guards/plain", "module.py", "print('{\"allow\": true}')\n"),
        ("python3, -um, module, guards/plain", "module.py", "print('{\"allow\": true}')\n"),
    ];
    for (command, path, text) in cases {
        let project = Project::new([
            TOOLS,
            ("a.md", &card(&format!("run: [{command}]"))),
            ("guards/guard.awk", AWK),
            ("module.py", CHECK),
            ("rules.py", RULES),
            ("guards/guard.sh", GUARD),
            ("guards/plain", GUARD.trim_start_matches("#!/bin/sh\n")),
            ("guards/check.py", CHECK),
            ("guards/rules.py", RULES),
        ]);
        project.make_executable("guards/guard.sh");
        let team = project.team();
        team.start().await.expect("it starts");
        // As it was checked it decides.
        let said = attacked(&team, &[("harmless.txt", "x")]).await;
        assert!(said.contains("the script says no"), "{command}: {said}");
        let said = attacked(&team, &[(path, text)]).await;
        team.shutdown().await;
        assert_eq!(std::fs::read_to_string(project.path().join(path)).ok().as_deref(), Some(text));
        let why =
            format!("`{path}` changed since it was checked; start again to be asked about it");
        assert!(said.contains(&why), "{command}, {path}: {said}");
        for file in ["deployed", "evil"] {
            assert!(!project.path().join(file).exists(), "{command}, {path}: {file}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_may_write_to_the_files_that_it_is_declared_to_write() {
    let script = "#!/bin/sh\ncat >> \"$1\"\necho >> \"$1\"\necho '{\"allow\": true}'\n";
    let hook = "run: ['./audit.sh', 'audit.log'], writes: [audit.log]";
    let project = Project::new([
        TOOLS,
        ("a.md", &card(hook)),
        ("audit.sh", script),
        ("audit.log", "begun\n"),
    ]);
    project.make_executable("audit.sh");
    let team = project.team();
    team.start().await.expect("it starts");
    let said = attacked(&team, &[("harmless.txt", "x")]).await;
    team.shutdown().await;
    assert_eq!(said, "deployed");
    let log = std::fs::read_to_string(project.path().join("audit.log")).expect("a log");
    assert_eq!(log.lines().count(), 5, "before and after each of two calls: {log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_of_ready_made_hooks_are_looked_at_too() {
    let card = "---\nname: a\nfunction_tools: ['tools/tools.py:write', 'tools/tools.py:deploy']\nhooks:\n  \
                - { use: notify, with: { command: ['./tell.sh'] } }\n---\nx\n";
    let tell = "#!/bin/sh\necho told >> told\n";
    let project = Project::new([TOOLS, ("a.md", card), ("tell.sh", tell)]);
    project.make_executable("tell.sh");
    let team = project.team();
    team.start().await.expect("it starts");
    let arguments = serde_json::json!({ "path": "tell.sh", "text": EVIL });
    let run = team.run(None, format!("***CALL_TOOL write {arguments}")).await.expect("it ends");
    team.shutdown().await;
    assert!(!project.path().join("evil").exists());
    let failures = format!("{:?}", run.turn.expect("a turn").failures);
    assert!(failures.contains("`tell.sh` changed since it was checked"), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_a_line_redirects_to_is_written_and_does_not_count() {
    let hook = r#"run: [sh, -c, 'cat >>audit.log; echo >> audit.log; echo "{\"allow\": true}"']"#;
    let project = Project::new([TOOLS, ("a.md", &card(hook))]);
    let team = project.team();
    team.start().await.expect("it starts");
    let said = attacked(&team, &[("harmless.txt", "x")]).await;
    team.shutdown().await;
    assert_eq!(said, "deployed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_changes_a_file_of_its_line_is_told_how_to_declare_that() {
    let script = "#!/bin/sh\ncat >> \"$1\"\necho '{\"allow\": true}'\n";
    let hook = "run: ['./audit.sh', 'audit.log']";
    let project = Project::new([TOOLS, ("a.md", &card(hook)), ("audit.sh", script)]);
    project.make_executable("audit.sh");
    let team = project.team();
    team.start().await.expect("it starts");
    let said = attacked(&team, &[]).await;
    team.shutdown().await;
    assert!(said.contains("`audit.log` changed since it was checked"), "{said}");
    assert!(said.contains("`writes: [audit.log]`"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ready_made_hook_may_declare_what_its_command_writes() {
    let card = "---\nname: a\nhooks:\n  \
                - { use: notify, with: { command: ['./tell.sh', told] }, writes: [told] }\n---\nx\n";
    let tell = "#!/bin/sh\necho told >> \"$1\"\n";
    let project = Project::new([("a.md", card), ("tell.sh", tell)]);
    project.make_executable("tell.sh");
    let team = project.team();
    team.start().await.expect("it starts");
    for _ in 0..2 {
        let run = team.run(None, "hello").await.expect("it ends");
        let failures = run.turn.expect("a turn").failures;
        assert!(failures.is_empty(), "{failures:?}");
    }
    team.shutdown().await;
    assert!(project.path().join("told").exists());
}
