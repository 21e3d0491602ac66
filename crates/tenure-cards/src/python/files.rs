//! Finding the function that a spec names.

use super::frameworks::unsatisfied;
use super::module::{Binding, Function, Module};
use crate::diagnostic::{Code, Diagnostic, Report};
use crate::nearest::nearest;
use crate::project::{ConfineError, Project, confine};
use crate::sandbox::Grant;
use crate::source::{MAX_FILE, Source, Span};
use rustpython_ruff_python_ast as ast;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenure_hosts::{PythonFile, PythonFunction, Role};

/// Every Python file that a load has read, each once.
#[derive(Debug, Default)]
pub struct PythonFiles {
    files: HashMap<PathBuf, Arc<Outcome>>,
    /// By folder and path, the file that is meant: resolving links is slow.
    resolved: HashMap<PathBuf, PathBuf>,
    uses: Vec<FunctionUse>,
}

/// A function as a file uses it.
#[derive(Debug)]
pub(super) struct FunctionUse {
    pub(super) function: PythonFunction,
    /// The parameter that takes the context.
    pub(super) context: Option<Arc<str>>,
    pub(super) process: FunctionProcess,
}

/// The process of a family that a function runs in: functions that share it share live objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionProcess {
    pub(crate) role: Role,
    pub(crate) sandbox: Option<Grant>,
}

/// A Python file that was read and parsed.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(super) module: Module,
    pub(super) source: Arc<Source>,
    /// The bytes at the beginning of the source that the module lacks.
    skipped: usize,
}

impl Parsed {
    /// The class of this name.
    pub(super) fn class(&self, name: &str) -> Option<&ast::StmtClassDef> {
        match self.module.binding(name) {
            Some(Binding::Class(class)) => Some(class),
            _ => None,
        }
    }

    /// The value that is assigned to this name.
    pub(super) fn value(&self, name: &str) -> Option<&ast::Expr> {
        match self.module.binding(name) {
            Some(Binding::Value(value)) => Some(value),
            _ => None,
        }
    }

    /// A place of the module in the source.
    pub(super) fn placed(&self, span: Span) -> Span {
        Span::new(span.start as usize + self.skipped, span.end as usize + self.skipped)
    }
}

#[derive(Debug)]
enum Outcome {
    Module(Arc<Parsed>),
    /// The problem is in the Python file and is reported there.
    Broken {
        line: Option<usize>,
    },
    Unreadable(String),
}

/// A spec that names no usable function: the code, the message, and what to do.
#[derive(Debug)]
pub(crate) struct FindError {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// A function that was found, with its module.
pub(crate) struct Found {
    parsed: Arc<Parsed>,
    name: String,
}

impl Found {
    /// The function as it is written.
    pub(crate) fn function(&self) -> &Function {
        self.module().function(&self.name).expect("it was found in this module")
    }

    /// Its module.
    pub(crate) fn module(&self) -> &Module {
        &self.parsed.module
    }

    /// Its file.
    pub(super) fn parsed(&self) -> &Arc<Parsed> {
        &self.parsed
    }

    /// The line, from 1, of a place in the Python file.
    pub(crate) fn line(&self, span: Span) -> usize {
        self.parsed.source.line_col(self.parsed.placed(span).start as usize).line
    }

    /// The function as a worker calls it, filling the parameters `takes`.
    pub(crate) fn callable(&self, takes: Vec<Arc<str>>) -> PythonFunction {
        let function = self.function();
        let module = self.module();
        PythonFunction {
            file: Arc::clone(&module.file),
            name: self.name.as_str().into(),
            style: function.style,
            takes,
            waits: module.waits(function),
        }
    }
}

/// Where a spec is written.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The project.
    pub project: &'a Project,
    /// The folder of the file that holds the spec, resolved.
    pub dir: &'a Path,
    /// That folder as messages show it.
    pub shown: &'a Path,
}

impl PythonFiles {
    /// Returns the files that were read and parsed, as workers run them.
    pub(crate) fn into_files(self) -> BTreeMap<PathBuf, Arc<PythonFile>> {
        let parsed = self.files.into_iter().filter_map(|(path, outcome)| match &*outcome {
            Outcome::Module(parsed) => Some((path, Arc::clone(&parsed.module.file))),
            Outcome::Broken { .. } | Outcome::Unreadable(_) => None,
        });
        parsed.collect()
    }

