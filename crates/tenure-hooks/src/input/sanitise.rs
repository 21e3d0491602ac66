//! Input that is put in order before anybody reads it.

use super::html;
use super::seen::{first_chars, pattern};
use crate::ready::{About, Makings, Options, Pattern, Refusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure_core::context::TurnCx;
use tenure_core::drive::Input;
use tenure_core::hook::{AgentLifecycle, Flow, HookError, IntoRegistration, Registration, hook};
use tenure_macros::lifecycle;
use unicode_normalization::{UnicodeNormalization, is_nfc, is_nfkc};

/// How characters that can be written in several ways are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Form {
    /// As they came.
    AsIs,
    /// Composed: an `e` and an accent become one character (NFC).
    #[default]
    Nfc,
    /// Composed, and what only looks different becomes the same: `ﬁ` is `fi`, `①` is `1` (NFKC).
    Nfkc,
}

/// Puts the input in order: one way to write each character, no control characters, nothing that is
/// there and cannot be seen, no blanks around it.
///
/// What others said earlier in a chat is put in order too. Personal data and secrets are not its
/// business: that is what `pii` is for.
///
/// ```
/// use tenure_core::agent::Agent;
/// use tenure_hooks::input::Sanitise;
/// # use tenure_models::Passthrough;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let agent = Agent::builder("tidy")
///     .model(Passthrough::new())
///     .with_lifecycle(Sanitise::new().collapse_blanks().max_chars(2000))
///     .build()?;
/// let report = agent.scoped(async |agent| agent.run(" one\u{200b}   two ").await).await?;
/// assert_eq!(report.output(), "one two");
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Sanitise {
    form: Form,
    control: bool,
    invisible: bool,
    collapse: bool,
    trim: bool,
    html: bool,
    max_chars: Option<usize>,
    replace: Vec<(Pattern, String)>,
}

impl Default for Sanitise {
    fn default() -> Self {
        Self::new()
    }
}

impl Sanitise {
    /// NFC, without control and invisible characters, trimmed.
    pub fn new() -> Self {
        Self {
            form: Form::default(),
            control: true,
            invisible: true,
            collapse: false,
            trim: true,
            html: false,
            max_chars: None,
            replace: Vec::new(),
        }
    }

    /// How characters are written.
    pub fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Leaves control characters in.
    pub fn keep_control(mut self) -> Self {
        self.control = false;
        self
    }

    /// Leaves characters in that cannot be seen: of no width, and those that turn the direction of
    /// a text around.
    pub fn keep_invisible(mut self) -> Self {
        self.invisible = false;
        self
    }

    /// Leaves blanks at the beginning and the end.
    pub fn keep_ends(mut self) -> Self {
        self.trim = false;
        self
    }

    /// Makes several blanks one, and several empty lines one.
    pub fn collapse_blanks(mut self) -> Self {
        self.collapse = true;
        self
    }

    /// Takes the tags of HTML out, and what stands in scripts and styles. It makes a text readable;
    /// whoever shows it in a page has to escape it all the same.
    pub fn strip_html(mut self) -> Self {
        self.html = true;
        self
    }

    /// Cuts off what is longer, between two characters.
    pub fn max_chars(mut self, most: usize) -> Self {
        self.max_chars = Some(most);
        self
    }

    /// Puts a text in the place of everything that matches a regular expression.
    pub fn replace(mut self, matching: &str, with: impl Into<String>) -> Result<Self, Refusal> {
        let matching = pattern(matching).map_err(|why| Refusal::new("replace", why))?;
        self.replace.push((matching, with.into()));
        Ok(self)
    }

    fn clean(&self, text: &str) -> String {
        let mut text = match self.form {
            Form::Nfc if !is_nfc(text) => text.nfc().collect(),
            Form::Nfkc if !is_nfkc(text) => text.nfkc().collect(),
            _ => text.to_owned(),
        };
        if self.html {
            text = html::stripped(&text);
        }
        if self.control || self.invisible {
            text = self.visible(&text);
        }
        for (pattern, with) in &self.replace {
            text = replaced(&text, pattern, with);
        }
        if self.collapse {
            text = collapsed(&text);
        }
        if self.trim {
            text = text.trim().to_owned();
        }
        if let Some(most) = self.max_chars {
            text = first_chars(&text, most).to_owned();
        }
        text
    }

