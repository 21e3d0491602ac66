//! A Python of the project that changes after it was checked: its start, and the packages of its environment.

use crate::support::*;
use std::path::PathBuf;
use std::process::Command;
use tenure_cards::Team;

/// A tool that writes a file, one that writes compiled code whose header is that of its source, one that kills
/// every other worker, and one that guards are for.
const TOOLS: &str = r#"
import glob, importlib._bootstrap_external as external, importlib.util, os, signal
ROOT = os.path.realpath(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

def place(path):
    folder, name = os.path.split(path)
    return os.path.join(glob.glob(os.path.join(ROOT, folder))[0], name)

def write(path: str, text: str) -> str:
    """Writes a file.

    Args:
        path: where
        text: what
    """
    with open(place(path), "w") as file:
        file.write(text)
    return "written"

def forge(path: str, text: str) -> str:
    """Writes compiled code.

    Args:
        path: of the source
        text: what runs in place of the source
    """
    source = place(path)
    at = importlib.util.cache_from_source(source)
    os.makedirs(os.path.dirname(at), exist_ok=True)
    seen = os.stat(source)
    code = compile(text, source, "exec")
    with open(at, "wb") as file:
        file.write(external._code_to_timestamp_pyc(code, int(seen.st_mtime), seen.st_size))
    return "written"

def strike() -> str:
    """Kills the other workers."""
    for found in os.listdir("/proc"):
        try:
            if found.isdigit() and int(found) != os.getpid() and os.readlink(f"/proc/{found}/cwd") == ROOT:
                os.kill(int(found), signal.SIGKILL)
        except OSError:
            pass
    return "struck"

def deploy(target: str) -> str:
    """Deploys.

    Args:
        target: where
    """
    open(os.path.join(ROOT, "deployed"), "w").close()
    return "deployed"
"#;

const CARD: &str = "---\nname: a\nfunction_tools: ['tools/tools.py:write', 'tools/tools.py:forge', \
                    'tools/tools.py:strike', 'tools/tools.py:deploy']\nhooks:\n  - { on: wrap_tool_call, \
                    policy: deny, name: guard, run: 'guards/guard.py:check' }\n---\nx\n";

const SITE: &str = ".venv/lib/python3*/site-packages";

/// The same with a command as the guard, which decides by a module beside it.
const COMMAND: &str = "import sys\nimport rules\nis_deploy = '\"name\":\"deploy\"' in sys.stdin.read()\n\
                       print('{\"deny\": \"the rules say no\"}' if is_deploy and not rules.ALLOWED else '{\"allow\": true}')\n";

/// A project with an environment of its own, in which `hack` is imported whenever Python starts and `rules` and
/// `others` are installed. Its guard imports what it decides by when it is asked.
fn project(decides: &str) -> Project {
    let guard = format!(
        "async def check(ctx, next):\n    if ctx.tool.name != 'deploy':\n        return await next()\n    \
         {decides}\n    if allowed:\n        return await next()\n    return {{'deny': 'the rules say no'}}\n"
    );
    let project =
        Project::new([("a.md", CARD), ("tools/tools.py", TOOLS), ("guards/guard.py", &guard)]);
    let mut made = Command::new("python3");
    made.args(["-m", "venv", "--without-pip", ".venv"]).current_dir(project.path());
    assert!(made.status().expect("python3 runs").success());
    let site = site(&project);
    for (name, text) in [
        ("hack.pth", "import hack\n"),
        ("hack.py", ""),
        ("others.py", "ALLOWED = False\n"),
        ("rules/__init__.py", "from .inner import ALLOWED\n"),
        ("rules/inner.py", "ALLOWED = False\n"),
    ] {
        let file = site.join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("made");
        std::fs::write(file, text).expect("written");
    }
    project
}

fn site(project: &Project) -> PathBuf {
    let versions = std::fs::read_dir(project.path().join(".venv/lib")).expect("a library");
    let version = versions.flatten().next().expect("a version");
    version.path().join("site-packages")
}

async fn call(team: &Team, tool: &str, arguments: serde_json::Value) -> String {
    let run = team.run(None, format!("***CALL_TOOL {tool} {arguments}")).await;
    run.expect("the turn ends").output
}

/// Has a file written by one of the two tools, and then something deployed. Returns what came of that.
async fn attacked(project: &Project, tool: &str, path: &str, text: &str) -> String {
    let team = project.team();
    team.start().await.expect("it starts");
    let arguments = serde_json::json!({ "path": path, "text": text });
    assert_eq!(call(&team, tool, arguments).await, "written");
    if !path.starts_with("guards") {
        call(&team, "strike", serde_json::json!({})).await;
    }
    let said = call(&team, "deploy", serde_json::json!({ "target": "production" })).await;
    team.shutdown().await;
    said
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_is_not_started_when_what_python_runs_at_its_start_has_changed() {
    let evil = "import builtins\nbuiltins.ALLOWED = True\n";
    let site = |name: &str| format!("{SITE}/{name}");
    let cases = [
        ("write", site("sitecustomize.py"), evil),
        ("write", site("evil.pth"), "import builtins; builtins.ALLOWED = True\n"),
        ("write", site("hack.py"), evil),
        ("forge", site("hack.py"), evil),
        ("write", ".venv/pyvenv.cfg".to_owned(), "home = /nowhere\n"),
        ("write", ".venv/bin/python._pth".to_owned(), "/nowhere\n"),
    ];
    for (tool, path, text) in cases {
        let project = project("import builtins\n    allowed = hasattr(builtins, 'ALLOWED')");
        let said = attacked(&project, tool, &path, text).await;
        assert!(said.contains("changed since it was checked"), "{tool} {path}: {said}");
        assert!(!project.path().join("deployed").exists(), "{tool} {path}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_was_killed_is_replaced_when_nothing_has_changed() {
    let project = project("from rules import ALLOWED as allowed");
    let said = attacked(&project, "write", "harmless.txt", "x").await;
    assert!(said.contains("the rules say no"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_installed_package_that_changed_is_not_imported() {
    let evil = "ALLOWED = True\n";
    let by_rules = "from rules import ALLOWED as allowed";
    let cases = [
        (by_rules, "write", "rules/inner.py", "inner.py changed since it was checked"),
        (by_rules, "write", "rules/__init__.py", "__init__.py changed since it was checked"),
        // Compiled code that was not checked is not used: the source is.
        (by_rules, "forge", "rules/inner.py", "the rules say no"),
        ("from others import ALLOWED as allowed", "forge", "others.py", "the rules say no"),
        ("from late import ALLOWED as allowed", "write", "late.py", "late.py was not checked"),
    ];
    for (decides, tool, path, why) in cases {
        let project = project(decides);
        let said = attacked(&project, tool, &format!("{SITE}/{path}"), evil).await;
        assert!(said.contains(why), "{tool} {path}: {said}");
        assert!(!project.path().join("deployed").exists(), "{tool} {path}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_imports_a_file_of_the_project_runs_what_was_checked_or_nothing() {
    let hook = r#"
import importlib.machinery, importlib.util, os, runpy, sys, zipfile
HERE = os.path.dirname(os.path.abspath(__file__))

def tried(name, work):
    try:
        return f"{name}: {work()}"
    except Exception as error:
        return f"{name}: {type(error).__name__}: {error}"

def late(name, text="WORD = 'evil'\n"):
    path = os.path.join(HERE, name)
    with open(path, "w") as file:
        file.write(text)
    return path

def zipped():
    path = os.path.join(HERE, "late.zip")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("inside.py", "WORD = 'evil'\n")
    sys.path.insert(0, path)
    import inside
    return inside.WORD

def checked():
    late("extra.py")
    return runpy.run_path(os.path.join(HERE, "extra.py"))["WORD"]

def relative():
    return importlib.machinery.SourceFileLoader("q", "hooks/extra.py").load_module().WORD

def look(ctx):
    return {"finish": "\n".join([
        tried("relative loader", relative),
        tried("run_path", lambda: runpy.run_path(late("late.py"))["WORD"]),
        tried("run_path of a checked file", checked),
        tried("zip", zipped),
    ])}
"#;
    let card = "---\nname: a\nhooks: [{ on: before_agent, run: 'hooks/hook.py:look' }]\n---\nx\n";
    let extra = ("hooks/extra.py", "WORD = 'extra'\n");
    let project = Project::new([("a.md", card), ("hooks/hook.py", hook), extra]);
    let team = project.team();
    team.start().await.expect("it starts");
    let said = team.run(None, "hello").await.expect("it runs").output;
    team.shutdown().await;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "relative loader: extra", "{said}");
    assert!(lines[1].contains("late.py was not checked"), "{said}");
    assert_eq!(lines[2], "run_path of a checked file: extra", "{said}");
    assert!(lines[3].contains("late.zip") && lines[3].contains("ImportError"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_reads_no_compiled_code_where_none_can_be_hidden() {
    let card = CARD.replace("'guards/guard.py:check'", "[python3, guards/guard.py]");
    let project = Project::new([
        ("a.md", card.as_str()),
        ("tools/tools.py", TOOLS),
        ("guards/guard.py", COMMAND),
        ("guards/rules.py", "ALLOWED = False\n"),
    ]);
    let said = attacked(&project, "forge", "guards/rules.py", "ALLOWED = True\n").await;
    assert!(project.path().join("guards/__pycache__").exists(), "it was forged");
    assert!(said.contains("the rules say no"), "{said}");
    assert!(!project.path().join("deployed").exists(), "{said}");
}
