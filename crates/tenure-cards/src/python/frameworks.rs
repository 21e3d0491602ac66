//! Imports that only an installed framework can satisfy.
//!
//! Tenure stands in for what hooks usually import of fast-agent. Which names that are is read from
//! the very sources that a worker would run.

use super::files::Parsed;
use super::imports::{Import, Taken};
use super::module::Module;
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{Project, plain};
use crate::source::Span;
use crate::trust::own_interpreter;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tenure_hosts::{PythonFile, STAND_INS, find_program};

/// The frameworks that stand-ins exist for, and the packages that have them whole.
const FRAMEWORKS: &[(&str, &str)] =
    &[("fast_agent", "fast-agent-mcp"), ("mcp", "mcp"), ("mcp_types", "mcp-types")];

/// Returns what is to be said of an import: nothing if stand-ins or an installed package satisfy
/// it, or if it is of no framework.
pub(super) fn unsatisfied(import: &Import, parsed: &Parsed, project: &Project) -> Vec<Diagnostic> {
    let module = &import.module;
    let top = module.split('.').next().unwrap_or_default();
    let framework = FRAMEWORKS.iter().find(|(name, _)| *name == top && import.level == 0);
    let Some((_, package)) = framework else { return Vec::new() };
    let lacks = |taken: &&Taken| !has_stand_in(module, &taken.name);
    let mut missing: Vec<(String, Span)> = match &*import.names {
        [] if is_module(module) => Vec::new(),
        [] => vec![(module.clone(), import.span)],
        names => {
            let missing = names.iter().filter(lacks);
            missing.map(|taken| (format!("{module}.{}", taken.name), taken.span)).collect()
        }
    };
    let here = parsed.module.file.path().parent().unwrap_or(Path::new("."));
    if missing.is_empty() || holds(here, top) || is_installed(top, project) {
        missing.clear();
    }
    let told = missing.into_iter().map(|(what, span)| {
        let message = format!("`{what}` is there only where {package} is installed");
        let help = format!(
            "install it in the environment of the project's Python (`pip install {package}`), or \
             do without it"
        );
        let span = parsed.placed(span);
        Diagnostic::new(Code::FrameworkImport, &parsed.source, span, message).help(help)
    });
    told.collect()
}

fn has_stand_in(module: &str, name: &str) -> bool {
    let has = |module: &Module| name == "*" || module.binding(name).is_some();
    modules().get(module).is_some_and(has) || is_module(&format!("{module}.{name}"))
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
    let on_path =
        std::env::var_os("PATH").and_then(|path| find_program(&["python3", "python"], &path));
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
