//! The conversation about one question.

use super::super::style::{BOLD, DIM, WARN, paint};
use super::super::text::clean_line;
use super::allowed::Allowed;
use super::diff::diff;
use super::editor::Edited;
use super::form::{Field, Filled, HOW_TO_DECLINE, ask_for, declined, fields_of, fill, one_line};
use super::person::Person;
use super::show::{Extent, block, is_turn, whole};
use serde_json::Value;
use tenure_core::ask::{Answer, PendingAsk, check};

/// What is said whenever an edit ends with the action as it was asked about.
const UNCHANGED: &str = "  nothing was changed; the question is about the action as it was\n";

/// Leads the conversation until there is an answer. `None` if the person left (end of input).
pub(super) async fn converse<P: Person>(
    ask: &PendingAsk,
    is_cut: bool,
    person: &mut P,
) -> Option<Answer> {
    match &ask.ask.action {
        Some(action) => choose(ask, action, is_cut, person).await,
        None => input(ask, person).await,
    }
}

async fn input<P: Person>(ask: &PendingAsk, person: &mut P) -> Option<Answer> {
    if is_turn(ask) {
        return speak(person).await;
    }
    let schema = ask.ask.schema.as_ref();
    let fields = schema.and_then(fields_of);
    let only = schema.and_then(|schema| Field::new("your answer", schema, true));
    if let (Some(schema), None, None) = (schema, &fields, &only) {
        let columns = person.columns().saturating_sub(4);
        person.say(&format!("{}\n", paint(DIM, "  the answer has this form:")));
        for line in block(&format!("{schema:#}"), Extent::Brief, columns).lines {
            person.say(&format!("    {line}\n"));
        }
    }
    person.say(&paint(DIM, HOW_TO_DECLINE));
    let filled = match (fields, only, schema) {
        (Some(fields), _, Some(schema)) => fill(&fields, schema, person).await,
        (None, Some(field), _) => ask_for(&field, person).await,
        _ => one_line(schema, person).await,
    };
    match filled {
        Filled::Value(Value::String(text)) => Some(Answer::Respond(text)),
        Filled::Value(value) => Some(Answer::Respond(value.to_string())),
        Filled::Declined(reason) => Some(Answer::Reject(reason)),
        Filled::Left => None,
    }
}

/// What the person says in their own turn, which may be nothing.
async fn speak<P: Person>(person: &mut P) -> Option<Answer> {
    person.say(&paint(DIM, "  (Enter alone says nothing; /reject ends the chat)\n"));
    person.say(&format!("  {} ", paint(BOLD, "you:")));
    let typed = person.line().await?;
    Some(match declined(&typed) {
        Some(reason) => Answer::Reject(reason),
        None => Answer::Respond(typed.trim().to_owned()),
    })
}

async fn choose<P: Person>(
    ask: &PendingAsk,
    action: &Value,
    is_cut: bool,
    person: &mut P,
) -> Option<Answer> {
    let allowed = Allowed::of(ask.ask.form.as_ref());
    for (name, meaning) in allowed.meanings() {
        person.say(&format!("{}\n", paint(DIM, format_args!("  {name:<9}{meaning}"))));
    }
    let view = if is_cut { "  [v]iew all" } else { "" };
    loop {
        person.say(&format!("{}{view}: ", allowed.choices()));
        let choice = person.line().await?.trim().to_ascii_lowercase();
        // Only what is offered: a `y` may be meant for a change that was never made.
        match allowed.typed(&choice) {
            Some("approve") => return Some(Answer::Approve),
            Some("reject") => {
                person.say("  why? (Enter for no reason): ");
                return Some(Answer::Reject(super::reason(&person.line().await?)));
            }
            Some("respond") => {
                person.say("  your answer (Enter to go back): ");
                let text = person.line().await?;
                if !text.trim().is_empty() {
                    return Some(Answer::Respond(text));
                }
            }
            Some("edit") => match edit(ask, action, person).await? {
                Some(edited) => return Some(Answer::Edit(edited)),
                None => continue,
            },
            _ if matches!(&*choice, "v" | "view") => {
                for line in whole(ask, person.columns()) {
                    person.say(&format!("{line}\n"));
                }
            }
            _ => {
                let keys = allowed.keys(is_cut.then_some("v"));
                person.say(&format!("  please answer {keys}\n"));
            }
        }
    }
}

