//! The calls that are under way on a connection.

use super::lock;
use rmcp::model::{ElicitRequestParams, ElicitResult, ProgressNotificationParam};
use rmcp::model::{ProgressToken, RequestId};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use tokio::sync::oneshot;

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

/// The calls that are under way.
#[derive(Default)]
pub(super) struct Calls {
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    /// The oldest first.
    calls: Vec<Entry>,
}

/// A call. What it hears is no channel: to close one wakes whoever listened last, which costs each
/// call a turn of the scheduler.
struct Entry {
    number: u64,
    /// What was sent for the call last.
    sent: Option<(RequestId, Option<ProgressToken>)>,
    unheard: VecDeque<Heard>,
    listener: Option<Waker>,
}

impl Open {
    fn at(&self, number: u64) -> Option<usize> {
        self.calls.binary_search_by_key(&number, |entry| entry.number).ok()
    }

    fn find(&mut self, number: u64) -> Option<&mut Entry> {
        let at = self.at(number)?;
        self.calls.get_mut(at)
    }
}

impl Entry {
    /// Keeps what is heard, if there is room, and says whom to wake.
    fn hear(&mut self, heard: Heard) -> Option<Waker> {
        if self.unheard.len() == MOST_UNHEARD {
            return None;
        }
        self.unheard.push_back(heard);
        self.listener.take()
    }
}

fn wake(listener: Option<Waker>) {
    if let Some(listener) = listener {
        listener.wake();
    }
}

impl Calls {
    /// Begins a call.
    pub(super) fn open(self: &Arc<Self>) -> OpenCall {
        let mut open = lock(&self.open);
        open.last += 1;
        let number = open.last;
        let unheard = VecDeque::new();
        open.calls.push(Entry { number, sent: None, unheard, listener: None });
        drop(open);
        OpenCall { calls: self.clone(), number }
    }

    /// A request of a call is on its way.
    pub(super) fn sent(&self, tag: CallTag, id: &RequestId, token: Option<ProgressToken>) {
        if let Some(entry) = lock(&self.open).find(tag.0) {
            entry.sent = Some((id.clone(), token));
        }
    }

    /// Hands progress to the call that it is about.
    pub(super) fn progress(&self, progress: ProgressNotificationParam) {
        let mut open = lock(&self.open);
        let is_its = |entry: &&mut Entry| {
            let sent = entry.sent.as_ref();
            sent.is_some_and(|(_, token)| token.as_ref() == Some(&progress.progress_token))
        };
        let entry = open.calls.iter_mut().find(is_its);
        let listener = entry.and_then(|entry| entry.hear(Heard::Progress(progress)));
        drop(open);
        wake(listener);
    }

    /// Hands a question to the call that it was asked in. If nobody said which one that is, the
    /// oldest gets it. If that call is over, or there is none, the way to reply is dropped.
    pub(super) fn elicit(
        &self,
        origin: Option<&RequestId>,
        params: ElicitRequestParams,
        reply: oneshot::Sender<ElicitResult>,
    ) {
        let mut open = lock(&self.open);
        let calls = &mut open.calls;
        let is_its = |entry: &&mut Entry| match (&entry.sent, origin) {
            (Some((request, _)), Some(origin)) => request == origin,
            (sent, _) => sent.is_some(),
        };
        let entry = calls.iter_mut().find(is_its);
        let listener = entry.and_then(|entry| entry.hear(Heard::Elicit(params.into(), reply)));
        drop(open);
        wake(listener);
    }
}

/// A call that is under way, until it is dropped.
pub(super) struct OpenCall {
    calls: Arc<Calls>,
    number: u64,
}

impl OpenCall {
    pub(super) fn tag(&self) -> CallTag {
        CallTag(self.number)
    }

