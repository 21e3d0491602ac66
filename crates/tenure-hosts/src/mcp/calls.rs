//! The calls that are under way on a connection.

use super::lock;
use rmcp::model::{ElicitRequestParams, ElicitResult, ProgressNotificationParam};
use rmcp::model::{ProgressToken, RequestId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};

/// How much a call may leave unheard. Progress beyond it is dropped, and a question is declined.
const MOST_UNHEARD: usize = 64;

/// What a server says to a call before it answers.
pub(super) enum Heard {
    Progress(ProgressNotificationParam),
    Elicit(Box<ElicitRequestParams>, oneshot::Sender<ElicitResult>),
}

/// Marks a request as that of a call, on its way through the transport.
#[derive(Clone, Copy)]
pub(super) struct CallTag(u64);

/// The calls that are under way, the oldest first.
#[derive(Default)]
pub(super) struct Calls {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    calls: BTreeMap<u64, Entry>,
}

struct Entry {
    /// What was sent for the call last.
    sent: Option<(RequestId, Option<ProgressToken>)>,
    inbox: mpsc::Sender<Heard>,
}

impl Calls {
    /// Begins a call.
    pub(super) fn open(self: &Arc<Self>) -> OpenCall {
        let (inbox, heard) = mpsc::channel(MOST_UNHEARD);
        let mut open = lock(&self.open);
        open.last += 1;
        let id = open.last;
        open.calls.insert(id, Entry { sent: None, inbox });
        drop(open);
        OpenCall { calls: self.clone(), id, heard }
    }

    /// A request of a call is on its way.
    pub(super) fn sent(&self, tag: CallTag, id: &RequestId, token: Option<ProgressToken>) {
        if let Some(entry) = lock(&self.open).calls.get_mut(&tag.0) {
            entry.sent = Some((id.clone(), token));
        }
    }

    /// Hands progress to the call that it is about.
    pub(super) fn progress(&self, progress: ProgressNotificationParam) {
        let open = lock(&self.open);
        let is_its = |entry: &&Entry| {
            let sent = entry.sent.as_ref();
            sent.is_some_and(|(_, token)| token.as_ref() == Some(&progress.progress_token))
        };
        let entry = open.calls.values().find(is_its);
        if let Some(entry) = entry {
            let _ = entry.inbox.try_send(Heard::Progress(progress));
        }
    }

    /// Hands a question to the call that it was asked in, if that is known, else to the oldest.
    /// Without anybody to ask, the way to reply is dropped.
    pub(super) fn elicit(
        &self,
        origin: Option<&RequestId>,
        params: ElicitRequestParams,
        reply: oneshot::Sender<ElicitResult>,
    ) {
        let open = lock(&self.open);
        let is_its = |entry: &&Entry| {
            entry.sent.as_ref().is_some_and(|(request, _)| Some(request) == origin)
        };
        let was_sent = |entry: &&Entry| entry.sent.is_some();
        let mut calls = open.calls.values();
        let own = open.calls.values().find(is_its);
        if let Some(entry) = own.or_else(|| calls.find(was_sent)) {
            let _ = entry.inbox.try_send(Heard::Elicit(Box::new(params), reply));
        }
    }
}

/// A call that is under way, until it is dropped.
pub(super) struct OpenCall {
    calls: Arc<Calls>,
    id: u64,
    pub(super) heard: mpsc::Receiver<Heard>,
}

impl OpenCall {
    pub(super) fn tag(&self) -> CallTag {
        CallTag(self.id)
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        lock(&self.calls.open).calls.remove(&self.id);
    }
}
