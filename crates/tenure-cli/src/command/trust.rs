//! `tenure trust`.

use super::whole::Whole;
use crate::args::{Accept, Place, Trust, TrustAction};
use crate::exit::{Exit, Stop};
use crate::person::{ensure_person, is_beneath_tenure};
use crate::terminal::size::width;
use crate::terminal::style::{DIM, GOOD, WARN, paint};
use crate::terminal::text::{clean_line, for_shell, plural};
use crate::trust::{
    FINGERPRINT_DIGITS, Item, Standing, Store, changes, fingerprint, listing, short_fingerprint,
};
use anyhow::Result;
use std::path::Path;

pub(super) fn run(args: Trust) -> Result<Exit> {
    match args.action {
        None => status(&Place { path: ".".into() }),
        Some(TrustAction::Status(place)) => status(&place),
        Some(TrustAction::Review(place)) => review(&place),
        Some(TrustAction::Accept(args)) => accept(&args),
        Some(TrustAction::Revoke(place)) => revoke(&place),
    }
}

/// Where a project stands, in one line.
fn verdict(standing: &Standing, items: &[Item]) -> String {
    match standing {
        Standing::Trusted if items.is_empty() => {
            format!("{} it executes nothing", paint(GOOD, "needs no trust:"))
        }
        Standing::Trusted => paint(GOOD, "trusted"),
        Standing::Unknown if is_beneath_tenure() => {
            format!(
                "{} as far as this process sees, which Tenure started",
                paint(WARN, "not trusted")
            )
        }
        Standing::Unknown => paint(WARN, "not trusted"),
        Standing::Changed(list) => {
            let news = plural(list.len(), "difference");
            format!("{} {news} since it was trusted", paint(WARN, "not trusted:"))
        }
    }
}

fn status(place: &Place) -> Result<Exit> {
    let whole = Whole::at(&place.path)?;
    let store = Store::open(whole.root())?;
    let items = whole.items();
    let standing = store.standing(whole.root(), &items);
    super::say(&format!("{}  {}", whole.root().display(), verdict(&standing, &items)))?;
    let root = whole.root().to_string_lossy();
    let others: Vec<_> = store.projects().iter().filter(|(other, _)| **other != root).collect();
    if !others.is_empty() {
        super::say(&paint(DIM, "\nalso trusted:"))?;
        for (other, accepted) in others {
            let things = plural(accepted.items.len(), "thing");
            let line = format!("  {other}  {things}, since {}", accepted.at);
            super::say(&paint(DIM, crate::terminal::text::clean_line(&line)))?;
        }
    }
    Ok(if standing == Standing::Trusted { Exit::Ok } else { Exit::Untrusted })
}

fn review(place: &Place) -> Result<Exit> {
    let whole = Whole::at(&place.path)?;
    let store = Store::open(whole.root())?;
    let items = whole.items();
    let standing = store.standing(whole.root(), &items);
    super::say(&format!("{}  {}", whole.root().display(), verdict(&standing, &items)))?;
    if items.is_empty() {
        return Ok(Exit::Ok);
    }
    if let Standing::Changed(list) = &standing {
        super::say(&format!("  what is different:\n{}", changes(list).whole(width())))?;
    }
    super::say(&format!(
        "  what it would run, reach and be kept by:\n{}",
        listing(&items).whole(width())
    ))?;
    let short = short_fingerprint(&items);
    super::say(&format!("  fingerprint {short}"))?;
    if standing != Standing::Trusted {
        let path = for_shell(&place.path);
        super::say(&format!("  accept: tenure trust accept {path} --fingerprint {short}"))?;
    }
    Ok(Exit::Ok)
}

fn accept(args: &Accept) -> Result<Exit> {
    ensure_person("trust is a person's to give")?;
    let whole = Whole::at(&args.place.path)?;
    let mut store = Store::open(whole.root())?;
    let items = whole.items();
    let now = fingerprint(&items);
    if let Some(wanted) = &args.fingerprint {
        let wanted = wanted.trim().to_ascii_lowercase();
        let is_hex = wanted.chars().all(|digit| digit.is_ascii_hexdigit());
        if wanted.len() < FINGERPRINT_DIGITS || !is_hex {
            return Err(Stop::usage(format!(
                "a fingerprint has at least {FINGERPRINT_DIGITS} hexadecimal digits, and `{}` is none; \
                 `tenure trust review` shows it",
                clean_line(&wanted)
            ))
            .into());
        }
        if !now.starts_with(&wanted) {
            return Err(Stop::untrusted(format!(
                "the fingerprint is {}, not {wanted}: the project is not what you reviewed; look \
                 again with `tenure trust review {}`",
                &now[..FINGERPRINT_DIGITS],
                for_shell(&args.place.path)
            ))
            .into());
        }
    }
    if items.is_empty() {
        super::say("it executes nothing, so there is nothing to trust")?;
        return Ok(Exit::Ok);
    }
    store.accept(whole.root(), &items)?;
    super::say(&format!("{} {}", paint(GOOD, "trusted"), whole.root().display()))?;
    super::say(&listing(&items).whole(width()))?;
    Ok(Exit::Ok)
}

/// Opens the trust store. Where it is kept from this process nothing can be said of it.
fn opened(root: &Path) -> Result<Store> {
    match Store::open(root) {
        Ok(store) if store.is_there() || !is_beneath_tenure() => Ok(store),
        Err(error) if !is_beneath_tenure() => Err(error),
        _ => Err(Stop::untrusted(
            "the trust records cannot be seen from here: Tenure started this process; nothing was revoked; do it \
             yourself, in a terminal that no agent, hook or tool opened",
        )
        .into()),
    }
}

fn revoke(place: &Place) -> Result<Exit> {
    let root = tenure_cards::project::Project::find(&place.path).root;
    let mut store = opened(&root)?;
    let said = if store.revoke(&root)? {
        format!("forgot {}", root.display())
    } else {
        format!("{} was not trusted", root.display())
    };
    super::say(&said)?;
    Ok(Exit::Ok)
}
