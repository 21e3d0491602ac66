//! Where is searched: folders, and nothing outside of them.

use super::stop::Stop;
use globset::{GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use ignore::WalkBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// In which order finds come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Order {
    /// By path.
    #[default]
    Path,
    /// What was changed last comes first.
    Newest,
}

/// A folder, and the name that the model knows it by; the empty one for the folder itself.
#[derive(Clone, Debug)]
pub(super) struct Root {
    pub(super) shown: PathBuf,
    pub(super) dir: PathBuf,
}

/// Where is searched, and what is left out.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub(super) roots: Vec<Root>,
    pub(super) exclude: GlobSet,
    pub(super) hidden: bool,
    pub(super) gitignore: bool,
    pub(super) order: Order,
}

/// Where one search begins: a folder or file that is known to lie beneath its root.
#[derive(Clone, Debug)]
pub(super) struct Base {
    shown: PathBuf,
    root: PathBuf,
    at: PathBuf,
}

/// A file that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// As the model knows it.
    pub(super) shown: String,
    /// As patterns see it: from where the search began.
    pub(super) relative: PathBuf,
    changed: Option<SystemTime>,
}

/// A pattern for paths. One without a `/` is about the last part of a path, wherever that is.
fn glob(pattern: &str, any_case: bool) -> Result<globset::Glob, String> {
    let trimmed = pattern.trim_start_matches("./");
    let leads_out =
        Path::new(trimmed).components().any(|part| !matches!(part, Component::Normal(_)));
    if trimmed.is_empty() || leads_out {
        return Err(format!(
            "the pattern `{pattern}` is not one of paths beneath the folder; write one like `**/*.rs`"
        ));
    }
    let anywhere = if trimmed.contains('/') { "" } else { "**/" };
    GlobBuilder::new(&format!("{anywhere}{trimmed}"))
        .literal_separator(true)
        .case_insensitive(any_case)
        .build()
        .map_err(|error| format!("the pattern `{pattern}` makes no sense: {}", error.kind()))
}

/// What none of the patterns may match. Case makes no difference: `ID_RSA` is a secret too.
pub(super) fn excluding(patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern, true)?);
    }
    set.build().map_err(|error| error.to_string())
}

impl Ground {
    /// Where a search begins that the model wants to begin at `path`.
    pub(super) fn bases(&self, path: Option<&str>) -> Result<Vec<Base>, String> {
        let wanted = relative(path.unwrap_or("."))?;
        let mut bases = Vec::new();
        for root in &self.roots {
            let rest = match wanted.strip_prefix(&root.shown) {
                Ok(rest) => rest,
                // All of a root that lies beneath what is wanted.
                Err(_) if root.shown.starts_with(&wanted) => Path::new(""),
                Err(_) => continue,
            };
            bases.push(self.base(root, rest)?);
        }
        if bases.is_empty() {
            let names: Vec<_> =
                self.roots.iter().map(|it| it.shown.display().to_string()).collect();
            return Err(format!(
                "`{}` is not beneath a folder that may be searched; these may: {}",
                wanted.display(),
                names.join(", ")
            ));
        }
        bases.sort_by(|a, b| a.shown.cmp(&b.shown));
        let all = bases.clone();
        let within = |base: &Base| {
            all.iter().any(|other| other.at != base.at && base.at.starts_with(&other.at))
        };
        bases.retain(|base| !within(base));
        Ok(bases)
    }

    fn base(&self, root: &Root, rest: &Path) -> Result<Base, String> {
        let shown = root.shown.join(rest);
        let missing = |error| format!("`{}` cannot be searched: {error}", shown.display());
        let folder = root.dir.canonicalize().map_err(missing)?;
        let at = folder.join(rest).canonicalize().map_err(missing)?;
        // A link may have led anywhere.
        let Ok(real) = at.strip_prefix(&folder) else {
            return Err(format!("`{}` leads out of the folder", shown.display()));
        };
        for path in [rest, real] {
            if path.ancestors().any(|it| self.is_out(it)) {
                return Err(format!("`{}` is not searched", shown.display()));
            }
        }
        let base = Base { shown, root: folder, at };
        let mut way = self.walker(&base).build();
        if !way.any(|entry| entry.is_ok_and(|entry| entry.path() == base.at)) {
            return Err(format!("`{}` is not searched", base.shown.display()));
        }
        Ok(base)
    }

