//! `tenure init --from fast-agent`.

use super::project::{complain_about, must_exist};
use crate::exit::{Exit, Stop};
use crate::terminal::style::{BOLD, DIM, GOOD, paint};
use crate::terminal::text::{for_shell, plural};
use anyhow::{Context as _, Result};
use std::path::Path;
use tenure_cards::project::{CONFIG_FILE, convert};

/// Writes a `tenure.toml` that says what the configuration of fast-agent in `dir` says, and shows
/// both what it wrote and what it left out. A configuration with errors is not converted.
pub(super) fn run(dir: &Path) -> Result<Exit> {
    must_exist(dir)?;
    let target = dir.join(CONFIG_FILE);
    if target.exists() {
        let shown = target.display();
        let text = format!("there is a `{shown}` already, and nothing is overwritten");
        return Err(Stop::usage(text).into());
    }
    let Some(conversion) = convert(dir) else {
        let text = format!(
            "`{}` has no configuration of fast-agent: no fast-agent.yaml and no \
             fastagent.config.yaml, neither there nor in .fast-agent; the cards need none",
            dir.display()
        );
        return Err(Stop::usage(text).into());
    };
    complain_about(&conversion.report);
    if conversion.report.has_errors() {
        return Ok(Exit::Check);
    }
    std::fs::write(&target, &conversion.toml)
        .with_context(|| format!("{} cannot be written", target.display()))?;
    let left = match conversion.report.warnings() {
        0 => "nothing was left out".to_owned(),
        count => format!("{} left out, see above", plural(count, "setting")),
    };
    let shown = for_shell(dir);
    let name = conversion.file.file_name().unwrap_or_default().to_string_lossy();
    let mut text = format!("{} {} from {name}; {left}\n", paint(GOOD, "Created"), target.display());
    for line in conversion.shown.lines() {
        text.push_str(&format!("  {}\n", paint(DIM, line)));
    }
    text.push_str(&format!(
        "\n{}\n  tenure check {shown}\n  {}\n",
        paint(BOLD, "Next:"),
        paint(DIM, format_args!("# from here on {name} is not read any more")),
    ));
    super::say(&text)?;
    Ok(Exit::Ok)
}
