//! Bytecode that lies in a project is not run: nobody has read it.

use crate::python::support::Lab;
use tenure_core::hook::Point;
use tenure_hosts::Interpreter;

/// Writes modules that say "source", with bytecode for each that says "bytecode": of the kind that
/// is never compared with the source, of the kind that has the source's time and size, and one that
/// has no source at all.
const PLANT: &str = r#"
import importlib.util, marshal, os, py_compile
os.makedirs("package/__pycache__")
os.makedirs("__pycache__")
open("package/__init__.py", "w").write("")
evil = lambda name: compile("word = 'bytecode'", name, "exec")
for name in ("unchecked.py", "package/unchecked.py"):
    open(name, "w").write("word = 'source'\n")
    data = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
    with open(importlib.util.cache_from_source(name), "wb") as file:
        file.write(data + marshal.dumps(evil(name)))
open("timed.py", "w").write("word = 'source'\n")
stat = os.stat("timed.py")
data = importlib.util.MAGIC_NUMBER + bytes(4)
data += int(stat.st_mtime).to_bytes(4, "little") + stat.st_size.to_bytes(4, "little")
with open(importlib.util.cache_from_source("timed.py"), "wb") as file:
    file.write(data + marshal.dumps(evil("timed.py")))
with open("alone.pyc", "wb") as file:
    file.write(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(evil("alone.py")))
open("fresh.py", "w").write("word = 'source'\n")
"#;

#[tokio::test]
async fn a_project_is_run_from_its_sources_and_left_as_it_is() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let interpreter = Interpreter::find(dir.path()).expect("there is a Python");
    let planted = std::process::Command::new(interpreter.path())
        .args(["-c", PLANT])
        .current_dir(dir.path())
        .status()
        .expect("it runs");
    assert!(planted.success());
    let source = "\
def look(ctx):
    import fresh, package.unchecked, timed, unchecked
    words = [it.word for it in (fresh, package.unchecked, timed, unchecked)]
    try:
        import alone
        words.append(alone.word)
    except ImportError as error:
        words.append('refused' if 'alone.pyc is bytecode' in str(error) else str(error))
    return {'finish': ' '.join(words)}
";
    let lab = Lab::with(dir, interpreter.clone(), source);
    // The plant works: who does not care runs it.
    let plain = std::process::Command::new(interpreter.path())
        .args(["-B", "-c", "import timed, unchecked; print(timed.word, unchecked.word)"])
        .current_dir(lab.path())
        .output()
        .expect("it runs");
    assert_eq!(String::from_utf8_lossy(&plain.stdout).trim(), "bytecode bytecode");
    let agent = lab.agent().with_lifecycle(lab.hook("look", Point::BeforeAgent));
    let agent = lab.started(agent).await;
    let report = agent.run("hello").await.expect("it finishes");
    assert_eq!(report.output(), "source source source source refused");
    let written = std::fs::read_dir(lab.path().join("__pycache__")).expect("it is there");
    let fresh = written.flatten().any(|it| it.file_name().to_string_lossy().starts_with("fresh"));
    assert!(!fresh, "no bytecode is left behind");
    agent.shutdown().await;
}