    /// What the server says next. Can be dropped and called again.
    pub(super) async fn hear(&mut self) -> Heard {
        poll_fn(|cx| {
            let mut open = lock(&self.calls.open);
            let Some(entry) = open.find(self.number) else { return Poll::Pending };
            match (entry.unheard.pop_front(), &mut entry.listener) {
                (Some(heard), _) => return Poll::Ready(heard),
                (None, Some(listener)) => listener.clone_from(cx.waker()),
                (None, listener) => *listener = Some(cx.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }

    /// What the server has said already.
    pub(super) fn heard(&mut self) -> VecDeque<Heard> {
        let mut open = lock(&self.calls.open);
        open.find(self.number).map(|entry| std::mem::take(&mut entry.unheard)).unwrap_or_default()
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut open = lock(&self.calls.open);
        let gone = open.at(self.number).map(|at| open.calls.remove(at));
        drop(open);
        // Whoever asked hears of it.
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use rmcp::model::NumberOrString;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn progress(token: i64, done: f64) -> ProgressNotificationParam {
        ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(token)), done)
    }

    fn sent(calls: &Arc<Calls>, number: i64) -> OpenCall {
        let call = calls.open();
        let token = ProgressToken(NumberOrString::Number(number));
        calls.sent(call.tag(), &RequestId::Number(number), Some(token));
        call
    }

    fn listens(call: &mut OpenCall, woken: &Arc<Woken>) -> bool {
        let waker = Waker::from(woken.clone());
        let mut hear = Box::pin(call.hear());
        hear.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
    }

    #[test]
    fn what_is_heard_wakes_the_call_that_it_is_about() {
        let calls = Arc::new(Calls::default());
        let (mut one, mut two) = (sent(&calls, 1), sent(&calls, 2));
        let woken: [Arc<Woken>; 2] = Default::default();
        assert!(listens(&mut one, &woken[0]) && listens(&mut two, &woken[1]));
        calls.progress(progress(2, 0.5));
        calls.progress(progress(3, 0.5));
        assert_eq!(woken.each_ref().map(|it| it.0.load(Ordering::Relaxed)), [0, 1]);
        assert!(one.hear().now_or_never().is_none());
        let heard = two.hear().now_or_never();
        assert!(matches!(heard, Some(Heard::Progress(it)) if it.progress == 0.5));
    }

    #[test]
    fn a_call_that_ends_wakes_nobody() {
        let calls = Arc::new(Calls::default());
        let mut call = sent(&calls, 1);
        let woken = Arc::default();
        assert!(listens(&mut call, &woken));
        drop(call);
        calls.progress(progress(1, 0.5));
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        assert!(lock(&calls.open).calls.is_empty());
    }

    fn elicit(calls: &Calls, origin: Option<i64>) -> oneshot::Receiver<ElicitResult> {
        let params = ElicitRequestParams::UrlElicitationParams {
            meta: None,
            message: String::new(),
            url: String::new(),
            elicitation_id: String::new(),
        };
        let (reply, replied) = oneshot::channel();
        calls.elicit(origin.map(RequestId::Number).as_ref(), params, reply);
        replied
    }

    fn is_declined(replied: &mut oneshot::Receiver<ElicitResult>) -> bool {
        matches!(replied.try_recv(), Err(oneshot::error::TryRecvError::Closed))
    }

    #[test]
    fn a_question_goes_to_the_call_that_it_was_asked_in_and_to_no_other() {
        let calls = Arc::new(Calls::default());
        let (mut one, mut two) = (sent(&calls, 1), sent(&calls, 2));
        let mut replied = elicit(&calls, Some(2));
        assert!(!is_declined(&mut replied));
        assert_eq!((one.heard().len(), two.heard().len()), (0, 1));
        let waiting = elicit(&calls, None);
        assert_eq!((one.heard().len(), two.heard().len()), (1, 0), "nobody said which one");
        drop((two, waiting));
        for over in [2, 7] {
            assert!(is_declined(&mut elicit(&calls, Some(over))), "{over} is not under way");
            assert!(one.heard().is_empty());
        }
    }

    #[test]
    fn what_nobody_hears_is_bounded() {
        let calls = Arc::new(Calls::default());
        let mut call = sent(&calls, 1);
        for _ in 0..2 * MOST_UNHEARD {
            calls.progress(progress(1, 0.5));
        }
        assert!(is_declined(&mut elicit(&calls, None)), "there is no room for the question");
        assert_eq!(call.heard().len(), MOST_UNHEARD);
        assert!(call.heard().is_empty());
    }
}
