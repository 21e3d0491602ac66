//! A conversation that never outgrows its model.

mod cut;
mod fit;
mod hook;
mod options;
mod summary;

pub(super) use options::WindowOptions;

use super::tokens::{Counter, Encoding};
use cut::Keep;
use hook::Window;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use summary::{PROMPT, Summariser};
use tenure_core::hook::{IntoRegistration, Point, Points, Registration};
use tenure_core::model::Model;

/// The share of a declared context that a request may take, unless told otherwise.
const FRACTION: f64 = 0.9;
/// As many messages are kept, unless told otherwise.
const KEEP: usize = 20;
/// As many tokens are read for a summary, and written, unless told otherwise.
const READS: u64 = 4000;
const WRITES: u64 = 1000;
/// How long a summary may take, unless told otherwise.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Keeps a conversation within what its model can read: what is old goes, or a model summarises it.
///
/// It acts when a request has more tokens than it may have, or when a trigger is reached. A call of
/// tools and its results stay or go together. The newest message stays in any case, and the last
/// message of the user, so that the model knows what it is at. If these alone are too much, the turn
/// fails with an error that says so, or the largest results of tools are cut
/// ([`truncate_results`](Self::truncate_results)).
///
/// A summary takes the place of what it summarises in the agent's own conversation, so that it is
/// made once; what is only trimmed comes back if it has room again. Both are as
/// [`persist`](Self::persist) says. With it, whatever hooks before this one have changed in the
/// messages stays as well.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::context::{ContextWindow, Encoding};
/// # use tenure_models::Passthrough;
///
/// let window = ContextWindow::new().context_size(128_000).trigger_messages(200).summarise();
/// let agent = Agent::builder("clerk")
///     .model(Passthrough::new())
///     .with_lifecycle(window.encoding(Encoding::Approximate))
///     .build()?;
/// # Ok::<_, tenure_core::Error>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ContextWindow {
    max_tokens: Option<u64>,
    context_size: Option<u64>,
    fraction: f64,
    trigger: Trigger,
    keep: Kept,
    pin_first: bool,
    truncate: bool,
    summariser: Option<Summariser>,
    fails: bool,
    persist: Option<bool>,
    counter: Counter,
    encoding: Encoding,
}

/// When something is done, beside when there is no room: any of these.
#[derive(Clone, Copy, Debug, Default)]
struct Trigger {
    tokens: Option<u64>,
    messages: Option<usize>,
    fraction: Option<f64>,
}

/// How much of the end is kept.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Messages(usize),
    Tokens(u64),
    Fraction(f64),
}

impl ContextWindow {
    /// A window without bounds, which does nothing yet: give it
    /// [`max_tokens`](Self::max_tokens), a [`context_size`](Self::context_size) or a trigger.
    pub fn new() -> Self {
        Self {
            max_tokens: None,
            context_size: None,
            fraction: FRACTION,
            trigger: Trigger::default(),
            keep: Kept::Messages(KEEP),
            pin_first: false,
            truncate: false,
            summariser: None,
            fails: false,
            persist: None,
            counter: Counter::new(Encoding::default()),
            encoding: Encoding::default(),
        }
    }

    /// The most tokens that a request may have, with its instruction and its tools.
    pub fn max_tokens(mut self, most: u64) -> Self {
        self.max_tokens = Some(most);
        self
    }

    /// How many tokens the model can read and write; a request may have nine tenths of it, or what
    /// [`fraction`](Self::fraction) says.
    pub fn context_size(mut self, tokens: u64) -> Self {
        self.context_size = Some(tokens);
        self
    }

    /// The share of the context size that a request may have, from 0 to 1.
    pub fn fraction(mut self, share: f64) -> Self {
        self.fraction = share.clamp(0.0, 1.0);
        self
    }

    /// Acts as soon as a request has so many tokens.
    pub fn trigger_tokens(mut self, tokens: u64) -> Self {
        self.trigger.tokens = Some(tokens);
        self
    }

    /// Acts as soon as a conversation has so many messages.
    pub fn trigger_messages(mut self, messages: usize) -> Self {
        self.trigger.messages = Some(messages);
        self
    }

    /// Acts as soon as a request has this share of the context size.
    pub fn trigger_fraction(mut self, share: f64) -> Self {
        self.trigger.fraction = Some(share.clamp(0.0, 1.0));
        self
    }

    /// Keeps so many of the newest messages, if there is room for them: 20. A call of tools that
    /// begins before them and has results among them stays, too.
    pub fn keep_messages(mut self, messages: usize) -> Self {
        self.keep = Kept::Messages(messages);
        self
    }

    /// Keeps the newest messages that have no more than so many tokens.
    pub fn keep_tokens(mut self, tokens: u64) -> Self {
        self.keep = Kept::Tokens(tokens);
        self
    }

    /// Keeps the newest messages that have no more than this share of the context size.
    pub fn keep_fraction(mut self, share: f64) -> Self {
        self.keep = Kept::Fraction(share.clamp(0.0, 1.0));
        self
    }

