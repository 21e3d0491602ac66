//! `tenure init`.

use super::convert;
use super::files;
use super::project::complain_about;
use super::whole::Whole;
use crate::args::{Framework, Init, Template};
use crate::exit::{Exit, Stop};
use crate::person::is_beneath_tenure;
use crate::terminal::style::{BOLD, DIM, GOOD, WARN, paint};
use crate::terminal::text::{for_shell, plural};
use crate::trust::{Item, Store};
use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum as _;
use std::path::{Path, PathBuf};
use tenure_cards::trust::{ItemKind, sha256_hex};

pub(super) fn run(args: &Init) -> Result<Exit> {
    if let Some(Framework::FastAgent) = args.from {
        return convert::run(args.dir.as_deref().unwrap_or(Path::new(".")));
    }
    let template = args.template.unwrap_or_else(|| named_after(args.dir.as_deref()));
    let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(template.name()));
    let files = template.files();
    refuse_to_overwrite(&dir, files)?;
    std::fs::create_dir_all(&dir)
        .with_context(|| format!("the folder {} cannot be made", dir.display()))?;
    files::write(&dir, files)?;

    let whole = Whole::at(&dir)?;
    let report = whole.report();
    complain_about(&report);
    ensure!(!report.has_errors(), "the template `{}` does not pass its own check", template.name());
    let items = whole.items();
    let is_ours = is_all_ours(&whole, &items, files);
    let trusted = is_ours && !is_beneath_tenure();
    if trusted {
        Store::open(whole.root())?.accept(whole.root(), &items)?;
    }

    let shown = for_shell(&dir);
    let mut text = format!(
        "{} {shown}/ from the template `{}` ({})\n",
        paint(GOOD, "Created"),
        template.name(),
        plural(files.len(), "file")
    );
    // Side by side where there are no folders.
    let names: Vec<_> = files.iter().map(|(name, _)| *name).collect();
    let between = if names.iter().any(|name| name.contains('/')) { "\n  " } else { "  " };
    text.push_str(&format!("  {}\n\n", paint(DIM, names.join(between))));
    text.push_str(&format!("{}\n", paint(BOLD, "Next:")));
    let next = [
        (format!("tenure run {shown}{}", said(template)), "no key needed"),
        (format!("tenure explain {shown}"), "which hooks run, and when"),
        (format!("tenure check {shown}"), "after you changed something"),
    ];
    let width = next.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    for (command, why) in next {
        text.push_str(&format!("  {command:<width$}  {}\n", paint(DIM, format_args!("# {why}"))));
    }
    let untrusted = match (trusted, is_ours) {
        (true, _) => None,
        (false, true) => Some("Tenure started this process, so the project is not trusted yet."),
        (false, false) => Some("The folder held other files already, so it is not trusted yet."),
    };
    if let Some(why) = untrusted {
        text.push_str(&format!("{}\n", paint(WARN, why)));
    }
    super::say(&text)?;
    Ok(Exit::Ok)
}

/// The template that the folder is named after, as in `tenure init approval`.
fn named_after(dir: Option<&Path>) -> Template {
    let name = dir.and_then(Path::file_name).and_then(|name| name.to_str());
    name.and_then(|name| Template::from_str(name, false).ok()).unwrap_or(Template::Hello)
}

/// Whether everything that would run is what was just written. In a folder with cards or code of
/// somebody else, trust is still to be asked for.
fn is_all_ours(whole: &Whole, items: &[Item], files: &[files::Embedded]) -> bool {
    let written = |name: &str, sha256: &str| {
        let file = files.iter().find(|(file, _)| *file == name);
        file.is_some_and(|(_, text)| sha256_hex(text.as_bytes()) == sha256)
    };
    let cards = whole
        .loaded()
        .flat_map(|loaded| &loaded.cards)
        .all(|card| files.iter().any(|(file, _)| card.source.path().ends_with(file)));
    let hashed = |item: &Item| match &item.sha256 {
        // The guards of cards that are all ours are ours.
        _ if item.kind == ItemKind::Guard.as_str() => true,
        Some(sha256) => written(&item.what, sha256),
        None => true,
    };
    cards && items.iter().all(hashed)
}

fn refuse_to_overwrite(dir: &Path, files: &[files::Embedded]) -> Result<()> {
    if dir.exists() && !dir.is_dir() {
        return Err(Stop::usage(format!("`{}` is a file; name a folder", dir.display())).into());
    }
    let there: Vec<_> =
        files.iter().map(|(name, _)| *name).filter(|it| dir.join(it).exists()).collect();
    if there.is_empty() {
        return Ok(());
    }
    Err(Stop::usage(format!(
        "`{}` has {} already, and nothing is overwritten; name another folder",
        dir.display(),
        there.join(", ")
    ))
    .into())
}

/// The message of the first run, if it needs one.
fn said(template: Template) -> String {
    template.message().map(|message| format!(" -m \"{message}\"")).unwrap_or_default()
}
