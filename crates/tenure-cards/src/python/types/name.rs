//! The meaning of a name in a file of the project.

use super::super::files::Parsed;
use super::super::module::{Binding, ImportTime};
use super::{Types, known};
use crate::nearest::nearest;
use rustpython_ruff_python_ast::Expr;
use std::path::PathBuf;
use std::sync::Arc;

/// How often a name may be handed on from file to file.
const HOPS: usize = 12;

/// What a name stands for.
pub(super) enum Meaning {
    /// Something of Python's own or of a library, by its path: `datetime.date`.
    Library(String),
    /// A class of the project.
    Class(Arc<Parsed>, String),
    /// A value that is assigned in the project, such as an alias.
    Value(Arc<Parsed>, String),
    /// A function of the project, by its name.
    Function(String),
    /// A file of the project.
    Module(Arc<Parsed>),
    /// Something that is there for type checkers only, by its name.
    ForCheckers(String),
    /// Nothing: the name is not there.
    Nothing { name: String, help: String },
    /// Something that only running the file would show.
    Unknown,
}

impl Types<'_> {
    /// What an expression of names and dots stands for.
    pub(super) fn meaning(&mut self, file: &Arc<Parsed>, expr: &Expr) -> Meaning {
        match expr {
            Expr::Name(name) if self.variables.iter().any(|it| name.id == *it) => {
                Meaning::Library("typing.Any".to_owned())
            }
            Expr::Name(name) => self.named(file, name.id.as_str(), HOPS),
            Expr::Attribute(it) => match self.meaning(file, &it.value) {
                Meaning::Library(path) => Meaning::Library(format!("{path}.{}", it.attr)),
                Meaning::Module(inner) => self.member(&inner, it.attr.as_str(), HOPS),
                Meaning::Class(..) | Meaning::Value(..) | Meaning::Function(_) => Meaning::Unknown,
                nothing => nothing,
            },
            Expr::Subscript(it) => self.meaning(file, &it.value),
            _ => Meaning::Unknown,
        }
    }

    /// What a name at the top level of a file stands for.
    fn named(&mut self, file: &Arc<Parsed>, name: &str, hops: usize) -> Meaning {
        match file.module.binding(name) {
            None if known::is_builtin(name) => Meaning::Library(format!("builtins.{name}")),
            None if file.module.may_bind(name) => Meaning::Unknown,
            None => {
                let near = nearest(name, file.module.names());
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("import `{name}`, or define it at the top level of the file"),
                };
                Meaning::Nothing { name: name.to_owned(), help }
            }
            Some(_) => self.member(file, name, hops),
        }
    }

    /// What a name of a file stands for that another file asks for.
    fn member(&mut self, file: &Arc<Parsed>, name: &str, hops: usize) -> Meaning {
        let Some(hops) = hops.checked_sub(1) else { return Meaning::Unknown };
        let (module, own, import) = match file.module.binding(name) {
            Some(Binding::Class(_)) => return Meaning::Class(Arc::clone(file), name.to_owned()),
            Some(Binding::Value(_)) => return Meaning::Value(Arc::clone(file), name.to_owned()),
            Some(Binding::Function(_)) => return Meaning::Function(name.to_owned()),
            Some(Binding::Imported { module, name, import }) => (module, name, *import),
            None => return self.beneath(file, name),
        };
        if import == ImportTime::ForCheckers {
            return Meaning::ForCheckers(name.to_owned());
        }
        let top = module.split('.').next().unwrap_or_default();
        if known::MODULES.contains(&top) {
            let module = if module == "typing_extensions" { "typing" } else { module };
            // `import collections.abc` binds `collections`.
            let module = if own.is_none() && name == top { top } else { module };
            return Meaning::Library(match own {
                Some(own) => format!("{module}.{own}"),
                None => module.to_owned(),
            });
        }
        let asked = if own.is_none() && name == top { top } else { module.as_str() };
        match (self.sibling(file, asked), own) {
            (Some(found), Some(own)) => self.member(&found, own, hops),
            (Some(found), None) => Meaning::Module(found),
            (None, Some(own)) => Meaning::Library(format!("{module}.{own}")),
            (None, None) => Meaning::Library(asked.to_owned()),
        }
    }

    /// What `name` of the package `file` is that its file does not bind: a file of its folder.
    fn beneath(&mut self, file: &Arc<Parsed>, name: &str) -> Meaning {
        if let Some(found) = self.sibling(file, &format!(".{name}")) {
            return Meaning::Module(found);
        }
        if file.module.may_bind(name) {
            return Meaning::Unknown;
        }
        let path = file.source.path();
        let path = path.file_name().map(|it| it.to_string_lossy()).unwrap_or_default();
        let help = match nearest(name, file.module.names()) {
            Some(near) => format!("`{path}` has `{near}`; did you mean that?"),
            None => format!("define `{name}` in `{path}`, or import it from where it is"),
        };
        Meaning::Nothing { name: name.to_owned(), help }
    }

    /// The file of the project that `module` means in `file`, as `models` and `.models` do.
    fn sibling(&mut self, file: &Arc<Parsed>, module: &str) -> Option<Arc<Parsed>> {
        let name = module.trim_start_matches('.');
        let dots = module.len() - name.len();
        let mut folder = file.module.file.path().parent()?.to_owned();
        let mut shown = file.source.path().parent()?.to_owned();
        for _ in 1..dots {
            folder = folder.parent()?.to_owned();
            shown = shown.parent()?.to_owned();
        }
        let inner: PathBuf = name.split('.').filter(|part| !part.is_empty()).collect();
        let package = inner.join("__init__.py");
        [package, inner.with_extension("py")].into_iter().find_map(|path| {
            self.files.beside(self.root, &folder.join(&path), shown.join(&path), self.report)
        })
    }
}