/// Has the person change the action. `Some(None)` if nothing came of it, `None` if they left.
async fn edit<P: Person>(
    ask: &PendingAsk,
    action: &Value,
    person: &mut P,
) -> Option<Option<Value>> {
    let mut draft = format!("{action:#}\n");
    let mut typed = None;
    loop {
        let text = match typed.take() {
            Some(typed) => typed,
            None => match person.edit(&draft).await {
                Edited::Text(text) => text,
                Edited::Failed(why) => {
                    warn(person, &why);
                    typed_json(action, person).await?
                }
                Edited::NoEditor => typed_json(action, person).await?,
            },
        };
        if text.trim().is_empty() {
            person.say(UNCHANGED);
            return Some(None);
        }
        let edited = serde_json::from_str::<Value>(&text)
            .map_err(|error| format!("this is not JSON: {error}"))
            .and_then(|edited| fits(ask, action, &edited).map(|()| edited));
        match edited {
            Ok(edited) if edited == *action => {
                person.say(UNCHANGED);
                return Some(None);
            }
            Ok(edited) => {
                person.say("  what changes:\n");
                for line in diff(action, &edited, person.columns()) {
                    person.say(&format!("{line}\n"));
                }
                match confirm(person).await? {
                    Confirmed::Yes => return Some(Some(edited)),
                    Confirmed::Again => {}
                    Confirmed::No => {
                        person.say(UNCHANGED);
                        return Some(None);
                    }
                }
            }
            Err(why) => {
                warn(person, &why);
                person.say("  [e]dit again, or type it as JSON (Enter to go back): ");
                let again = person.line().await?;
                // Whatever is typed here is about the change; only an empty line goes back.
                if !matches!(again.trim(), "e" | "E" | "edit") {
                    typed = Some(again);
                    continue;
                }
            }
        }
        draft = text;
    }
}

async fn typed_json<P: Person>(action: &Value, person: &mut P) -> Option<String> {
    let now = super::super::text::exact(&action.to_string());
    person.say(&format!("  now:     {now}\n  instead, as JSON (Enter to go back): "));
    person.line().await
}

enum Confirmed {
    Yes,
    Again,
    No,
}

async fn confirm<P: Person>(person: &mut P) -> Option<Confirmed> {
    loop {
        person.say("  do this instead? [y]es  [e]dit again  [n]o: ");
        let choice = person.line().await?;
        match choice.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Some(Confirmed::Yes),
            "e" | "edit" => return Some(Confirmed::Again),
            "n" | "no" => return Some(Confirmed::No),
            _ => person.say("  please answer y, e or n\n"),
        }
    }
}

/// Whether the edited action can be taken: it has the form that the one before had.
fn fits(ask: &PendingAsk, old: &Value, new: &Value) -> Result<(), String> {
    if old.is_object() && !new.is_object() {
        return Err("this is no object, and the action is one".to_owned());
    }
    let schemas = ask.parameters.as_deref().into_iter().chain(&ask.ask.schema);
    // A hook may ask about something else than the arguments; then the schema says nothing of it.
    for schema in schemas.filter(|schema| check(schema, old).is_ok()) {
        check(schema, new).map_err(|misfit| misfit.to_string())?;
    }
    Ok(())
}

fn warn<P: Person>(person: &mut P, why: &str) {
    let why = clean_line(why);
    person.say(&format!("{}\n", paint(WARN, format_args!("  {why}"))));
}
