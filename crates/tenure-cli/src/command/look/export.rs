//! `tenure export`.

use super::entry::Entry;
use super::place::Place;
use super::{asks, markdown, runs};
use crate::args::{Export, ExportFormat};
use crate::exit::{Exit, Stop};
use crate::terminal::style::{GOOD, paint};
use crate::terminal::text::{for_shell, plural};
use crate::terminal::{print_plain, sink};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use tenure_core::engine::RunInfo;
use tenure_store::{AskInfo, AskQuery, Authenticity};

pub(crate) fn run(args: &Export) -> Result<Exit> {
    let place = Place::open(&args.of)?;
    let info = place.run(&args.run)?;
    let questions = place.store.asks(&AskQuery::all().run(info.id))?;
    // Refused before anything is read.
    let mut out = match &args.output {
        Some(path) => Out::File(BufWriter::new(create(path, args.force)?)),
        None => Out::Standard,
    };
    let records = match args.format {
        ExportFormat::Jsonl => lines(&place, &info, &questions, &mut out)?,
        ExportFormat::Markdown => {
            let entries = place.entries(info.id)?;
            out.put(&markdown::of(&info, &entries, &questions))?;
            entries.len()
        }
    };
    out.end()?;
    if let Some(path) = &args.output {
        let records = plural(records, "record");
        let label = paint(GOOD, "written:");
        print_plain(&format!("{label} {} · {records} of run {}", for_shell(path), info.id));
    }
    Ok(Exit::Ok)
}

/// The run, its records and its questions, a line each.
fn lines(place: &Place, info: &RunInfo, questions: &[AskInfo], out: &mut Out) -> Result<usize> {
    let mut run = with_type("run", runs::to_json(place, info));
    if place.store.authenticity() != Authenticity::Authenticated {
        run["authenticated"] = Value::Bool(false);
    }
    out.json(run)?;
    let mut count = 0;
    place.each(info.id, 0, |entry: Entry| {
        count += 1;
        out.json(entry.to_json())
    })?;
    for ask in questions {
        out.json(with_type("ask", asks::to_json(ask)))?;
    }
    Ok(count)
}

/// The object with what it is in front.
fn with_type(name: &str, value: Value) -> Value {
    let mut line = json!({ "type": name });
    if let (Value::Object(line), Value::Object(fields)) = (&mut line, value) {
        line.extend(fields);
    }
    line
}

fn create(path: &Path, force: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.write(true);
    let options = match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    match options.open(path) {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let path = path.display();
            let why = format!("`{path}` is there already; write over it with --force");
            Err(Stop::usage(why).into())
        }
        Err(error) => Err(error).with_context(|| format!("`{}` cannot be written", path.display())),
    }
}

/// Where it goes. Nothing of it has secrets: they are taken out on the way here too.
enum Out {
    Standard,
    File(BufWriter<File>),
}

impl Out {
    fn json(&mut self, mut value: Value) -> Result<()> {
        match self {
            Self::Standard => Ok(sink::print_json_line(value)?),
            Self::File(file) => {
                sink::redact(&mut value);
                Ok(writeln!(file, "{value}")?)
            }
        }
    }

    fn put(&mut self, text: &str) -> Result<()> {
        match self {
            Self::Standard => Ok(sink::print_answer(text)?),
            Self::File(file) => Ok(file.write_all(sink::shown(text).as_bytes())?),
        }
    }

    fn end(self) -> Result<()> {
        if let Self::File(mut file) = self {
            file.flush()?;
        }
        Ok(())
    }
}
