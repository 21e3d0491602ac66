//! Whether a run may go on.

use super::layout::Shown;
use super::review::{changes, listing, short_fingerprint};
use super::store::{Item, Standing, Store, differences};
use crate::exit::Stop;
use crate::person::ensure_person;
use crate::terminal::print_plain;
use crate::terminal::question::{confirm, is_anybody_there};
use crate::terminal::size::width;
use crate::terminal::style::{BOLD, DIM, paint};
use crate::terminal::text::{fit, for_shell};
use anyhow::Result;
use std::path::Path;
use tenure_core::CancelToken;

/// What the person said on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leave {
    /// `--trust`: for this one command, and nothing is recorded.
    ForThisCommand,
    /// Nothing: what the store says counts.
    AsRecorded,
}

/// Makes sure that what was agreed to is still what would run: files can change while somebody reads
/// about them.
pub(crate) fn confirm_unchanged(agreed: &[Item], now: &[Item]) -> Result<()> {
    let changed = differences(agreed, now);
    if changed.is_empty() {
        return Ok(());
    }
    Err(Stop::untrusted(format!(
        "the project changed since it was read for this run, so nothing was executed; what is different:\n{}  \
         run it again to be asked about that",
        told(&changes(&changed).on_one_screen(width()))
    ))
    .into())
}

/// The list of a question, and where the rest of it is.
fn told(shown: &Shown) -> String {
    match shown.left_out {
        0 => shown.text.clone(),
        more => format!(
            "{}    … and {more} more, not shown here; `tenure trust review` lists them all\n",
            shown.text
        ),
    }
}

/// Whether somebody would have to be asked before `items` may be executed.
pub(crate) fn would_ask(root: &Path, items: &[Item], leave: Leave) -> bool {
    let is_trusted = |store: Store| store.standing(root, items) == Standing::Trusted;
    !items.is_empty() && leave == Leave::AsRecorded && !Store::open(root).is_ok_and(is_trusted)
}

/// Lets the project at `root` execute `items`, or explains why not. Asks where there is somebody to
/// ask, and remembers a yes. `asked` is what the person named: the same again shows the same items.
/// `taken_back` ends the question with a no.
pub(crate) fn admit(
    root: &Path,
    asked: &Path,
    items: &[Item],
    leave: Leave,
    taken_back: &CancelToken,
) -> Result<()> {
    if let Ok(store) = Store::open(root) {
        store.hide_records();
    }
    if leave == Leave::ForThisCommand {
        // Whatever runs: what would have to be asked about may come later.
        ensure_person("trust, by `--trust` too, is a person's to give")?;
        return Ok(());
    }
    if items.is_empty() {
        return Ok(());
    }
    let mut store = Store::open(root)
        .map_err(|error| Stop::untrusted(format!("{error:#}; nothing was executed")))?;
    let standing = store.standing(root, items);
    if standing == Standing::Trusted {
        return Ok(());
    }
    let place = for_shell(root);
    if !is_anybody_there() {
        let short = short_fingerprint(items);
        let what = match &standing {
            Standing::Changed(list) => format!(
                "this project changed since you trusted it\n  nothing was executed and no network request was \
                 made\n  {place}\n  what is different:\n{}",
                told(&changes(list).on_one_screen(width()))
            ),
            _ => format!(
                "this project is not trusted yet\n  nothing was executed and no network request was made\n  \
                 {place}\n  it would run, as you:\n{}",
                told(&listing(items).on_one_screen(width()))
            ),
        };
        let asked = for_shell(asked);
        return Err(Stop::untrusted(format!(
            "{what}  review: tenure trust review {asked}\n  accept: tenure trust accept {asked} \
             --fingerprint {short}\n  once:   add --trust to the command"
        ))
        .into());
    }
    let head = match &standing {
        Standing::Changed(_) => "This project changed since you trusted it.",
        _ => "This project has not been run here before.",
    };
    print_plain(&paint(BOLD, head));
    print_plain(&format!("  {}", fit(&place, width() - 2)));
    let shown = match &standing {
        Standing::Changed(list) => {
            print_plain("  What is different:");
            changes(list).on_one_screen(width())
        }
        _ => {
            print_plain("  It would run, as you:");
            listing(items).on_one_screen(width())
        }
    };
    print_plain(told(&shown).trim_end());
    let advice = match items.iter().any(|item| item.kind == "command") {
        true => "  Read those files first; what a command reads beyond them is not covered.",
        false => "  Read those files first if you do not know where they come from.",
    };
    print_plain(&paint(DIM, advice));
    if tenure_hosts::abilities().is_none_or(|kernel| !kernel.mounts && !kernel.landlock) {
        let what =
            "  Nothing confines it here: it may write whatever you may. See `tenure doctor`.";
        print_plain(&paint(DIM, what));
    }
    let question = match shown.left_out {
        0 => "Trust it and go on?".to_owned(),
        more => format!("Trust it, with {more} more that you have not seen, and go on?"),
    };
    if !confirm(&question, taken_back) {
        return Err(Stop::untrusted("not trusted; nothing was executed").into());
    }
    store.accept(root, items)?;
    print_plain(&paint(
        DIM,
        format_args!("trusted; take it back with `tenure trust revoke {place}`"),
    ));
    Ok(())
}
