//! `tenure hooks`.

use super::say;
use crate::args::Hooks;
use crate::exit::Exit;
use crate::terminal::sink::print_as_written;
use crate::terminal::style::{BOLD, DIM, paint};
use anyhow::{Error, Result, anyhow, bail};
use serde_json::{Value, json};
use tenure_hooks::ready::{self, Ready};

pub(super) fn run(args: &Hooks) -> Result<Exit> {
    if ready::all().next().is_none() {
        return Err(not_built());
    }
    let Some(name) = &args.name else {
        match args.json {
            true => {
                let all: Vec<Value> =
                    ready::all().map(|(group, it)| described(group, it)).collect();
                print_as_written(&serde_json::to_string_pretty(&all)?)?;
            }
            false => say(&list())?,
        }
        return Ok(Exit::Ok);
    };
    let Some((group, hook)) = ready::all().find(|(_, hook)| hook.name() == name) else {
        let known = ready::all().map(|(_, hook)| hook.name());
        match tenure_cards::nearest(name, known) {
            Some(near) => bail!("there is no ready-made hook `{name}`; did you mean `{near}`?"),
            None => bail!("there is no ready-made hook `{name}`; `tenure hooks` lists them"),
        }
    };
    match args.json {
        true => print_as_written(&serde_json::to_string_pretty(&described(group, hook))?)?,
        false => say(&page(hook))?,
    }
    Ok(Exit::Ok)
}

/// Says that this program has no ready-made hooks, and how to get one that has.
pub(super) fn not_built() -> Error {
    anyhow!(
        "the ready-made hooks are not part of this program, which was built without `hooks`; build it \
         with `--features hooks`, or install all of it: `cargo install --path crates/tenure-cli`"
    )
}

fn list() -> String {
    let width = ready::all().map(|(_, hook)| hook.name().len()).max().unwrap_or_default();
    let (mut text, mut last) = (String::new(), "");
    for (group, hook) in ready::all() {
        if group != last {
            let gap = if last.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{}\n", paint(BOLD, group)));
            last = group;
        }
        text.push_str(&format!("  {:width$}  {}\n", hook.name(), hook.about().summary));
    }
    text.push_str(&format!("\n{}", paint(DIM, "`tenure hooks NAME` says what one of them takes.")));
    text
}

fn page(hook: &Ready) -> String {
    let about = hook.about();
    let mut text = format!("{}\n  {}\n", paint(BOLD, about.name), about.summary);
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            text.push_str(&format!("\n  {} {value}", paint(DIM, format!("{name}:"))));
        }
    };
    if let Some(sample) = hook.sample() {
        let points: Vec<_> = sample.points().iter().map(|point| point.as_str()).collect();
        fact("called at", points.join(", "));
        let guard = if sample.is_guard() { "denies (it is a guard)" } else { "" };
        fact("if it fails", guard.to_owned());
        let (outside, inside) = sample.stands();
        fact("stands around", outside.join(", "));
        fact("stands within", inside.join(", "));
        fact(
            "stands",
            if sample.is_innermost() { "next to the call".into() } else { String::new() },
        );
        let tools: Vec<_> = sample.tools().iter().map(|it| it.spec().name.to_string()).collect();
        fact("brings the tools", tools.join(", "));
    }
    fact("use cases", about.covers.join(", "));
    fact("elsewhere", about.peers.join(", "));
    text.push_str(&format!("\n\n{}\n", paint(BOLD, "options")));
    let options = hook.options();
    if options.is_empty() {
        text.push_str("  none\n");
    }
    for row in &options {
        let default = match (&row.default, row.required) {
            (_, true) => ", has to be given".to_owned(),
            (Some(default), false) => format!(", by default {default}"),
            (None, false) => String::new(),
        };
        let kind = paint(DIM, format!("({}{default})", row.kind));
        text.push_str(&format!("  {}  {kind}\n      {}\n", row.name, row.about));
    }
    text.push_str(&format!("\n{}\n", paint(BOLD, "in a card")));
    text.push_str(&format!("  hooks:\n    - {{ use: {}, with: {} }}", about.name, about.example));
    text
}

fn described(group: &str, hook: &Ready) -> Value {
    let about = hook.about();
    let sample = hook.sample();
    let points: Vec<_> =
        sample.iter().flat_map(|it| it.points().iter()).map(|point| point.as_str()).collect();
    json!({
        "name": about.name,
        "group": group,
        "summary": about.summary,
        "covers": about.covers,
        "peers": about.peers,
        "points": points,
        "guard": sample.as_ref().is_some_and(|it| it.is_guard()),
        "example": serde_json::from_str::<Value>(about.example).unwrap_or_default(),
        "options": hook.schema(),
    })
}
