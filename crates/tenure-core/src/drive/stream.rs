//! A turn whose text is handed out while it is made.

use super::input::Input;
use super::report::TurnReport;
use super::turn::TurnOptions;
use crate::BoxFuture;
use crate::agent::Agent;
use crate::error::{Error, ErrorKind};
use crate::hook::{Chain, FilteredText, Hold};
use crate::sync::Mutex;
use futures_core::Stream;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Where a turn puts its text.
#[derive(Default)]
pub(crate) struct Sink {
    state: Mutex<SinkState>,
}

#[derive(Default)]
struct SinkState {
    ready: VecDeque<Piece>,
    /// What the model has streamed of the current response, where that is not held back.
    streamed: String,
    /// How many bytes of the current response went out as deltas.
    sent: usize,
    /// How many responses are complete.
    complete: usize,
    /// What the current response goes through, where it goes through anything.
    filters: Option<Vec<Box<dyn FilteredText>>>,
    /// What of it came out of there and went out.
    filtered: String,
}

impl SinkState {
    fn push(&mut self, text: &str) {
        if !text.is_empty() {
            self.ready.push_back(Piece { response: self.complete + 1, text: text.to_owned() });
        }
    }
}

/// A piece of the text of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// Which response of the turn it belongs to, counted from one. What a model says before it calls
    /// a tool is one response, and what it says afterwards is another.
    pub response: usize,
    /// The text.
    pub text: String,
}

impl Sink {
    /// A piece of a response, straight from the model.
    pub(super) fn delta(&self, text: &str, chain: &Chain) {
        if chain.hold != Hold::Nothing || text.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        state.streamed.push_str(text);
        if chain.filters.is_empty() {
            state.sent += text.len();
            state.push(text);
            return;
        }
        let open = || chain.filters.iter().map(|filter| filter.open()).collect();
        let filters = state.filters.get_or_insert_with(open);
        let text = filters.iter_mut().fold(text.to_owned(), |text, filter| filter.push(&text));
        state.sent += text.len();
        state.filtered.push_str(&text);
        state.push(&text);
    }

    /// Whether some of the current response went out.
    pub(crate) fn is_text_out(&self) -> bool {
        self.state.lock().sent > 0
    }

    /// The model is asked once more for the current response. What it said before does not count,
    /// if nobody has read it.
    pub(crate) fn begin_anew(&self) -> Result<(), Error> {
        let mut state = self.state.lock();
        if state.sent > 0 {
            return Err(Error::new(
                ErrorKind::Hook,
                "a hook wanted the model to answer anew, and some of its first answer has been \
                 read already; ask `is_text_out` first",
            ));
        }
        state.filters = None;
        state.streamed.clear();
        Ok(())
    }

    /// Whether what a model returned goes on with what it has streamed.
    pub(super) fn agrees(&self, text: &str) -> bool {
        text.starts_with(&self.state.lock().streamed)
    }

    /// A response whose deltas went out: what the model did not stream follows. What was read already
    /// has to be how it begins.
    pub(super) fn catch_up(&self, text: &str) -> Result<(), Error> {
        let mut state = self.state.lock();
        let sent = std::mem::take(&mut state.sent);
        let streamed = std::mem::take(&mut state.streamed);
        let filtered = std::mem::take(&mut state.filtered);
        let read = match state.filters.take() {
            Some(_) => &*filtered,
            None => streamed.get(..sent).unwrap_or_default(),
        };
        let Some(rest) = text.strip_prefix(read) else {
            return Err(Error::new(
                ErrorKind::Hook,
                "a hook changed text that had been read already; a hook that changes what a model \
                 says must not be registered as one that keeps text, and its filter must let out \
                 no more than the hook leaves",
            ));
        };
        state.push(rest);
        state.complete += 1;
        Ok(())
    }

    /// A text that was held back.
    pub(super) fn say(&self, text: &str) {
        let mut state = self.state.lock();
        state.push(text);
        state.complete += 1;
    }

    fn pop(&self) -> Option<Piece> {
        self.state.lock().ready.pop_front()
    }
}

/// A turn in flight: its text while it is made, and its report at the end.
///
/// Output is held back for as long as a hook that may still change it has not seen it. Dropping the
/// stream cancels the turn, as dropping the future of [`Agent::run`] does.
///
/// It is a [`Stream`] of text; [`TurnStream::next`] needs no other crate.
#[must_use = "a stream does nothing unless it is read"]
pub struct TurnStream<'a> {
    sink: Arc<Sink>,
    state: State<'a>,
}

enum State<'a> {
    Running(BoxFuture<'a, Result<TurnReport, Error>>),
    Ended(Result<TurnReport, Error>),
}

impl<'a> TurnStream<'a> {
    pub(crate) fn new(
        agent: &'a Agent,
        input: Input,
        mut options: Box<TurnOptions>,
        refused: Option<Error>,
    ) -> Self {
        let sink = Arc::new(Sink::default());
        options.sink = Some(sink.clone());
        let state = match refused {
            Some(error) => State::Ended(Err(error)),
            None => State::Running(Box::pin(async move {
                super::drive(agent.inner(), input, Some(options)).await
            })),
        };
        Self { sink, state }
    }

    /// The next piece of text, or `None` when the turn has ended, well or not, or was refused:
    /// [`TurnStream::finish`] has the report or the error.
    pub async fn next(&mut self) -> Option<String> {
        self.next_piece().await.map(|piece| piece.text)
    }

    /// The same with the response that the piece belongs to.
    pub async fn next_piece(&mut self) -> Option<Piece> {
        poll_fn(|cx| self.poll_piece(cx)).await
    }

    /// Reads the rest, and returns the turn's report.
    pub async fn finish(mut self) -> Result<TurnReport, Error> {
        while self.next().await.is_some() {}
        match self.state {
            State::Ended(result) => result,
            State::Running(run) => run.await,
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        loop {
            if let Some(piece) = self.sink.pop() {
                return Poll::Ready(Some(piece));
            }
            match &mut self.state {
                State::Ended(_) => return Poll::Ready(None),
                State::Running(run) => match run.as_mut().poll(cx) {
                    Poll::Ready(result) => self.state = State::Ended(result),
                    Poll::Pending => match self.sink.pop() {
                        Some(piece) => return Poll::Ready(Some(piece)),
                        None => return Poll::Pending,
                    },
                },
            }
        }
    }
}

impl Stream for TurnStream<'_> {
    type Item = String;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<String>> {
        self.poll_piece(cx).map(|piece| piece.map(|piece| piece.text))
    }
}

impl fmt::Debug for TurnStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ended = matches!(self.state, State::Ended(_));
        f.debug_struct("TurnStream").field("ended", &ended).finish_non_exhaustive()
    }
}
