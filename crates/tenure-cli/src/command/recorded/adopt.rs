//! Stores that are not known to be the user's: nothing in them is acted on before a person agrees.

use crate::exit::Stop;
use crate::person::ensure_person;
use crate::terminal::print_plain;
use crate::terminal::question::{confirm, is_anybody_there};
use crate::terminal::size::width;
use crate::terminal::style::{BOLD, DIM, paint};
use crate::terminal::text::{clean_line, for_shell, human, plural, wrap};
use anyhow::Result;
use std::time::SystemTime;
use tenure_core::CancelToken;
use tenure_store::{Authenticity, Holdings, Store};

/// The person's word on stores that are not known to be theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Adoption {
    /// None yet: they are asked.
    Ask,
    /// `--adopt-store`.
    Agreed,
}

impl Adoption {
    pub(crate) fn of(adopt_store: bool) -> Self {
        if adopt_store { Self::Agreed } else { Self::Ask }
    }
}

/// The most keys of memory that are named.
const NAMED: usize = 8;

/// Makes sure that a store is the user's own: it is, or it is adopted with the person's consent.
pub(crate) fn adopted(store: Store, adoption: Adoption) -> Result<Store> {
    let head = match store.authenticity() {
        Authenticity::Authenticated => return Ok(store),
        Authenticity::Earlier => "This store was written by an earlier release, which had no keys.",
        _ => "This store was not written by you: none of your keys is its.",
    };
    let place = for_shell(store.path());
    if adoption == Adoption::Ask {
        let holds = lines(&store.holdings()?).join("\n");
        if !is_anybody_there() {
            return Err(Stop::untrusted(format!(
                "{head} Nothing in it is believed, and nothing was executed\n  {place}\n{holds}\n  \
                 look:  tenure runs, tenure show\n  adopt: add --adopt-store to the command, if you know \
                 where it comes from\n  not:   record elsewhere with --store FILE, or nothing with \
                 --no-store"
            ))
            .into());
        }
        print_plain(&paint(BOLD, head));
        print_plain(&format!("  {place}\n{holds}"));
        let about = "If you adopt it, all of this counts as yours: its runs go on, what was approved \
                     in it is done, and agents know what its memory says.";
        let about = wrap(about, width().saturating_sub(2)).join("\n  ");
        print_plain(&paint(DIM, format_args!("  {about}")));
        if !confirm("Adopt it and go on?", &CancelToken::new()) {
            return Err(Stop::untrusted("not adopted; nothing was executed").into());
        }
    }
    ensure_person("a store is adopted by a person")?;
    let store = store.adopt()?;
    print_plain(&paint(DIM, format_args!("adopted: {place}; every row was checked and sealed")));
    Ok(store)
}

/// Says of a store that is only looked at whether it is the user's.
pub(crate) fn tell_unless_known(store: &Store) {
    let why = match store.authenticity() {
        Authenticity::Authenticated => return,
        Authenticity::Earlier => "an earlier release wrote it",
        _ => "none of your keys is its",
    };
    let here = std::env::current_dir().unwrap_or_default();
    let place = for_shell(store.path().strip_prefix(here).unwrap_or(store.path()));
    print_plain(&paint(DIM, format_args!("not authenticated ({why}): {place}")));
}

/// What a store holds, a line each.
fn lines(holds: &Holdings) -> Vec<String> {
    let many =
        |number: u64, noun: &str| plural(usize::try_from(number).unwrap_or(usize::MAX), noun);
    let mut lines = Vec::new();
    let runs: u64 = holds.runs.values().sum();
    if runs > 0 {
        let of =
            holds.runs.iter().map(|(status, number)| format!("{number} {}", clean_line(status)));
        lines.push(format!("{}: {}", many(runs, "run"), of.collect::<Vec<_>>().join(", ")));
    }
    if holds.answered_asks > 0 {
        lines.push(format!(
            "{} of runs that would go on with what was approved",
            many(holds.answered_asks, "answered question")
        ));
    }
    if holds.open_asks > 0 {
        lines.push(many(holds.open_asks, "open question"));
    }
    if holds.memory_keys > 0 {
        let named = holds.memory.iter().take(NAMED).map(|key| clean_line(key));
        let mut named = named.collect::<Vec<_>>().join(", ");
        if holds.memory_keys > NAMED as u64 {
            named.push_str(", ...");
        }
        lines.push(format!("{}: {named}", many(holds.memory_keys, "memory key")));
    }
    if holds.threads > 0 {
        lines.push(many(holds.threads, "conversation"));
    }
    if holds.cached > 0 {
        lines.push(many(holds.cached, "cached answer"));
    }
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    lines.iter_mut().for_each(|line| line.insert_str(0, "  holds "));
    if let Some(written) = holds.last_written {
        let ago = SystemTime::now().duration_since(written).unwrap_or_default();
        lines.push(format!("  last written {} ago", human(ago)));
    }
    lines
}
