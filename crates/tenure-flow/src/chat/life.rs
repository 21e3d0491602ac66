//! The life of a chat: its agents start, they talk, they stop.

use super::leaving::Leaving;
use super::parking::{self, Parking};
use super::record::chat_id;
use super::talk::{CHAT, Talk};
use super::{Cast, ChatReport, ChatRequest, ChatStatus};
use crate::contract::Stage;
use crate::flow::Flow;
use crate::nested;
use crate::people::WaitsForPerson;
use crate::variables::RuntimeKeys;
use crate::wait::{unless, with_cancel};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Instant, SystemTime};
use tenure_core::chat::{Chat, ChatEnd, Waits};
use tenure_core::context::ExecutionContext;
use tenure_core::{CancelToken, Error, ErrorKind, Outcome};

/// Runs a chat on a task of its own, so that its ends, and those of its agents, run in order also
/// when nobody waits for them any more.
///
/// Boxed: a chat may run others, and those others.
pub(crate) fn begin(request: ChatRequest) -> BoxFuture<'static, ChatReport> {
    Box::pin(begun(request))
}

async fn begun(mut request: ChatRequest) -> ChatReport {
    let began = Instant::now();
    let flow = request.flow.clone();
    let steps = request.steps.clone();
    let id = request.id.take();
    let id = id.unwrap_or_else(|| steps.as_ref().map_or_else(fresh_id, chat_id));
    // Its own, so that a chat that is given up cancels nobody else who was handed the same token.
    let token = request.token.as_ref().map_or_else(CancelToken::new, CancelToken::child);
    let open = match flow.open(&id, &token) {
        Ok(open) => open,
        Err(error) => {
            return Talk::new(flow, None, 0).report(id, end_of(error), None, began);
        }
    };
    let parking = Parking::new(steps.as_ref(), request.when_waiting);
    let leaves = LeaveOnDrop(Some((parking.clone(), token.clone())));
    let task = flow.inner.tracker.spawn({
        let (id, around) = (id.clone(), parking.clone());
        async move {
            let _open = open;
            let life = live(request, id, token, parking, began);
            around.around(AssertUnwindSafe(life).catch_unwind()).await
        }
    });
    let result = task.await;
    leaves.disarm();
    match result {
        Ok(Ok(report)) => report,
        Ok(Err(panic)) => {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message");
            lost(&flow, id, Outcome::Panicked, &format!("the chat panicked: {message}"), began)
        }
        Err(_) => {
            let gone = "the runtime that the chat ran on is gone";
            lost(&flow, id, Outcome::Abandoned, gone, began)
        }
    }
}

/// The report of a chat that has none: it panicked outside of its scope, or the runtime was shut
/// down. What it was about to do is lost with it.
fn lost(flow: &Flow, id: Arc<str>, outcome: Outcome, message: &str, began: Instant) -> ChatReport {
    let end = ChatEnd::new(outcome, Some(Error::orchestration(message)), None);
    Talk::new(flow.clone(), None, 0).report(id, end, None, began)
}

async fn live(
    request: ChatRequest,
    id: Arc<str>,
    token: CancelToken,
    parking: Arc<Parking>,
    began: Instant,
) -> ChatReport {
    let ChatRequest { flow, app, user, message, initial, seed, variables, context, .. } = request;
    let (questions, steps) = (request.questions, request.steps);
    let context = context.unwrap_or_else(|| match &steps {
        // All lives of a run are one trace.
        Some(steps) => ExecutionContext::new(steps.log().run_id().to_string()),
        None => ExecutionContext::unique(),
    });
    let context = context.with_user_id(&*user);
    let context = context.with_session_id(&*id).with_conversation_id(&*id);
    let mut talk = Talk::new(flow.clone(), initial, seed);
    if let Err(error) = check(&context).and_then(|()| talk.check()) {
        return talk.report(id, end_of(error), None, began);
    }
    let leaving = Leaving::of(&flow, &id);
    let cast = Cast::new(&flow.inner, &id, context, token.clone(), steps.clone());
    let chat = flow.inner.chat(&id, cast.members());
    if let Some(steps) = &steps {
        chat.record(steps);
    }
    let line = cast.status.clone();
    chat.on_wait(move |waits| {
        line.say(match waits {
            Waits::ForPerson => ChatStatus::Paused,
            Waits::NoLonger => ChatStatus::Running,
        });
        if let Some(questions) = &questions {
            questions.tell(waits);
        }
    });
    let system = [
        ("workflow_name".to_owned(), Value::from(&*flow.inner.name)),
        ("app_id".to_owned(), Value::from(&*app)),
        ("user_id".to_owned(), Value::from(&*user)),
    ];
    chat.set_variables(system);
    let keys = RuntimeKeys::new(&*flow.inner.name, app, user, &*id);
    let opened = {
        let opened = pin!(talk.begin(&chat, keys, variables, steps.as_ref()));
        parking.unless_left(&token, opened).await
    };
    talk.enter(&cast, CHAT, Stage::Initialize, || json!({ "agents": &*flow.inner.names }));
    cast.status.say(ChatStatus::Running);
    // A startup that is dropped is rolled back; `stop` below waits for that.
    let started = match opened {
        Ok(()) => parking.unless_left(&token, pin!(cast.start(&flow.inner))).await,
        Err(error) => Err(error),
    };
    let end = match started {
        Ok(()) => scope(&chat, &cast, &mut talk, message, &parking).await,
        Err(error) => end_of(parking::kept_back(cast.error(error), steps.as_ref())),
    };
    let is_parked = steps.is_some() && end.error.as_ref().is_some_and(Error::parks);
    if !is_parked {
        talk.settle(&chat).await;
    }
    // A chat that waits is not over: its next life has its last stage.
    match status(&end) {
        ChatStatus::Paused if is_parked => talk.pause(&cast),
        _ => talk.conclude(&cast, &end),
    }
    cast.stop().await;
    leaving.now().await;
    talk.report(id, end, Some(&chat), began)
}

