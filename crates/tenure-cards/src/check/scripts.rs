//! Files beside cards that are scripts of models.

use crate::card::{Environ, expand};
use crate::diagnostic::Diagnostic;
use crate::project::Project;
use crate::source::{Node, Value};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The files of a folder that are no cards, and the scripts that its cards name.
#[derive(Debug, Default)]
pub(super) struct Strays {
    files: Vec<(PathBuf, Diagnostic)>,
    scripts: HashSet<PathBuf>,
}

impl Strays {
    /// A file that is no card.
    pub(super) fn add(&mut self, file: &Path, said: Diagnostic) {
        self.files.push((file.canonicalize().unwrap_or_else(|_| file.to_owned()), said));
    }

    /// Looks for models with a script wherever a card may name one: in its own fields and in what its
    /// hooks are given.
    pub(super) fn named_in(
        &mut self,
        tree: &Node,
        dir: &Path,
        project: &Project,
        environ: &Environ,
    ) {
        match &tree.value {
            Value::Text(text) if text.contains("script:") || text.contains("${") => {
                self.script(&expand(text, environ), dir, project);
            }
            Value::List(list) => {
                list.iter().for_each(|node| self.named_in(node, dir, project, environ));
            }
            Value::Map(map) => {
                map.iter().for_each(|(_, node)| self.named_in(node, dir, project, environ));
            }
            _ => {}
        }
    }

    /// The script that a model has, if it has one; its path starts from `base`.
    pub(super) fn script(&mut self, model: &str, base: &Path, project: &Project) {
        if let Some(path) = model.trim().strip_prefix("script:")
            && let Ok(file) = project.confine(base, Path::new(path.trim()))
        {
            self.scripts.insert(file);
        }
    }

    /// What is said of files that nobody names.
    pub(super) fn lost(&mut self) -> Vec<Diagnostic> {
        let files = std::mem::take(&mut self.files);
        let lost = files.into_iter().filter(|(file, _)| !self.scripts.contains(file));
        lost.map(|(_, said)| said).collect()
    }
}
