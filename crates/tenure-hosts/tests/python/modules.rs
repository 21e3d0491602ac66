//! Imports of a project's own files: by the file that imports, and by what was checked.

use crate::python::support::Lab;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tenure_core::agent::Agent;
use tenure_core::hook::Point;
use tenure_hosts::{Interpreter, PythonFile, PythonFunction, Style};

/// Makes a hook of a file with a function `word`: what that returns or raises is put on record.
const LOOK: &str = "

def look(ctx):
    try:
        said = str(word())
    except Exception as error:
        said = f'{type(error).__name__}: {error}'
    ctx.state['said'] = [*ctx.state.get('said', []), said]
";

/// Says what was put on record.
pub(super) const LAST: &str = "
def last(ctx):
    return {'finish': ' | '.join(ctx.state['said'])}
";

/// Writes files, each behind a line with its name.
pub(super) fn written(files: &str) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary folder");
    for part in files.split("=== ").skip(1) {
        let (name, text) = part.split_once('\n').expect("a name and a text");
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    dir
}

fn look(path: &Path) -> PythonFunction {
    let text = std::fs::read_to_string(path).expect("the file is there");
    PythonFunction {
        file: Arc::new(PythonFile::new(path, text + LOOK)),
        name: "look".into(),
        style: Style::Sync,
        takes: vec!["ctx".into()],
        waits: false,
    }
}

/// An agent with these files as hooks, all in one worker.
pub(super) async fn agent(lab: &Lab, hooks: &[&str]) -> Agent {
    let mut agent = lab.agent();
    for (at, hook) in hooks.iter().enumerate() {
        let hook = lab.host.hook(look(&lab.path().join(hook)), Point::BeforeAgent);
        agent = agent.with_lifecycle(hook.named(format!("hook{at}")));
    }
    lab.started(agent.with_lifecycle(lab.hook("last", Point::BeforeAgent))).await
}

/// What the hooks say, one behind the other.
async fn said(files: &str, hooks: &[&str]) -> Vec<String> {
    let dir = written(files);
    let interpreter = Interpreter::find(dir.path()).expect("there is a Python");
    let lab = Lab::with(dir, interpreter, LAST);
    let agent = agent(&lab, hooks).await;
    let report = agent.run("hello").await.expect("it finishes");
    agent.shutdown().await;
    report.output().split(" | ").map(str::to_owned).collect()
}

#[tokio::test]
async fn every_hook_has_the_sibling_of_its_own_folder() {
    let said = said(
        r#"
=== a/hook.py
def word():
    import helpers
    return helpers.WHERE
=== a/helpers.py
WHERE = 'a'
=== b/hook.py
from helpers import WHERE
def word():
    return WHERE
=== b/helpers.py
WHERE = 'b'
=== c/hook.py
def word():
    import helpers
    return helpers.WHERE
=== helpers.py
WHERE = 'root'
"#,
        &["a/hook.py", "b/hook.py", "c/hook.py", "a/hook.py"],
    )
    .await;
    assert_eq!(said, ["a", "b", "root", "a"]);
}

#[tokio::test]
async fn a_sibling_comes_before_what_is_installed_and_behind_the_standard_library() {
    let said = said(
        r#"
=== hook.py
import pip, json
def word():
    import types
    return pip.WHERE, hasattr(json, 'dumps'), types.ModuleType.__name__
=== pip.py
WHERE = 'sibling'
=== json.py
raise SystemExit
=== types.py
raise SystemExit
"#,
        &["hook.py"],
    )
    .await;
    assert_eq!(said, ["('sibling', True, 'module')"]);
}

#[tokio::test]
async fn a_module_is_loaded_once_by_its_path_and_is_never_there_under_its_bare_name() {
    let said = said(
        r#"
=== a/hook.py
import sys, shared
def word():
    shared.COUNT.append(1)
    return 'shared' in sys.modules, sys.modules[shared.__name__] is shared
=== a/shared.py
COUNT = []
=== b/hook.py
from a.shared import COUNT
import a.shared as again
def word():
    import a.hook
    return len(COUNT), again.COUNT is COUNT, a.hook.shared is again
"#,
        &["a/hook.py", "b/hook.py"],
    )
    .await;
    assert_eq!(said, ["(False, True)", "(1, True, True)"]);
}

#[tokio::test]
async fn relative_imports_work_within_the_project() {
    let said = said(
        r#"
=== flow/tools/hook.py
from . import beside
from .beside import NAME as name
from ..shared import deep
from ..shared.deep import WORD
from .. import note
def word():
    return beside.NAME, name, deep.WORD, WORD, note.TEXT
=== flow/tools/beside.py
NAME = 'beside'
=== flow/shared/__init__.py
from .deep import WORD
=== flow/shared/deep.py
WORD = 'deep'
=== flow/note.py
TEXT = 'note'
=== flow/tools/lost.py
def word():
    from .... import outside
=== flow/tools/gone.py
def word():
    from . import nothing
"#,
        &["flow/tools/hook.py", "flow/tools/lost.py", "flow/tools/gone.py"],
    )
    .await;
    assert_eq!(said[0], "('beside', 'beside', 'deep', 'deep', 'note')");
    assert!(said[1].contains("beyond top-level package"), "{said:?}");
    assert!(said[2].contains("cannot import name 'nothing'"), "{said:?}");
}

