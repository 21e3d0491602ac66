//! `tenure answer`.

use super::asks::{decided, in_words, line};
use super::place::{Place, is_unknown};
use super::words::{ago, stamp};
use crate::args::GivenAnswer;
use crate::exit::{Exit, Stop};
use crate::person::{ensure_person, signature};
use crate::signal::Stopper;
use crate::terminal::question::{Allowed, TerminalAsker, is_anybody_there};
use crate::terminal::size::width;
use crate::terminal::style::{BAD, DIM, GOOD, WARN, paint};
use crate::terminal::text::{clean_line, fit};
use crate::terminal::{EventLines, Progress, Screen, print_json, print_plain, sink};
use anyhow::{Context as _, Result};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tenure_core::ask::{Answer, Ask, Asker as _, PendingAsk};
use tenure_core::engine::Signalled;
use tenure_store::{AskInfo, AskQuery, AskStatus};

/// How often it is looked whether somebody else has answered.
const LOOK: Duration = Duration::from_millis(200);
/// So many other questions are named.
const MOST_NAMED: usize = 8;

pub(crate) fn run(args: &GivenAnswer) -> Result<Exit> {
    ensure_person("an answer is a person's")?;
    let place = Place::open_own(&args.of)?;
    let ask = match place.store.ask(&args.ask) {
        Ok(ask) => ask,
        Err(error) if is_unknown(&error) => return Ok(unknown(args, &place, &error.to_string())),
        Err(error) => return Err(error.into()),
    };
    if ask.status != AskStatus::Open {
        return Ok(too_late(args, &ask));
    }
    let answer = if args.words.is_empty() {
        match put(&place, &ask)? {
            Some(answer) => answer,
            // Somebody else was first, or the person left.
            None => {
                let ask = place.store.ask(&ask.id)?;
                return Ok(match ask.status {
                    AskStatus::Open => {
                        print_plain("nothing was answered; the question stays open");
                        Exit::Failed
                    }
                    _ => too_late(args, &ask),
                });
            }
        }
    } else {
        given(&args.words, &ask)?
    };
    let allowed = Allowed::of(ask.form.as_ref());
    if let Some(why) = allowed.refusal(&answer).filter(|_| ask.is_approval()) {
        refused(args, "unfit", &ask.id, &format!("{why}; the question stays open"));
        return Ok(Exit::Failed);
    }
    let by = signature(args.by.as_deref());
    let signalled = place.store.answer(&ask.id, answer.clone(), &by)?;
    let ask = place.store.ask(&ask.id)?;
    Ok(match signalled {
        Signalled::Accepted => {
            accepted(args, &place, &ask, &answer)?;
            Exit::Ok
        }
        Signalled::AlreadyDecided(_) => too_late(args, &ask),
        Signalled::Unfit(misfit) => {
            let why = format!("the answer does not fit: {misfit}; the question stays open");
            refused(args, "unfit", &ask.id, &why);
            Exit::Failed
        }
        _ => unknown(args, &place, &format!("there is no question `{}`", args.ask)),
    })
}

/// What the words on the command line say.
fn given(words: &[String], ask: &AskInfo) -> Result<Answer> {
    let (first, rest) = words.split_first().context("there is no answer")?;
    let rest = rest.join(" ");
    let nothing_behind = |answer: Answer| match rest.is_empty() {
        true => Ok(answer),
        false => {
            Err(Stop::usage(format!("`{first}` has nothing behind it, but there is `{rest}`")))
        }
    };
    let needs = |what: &str| match rest.trim().is_empty() {
        false => Ok(rest.clone()),
        true => Err(Stop::usage(format!("`{first}` needs {what} behind it"))),
    };
    Ok(match (&**first, ask.is_approval()) {
        ("approve", _) => nothing_behind(Answer::Approve)?,
        ("reject", _) => Answer::Reject(match rest.trim() {
            "" => "rejected by the user".to_owned(),
            why => why.to_owned(),
        }),
        ("respond", _) => Answer::Respond(needs("a text")?),
        ("edit", _) => {
            let text = needs("what to do instead, as JSON,")?;
            let value = serde_json::from_str(&text)
                .map_err(|error| Stop::usage(not_json(&text, ask, &error)))?;
            Answer::Edit(value)
        }
        (_, false) => Answer::Respond(words.join(" ")),
        (word, true) => {
            return Err(Stop::usage(format!(
                "`{}` is no decision, and {} asks for one: {}",
                clean_line(word),
                clean_line(&ask.agent),
                Allowed::of(ask.form.as_ref()).names()
            ))
            .into());
        }
    })
}

