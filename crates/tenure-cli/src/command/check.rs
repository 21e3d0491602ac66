//! `tenure check`.

use super::project::color_of;
use super::whole::Whole;
use crate::args::{Check, ReportFormat};
use crate::exit::Exit;
use crate::terminal::sink::{print_document, print_json};
use crate::terminal::size::columns;
use anstream::AutoStream;
use anyhow::Result;

pub(super) fn run(args: &Check) -> Result<Exit> {
    let whole = Whole::at(&args.path)?.inspected();
    let report = whole.report();
    match args.format {
        ReportFormat::Text => {
            let color = color_of(AutoStream::choice(&std::io::stdout()));
            let mut text = report.render_text_within(color, columns().unwrap_or(usize::MAX));
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&whole.summary(&report));
            super::say(&text)?;
        }
        ReportFormat::Json => report.iter().for_each(|it| print_json(it.to_json())),
        ReportFormat::Sarif => print_document(report.to_sarif())?,
    }
    let bad = report.has_errors() || args.deny_warnings && !report.is_empty();
    Ok(if bad { Exit::Check } else { Exit::Ok })
}
