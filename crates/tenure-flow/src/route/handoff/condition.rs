//! What a handoff waits for.

use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tenure_cards::hook;

/// An expression over the chat's variables, compiled once: `${approved} == True and ${round} < 3`.
///
/// `${x}` is x. The rest is the one language of conditions, the same as that of a hook's `when`:
/// `==`, `!=`, `<`, `>`, `<=`, `>=`, `in`, `and`, `or`, `not`, literals, and `${x}.field`. Inside of
/// quotes `${x}` is text like any other.
///
/// ```
/// use tenure_flow::route::handoff::Condition;
///
/// let condition = Condition::compile("${approved} == True and ${mode} in ['fast', 'slow']")?;
/// assert_eq!(condition.variables().collect::<Vec<_>>(), ["approved", "mode"]);
/// assert!(Condition::compile("${approved} ==").is_err());
/// # Ok::<_, String>(())
/// ```
#[derive(Clone)]
pub struct Condition {
    written: Arc<str>,
    compiled: Arc<hook::Condition>,
}

impl Condition {
    /// Compiles an expression; the error says what is wrong with it.
    pub fn compile(text: &str) -> Result<Self, String> {
        let plain = without_marks(text)?;
        if plain.trim().is_empty() {
            return Err("the condition is empty; write one such as `${done} == True`".to_owned());
        }
        let compiled = Arc::new(hook::Condition::compile(plain.trim())?);
        Ok(Self { written: text.into(), compiled })
    }

    /// The expression as it is written.
    pub fn text(&self) -> &str {
        &self.written
    }

    /// The variables that it mentions, in alphabetical order.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.compiled.mentions()
    }

    /// Whether it holds where variables have these values; `None` is a variable that it does not
    /// see. The error says why that could not be decided.
    pub fn holds(&self, lookup: impl Fn(&str) -> Option<Value>) -> Result<bool, String> {
        if let Some(unseen) = self.variables().find(|name| lookup(name).is_none()) {
            return Err(format!("`{unseen}` is not a variable that handoffs see; declare it"));
        }
        self.compiled.holds_where(lookup)
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.written).finish()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

/// A condition in plain words that a model judges: `the user wants a revision`. `${x}` in it is
/// replaced by the value of x when it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCondition {
    text: Arc<str>,
}

impl ModelCondition {
    /// A condition; the error says what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the condition is empty; say in plain words when it holds".to_owned());
        }
        let condition = Self { text: text.into() };
        condition.fill(|_| Some(Value::Null))?;
        Ok(condition)
    }

    /// The condition as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The variables that it mentions, in the order of the text.
    pub fn variables(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for (at, _) in self.text.match_indices("${") {
            if let Some(name) = marked(&self.text[at..]).ok().filter(|it| !found.contains(it)) {
                found.push(name);
            }
        }
        found
    }

    /// The condition with the values of the variables that it mentions.
    pub(crate) fn fill(&self, lookup: impl Fn(&str) -> Option<Value>) -> Result<String, String> {
        let mut filled = String::with_capacity(self.text.len());
        let mut rest = &*self.text;
        while let Some(at) = rest.find("${") {
            filled.push_str(&rest[..at]);
            let name = marked(&rest[at..])?;
            match lookup(name) {
                Some(Value::String(text)) => filled.push_str(&text),
                Some(value) => filled.push_str(&value.to_string()),
                None => {
                    return Err(format!(
                        "`{name}` is not a variable that handoffs see; declare it"
                    ));
                }
            }
            rest = &rest[at + marked_length(&rest[at..])..];
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

impl fmt::Display for ModelCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The expression without the marks around variables; what is quoted stays as it is.
pub(crate) fn without_marks(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut quote = None;
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        match quote {
            None if rest.starts_with("${") => {
                plain.push_str(marked(rest)?);
                rest = &rest[marked_length(rest)..];
                continue;
            }
            None if matches!(next, '"' | '\'') => quote = Some(next),
            Some(open) if next == open => quote = None,
            Some(_) if next == '\\' => {
                // What is escaped closes nothing.
                plain.push(next);
                rest = &rest[1..];
                let Some(escaped) = rest.chars().next() else { break };
                plain.push(escaped);
                rest = &rest[escaped.len_utf8()..];
                continue;
            }
            _ => {}
        }
        plain.push(next);
        rest = &rest[next.len_utf8()..];
    }
    Ok(plain)
}

/// The name in the `${name}` that `text` begins with.
fn marked(text: &str) -> Result<&str, String> {
    let inner = text.strip_prefix("${").unwrap_or(text);
    let Some(end) = inner.find('}') else {
        return Err("`${` is not closed; write `${name}`".to_owned());
    };
    let name = inner[..end].trim();
    let is_start = |it: char| it.is_alphabetic() || it == '_';
    let is_name =
        name.starts_with(is_start) && name.chars().all(|it| is_start(it) || it.is_numeric());
    match is_name {
        true => Ok(name),
        false => {
            Err(format!("`${{{name}}}` is no variable; write `${{name}}` and the rest outside"))
        }
    }
}

/// How long the `${name}` is that `text` begins with, up to its brace.
fn marked_length(text: &str) -> usize {
    text.find('}').map_or(text.len(), |end| end + 1)
}