/// Why what stands behind `edit` is none, and what would be.
fn not_json(text: &str, ask: &AskInfo, error: &serde_json::Error) -> String {
    let instead = match &ask.action {
        Some(action) => format!(", such as '{}'", fit(&clean_line(&action.to_string()), 60)),
        None => String::new(),
    };
    format!(
        "`{}` is not JSON: `edit` needs what to do instead as JSON{instead} ({error})",
        fit(&clean_line(text), 60)
    )
}

/// Puts the question to the person at the terminal. None if they left, or if somebody else has
/// answered meanwhile.
fn put(place: &Place, ask: &AskInfo) -> Result<Option<Answer>> {
    if !is_anybody_there() {
        let decisions = match ask.is_approval() {
            true => Allowed::of(ask.form.as_ref()).names(),
            false => "a text, or reject".to_owned(),
        };
        return Err(Stop::usage(format!(
            "there is no terminal to ask on; say the answer behind the id: {decisions}"
        ))
        .into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the runtime cannot be started")?;
    let screen = Screen::new(Progress::Nothing, EventLines::Nothing);
    let asker = TerminalAsker::new(screen, Stopper::default());
    let pending = pending(ask);
    let decided = async {
        loop {
            tokio::time::sleep(LOOK).await;
            let now = place.store.ask(&ask.id);
            if now.map_or(true, |now| now.status != AskStatus::Open) {
                return;
            }
        }
    };
    let answer = runtime.block_on(async {
        tokio::select! {
            biased;
            answer = asker.answer(&pending) => answer,
            () = decided => None,
        }
    });
    // The thread that reads the keyboard waits for a line that nobody needs.
    runtime.shutdown_background();
    Ok(answer)
}

/// The question as it was put first.
fn pending(ask: &AskInfo) -> PendingAsk {
    let mut question = match &ask.action {
        Some(action) => Ask::approval(&ask.prompt, action.clone()),
        None => Ask::input(&ask.prompt),
    };
    (question.schema, question.form) = (ask.schema.clone(), ask.form.clone());
    let left = |expires: SystemTime| expires.duration_since(SystemTime::now()).unwrap_or_default();
    question.expires_after = ask.expires.map(left);
    let mut pending = PendingAsk::new(ask.agent.as_str(), question);
    let named = |name: &Option<String>| name.as_deref().map(Into::into);
    (pending.hook, pending.tool) = (named(&ask.hook), named(&ask.tool));
    pending.call_id = named(&ask.call_id);
    pending.parameters = ask.parameters.clone().map(Arc::new);
    pending
}

fn accepted(args: &GivenAnswer, place: &Place, ask: &AskInfo, answer: &Answer) -> Result<()> {
    let info = place.info(ask.run)?;
    if args.json {
        print_json(json!({
            "result": "accepted", "ask": ask.id, "run": ask.run, "answer": answer, "by": ask.by,
            "driven": info.driven,
        }));
        return Ok(());
    }
    let said = format!("{} {}", paint(GOOD, "accepted:"), in_words(answer));
    sink::print_text(&said)?;
    let note = match info.driven {
        true => "the run goes on by itself".to_owned(),
        false => format!(
            "nobody drives the run; go on with `tenure run --resume {}`",
            place.short(ask.run)
        ),
    };
    print_plain(&paint(DIM, note));
    Ok(())
}

fn too_late(args: &GivenAnswer, ask: &AskInfo) -> Exit {
    if args.json {
        print_json(json!({
            "result": "already_decided", "ask": ask.id, "run": ask.run, "status": ask.status,
            "answer": ask.answer, "by": ask.by, "decided": stamp(ask.decided),
        }));
    } else {
        let when = ask.decided.map_or(String::new(), |at| ago(at, SystemTime::now()));
        let what = decided(ask, &when);
        print_plain(&format!("{} it was {what}", paint(WARN, "already decided:")));
    }
    Exit::Failed
}

fn refused(args: &GivenAnswer, result: &str, ask: &str, why: &str) {
    if args.json {
        print_json(json!({ "result": result, "ask": ask, "reason": why }));
    } else {
        print_plain(&format!("{} {}", paint(BAD, "refused:"), clean_line(why)));
    }
}

fn unknown(args: &GivenAnswer, place: &Place, why: &str) -> Exit {
    refused(args, "unknown", &args.ask, why);
    if args.json {
        return Exit::Failed;
    }
    let open = place.store.asks(&AskQuery::open().limit(MOST_NAMED)).unwrap_or_default();
    if open.is_empty() {
        print_plain(&paint(DIM, "nothing waits for an answer"));
    }
    for ask in &open {
        print_plain(&format!("  {}", line(ask, width().saturating_sub(2))));
    }
    Exit::Failed
}
