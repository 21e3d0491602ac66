//! The loop: ask the model, call its tools, until it has said what it has to say.

use super::input::Input;
use super::output::CORRECTIONS;
use super::points::{AfterModel, BeforeAgent, BeforeModel, Decided};
use super::tools::{call_tools, synthetic};
use super::turn::{Continued, Turn, Work};
use crate::content::Content;
use crate::error::{Error, ErrorKind};
use crate::event::EventKind;
use crate::hook::{Chain, Hold, JumpTarget, Point, Points};
use crate::kernel::{Around, Clocks, Ends, ModelKind, Site, sequence};
use crate::message::{Message, ToolCall, ToolStatus};
use crate::model::{Messages, ModelRequest, ModelResponse};
use crate::phase::Phase;
use crate::step::recordable;
use crate::sync::atomic::Ordering;
use std::sync::Arc;
use tokio::time::Instant;

const SHAPES_REQUEST: Points = Points::NONE.with(Point::BeforeModel).with(Point::WrapModelCall);

/// Runs the body of a turn. When it returns, the conversation in `work` is valid (G8).
pub(super) async fn body(turn: &Turn, work: &mut Work) -> Result<(), Error> {
    let site = Site::of_turn(turn);
    let chain = &*turn.inner.blueprint.chain;
    match std::mem::replace(&mut work.continued, Continued::No) {
        Continued::No => {
            if let Some(scope) = turn.steps() {
                for content in work.input.earlier.iter().chain([&work.input.content]) {
                    recordable(content)?;
                }
                scope.log().begin(turn.record(scope)).await?;
            }
            site.emit(|| EventKind::TurnStarted);
            if let Some(told) = turn.tell_begun(&site) {
                told.await;
            }
            if let Some(output) = begin(&site, turn, chain, work).await? {
                finish(turn, work, output);
                return Ok(());
            }
        }
        Continued::Asked(message, below) => {
            work.continued = Continued::Yes(below);
            work.output = None;
            work.request.messages.history_mut().push(Message::User { content: message });
        }
        done @ Continued::Yes(_) => work.continued = done,
    }
    let max_steps = turn.inner.config().max_steps;
    loop {
        still_on(&site)?;
        if turn.steps_made() >= max_steps {
            return Err(too_many(max_steps));
        }
        if let Some(told) = turn.shift(&site, Phase::AwaitingLlmResponse)? {
            told.await;
        }
        turn.count_step();
        if let Some(tools) = turn.inner.blueprint.live_tools() {
            work.request.tools = tools.specs.clone();
            work.tools = Some(tools);
        }

        // Without hooks that shape the request, the loop's own is lent; else they get a copy,
        // whose parts are shared.
        let mut response = if !chain.mask.intersects(SHAPES_REQUEST) {
            call_model(&site, chain, &mut work.request).await?
        } else {
            match ask_model(&site, chain, work).await? {
                Asked::Answered(response) => response,
                Asked::Finished(output) => {
                    finish(turn, work, output);
                    return Ok(());
                }
            }
        };
        if let Some(told) = turn.shift(&site, Phase::AnalyzingLlmResponse)? {
            told.await;
        }

        let mut decided = Decided::default();
        if chain.has(Point::AfterModel) {
            decided = decide(&site, chain, work, &mut response).await?;
        }
        if let Some(messages) = decided.rewritten.take() {
            rewrite(work, messages)?;
        }
        if !response.calls.is_empty() {
            name_calls(turn, &mut response.calls);
        }
        release(turn, chain, &response)?;
        let has_calls = !response.calls.is_empty();
        work.request.messages.history_mut().push(response.into_message());

        match decided.jump {
            None if has_calls => call_tools(&site, turn, work, decided.approved).await?,
            None => match wrong_form(turn, work)? {
                None => return Ok(()),
                Some(correction) => {
                    work.request.messages.history_mut().push(Message::user(correction));
                }
            },
            Some(target) => {
                if target == JumpTarget::End {
                    keep_output(work);
                }
                skip_calls(work);
                if target == JumpTarget::End {
                    return Ok(());
                }
            }
        }
    }
}

/// Fails once the turn was cancelled, or its time is up.
#[inline]
fn still_on(site: &Site<'_>) -> Result<(), Error> {
    if site.is_cancelled() {
        return Err(Error::cancelled());
    }
    if site.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
        return Err(Error::turn_timed_out());
    }
    Ok(())
}

/// Opens the turn's scope. `Some` is the output of a hook that finished it.
#[inline]
async fn begin(
    site: &Site<'_>,
    turn: &Turn,
    chain: &Chain,
    work: &mut Work,
) -> Result<Option<Content>, Error> {
    let mut finish = None;
    if chain.has(Point::BeforeAgent) {
        let mut before =
            BeforeAgent { turn, input: &mut work.input, finish: None, place: 0, scratch: None };
        sequence(site, chain, Ends::No, &mut before).await?;
        finish = before.finish;
    }
    if finish.is_none() {
        turn.entered.store(chain.entries.len(), Ordering::Release);
    }
    let Input { content, earlier } = std::mem::take(&mut work.input);
    let history = work.request.messages.history_mut();
    for content in earlier {
        history.push(Message::User { content });
    }
    history.push(Message::User { content });
    Ok(finish)
}

/// A hook gave the output. The conversation keeps it as what the agent said.
#[cold]
fn finish(turn: &Turn, work: &mut Work, output: Content) {
    // What an end may still change is handed out when all of them have seen it.
    if let Some(sink) = turn.sink()
        && turn.inner.blueprint.chain.hold != Hold::Turn
    {
        sink.say(output.text());
    }
    work.request.messages.history_mut().push(Message::assistant(output));
}

enum Asked {
    Answered(ModelResponse),
    Finished(Content),
}