    /// Keeps the first message of the user, too.
    pub fn pin_first(mut self) -> Self {
        self.pin_first = true;
        self
    }

    /// Cuts the largest results of tools if not even the last exchange has room; else that fails.
    pub fn truncate_results(mut self) -> Self {
        self.truncate = true;
        self
    }

    /// Has the agent's own model summarise what goes, or the one that [`model`](Self::model) names.
    pub fn summarise(mut self) -> Self {
        self.summariser();
        self
    }

    /// Has this model summarise what goes.
    pub fn model(mut self, model: impl Model) -> Self {
        self.summariser().model = Some(Arc::new(model));
        self
    }

    /// What the model is told that summarises. The conversation takes the place of `{messages}` in
    /// it, or is a message of its own.
    pub fn prompt(mut self, prompt: impl Into<Arc<str>>) -> Self {
        self.summariser().prompt = prompt.into();
        self
    }

    /// Has at most so many tokens read for a summary, the newest of what goes: 4,000. `None` for all
    /// of them.
    pub fn trim_tokens_to_summarise(mut self, most: Option<u64>) -> Self {
        self.summariser().reads = most;
        self
    }

    /// The most tokens that a summary may have: 1,000.
    pub fn summary_tokens(mut self, most: u64) -> Self {
        self.summariser().writes = most.max(1);
        self
    }

    /// How long a summary may take: a minute.
    pub fn timeout(mut self, most: Duration) -> Self {
        self.summariser().timeout = most;
        self
    }

    /// Fails the turn if a summary cannot be made; else what goes is trimmed for this call, and the
    /// next one tries again.
    pub fn fail_without_summary(mut self) -> Self {
        self.fails = true;
        self
    }

    /// Whether the agent goes on with the shortened conversation: with summaries yes, else no.
    pub fn persist(mut self, persist: bool) -> Self {
        self.persist = Some(persist);
        self
    }

    /// How tokens are counted.
    pub fn encoding(mut self, encoding: Encoding) -> Self {
        (self.encoding, self.counter) = (encoding, Counter::new(encoding));
        self
    }

    /// Counts the tokens of a text in a way of one's own.
    pub fn count_by(mut self, count: impl Fn(&str) -> u64 + Send + Sync + 'static) -> Self {
        self.encoding = Encoding::Approximate;
        self.counter = Counter::by(Arc::new(count));
        self
    }

    fn summariser(&mut self) -> &mut Summariser {
        self.summariser.get_or_insert_with(|| Summariser {
            model: None,
            prompt: PROMPT.into(),
            reads: Some(READS),
            writes: WRITES,
            timeout: TIMEOUT,
        })
    }

    /// The most tokens of a request.
    fn most(&self) -> Option<u64> {
        let of_context = self.context_size.map(|size| share(size, self.fraction));
        of_context.into_iter().chain(self.max_tokens).min()
    }

    fn is_triggered(&self, tokens: u64, messages: usize) -> bool {
        let Trigger { tokens: many, messages: long, fraction } = self.trigger;
        let big = fraction.and_then(|it| Some(share(self.context_size?, it)));
        many.is_some_and(|many| tokens >= many)
            || long.is_some_and(|long| messages >= long)
            || big.is_some_and(|big| tokens >= big)
    }

    fn keep(&self) -> Keep {
        match self.keep {
            Kept::Messages(messages) => Keep::Messages(messages),
            Kept::Tokens(tokens) => Keep::Tokens(tokens),
            Kept::Fraction(it) => Keep::Tokens(share(self.context_size.unwrap_or(u64::MAX), it)),
        }
    }
}

/// A share of something.
fn share(size: u64, fraction: f64) -> u64 {
    (size as f64 * fraction) as u64
}

impl Default for ContextWindow {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ContextWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextWindow")
            .field("most", &self.most())
            .field("trigger", &self.trigger)
            .field("keep", &self.keep)
            .field("summarises", &self.summariser.is_some())
            .field("counter", &self.counter)
            .finish_non_exhaustive()
    }
}

impl IntoRegistration for ContextWindow {
    fn into_registration(self) -> Registration {
        // It counts what the others leave, and what it spends itself comes after those who judge that.
        let after = [
            "call_limit",
            "budget",
            "load_context",
            "prompt",
            "todo",
            "dedupe",
            "clear_tool_results",
            "select_tools",
        ];
        let limit = self.summariser.as_ref().map(|it| it.timeout + Duration::from_secs(60));
        let points = match self.encoding {
            Encoding::Approximate => Points::from(Point::BeforeModel),
            #[cfg(feature = "tokens")]
            _ => Points::from(Point::BeforeModel).with(Point::OnStart),
        };
        let mut registration = tenure_core::hook::hook(Window(self))
            .only(points)
            .named("window")
            .kind("window")
            .outside("cheaper_model");
        if let Some(limit) = limit {
            registration = registration.limit(limit);
        }
        after.into_iter().fold(registration, Registration::inside)
    }
}
