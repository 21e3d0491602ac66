//! Which workflow is meant.

use super::super::project::Opened;
use crate::exit::Stop;
use crate::terminal::text::for_shell;
use anyhow::Result;
use std::path::{Component, Path, PathBuf};
use tenure_cards::embed::nearest;
use tenure_cards::project::Project;
use tenure_flow::{is_workflow, workflows_of};

/// What a path on the command line means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    /// Cards.
    Cards,
    /// A workflow, by its folder or its orchestrator file.
    Workflow(PathBuf),
}

/// What `path` means, and `--workflow` if it was given: a workflow itself, one of the project's, or
/// cards. `has_cards` says whether the folder holds any; it is asked only if that matters.
pub(crate) fn meant(
    path: &Path,
    named: Option<&str>,
    has_cards: impl FnOnce() -> bool,
) -> Result<Meant> {
    if is_workflow(path) {
        return match named {
            None => Ok(Meant::Workflow(path.to_owned())),
            Some(_) => Err(Stop::usage(format!(
                "`{}` is a workflow itself; leave --workflow out, or name the project's folder",
                path.display()
            ))
            .into()),
        };
    }
    if !path.exists() {
        return Ok(by_name(path).filter(|_| named.is_none()).map_or(Meant::Cards, Meant::Workflow));
    }
    let all = if path.is_dir() { workflows_of(path) } else { Vec::new() };
    if let Some(named) = named {
        let found = all.iter().find(|it| name_of(it) == named);
        return found.map(|it| Meant::Workflow(it.clone())).ok_or_else(|| none(path, named, &all));
    }
    match all.as_slice() {
        [] => Ok(Meant::Cards),
        _ if has_cards() => Ok(Meant::Cards),
        [only] => Ok(Meant::Workflow(only.clone())),
        several => Err(Stop::usage(format!(
            "there are several workflows; say which with --workflow: {}",
            names(several)
        ))
        .into()),
    }
}

/// Refuses a workflow where only cards will do.
pub(crate) fn not_for_workflows(path: &Path, what: &str, instead: &str) -> Result<()> {
    let has_only_workflows = || {
        let has_workflows = path.is_dir() && !workflows_of(path).is_empty();
        has_workflows && !Opened::at(path).is_ok_and(|opened| opened.has_cards())
    };
    let is = match is_workflow(path) {
        true => "is a workflow",
        false if !path.exists() && by_name(path).is_some() => "is a workflow",
        false if has_only_workflows() => "holds workflows and no card",
        false => return Ok(()),
    };
    let instead = instead.replace("{}", &for_shell(path));
    Err(Stop::usage(format!("`{}` {is}, and {what}; {instead}", path.display())).into())
}

/// The workflow of this name in the project of the folder one stands in.
fn by_name(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    let (Some(Component::Normal(name)), None) = (parts.next(), parts.next()) else { return None };
    let here = Path::new(".");
    let beside = here.join("workflows").join(name);
    let in_project = || Project::find(here).root.join("workflows").join(name);
    [beside, in_project()].into_iter().find(|folder| is_workflow(folder))
}

fn none(path: &Path, named: &str, all: &[PathBuf]) -> anyhow::Error {
    let there = all.iter().map(|it| name_of(it)).collect::<Vec<_>>();
    let there: Vec<&str> = there.iter().map(String::as_str).collect();
    let hint = match nearest(named, there.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if path.join("workflows").join(named).is_dir() => {
            format!("the folder workflows/{named} has no orchestrator file")
        }
        None if there.is_empty() => {
            format!("`{}` has no folder workflows/ with any in it", path.display())
        }
        None => format!("there are: {}", there.join(", ")),
    };
    Stop::usage(format!("there is no workflow `{named}`; {hint}")).into()
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn names(folders: &[PathBuf]) -> String {
    folders.iter().map(|it| name_of(it)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(workflows: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        for name in workflows {
            let folder = dir.path().join("workflows").join(name);
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join("orchestrator.yaml"), "workflow_name: x\n").expect("a file");
        }
        dir
    }

    #[test]
    fn the_only_workflow_of_a_project_without_cards_is_meant() {
        let one = project(&["story"]);
        let story = one.path().join("workflows/story");
        let found = meant(one.path(), None, || false).expect("it is clear");
        assert_eq!(found, Meant::Workflow(story.clone()));
        assert_eq!(meant(one.path(), None, || true).expect("it is clear"), Meant::Cards);
        assert_eq!(meant(&story, None, || true).expect("it is clear"), Meant::Workflow(story));
        let none = project(&[]);
        assert_eq!(meant(none.path(), None, || false).expect("it is clear"), Meant::Cards);
    }

    #[test]
    fn of_several_one_is_to_be_named() {
        let two = project(&["review", "story"]);
        let said = meant(two.path(), None, || false).expect_err("it is not clear").to_string();
        assert_eq!(said, "there are several workflows; say which with --workflow: review, story");
        let found = meant(two.path(), Some("review"), || true).expect("it is named");
        assert_eq!(found, Meant::Workflow(two.path().join("workflows/review")));
        let said = meant(two.path(), Some("stori"), || true).expect_err("there is none");
        assert_eq!(said.to_string(), "there is no workflow `stori`; did you mean `story`?");
        let story = two.path().join("workflows/story");
        let said = meant(&story, Some("story"), || true).expect_err("it is said twice");
        assert!(said.to_string().contains("is a workflow itself"), "{said}");
    }
}
