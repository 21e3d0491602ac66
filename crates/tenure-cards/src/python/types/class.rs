//! Classes of the project.

use super::super::files::Parsed;
use super::choice::is_enum;
use super::name::Meaning;
use super::record::RecordKind;
use super::{Annotation, CLASSES, Types, known};
use rustpython_ruff_python_ast as ast;
use rustpython_ruff_python_ast::{Expr, Stmt};
use serde_json::{Value, json};
use std::sync::Arc;

/// A class: the file that it is in, by its place in memory, and its name.
pub(super) type ClassKey = (usize, String);

/// How many bases a class may have in the project.
const MOST_BASES: usize = 50;

/// A class of the project with its bases.
#[derive(Default)]
pub(super) struct Lineage {
    /// Those of the project, each behind its own bases.
    pub(super) classes: Vec<Ancestor>,
    /// Those of Python and of libraries, by their paths.
    libraries: Vec<String>,
    /// Whether something makes it what cannot be known without running it.
    is_obscure: bool,
}

/// A class that another one is made of, or that one itself.
pub(super) struct Ancestor {
    pub(super) file: Arc<Parsed>,
    pub(super) name: String,
    pub(super) is_dataclass: bool,
}

impl Ancestor {
    pub(super) fn definition(&self) -> Option<&ast::StmtClassDef> {
        self.file.class(&self.name)
    }
}

impl Lineage {
    pub(super) fn has(&self, path: &str) -> bool {
        self.libraries.iter().any(|it| it == path)
    }

    pub(super) fn is_enum(&self) -> bool {
        self.libraries.iter().any(|it| is_enum(it))
    }

    pub(super) fn statements(&self) -> impl Iterator<Item = &Stmt> {
        self.classes.iter().filter_map(Ancestor::definition).flat_map(|it| it.body.iter())
    }

    /// Whether one of the classes has a method of this name.
    pub(super) fn defines(&self, name: &str) -> bool {
        self.statements().any(|it| matches!(it, Stmt::FunctionDef(def) if def.name.id == name))
    }
}

impl Types<'_> {
    /// A class with its bases.
    pub(super) fn lineage(&mut self, file: &Arc<Parsed>, name: &str) -> Lineage {
        let mut lineage = Lineage::default();
        self.add_ancestor(file, name, &mut lineage);
        lineage
    }

    fn add_ancestor(&mut self, file: &Arc<Parsed>, name: &str, lineage: &mut Lineage) {
        let known = |it: &Ancestor| Arc::ptr_eq(&it.file, file) && it.name == name;
        let Some(class) = file.class(name) else { return };
        if lineage.classes.len() >= MOST_BASES || lineage.classes.iter().any(known) {
            return;
        }
        for base in class.arguments.iter().flat_map(|it| it.args.iter()) {
            match self.meaning(file, base) {
                Meaning::Class(file, name) => self.add_ancestor(&file, &name, lineage),
                Meaning::Library(path) => lineage.libraries.push(path),
                _ => lineage.is_obscure = true,
            }
        }
        let keywords = class.arguments.iter().flat_map(|it| it.keywords.iter());
        for keyword in keywords {
            lineage.is_obscure |=
                keyword.arg.as_ref().is_none_or(|arg| arg.as_str() == "metaclass");
        }
        let mut is_dataclass = false;
        for decorator in &class.decorator_list {
            let called = match &decorator.expression {
                Expr::Call(call) => &*call.func,
                other => other,
            };
            match self.meaning(file, called) {
                Meaning::Library(path) if known::short(&path) == "dataclass" => is_dataclass = true,
                _ => lineage.is_obscure = true,
            }
        }
        let (file, name) = (Arc::clone(file), name.to_owned());
        lineage.classes.push(Ancestor { file, name, is_dataclass });
    }

    /// The schema of a class of the project.
    pub(super) fn class(
        &mut self,
        at: Annotation<'_>,
        expr: &Expr,
        (file, name): (Arc<Parsed>, String),
        depth: usize,
    ) -> Value {
        let key = (Arc::as_ptr(&file) as usize, name.clone());
        if let Some(label) = self.label_of(&key) {
            return json!({ "$ref": format!("#/$defs/{label}") });
        }
        self.classes += 1;
        if self.classes > CLASSES {
            return json!({});
        }
        let lineage = self.lineage(&file, &name);
        if lineage.is_enum() {
            return self.enumeration(&lineage);
        }
        if let Some(kind) = RecordKind::of(&lineage) {
            let outer = self.variables.len();
            self.open.push((key, None));
            let schema = self.record(&lineage, kind, depth);
            self.variables.truncate(outer);
            return match self.open.pop() {
                Some((key, Some(label))) => {
                    self.definitions.insert(label.clone(), schema);
                    let reference = json!({ "$ref": format!("#/$defs/{label}") });
                    self.defined.insert(key, label);
                    reference
                }
                _ => schema,
            };
        }
        // A class that is made like one of Python's own.
        if let Some(schema) = lineage.libraries.iter().find_map(|path| known::schema(path)) {
            return schema;
        }
        let bare = lineage.libraries.iter().all(|path| known::is_bare(path));
        if bare && !lineage.is_obscure {
            return self.impossible(at, expr, &name);
        }
        json!({})
    }

    /// The name under which a class is defined once that holds itself.
    fn label_of(&mut self, key: &ClassKey) -> Option<String> {
        if let Some(label) = self.defined.get(key) {
            return Some(label.clone());
        }
        let place = self.open.iter().position(|(open, _)| open == key)?;
        if self.open[place].1.is_none() {
            let is_taken = |label: &String| {
                self.definitions.contains_key(label)
                    || self.open.iter().any(|(_, open)| open.as_ref() == Some(label))
            };
            let mut numbered = (2..).map(|number| format!("{}{number}", key.1));
            let mut label = key.1.clone();
            while is_taken(&label) {
                label = numbered.next().unwrap_or_default();
            }
            self.open[place].1 = Some(label);
        }
        self.open[place].1.clone()
    }
}
