//! Counting tokens as models do.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use tenure_core::message::Message;
use tenure_core::model::{Messages, ModelRequest};
use tenure_core::tool::ToolSpec;

#[cfg(feature = "tokens")]
mod encoder;

/// How tokens are counted.
///
/// Beside its texts, a message has tokens of its own that say where it begins, ends and who speaks,
/// and so have tools: as many are added as OpenAI documents for its chat models. Tools are counted as
/// the JSON they are declared by. So a count is never quite exact for any model; leave some room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum Encoding {
    /// As GPT-4o, GPT-4.1, GPT-5 and the `o` models do.
    #[cfg(feature = "tokens")]
    #[default]
    #[serde(rename = "o200k_base")]
    O200kBase,
    /// As GPT-4 and GPT-3.5 do.
    #[cfg(feature = "tokens")]
    #[serde(rename = "cl100k_base")]
    Cl100kBase,
    /// A token for every four characters: for models whose tokens nobody else can count. It takes no
    /// time at all.
    #[cfg_attr(not(feature = "tokens"), default)]
    #[serde(rename = "approximate")]
    Approximate,
}

/// What a message has beside its texts.
const PER_MESSAGE: u64 = 3;
/// What a call of a tool has beside its texts.
const PER_CALL: u64 = 5;
/// What the beginning of the answer takes.
const ANSWER: u64 = 3;
/// What a tool has beside its declaration, and what all of them have together.
const PER_TOOL: u64 = 8;
const ALL_TOOLS: u64 = 12;

/// More bytes than these are not counted on a thread that others use.
const MANY: usize = 64 << 10;

/// Counts a text in a way of somebody's own.
pub(crate) type CountText = Arc<dyn Fn(&str) -> u64 + Send + Sync>;

/// Tools, and how many tokens they have.
type CountedTools = (Arc<[Arc<ToolSpec>]>, u64);

/// Counts the tokens of requests. What was counted before is not counted again, so that a step of a
/// long conversation takes no longer than one of a short one. Clones remember the same.
#[derive(Clone)]
pub(crate) struct Counter {
    encoding: Encoding,
    /// In place of the encoding.
    own: Option<CountText>,
    known: Arc<Mutex<Known>>,
    /// The tools that were counted last. They are mostly the same.
    tools: Arc<Mutex<Option<CountedTools>>>,
}

/// The tokens of a request, part by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Of the instruction and the tools, and what every request has.
    pub(crate) fixed: u64,
    /// Of each message.
    pub(crate) messages: Vec<u64>,
}

impl Counted {
    /// All of them.
    pub(crate) fn total(&self) -> u64 {
        self.fixed + self.messages.iter().sum::<u64>()
    }
}

impl Counter {
    /// Counts by an encoding. All counters of one encoding remember the same.
    pub(crate) fn new(encoding: Encoding) -> Self {
        static SHARED: LazyLock<Mutex<HashMap<Encoding, Arc<Mutex<Known>>>>> =
            LazyLock::new(Mutex::default);
        let known = lock(&SHARED).entry(encoding).or_default().clone();
        Self { encoding, own: None, known, tools: Arc::default() }
    }

    /// Counts texts in a way of somebody's own.
    pub(crate) fn by(count: CountText) -> Self {
        let own = Some(count);
        Self { encoding: Encoding::Approximate, own, known: Arc::default(), tools: Arc::default() }
    }

    /// Whether it has to be made ready first, which takes a while.
    pub(crate) fn is_loaded(&self) -> bool {
        match self.encoding {
            Encoding::Approximate => true,
            #[cfg(feature = "tokens")]
            encoding => encoder::is_loaded(encoding),
        }
    }

    /// Makes it ready, on another thread. Counting does that too, if nobody has.
    pub(crate) async fn load(&self) {
        #[cfg(feature = "tokens")]
        if !self.is_loaded() {
            let encoding = self.encoding;
            elsewhere(move || encoder::load(encoding)).await;
        }
    }

    /// Counts a request.
    pub(crate) async fn request(&self, request: &ModelRequest) -> Counted {
        let instruction = request.instruction.as_deref();
        let instruction = match instruction.filter(|text| !text.is_empty()) {
            Some(text) => self.message(&Message::system(text)).await,
            None => 0,
        };
        let fixed = ANSWER + instruction + self.tools(&request.tools).await;
        Counted { fixed, messages: self.messages(&request.messages).await }
    }

