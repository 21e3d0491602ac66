//! The life of a chat: its agents start, they talk, they stop.

use super::talk::Talk;
use super::{Cast, ChatReport, ChatRequest, ChatStatus};
use crate::contract::Stage;
use crate::flow::Flow;
use crate::people::WaitsForPerson;
use serde_json::{Value, json};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Instant, SystemTime};
use tenure_core::chat::ChatEnd;
use tenure_core::context::ExecutionContext;
use tenure_core::{CancelToken, Error, Outcome};
use tokio::sync::oneshot;

/// Runs a chat on a task of its own, so that its ends, and those of its agents, run in order also
/// when nobody waits for them any more.
pub(crate) async fn begin(request: ChatRequest) -> ChatReport {
    let flow = request.flow.clone();
    let cancels = CancelOnDrop(request.token.clone());
    let (done, report) = oneshot::channel();
    flow.inner.tracker.spawn(async move {
        // Nobody may be there any more to hear of it.
        let _ = done.send(live(request).await);
    });
    let report = report.await;
    cancels.disarm();
    report.unwrap_or_else(|_| lost(&flow))
}

/// The report of a chat whose task is gone: the runtime was shut down.
fn lost(flow: &Flow) -> ChatReport {
    let error = Error::orchestration("the runtime that the chat ran on is gone");
    let end = ChatEnd::new(Outcome::Abandoned, Some(error), None);
    Talk::new(flow.clone(), None, 0).report("".into(), end, None, Instant::now())
}

async fn live(request: ChatRequest) -> ChatReport {
    let began = Instant::now();
    let ChatRequest { flow, id, app, user, message, initial, seed, variables, context, token } =
        request;
    let id = id.unwrap_or_else(fresh_id);
    let context = context.unwrap_or_else(ExecutionContext::unique).with_user_id(&*user);
    let context = context.with_session_id(&*id).with_conversation_id(&*id);
    let mut talk = Talk::new(flow.clone(), initial, seed);
    if let Err(defects) = context.validate() {
        let defects: Vec<_> = defects.iter().map(ToString::to_string).collect();
        let error =
            Error::invalid(format!("the execution context is not valid: {}", defects.join("; ")));
        let end = ChatEnd::new(Outcome::Failed, Some(error), None);
        return talk.report(id, end, None, began);
    }
    let cast = Cast::new(&flow.inner, &id, context, token.clone());
    let chat = flow.inner.chat(&id, cast.members());
    let system = [
        ("workflow_name".to_owned(), Value::from(&*flow.inner.name)),
        ("app_id".to_owned(), Value::from(app)),
        ("user_id".to_owned(), Value::from(user)),
    ];
    chat.set_variables(variables.into_iter().chain(system));
    talk.enter(&cast, Stage::Initialize, || json!({ "agents": &*flow.inner.names }));
    let end = match with_cancel(cast.start(&flow.inner), &token, || {}).await {
        Ok(()) => {
            let begun = AtomicBool::new(false);
            let running = chat.run(async |chat| {
                begun.store(true, Ordering::Release);
                talk.run(chat, &cast, message).await
            });
            // A turn is cancelled by its own signal, and ends in its own good order. What comes
            // before the first knows only the chat.
            let result = with_cancel(running, &token, || match begun.load(Ordering::Acquire) {
                true => cast.interrupt(),
                false => chat.cancel(),
            })
            .await;
            result.end
        }
        Err(error) => ChatEnd::new(error.outcome(), Some(error), None),
    };
    talk.conclude(&cast, &end);
    cast.stop().await;
    talk.report(id, end, Some(&chat), began)
}

/// What a report says of the end of a chat's scope.
pub(super) fn status(end: &ChatEnd) -> ChatStatus {
    match &end.error {
        Some(error) if WaitsForPerson::is_behind(error) => ChatStatus::Paused,
        _ => end.outcome.into(),
    }
}

/// Cancels a chat that nobody waits for any more.
struct CancelOnDrop(CancelToken);

impl CancelOnDrop {
    fn disarm(mut self) {
        self.0 = CancelToken::new();
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs `work` to its end, and calls `cancel` once as soon as `token` is cancelled.
async fn with_cancel<T>(
    work: impl Future<Output = T>,
    token: &CancelToken,
    cancel: impl FnOnce(),
) -> T {
    let (mut work, mut cancelled) = (pin!(work), pin!(token.cancelled()));
    let mut cancel = Some(cancel);
    poll_fn(|task| {
        if cancel.is_some()
            && cancelled.as_mut().poll(task).is_ready()
            && let Some(cancel) = cancel.take()
        {
            cancel();
        }
        work.as_mut().poll(task)
    })
    .await
}

/// An id that no other chat has: when it was made, and a number.
fn fresh_id() -> Arc<str> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("chat_{:x}_{:x}_{number}", since.as_micros(), std::process::id()).into()
}