    /// Notes that a function is used: in the process of most functions, as far as is known yet.
    pub(crate) fn note_use(&mut self, function: &PythonFunction, context: Option<Arc<str>>) {
        let (function, process) = (function.clone(), FunctionProcess::default());
        self.uses.push(FunctionUse { function, context, process });
    }

    /// Notes in which process the last use of a function is.
    pub(crate) fn note_process(&mut self, function: &PythonFunction, process: FunctionProcess) {
        let mut uses = self.uses.iter_mut().rev();
        if let Some(used) = uses.find(|used| used.function == *function) {
            used.process = process;
        }
    }

    pub(super) fn uses(&self) -> &[FunctionUse] {
        &self.uses
    }

    /// Returns a file that was read and parsed.
    pub(super) fn parsed(&self, path: &Path) -> Option<Arc<Parsed>> {
        match &**self.files.get(path)? {
            Outcome::Module(parsed) => Some(Arc::clone(parsed)),
            Outcome::Broken { .. } | Outcome::Unreadable(_) => None,
        }
    }

    /// Returns the paths of the files that were read and parsed.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        let is_module = |outcome: &Outcome| matches!(outcome, Outcome::Module(_));
        self.files.iter().filter(move |(_, it)| is_module(it)).map(|(path, _)| path.as_path())
    }

    /// Returns a file as it was read, or as it is now if it was not.
    pub(super) fn peek(&self, path: &Path, shown: PathBuf) -> Option<Arc<Parsed>> {
        let outcome = self.files.get(path).map(Arc::clone);
        let outcome = outcome.unwrap_or_else(|| Arc::new(read(path, shown, &mut Report::new())));
        match &*outcome {
            Outcome::Module(parsed) => Some(Arc::clone(parsed)),
            Outcome::Broken { .. } | Outcome::Unreadable(_) => None,
        }
    }

    /// Finds the function `name` of the file `path`.
    pub(crate) fn find(
        &mut self,
        origin: &Origin<'_>,
        path: &str,
        name: &str,
        report: &mut Report,
    ) -> Result<Found, FindError> {
        let written = origin.dir.join(path);
        let file = match self.resolved.get(&written) {
            Some(file) => file.clone(),
            None => {
                let file = origin.project.confine(origin.dir, Path::new(path));
                let file = file.map_err(|error| refusal(path, error, origin.project))?;
                self.resolved.insert(written, file.clone());
                file
            }
        };
        let outcome = match self.files.get(&file) {
            Some(outcome) => Arc::clone(outcome),
            None => {
                let shown = crate::project::plain(&origin.shown.join(path));
                let outcome = Arc::new(read(&file, shown, report));
                self.files.insert(file.clone(), Arc::clone(&outcome));
                outcome
            }
        };
        let parsed = match &*outcome {
            Outcome::Module(parsed) => parsed,
            Outcome::Broken { line } => {
                let at = line.map(|line| format!(" at line {line}")).unwrap_or_default();
                return Err(FindError {
                    code: Code::PythonSyntax,
                    message: format!("`{path}` cannot be parsed{at}, so `{name}` cannot be found"),
                    help: format!("correct `{path}`"),
                });
            }
            Outcome::Unreadable(why) => {
                let code = if file.is_dir() { Code::NotAFile } else { Code::PythonUnreadable };
                return Err(FindError {
                    code,
                    message: format!("`{path}` {why}"),
                    help: "name a Python file in UTF-8 that you may read".into(),
                });
            }
        };
        if parsed.module.function(name).is_some() {
            for import in parsed.module.imports.iter().filter(|it| it.runs_for(name)) {
                for found in unsatisfied(import, parsed, origin.project) {
                    report.push(found);
                }
            }
            return Ok(Found { parsed: Arc::clone(parsed), name: name.to_owned() });
        }
        Err(absent(&parsed.module, path, name))
    }

    /// The file at `path`, if it is there, beneath `root`, and can be parsed. That it cannot is
    /// reported.
    pub(super) fn beside(
        &mut self,
        root: &Path,
        path: &Path,
        shown: PathBuf,
        report: &mut Report,
    ) -> Option<Arc<Parsed>> {
        let file = confine(root, root, path).ok().filter(|file| file.is_file())?;
        let outcome = self.files.entry(file.clone());
        let outcome = outcome.or_insert_with(|| Arc::new(read(&file, shown, report)));
        match &**outcome {
            Outcome::Module(parsed) => Some(Arc::clone(parsed)),
            Outcome::Broken { .. } | Outcome::Unreadable(_) => None,
        }
    }
}