    /// Counts messages, each.
    pub(crate) async fn messages(&self, messages: &Messages) -> Vec<u64> {
        let prints: Vec<u64> = messages.iter().map(|message| print(&Parts::of(message))).collect();
        let mut counts: Vec<Option<u64>> = {
            let mut known = lock(&self.known);
            prints.iter().map(|print| known.find(*print)).collect()
        };
        if counts.iter().any(Option::is_none) {
            let missing = messages.iter().zip(&counts).filter(|(_, count)| count.is_none());
            let missing: Vec<Parts<'_>> = missing.map(|(message, _)| Parts::of(message)).collect();
            let mut counted = self.count(&missing).await.into_iter();
            let mut known = lock(&self.known);
            for (count, print) in counts.iter_mut().zip(prints) {
                if count.is_none() {
                    *count = counted.next();
                    known.keep(print, count.unwrap_or_default());
                }
            }
        }
        counts.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// Counts a message.
    pub(crate) async fn message(&self, message: &Message) -> u64 {
        let parts = Parts::of(message);
        let print = print(&parts);
        let found = lock(&self.known).find(print);
        match found {
            Some(count) => count,
            None => {
                let count = self.count(&[parts]).await.into_iter().sum();
                lock(&self.known).keep(print, count);
                count
            }
        }
    }

    /// Counts the declarations of tools.
    async fn tools(&self, tools: &Arc<[Arc<ToolSpec>]>) -> u64 {
        if tools.is_empty() {
            return 0;
        }
        // What is remembered is held on to, so that no other tools can be at its place.
        let last = lock(&self.tools).clone();
        if let Some((_, count)) = last.filter(|(last, _)| Arc::ptr_eq(last, tools)) {
            return count;
        }
        let mut sum = ALL_TOOLS;
        for tool in &**tools {
            let text = format!("{} {} {}", tool.name, tool.description, tool.parameters);
            let declared = Message::system(text);
            sum += self.message(&declared).await - PER_MESSAGE + PER_TOOL;
        }
        *lock(&self.tools) = Some((tools.clone(), sum));
        sum
    }

    /// Counts what is not known yet: a lot of it, or what cannot be counted at once, elsewhere.
    async fn count(&self, parts: &[Parts<'_>]) -> Vec<u64> {
        let bytes: usize = parts.iter().flat_map(|it| &it.texts).map(|text| text.len()).sum();
        if self.is_loaded() && (bytes < MANY || self.encoding == Encoding::Approximate) {
            return parts.iter().map(|it| it.overhead + self.texts(&it.texts)).collect();
        }
        let owned: Vec<(u64, Vec<String>)> = parts
            .iter()
            .map(|it| (it.overhead, it.texts.iter().map(|text| (*text).to_owned()).collect()))
            .collect();
        let counter = self.clone();
        let count = move || {
            let of_one = |(overhead, texts): &(u64, Vec<String>)| {
                texts.iter().fold(*overhead, |sum, text| sum + counter.text(text))
            };
            owned.iter().map(of_one).collect()
        };
        elsewhere(count).await
    }

    fn texts(&self, texts: &[&str]) -> u64 {
        texts.iter().map(|text| self.text(text)).sum()
    }

    /// Counts a text, here and now.
    pub(crate) fn text(&self, text: &str) -> u64 {
        if let Some(own) = &self.own {
            return own(text);
        }
        match self.encoding {
            Encoding::Approximate => (text.chars().count() as u64).div_ceil(4),
            #[cfg(feature = "tokens")]
            encoding => encoder::count(encoding, text),
        }
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("encoding", &self.encoding).finish_non_exhaustive()
    }
}

/// A message as what is counted of it.
struct Parts<'a> {
    overhead: u64,
    texts: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(message: &'a Message) -> Self {
        let mut it = Self { overhead: PER_MESSAGE, texts: vec![message.text()] };
        for call in message.calls() {
            it.overhead += PER_CALL;
            it.texts.extend([&*call.name, &call.arguments]);
        }
        it
    }
}

/// A hash of what is counted. The same in this process only.
fn print(parts: &Parts<'_>) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one((parts.overhead, &parts.texts))
}

/// So many counts are remembered twice over.
const REMEMBERED: usize = 16 << 10;

/// Counts by the hash of what was counted. What was not asked for any more for a while goes.
#[derive(Default)]
struct Known {
    new: HashMap<u64, u64>,
    old: HashMap<u64, u64>,
}

impl Known {
    fn find(&mut self, print: u64) -> Option<u64> {
        if let Some(count) = self.new.get(&print) {
            return Some(*count);
        }
        let count = self.old.remove(&print)?;
        self.keep(print, count);
        Some(count)
    }

    fn keep(&mut self, print: u64, count: u64) {
        if self.new.len() >= REMEMBERED {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(print, count);
    }
}

/// Does something on a thread that may be kept busy. A panic goes on here.
async fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
