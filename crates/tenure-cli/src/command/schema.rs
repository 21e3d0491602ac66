//! `tenure schema`.

use crate::args::{Schema, SchemaOf};
use crate::exit::Exit;
use crate::terminal::sink::print_as_written;
use anyhow::Result;

pub(super) fn run(args: &Schema) -> Result<Exit> {
    let schema = match args.of {
        SchemaOf::Card => tenure_cards::schema::card_schema(),
    };
    print_as_written(&serde_json::to_string_pretty(&schema)?)?;
    Ok(Exit::Ok)
}