    /// Whether a path, from its root, is one that is left out.
    fn is_out(&self, path: &Path) -> bool {
        let is_hidden = || {
            let name = path.file_name().map(|name| name.as_encoded_bytes());
            name.is_some_and(|name| name.starts_with(b"."))
        };
        (!self.hidden && is_hidden()) || self.exclude.is_match(path)
    }

    /// The files, in order, until it is time to stop.
    pub(super) fn files<'a>(
        &'a self,
        bases: Vec<Base>,
        stop: &'a Stop,
    ) -> Box<dyn Iterator<Item = Found> + 'a> {
        let files = bases.into_iter().flat_map(move |base| self.walk(base));
        let files = files.take_while(|_| !stop.is_over());
        match self.order {
            Order::Path => Box::new(files),
            Order::Newest => {
                let mut all: Vec<_> = files
                    .map(|mut it| {
                        it.changed = it.path.metadata().and_then(|it| it.modified()).ok();
                        it
                    })
                    .collect();
                all.sort_by(|a, b| {
                    (Reverse(a.changed), &a.shown).cmp(&(Reverse(b.changed), &b.shown))
                });
                Box::new(all.into_iter())
            }
        }
    }

    /// Goes from the root to the base, and through all of it. It begins at the root because rules
    /// are about what a walk comes to, and not about where it begins.
    fn walker(&self, base: &Base) -> WalkBuilder {
        let mut builder = WalkBuilder::new(&base.root);
        let (ground, root, at) = (self.clone(), base.root.clone(), base.at.clone());
        builder
            .follow_links(false)
            .hidden(!self.hidden)
            .ignore(self.gitignore)
            .git_ignore(self.gitignore)
            .git_exclude(self.gitignore)
            // What is found is the same for everybody, whatever their own settings are.
            .git_global(false)
            .require_git(false)
            .parents(self.gitignore)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(move |entry| {
                let path = entry.path();
                let is_wanted = path.starts_with(&at) || at.starts_with(path);
                is_wanted
                    && path.strip_prefix(&root).is_ok_and(|path| {
                        path.as_os_str().is_empty() || !ground.is_out(path)
                    })
            });
        builder
    }

    fn walk(&self, base: Base) -> impl Iterator<Item = Found> + use<> {
        self.walker(&base).build().filter_map(move |entry| {
            let entry = entry.ok()?;
            // A link is none: it might lead out.
            if !entry.file_type()?.is_file() {
                return None;
            }
            let beneath = entry.path().strip_prefix(&base.at).ok()?;
            let is_whole = beneath.as_os_str().is_empty();
            let relative = match is_whole {
                true => PathBuf::from(entry.file_name()),
                false => beneath.to_owned(),
            };
            let shown = if is_whole { base.shown.clone() } else { base.shown.join(beneath) };
            let shown = shown.to_string_lossy().into_owned();
            Some(Found { path: entry.into_path(), shown, relative, changed: None })
        })
    }
}

/// A matcher for what a model wrote.
pub(super) fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    glob(pattern, false).map(|glob| glob.compile_matcher())
}

/// A path that the model named, without what says nothing. One that could lead out is refused.
fn relative(path: &str) -> Result<PathBuf, String> {
    let mut clean = PathBuf::new();
    for part in Path::new(path.trim()).components() {
        match part {
            Component::Normal(part) => clean.push(part),
            Component::CurDir => {}
            _ => {
                return Err(format!(
                    "the path `{path}` leads out of the folder; write one that is relative, \
                     without `..`"
                ));
            }
        }
    }
    Ok(clean)
}
