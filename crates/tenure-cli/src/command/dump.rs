//! `tenure dump`.

use super::project::Opened;
use super::workflow::not_for_workflows;
use crate::args::{Dump, DumpFormat};
use crate::exit::{Exit, Stop};
use crate::terminal::sink::print_as_written;
use anyhow::Result;
use tenure_cards::dump::{Format, dump};

pub(super) fn run(args: &Dump) -> Result<Exit> {
    not_for_workflows(
        &args.path,
        "only cards have a canonical form",
        "see how it is put together with `tenure explain {}`",
    )?;
    if args.path.is_dir() {
        let path = args.path.display();
        return Err(Stop::usage(format!("`{path}` is a directory; name one card")).into());
    }
    let opened = Opened::at(&args.path)?;
    if !opened.complain() {
        return Ok(Exit::Check);
    }
    let format = match args.format {
        DumpFormat::Markdown => Format::Markdown,
        DumpFormat::Yaml => Format::Yaml,
    };
    match opened.loaded.cards.first() {
        Some(card) => print_as_written(&dump(card, format))?,
        None => anyhow::bail!("there is no card in `{}`", args.path.display()),
    }
    Ok(Exit::Ok)
}