    fn visible(&self, text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        let mut rest = text.chars().peekable();
        let mut before = None;
        while let Some(next) = rest.next() {
            let joins = matches!(next, '\u{200c}' | '\u{200d}');
            let drop = if joins {
                // Some scripts need them within a word, and some pictures are made of several.
                let within = before.is_some_and(|it: char| !it.is_ascii())
                    && rest.peek().is_some_and(|it| !it.is_ascii());
                self.invisible && !within
            } else if next.is_control() {
                self.control && !matches!(next, '\n' | '\t')
            } else {
                self.invisible && is_invisible(next)
            };
            // A line that ends as on other systems is still one line.
            if next == '\r' && self.control && rest.peek() != Some(&'\n') {
                kept.push('\n');
                before = Some('\n');
            } else if !drop {
                kept.push(next);
                before = Some(next);
            }
        }
        kept
    }
}

fn is_invisible(it: char) -> bool {
    matches!(
        it,
        '\u{00ad}' | '\u{061c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// The same text with another one in the place of each match.
fn replaced(text: &str, pattern: &Pattern, with: &str) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for found in pattern.regex.find_iter(text) {
        out.push_str(&text[at..found.start()]);
        out.push_str(with);
        at = found.end();
    }
    out.push_str(&text[at..]);
    out
}

/// One blank for several, and at most one empty line.
pub(crate) fn collapsed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut empty, mut first) = (0, true);
    for line in text.lines() {
        let mut words = line.split_whitespace().peekable();
        if words.peek().is_none() {
            empty += 1;
            continue;
        }
        if !first {
            out.push_str(if empty > 0 { "\n\n" } else { "\n" });
        }
        (empty, first) = (0, false);
        for (at, word) in words.enumerate() {
            if at > 0 {
                out.push(' ');
            }
            out.push_str(word);
        }
    }
    out
}

impl IntoRegistration for Sanitise {
    fn into_registration(self) -> Registration {
        let others = ["validate", "pii", "quota", "route", "load_context"];
        let registration = hook(Cleaner(self)).named("sanitise").kind("sanitise");
        others.into_iter().fold(registration, Registration::outside)
    }
}

struct Cleaner(Sanitise);

#[lifecycle]
impl AgentLifecycle for Cleaner {
    async fn before_agent(&self, cx: TurnCx<'_>, input: &mut Input) -> Result<Flow, HookError> {
        let mut changed = 0;
        for content in input.earlier.iter_mut().chain([&mut input.content]) {
            let clean = self.0.clean(content.text());
            if clean != content.text() {
                changed += 1;
                content.set_text(clean);
            }
        }
        if changed > 0 {
            let chars = input.content.text().chars().count();
            cx.announce("input.sanitised", || json!({ "changed": changed, "chars": chars }));
        }
        Ok(Flow::Continue)
    }
}

/// Something to be replaced.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Replacement {
    /// A regular expression.
    matching: Pattern,
    /// What stands in its place. It is taken as it is.
    #[serde(default)]
    with: String,
}

/// What `sanitise` takes by `with`.
#[derive(Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SanitiseOptions {
    /// How characters are written: `as_is`, `nfc`, or `nfkc`, which also makes one of what only looks
    /// different.
    form: Form,
    /// Whether control characters are taken out, all but line breaks and tabs.
    control: bool,
    /// Whether characters are taken out that cannot be seen: of no width, and those that turn the
    /// direction of a text around.
    invisible: bool,
    /// Whether several blanks become one, and several empty lines one.
    collapse: bool,
    /// Whether blanks at the beginning and the end are taken away.
    trim: bool,
    /// Whether the tags of HTML are taken out, and what stands in scripts and styles.
    strip_html: bool,
    /// The most characters; the rest is cut off. Without it, there may be any number.
    max_chars: Option<usize>,
    /// What is replaced, in this order: regular expressions, and the text that stands in the place of
    /// what matches.
    replace: Vec<Replacement>,
}

impl Default for SanitiseOptions {
    fn default() -> Self {
        Self {
            form: Form::default(),
            control: true,
            invisible: true,
            collapse: false,
            trim: true,
            strip_html: false,
            max_chars: None,
            replace: Vec::new(),
        }
    }
}

impl Options for SanitiseOptions {
    const ABOUT: About = About {
        name: "sanitise",
        summary: "Puts the input in order: characters, blanks, tags, length, replacements.",
        covers: &["UC-1.1"],
        peers: &[],
        example: r#"{ "form": "nfkc", "collapse": true, "max_chars": 4000 }"#,
    };

    fn make(self, _: &dyn Makings) -> Result<Registration, Refusal> {
        if self.max_chars == Some(0) {
            return Err(Refusal::new(
                "max_chars",
                "nothing would be left of any input; give it more than zero, or leave it out",
            ));
        }
        let sanitise = Sanitise {
            form: self.form,
            control: self.control,
            invisible: self.invisible,
            collapse: self.collapse,
            trim: self.trim,
            html: self.strip_html,
            max_chars: self.max_chars,
            replace: self.replace.into_iter().map(|it| (it.matching, it.with)).collect(),
        };
        Ok(sanitise.into_registration())
    }
}