#[inline]
async fn ask_model(site: &Site<'_>, chain: &Chain, work: &mut Work) -> Result<Asked, Error> {
    let mut request = work.request.clone();
    if chain.has(Point::BeforeModel) {
        let mut before = BeforeModel { request: &mut request, finish: None, scratch: None };
        sequence(site, chain, Ends::No, &mut before).await?;
        let finish = before.finish;
        if request.persisted() {
            persist(work, &request)?;
        }
        if let Some(output) = finish {
            return Ok(Asked::Finished(output));
        }
    }
    call_model(site, chain, &mut request).await.map(Asked::Answered)
}

#[inline]
async fn call_model(
    site: &Site<'_>,
    chain: &Chain,
    request: &mut ModelRequest,
) -> Result<ModelResponse, Error> {
    let wraps = chain.calls(Point::WrapModelCall);
    let clocks = Clocks::for_wraps(wraps.len());
    let around = Around::<ModelKind> {
        site,
        entries: &chain.entries,
        wraps,
        clocks: &clocks,
        watched: site.inner.is_watched(),
        batch: None,
        inside: None,
    };
    let response = around.call(request).await?;
    // A wrap may answer whatever went wrong inside it; that does not undo a cancel, nor the turn's
    // own limit.
    if !wraps.is_empty() {
        still_on(site)?;
    }
    // What the model itself answered was charged as it came; this a wrap got from elsewhere.
    if clocks.get(wraps.len()).effects() == 0
        && let Some(turn) = site.turn
    {
        turn.charge(response.usage);
    }
    Ok(response)
}

/// Keeps the messages of an edited request as the conversation.
#[cold]
fn persist(work: &mut Work, request: &ModelRequest) -> Result<(), Error> {
    keep(work, &request.messages)?;
    work.request.instruction = request.instruction.clone();
    Ok(())
}

/// Keeps what an `after_model` hook made of the conversation before the response.
#[cold]
fn rewrite(work: &mut Work, messages: Vec<Message>) -> Result<(), Error> {
    keep(work, &Messages::from(messages))
}

fn keep(work: &mut Work, messages: &Messages) -> Result<(), Error> {
    if let Some(defect) = messages.defect() {
        return Err(Error::new(
            ErrorKind::History,
            format!("a hook wanted to keep messages that are not a valid history: {defect}"),
        )
        .caused_by(defect));
    }
    *work.request.messages.history_mut() = messages.to_history();
    Ok(())
}

/// Asks the `after_model` hooks.
#[inline]
async fn decide(
    site: &Site<'_>,
    chain: &Chain,
    work: &mut Work,
    response: &mut ModelResponse,
) -> Result<Decided, Error> {
    let mut after = AfterModel { response, decided: Decided::default() };
    sequence(site, chain, Ends::No, &mut after).await?;
    let mut decided = after.decided;
    if let Some(reason) = decided.reject.take() {
        return Err(Error::denied(reason));
    }
    if decided.jump == Some(JumpTarget::Model) {
        if work.jumped {
            return Err(Error::new(
                ErrorKind::Hook,
                "an after_model hook jumped to the model a second time; a turn has one such jump",
            ));
        }
        work.jumped = true;
    }
    Ok(decided)
}

/// Hands a response to whoever reads the stream, once every hook that may change it has seen it.
#[inline]
fn release(turn: &Turn, chain: &Chain, response: &ModelResponse) -> Result<(), Error> {
    if let Some(sink) = turn.sink() {
        match chain.hold {
            Hold::Nothing => sink.catch_up(response.content.text())?,
            Hold::Response => sink.say(response.content.text()),
            Hold::Turn => {}
        }
    }
    Ok(())
}

/// Gives a name to calls that have none, or somebody else's: results are paired by it.
#[inline]
fn name_calls(turn: &Turn, calls: &mut [ToolCall]) {
    for at in 0..calls.len() {
        let id = &calls[at].id;
        if id.is_empty() || calls[..at].iter().any(|other| other.id == *id) {
            calls[at].id = Arc::from(format!("call_{}_{at}", turn.steps_made()));
        }
    }
}

/// The turn ends with the newest message as its output, whatever is put behind it.
#[cold]
fn keep_output(work: &mut Work) {
    work.output = work.request.messages.history().last().map(|last| last.content().clone());
}

/// A jump leaves the tool calls of the newest message unmade.
#[cold]
fn skip_calls(work: &mut Work) {
    let history = work.request.messages.history_mut();
    let skipped: Vec<_> = history
        .last()
        .map(Message::calls)
        .unwrap_or_default()
        .iter()
        .map(|call| synthetic(call, ToolStatus::NotExecuted, "the call was not made"))
        .collect();
    history.extend(skipped.into_iter().map(Message::Tool));
}

/// What to tell the model about the form of its answer, if that is wrong.
#[inline]
fn wrong_form(turn: &Turn, work: &mut Work) -> Result<Option<String>, Error> {
    let Some(check) = turn.options.as_ref().and_then(|options| options.check.as_ref()) else {
        return Ok(None);
    };
    let text = work.request.messages.history().last().map_or("", Message::text);
    let Err(reason) = check.check(text) else {
        return Ok(None);
    };
    if work.corrections >= CORRECTIONS {
        return Err(Error::new(
            ErrorKind::Output,
            format!("the model's answer has another form than asked for: {reason}"),
        ));
    }
    work.corrections += 1;
    Ok(Some(format!(
        "Your answer could not be read: {reason}. Answer again with JSON only, in the form asked \
         for."
    )))
}

#[cold]
fn too_many(max_steps: usize) -> Error {
    Error::new(
        ErrorKind::MaxSteps,
        format!("the model did not come to an end within max_steps = {max_steps}"),
    )
}
