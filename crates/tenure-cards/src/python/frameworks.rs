//! Imports that only an installed framework can satisfy.
//!
//! Tenure stands in for what hooks usually import of fast-agent. Which names that are is read from
//! the very sources that a worker would run.

use super::imports::Import;
use super::module::Module;
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{Project, plain};
use crate::source::{Source, Span};
use crate::trust::own_interpreter;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tenure_hosts::{PythonFile, STAND_INS};

/// The frameworks that stand-ins exist for, and the packages that have them whole.
const FRAMEWORKS: &[(&str, &str)] =
    &[("fast_agent", "fast-agent-mcp"), ("mcp", "mcp"), ("mcp_types", "mcp-types")];

/// Returns what is to be said of an import of the file that `source` shows; nothing if a stand-in
/// or an installed package satisfies it, or if it is of no framework.
pub(super) fn unsatisfied(
    import: &Import,
    file: &PythonFile,
    source: &Arc<Source>,
    project: &Project,
) -> Option<Diagnostic> {
    let top = import.module.split('.').next().unwrap_or_default();
    let (_, package) = FRAMEWORKS.iter().find(|(name, _)| *name == top)?;
    let here = file.path().parent().unwrap_or(Path::new("."));
    if has_stand_in(import) || holds(here, top) || is_installed(top, project) {
        return None;
    }
    let what = match &import.name {
        Some(name) => format!("{}.{name}", import.module),
        None => import.module.clone(),
    };
    let message = format!("`{what}` is there only where {package} is installed");
    let help = format!(
        "install it in the environment of the project's Python (`pip install {package}`), or do \
         without it"
    );
    // Python passes over a byte order mark, and so do its places.
    let skipped = source.text().len() - file.source().len();
    let (start, end) = (import.span.start as usize, import.span.end as usize);
    let span = Span::new(start + skipped, end + skipped);
    Some(Diagnostic::new(Code::FrameworkImport, source, span, message).help(help))
}

fn has_stand_in(import: &Import) -> bool {
    let Some(name) = &import.name else { return is_module(&import.module) };
    let has = |module: &Module| name == "*" || module.binding(name).is_some();
    modules().get(&*import.module).is_some_and(has)
        || is_module(&format!("{}.{name}", import.module))
}

/// Returns `true` if a module, or a package around one, stands in for the one of this name.
fn is_module(name: &str) -> bool {
    let is_it = |module: &str| {
        module.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    modules().keys().any(|module| is_it(module))
}

/// The stand-ins by name, parsed once.
fn modules() -> &'static HashMap<&'static str, Module> {
    static MODULES: OnceLock<HashMap<&str, Module>> = OnceLock::new();
    MODULES.get_or_init(|| {
        let parsed = STAND_INS.iter().filter_map(|(name, source)| {
            let file = PythonFile::new(format!("{name}.py"), *source);
            Some((*name, Module::parse(Arc::new(file)).ok()?))
        });
        parsed.collect()
    })
}

/// Returns `true` if the environment of the project's Python has a package, as far as its files
/// say: an interpreter that stands for another one is not asked.
fn is_installed(package: &str, project: &Project) -> bool {
    let active = std::env::var_os("VIRTUAL_ENV").filter(|it| !it.is_empty());
    let active = active.map(|folder| PathBuf::from(folder).join("bin/python"));
    let on_path = std::env::var_os("PATH").into_iter().flat_map(|path| {
        std::env::split_paths(&path).map(|it| it.join("python3")).collect::<Vec<_>>()
    });
    let first = own_interpreter(project).into_iter().chain(active).chain(on_path);
    let Some(python) = first.map(|it| plain(&it)).find(|it| it.exists()) else { return false };
    let Some(prefix) = python.parent().and_then(Path::parent) else { return false };
    let versions = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
    versions.into_iter().any(|version| {
        ["site-packages", "dist-packages"].iter().any(|it| holds(&version.path().join(it), package))
    })
}

/// Returns `true` if a folder that Python imports from has a package or a module of this name.
fn holds(folder: &Path, name: &str) -> bool {
    folder.join(name).is_dir() || folder.join(format!("{name}.py")).is_file()
}
