//! Modules that were checked: they run as they were then, and no others do.

use crate::python::modules::{agent, written};
use crate::python::support::Lab;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tenure_hosts::{CheckedModules, Interpreter, PythonModules};

/// Files as they were at a moment.
#[derive(Debug, Default)]
struct Snapshot {
    files: BTreeMap<PathBuf, Result<Arc<[u8]>, String>>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl Snapshot {
    fn of(dir: &Path, names: &[&str]) -> Self {
        let root = dir.canonicalize().expect("it is there");
        let read = |name: &&str| {
            let path = root.join(name);
            let text = std::fs::read(&path).map(Arc::from).map_err(|error| error.to_string());
            (path, text)
        };
        Self { files: names.iter().map(read).collect(), links: Vec::new() }
    }
}

impl CheckedModules for Snapshot {
    fn files(&self) -> Vec<&Path> {
        self.files.keys().map(PathBuf::as_path).collect()
    }

    fn links(&self) -> Vec<(&Path, &Path)> {
        self.links.iter().map(|(other, path)| (other.as_path(), path.as_path())).collect()
    }

    fn contents(&self, file: &Path) -> Result<Arc<[u8]>, String> {
        self.files.get(file).cloned().unwrap_or_else(|| Err("nobody asked for it".to_owned()))
    }
}

/// What the hooks say, when only what is in the snapshot was checked.
async fn said(dir: TempDir, snapshot: Snapshot, hooks: &[&str]) -> Vec<String> {
    let interpreter = Interpreter::find(dir.path()).expect("there is a Python");
    let modules = PythonModules::Checked(Arc::new(snapshot));
    let lab = Lab::with_modules(dir, interpreter, super::modules::LAST, modules);
    let agent = agent(&lab, hooks).await;
    let report = agent.run("hello").await.expect("it finishes");
    agent.shutdown().await;
    report.output().split(" | ").map(str::to_owned).collect()
}

#[tokio::test]
async fn a_module_runs_as_it_was_checked_whatever_became_of_its_file() {
    let dir = written(
        r#"
=== hooks/hook.py
def word():
    import helpers, traceback
    from . import helpers as same
    from .pkg import inner
    assert same is helpers
    try:
        helpers.fail()
    except ValueError as error:
        return helpers.WORD, inner.WORD, traceback.extract_tb(error.__traceback__)[-1].line
=== hooks/loads.py
import importlib.util, os, sys
def word():
    path = os.path.join(os.path.dirname(__file__), 'helpers.py')
    spec = importlib.util.spec_from_file_location('mine', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.WORD
=== hooks/helpers.py
WORD = 'checked'
def fail():
    raise ValueError('x')  # checked
=== hooks/pkg/__init__.py
=== hooks/pkg/inner.py
WORD = 'inner'
"#,
    );
    let names = ["hooks/hook.py", "hooks/loads.py", "hooks/helpers.py"];
    let all = [&names[..], &["hooks/pkg/__init__.py", "hooks/pkg/inner.py"]].concat();
    let snapshot = Snapshot::of(dir.path(), &all);
    let evil = "WORD = 'evil'\ndef fail():\n    raise ValueError('x')  # evil\n";
    std::fs::write(dir.path().join("hooks/helpers.py"), evil).expect("written");
    std::fs::remove_dir_all(dir.path().join("hooks/pkg")).expect("removed");
    let said = said(dir, snapshot, &names[..2]).await;
    assert_eq!(said, ["('checked', 'inner', \"raise ValueError('x')  # checked\")", "checked"]);
}

#[tokio::test]
async fn a_file_that_was_not_checked_is_not_imported_and_the_error_names_it() {
    let dir = written(
        r#"
=== hooks/plain.py
def word():
    import late
=== hooks/relative.py
def word():
    from . import late
=== hooks/added.py
import os, sys
def word():
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))
    import added_late
=== hooks/loads.py
import importlib.util, os
def word():
    path = os.path.join(os.path.dirname(__file__), 'late.py')
    spec = importlib.util.spec_from_file_location('mine', path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
=== hooks/shadows.py
def word():
    import pip
    return hasattr(pip, 'main') and not hasattr(pip, 'EVIL')
=== hooks/gone.py
def word():
    import nothing_at_all
"#,
    );
    let names = ["plain", "relative", "added", "loads", "shadows", "gone"];
    let names = names.map(|name| format!("hooks/{name}.py"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let snapshot = Snapshot::of(dir.path(), &names);
    std::fs::create_dir(dir.path().join("hooks/lib")).expect("made");
    for name in ["hooks/late.py", "hooks/lib/added_late.py", "hooks/pip.py"] {
        std::fs::write(dir.path().join(name), "EVIL = 1\n").expect("written");
    }
    let said = said(dir, snapshot, &names).await;
    for (at, file) in ["late.py", "late.py", "added_late.py", "late.py"].iter().enumerate() {
        let told = format!("{file} was not checked when the agents were loaded");
        assert!(said[at].starts_with("ImportError: ") && said[at].contains(&told), "{said:?}");
    }
    // What was there when the files were checked is what is imported.
    assert_eq!(said[4], "True");
    assert_eq!(said[5], "ModuleNotFoundError: No module named 'nothing_at_all'");
}

#[tokio::test]
async fn links_lead_to_the_one_module_of_a_file() {
    let dir = written(
        r#"
=== a/hook.py
import shared.tool, other
from .shared import tool as same
def word():
    shared.tool.SEEN.append('a')
    return same is shared.tool, other.WORD, other.__file__.endswith('real.py')
=== b/hook.py
from shared.tool import SEEN
def word():
    return SEEN
=== common/tool.py
SEEN = []
=== a/real.py
WORD = 'real'
"#,
    );
    let names = ["a/hook.py", "b/hook.py", "common/tool.py", "a/real.py"];
    let mut snapshot = Snapshot::of(dir.path(), &names);
    let root = dir.path().canonicalize().expect("it is there");
    snapshot.links = [("a/shared", "common"), ("b/shared", "common"), ("a/other.py", "a/real.py")]
        .map(|(other, path)| (root.join(other), root.join(path)))
        .to_vec();
    let said = said(dir, snapshot, &names[..2]).await;
    assert_eq!(said, ["(True, 'real', True)", "['a']"]);
}

#[tokio::test]
async fn a_source_is_read_in_the_encoding_that_it_names() {
    let dir = written("=== hook.py\nimport old\ndef word():\n    return old.WORD\n");
    let text = b"# -*- coding: latin-1 -*-\nWORD = '\xe9t\xe9'\n";
    std::fs::write(dir.path().join("old.py"), text).expect("written");
    let snapshot = Snapshot::of(dir.path(), &["hook.py", "old.py"]);
    assert_eq!(said(dir, snapshot, &["hook.py"]).await, ["été"]);
}

#[tokio::test]
async fn what_cannot_be_had_as_it_was_checked_is_refused_compiled_code_too() {
    let dir = written(
        r#"
=== hook.py
def word():
    import large
=== again.py
from importlib.machinery import EXTENSION_SUFFIXES
def word():
    try:
        import fast
    except ImportError as error:
        return 'loaded' if 'too short' in str(error) else error
=== refused.py
def word():
    import slow
"#,
    );
    for name in ["fast.so", "slow.so", "large.py"] {
        std::fs::write(dir.path().join(name), "").expect("written");
    }
    let names = ["hook.py", "again.py", "refused.py"];
    let all = [&names[..], &["large.py", "fast.so", "slow.so"]].concat();
    let mut snapshot = Snapshot::of(dir.path(), &all);
    let root = dir.path().canonicalize().expect("it is there");
    for name in ["large.py", "slow.so"] {
        let why = "it changed since it was checked".to_owned();
        snapshot.files.insert(root.join(name), Err(why));
    }
    let said = said(dir, snapshot, &names).await;
    let told = |name: &str| {
        let path = root.join(name);
        format!("ImportError: {} is not imported: it changed since it was checked", path.display())
    };
    assert_eq!(said, [told("large.py"), "loaded".to_owned(), told("slow.so")]);
}

#[tokio::test]
async fn an_exit_handler_and_a_forked_process_import_what_they_can() {
    let dir = written(
        r#"
=== hook.py
import atexit, os
def at_exit():
    import late
    with open(os.path.join(os.path.dirname(__file__), 'said'), 'w') as file:
        file.write(late.WORD)
atexit.register(at_exit)
def word():
    import early
    read, write = os.pipe()
    if os.fork() == 0:
        import early as again
        try:
            import later
            said = 'imported'
        except ImportError as error:
            said = again.WORD + ' ' + str(error)
        os.write(write, said.encode())
        os._exit(0)
    return os.read(read, 1000).decode()
=== early.py
WORD = 'early'
=== late.py
WORD = 'late'
=== later.py
WORD = 'later'
"#,
    );
    let path = dir.path().join("said");
    let snapshot = Snapshot::of(dir.path(), &["hook.py", "early.py", "late.py", "later.py"]);
    let interpreter = Interpreter::find(dir.path()).expect("there is a Python");
    let modules = PythonModules::Checked(Arc::new(snapshot));
    let lab = Lab::with_modules(dir, interpreter, super::modules::LAST, modules);
    let agent = agent(&lab, &["hook.py"]).await;
    let report = agent.run("hello").await.expect("it finishes");
    assert!(report.output().starts_with("early "), "{}", report.output());
    assert!(report.output().contains("in a process that was forked"), "{}", report.output());
    agent.shutdown().await;
    lab.host.shutdown().await;
    assert_eq!(std::fs::read_to_string(path).expect("the handler ran"), "late");
}