/// What can be said of a chat before anybody is there.
fn check(context: &ExecutionContext) -> Result<(), Error> {
    nested::check_depth(context)?;
    context.validate().map_err(|defects| {
        let defects: Vec<_> = defects.iter().map(ToString::to_string).collect();
        Error::invalid(format!("the execution context is not valid: {}", defects.join("; ")))
    })
}

/// The chat's scope: `before_chat`, the talk, `after_chat`.
async fn scope(
    chat: &Chat,
    cast: &Cast,
    talk: &mut Talk,
    message: Option<String>,
    parking: &Parking,
) -> ChatEnd {
    let _on_board = parking.enter(chat);
    let place = AtomicU8::new(Place::BEFORE);
    let running = chat.run(async |chat| {
        let _place = Place::enter(&place, chat, cast);
        talk.run(chat, cast, message).await.map_err(|error| cast.error(error))
    });
    // A turn is cancelled by its own signal, and ends in its own good order. What comes before the
    // first turn and after the last knows only the chat.
    let running = pin!(running);
    let result = pin!(with_cancel(running, cast.token.cancelled(), || {
        match place.load(Ordering::Acquire) {
            Place::WITHIN => cast.interrupt(),
            _ => cast.cancel(chat),
        }
    }));
    let is_over = || place.load(Ordering::Acquire) == Place::AFTER;
    let parked = parking.parked(|| {
        if is_over() {
            // Its ends are all that is left, and they do not wait for anybody.
            chat.cancel();
        }
    });
    // A cancel that is under way ends the chat; what is over has its ends before it.
    let holds = || is_over() || cast.token.is_cancelled();
    match unless(result, parked, holds).await {
        Ok(result) => result.end,
        // Dropped in the middle, the chat is left as it is on record.
        Err(error) => {
            chat.leave();
            parking.park();
            end_of(error)
        }
    }
}

/// Where a chat stands with respect to its body, for a cancel.
struct Place<'a> {
    now: &'a AtomicU8,
    chat: &'a Chat,
    cast: &'a Cast,
}

impl<'a> Place<'a> {
    const BEFORE: u8 = 0;
    const WITHIN: u8 = 1;
    const AFTER: u8 = 2;

    fn enter(now: &'a AtomicU8, chat: &'a Chat, cast: &'a Cast) -> Self {
        now.store(Self::WITHIN, Ordering::Release);
        Self { now, chat, cast }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.now.store(Self::AFTER, Ordering::Release);
        // The talk is over; what its ends ask is not waited for any more.
        if self.cast.token.is_cancelled() {
            self.cast.cancel(self.chat);
        }
    }
}

/// The end of a chat that could not begin.
fn end_of(error: Error) -> ChatEnd {
    ChatEnd::new(error.outcome(), Some(error), None)
}

/// What a report says of the end of a chat's scope.
pub(super) fn status(end: &ChatEnd) -> ChatStatus {
    match &end.error {
        Some(error) if WaitsForPerson::is_behind(error) => ChatStatus::Paused,
        Some(error) if error.kind() == ErrorKind::Waiting => ChatStatus::Paused,
        _ => end.outcome.into(),
    }
}

/// Leaves a chat that nobody waits for any more.
struct LeaveOnDrop(Option<(Arc<Parking>, CancelToken)>);

impl LeaveOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for LeaveOnDrop {
    fn drop(&mut self) {
        if let Some((parking, token)) = &self.0 {
            parking.leave(token);
        }
    }
}

/// An id that no other chat has: when it was made, and a number.
fn fresh_id() -> Arc<str> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("chat_{:x}_{:x}_{number}", since.as_micros(), std::process::id()).into()
}
