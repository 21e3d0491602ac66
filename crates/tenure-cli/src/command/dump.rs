//! `tenure dump`.

use super::project::Opened;
use super::workflow::not_for_workflows;
use crate::args::{Dump, DumpFormat};
use crate::exit::{Exit, Stop};
use crate::terminal::print_plain;
use crate::terminal::sink::print_as_written;
use crate::terminal::style::{WARN, paint};
use anyhow::Result;
use std::borrow::Cow;
use tenure_cards::dump::{Format, dump};
use tenure_core::secret::Redactor;

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
        Some(card) => {
            // Nothing but what the file itself gives away: all else is printed as it is written.
            let written = Redactor::of(card.literal_secrets());
            let text = dump(card, format);
            let shown = written.redact(&text);
            print_as_written(&shown)?;
            if matches!(shown, Cow::Owned(_)) {
                let path = args.path.display();
                print_plain(&format!(
                    "{} a secret that is written in `{path}` is left out; put it into the \
                     environment and write ${{ITS_NAME}} in its place",
                    paint(WARN, "warning:")
                ));
            }
        }
        None => anyhow::bail!("there is no card in `{}`", args.path.display()),
    }
    Ok(Exit::Ok)
}