fn read(file: &Path, shown: PathBuf, report: &mut Report) -> Outcome {
    let text = match text(file) {
        Ok(text) => text,
        Err(why) => return Outcome::Unreadable(why),
    };
    let source = Arc::new(Source::new(shown, text.as_str()));
    // Python refuses a byte order mark in a text, and takes it in a file.
    let (run, skipped) = match text.strip_prefix('\u{feff}') {
        Some(run) => (run, '\u{feff}'.len_utf8()),
        None => (text.as_str(), 0),
    };
    match Module::parse(Arc::new(PythonFile::new(file, run))) {
        Ok(module) => Outcome::Module(Arc::new(Parsed { module, source, skipped })),
        Err(problem) => {
            let (start, end) = (problem.span.start as usize, problem.span.end as usize);
            let span = Span::new(start + skipped, end + skipped);
            let line = source.line_col(span.start as usize).line;
            report.push(
                Diagnostic::new(
                    Code::PythonSyntax,
                    &source,
                    span,
                    format!("this file cannot be parsed: {}", lower(&problem.message)),
                )
                .help("correct the Python; nothing in this file can be used until then"),
            );
            Outcome::Broken { line: Some(line) }
        }
    }
}

fn text(file: &Path) -> Result<String, String> {
    let meta = std::fs::metadata(file).map_err(|error| format!("cannot be read: {error}"))?;
    if !meta.is_file() {
        let what = if meta.is_dir() { "a folder" } else { "not a regular file" };
        return Err(format!("is {what}"));
    }
    let mut bytes = Vec::new();
    let opened = std::fs::File::open(file).map_err(|error| format!("cannot be read: {error}"))?;
    opened
        .take(MAX_FILE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() > MAX_FILE {
        return Err("is larger than 1 MiB".into());
    }
    String::from_utf8(bytes)
        .map_err(|error| format!("is not UTF-8 at byte {}", error.utf8_error().valid_up_to()))
}

/// Why `path` cannot be used, as a card's author reads it.
pub(crate) fn refusal(path: &str, error: ConfineError, project: &Project) -> FindError {
    let (code, message, help) = match error {
        ConfineError::Missing => (
            Code::PythonFileMissing,
            format!("there is no file `{path}`"),
            "paths start from the folder of this file; correct the path, or create the file"
                .to_owned(),
        ),
        ConfineError::Outside => (
            Code::OutsideProject,
            format!("`{path}` is outside of the project"),
            format!(
                "move the file beneath the project's folder `{}`, or put a tenure.toml in a folder \
                 that holds both",
                folder_name(project)
            ),
        ),
        ConfineError::LinkOutside(_) => (
            Code::LinkOutsideProject,
            format!("`{path}` is a link that leads out of the project"),
            "put the file itself into the project".to_owned(),
        ),
        ConfineError::Unreadable(error) => (
            Code::PythonUnreadable,
            format!("`{path}` cannot be read: {error}"),
            "give yourself the right to read it".to_owned(),
        ),
    };
    FindError { code, message, help }
}

fn folder_name(project: &Project) -> String {
    project.root.file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy().into_owned())
}

fn absent(module: &Module, path: &str, name: &str) -> FindError {
    let (code, message, help) = match module.binding(name) {
        Some(Binding::Class(_)) => (
            Code::NotCallable,
            format!("`{name}` in `{path}` is a class, not a function"),
            "write a function at the top level of the file".to_owned(),
        ),
        Some(Binding::Imported { module: from, .. }) => (
            Code::NotCheckable,
            format!("`{name}` in `{path}` is imported from `{from}`, so it cannot be checked"),
            format!("write a function in `{path}` that calls it, or name the file that defines it"),
        ),
        Some(Binding::Value(..)) => (
            Code::NotCallable,
            format!("`{name}` in `{path}` is a value that is assigned, not a function"),
            format!("write `def {name}(...):` at the top level of the file"),
        ),
        Some(Binding::Function(_)) | None => {
            let mut names: Vec<&str> = module.functions().collect();
            names.sort_unstable();
            let help = match (nearest(name, names.iter().copied()), names.as_slice()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, []) => format!("the file has no functions; write `def {name}(...):` in it"),
                (None, names) => {
                    format!("the file has {}", crate::card::list_words(names, "and"))
                }
            };
            (Code::FunctionMissing, format!("there is no function `{name}` in `{path}`"), help)
        }
    };
    FindError { code, message, help }
}

fn lower(message: &str) -> String {
    let mut chars = message.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