#[tokio::test]
async fn packages_folders_submodules_and_aliases_are_imported_as_python_does() {
    let said = said(
        r#"
=== hooks/hook.py
import pkg.inner.leaf as leaf
import pkg.inner.leaf
from pkg import inner, other
import folder.thing
from folder import thing as again
import importlib
def word():
    late = importlib.import_module('pkg.late')
    same = importlib.import_module('helpers')
    assert folder.thing is again and pkg.inner.leaf is leaf and inner.leaf is leaf
    return leaf.WORD, other.WORD, again.WORD, late.WORD, same.WORD, pkg.HELPED
=== hooks/pkg/__init__.py
import helpers
HELPED = helpers.WORD
=== hooks/pkg/inner/__init__.py
=== hooks/pkg/inner/leaf.py
WORD = 'leaf'
=== hooks/pkg/other.py
WORD = 'other'
=== hooks/pkg/late.py
WORD = 'late'
=== hooks/folder/thing.py
WORD = 'thing'
=== hooks/helpers.py
WORD = 'helpers'
=== workflows/x.py
WORD = 'x'
=== hooks/root.py
from workflows.x import WORD
import workflows.x as x
def word():
    return WORD, x.WORD, __import__('workflows.x').x is x
"#,
        &["hooks/hook.py", "hooks/root.py"],
    )
    .await;
    assert_eq!(
        said,
        ["('leaf', 'other', 'thing', 'late', 'helpers', 'helpers')", "('x', 'x', True)"]
    );
}

#[tokio::test]
async fn modules_that_import_each_other_see_as_much_as_python_shows() {
    let said = said(
        r#"
=== hook.py
import one
def word():
    return one.two.one.LATER, one.two.SEEN
=== one.py
import two
LATER = 'later'
=== two.py
import one
SEEN = hasattr(one, 'LATER')
=== bad.py
def word():
    import three
=== three.py
import four
LATER = 1
=== four.py
from three import LATER
"#,
        &["hook.py", "bad.py"],
    )
    .await;
    assert_eq!(said[0], "('later', False)");
    assert!(said[1].contains("cannot import name 'LATER' from partially initialized"), "{said:?}");
}

#[tokio::test]
async fn pickle_dataclasses_inspect_reload_and_tracebacks_find_a_module() {
    let said = said(
        r#"
=== hook.py
import dataclasses, importlib, inspect, pickle, traceback, typing
import helpers

@dataclasses.dataclass
class Own:
    of: 'helpers.Point'

def word():
    own = Own(helpers.Point(3))
    same = pickle.loads(pickle.dumps(own))
    assert typing.get_type_hints(Own)['of'] is helpers.Point
    try:
        helpers.fail()
    except ValueError as error:
        line = traceback.extract_tb(error.__traceback__)[-1].line
    source = inspect.getsource(helpers.fail).splitlines()[0]
    before = helpers.Point
    importlib.reload(helpers)
    return same == own, line, source, helpers.Point is before, inspect.getmodule(Own).__file__ == __file__
=== helpers.py
from dataclasses import dataclass

@dataclass
class Point:
    x: int

def fail():
    raise ValueError('x')  # here
"#,
        &["hook.py"],
    )
    .await;
    let expected = "(True, \"raise ValueError('x')  # here\", 'def fail():', False, True)";
    assert_eq!(said, [expected]);
}

#[tokio::test]
async fn names_that_are_no_identifiers_and_paths_that_a_hook_adds_do_no_harm() {
    let said = said(
        r#"
=== v1.2/my-hooks/my.hook.py
import helpers
from . import helpers as same
def word():
    return helpers.WORD, same is helpers
=== v1.2/my-hooks/helpers.py
WORD = 'dotted'
=== hooks/twice.py
import twice
def word():
    return twice.WORD
=== hooks/twice/__init__.py
WORD = 'package'
=== hooks/adds.py
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))
import added
def word():
    return added.WORD, 'added' in sys.modules
=== hooks/lib/added.py
WORD = 'added'
"#,
        &["v1.2/my-hooks/my.hook.py", "hooks/twice.py", "hooks/adds.py"],
    )
    .await;
    assert_eq!(said, ["('dotted', True)", "package", "('added', False)"]);
}

#[tokio::test]
async fn a_package_beside_a_hook_runs_only_when_it_is_imported() {
    let said = said(
        r#"
=== pkg/hook.py
import helpers
def word():
    return helpers.WORD
=== pkg/__init__.py
raise RuntimeError('the package was run')
=== pkg/helpers.py
WORD = 'alone'
=== pkg/relative.py
def word():
    from . import helpers
"#,
        &["pkg/hook.py", "pkg/relative.py"],
    )
    .await;
    assert_eq!(said, ["alone", "RuntimeError: the package was run"]);
}

#[tokio::test]
async fn threads_that_import_at_the_same_time_get_one_module() {
    let said = said(
        r#"
=== hook.py
import importlib, threading
def word():
    found, began = [], threading.Barrier(8)
    def look(name):
        began.wait()
        found.append(importlib.import_module('.' + name, __package__) if name == 'slow' else one())
    def one():
        import slow
        return slow
    names = ['slow', 'other'] * 4
    threads = [threading.Thread(target=look, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(found), len({id(it) for it in found}), found[0].RUNS
=== slow.py
import time
RUNS = 1
time.sleep(0.05)
"#,
        &["hook.py"],
    )
    .await;
    assert_eq!(said, ["(8, 1, 1)"]);
}
