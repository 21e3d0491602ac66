//! JSON as it is stored: what is big or repeated is kept apart, by its hash.
//!
//! `{"$blob": hash}` stands for a long text, `{"$messages": hash}` for a list of messages. An object
//! that happens to look like that is written with one more `$`.

use super::sum::{Hash, hash, hash_of_list, hex};
use serde_json::{Map, Value};

/// A record below this is stored as it is.
const SMALL: usize = 1024;
/// A text from here on is kept apart.
const LONG_TEXT: usize = 4096;
/// A list of messages from here on is kept apart.
const LONG_LIST: usize = 512;

/// A value, ready to be written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed {
    /// What goes into the row.
    pub(crate) text: String,
    /// The long texts that it refers to.
    pub(super) blobs: Vec<(Hash, String)>,
    /// The lists of messages that it refers to.
    pub(super) lists: Vec<PackedList>,
}

/// A list of messages, each with its hash.
#[derive(Clone, Debug)]
pub(super) struct PackedList {
    pub(super) hash: Hash,
    pub(super) items: Vec<Hash>,
    pub(super) bodies: Vec<String>,
}

/// Takes a value apart.
pub(crate) fn pack(value: &Value) -> Packed {
    let text = value.to_string();
    let small = text.len() < SMALL;
    if (small && !text.contains("\"$")) || !is_special(value, small) {
        return Packed { text, ..Packed::default() };
    }
    let mut packed = Packed::default();
    packed.text = packed.take(value, small).to_string();
    packed
}

/// Whether anything is to be taken out or spelled otherwise.
fn is_special(value: &Value, small: bool) -> bool {
    match value {
        Value::Object(fields) => {
            looks_like_ours(fields)
                || fields.iter().any(|(key, value)| {
                    (!small && key == "messages" && value.is_array()) || is_special(value, small)
                })
        }
        Value::Array(items) => items.iter().any(|item| is_special(item, small)),
        Value::String(text) => text.len() >= LONG_TEXT,
        _ => false,
    }
}

/// Whether an object could be taken for a reference, or for one that was spelled otherwise.
fn looks_like_ours(fields: &Map<String, Value>) -> bool {
    fields.len() == 1 && fields.keys().all(|key| key.starts_with('$'))
}

impl Packed {
    fn take(&mut self, value: &Value, small: bool) -> Value {
        match value {
            Value::Object(fields) if looks_like_ours(fields) => {
                let fields = fields.iter();
                fields.map(|(key, value)| (format!("${key}"), self.take(value, small))).collect()
            }
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| {
                    let list = match value {
                        Value::Array(items) if !small && key == "messages" => self.take_list(items),
                        _ => None,
                    };
                    (key.clone(), list.unwrap_or_else(|| self.take(value, small)))
                });
                fields.collect()
            }
            Value::Array(items) => items.iter().map(|item| self.take(item, small)).collect(),
            Value::String(text) if text.len() >= LONG_TEXT => {
                let hash = hash(text.as_bytes());
                self.blobs.push((hash, text.clone()));
                reference("$blob", &hash)
            }
            other => other.clone(),
        }
    }

    fn take_list(&mut self, items: &[Value]) -> Option<Value> {
        let bodies: Vec<String> = items.iter().map(Value::to_string).collect();
        if bodies.iter().map(String::len).sum::<usize>() < LONG_LIST {
            return None;
        }
        let items: Vec<Hash> = bodies.iter().map(|body| hash(body.as_bytes())).collect();
        let hash = hash_of_list(&items);
        self.lists.push(PackedList { hash, items, bodies });
        Some(reference("$messages", &hash))
    }
}

/// A list of messages of which those with these hashes are in the file, and these follow. Also says
/// the hashes of all.
pub(crate) fn pack_list(known: Vec<Hash>, new: Vec<String>) -> (Packed, Vec<Hash>) {
    let mut items = known;
    // What is known has no body here: it is not written again.
    let mut bodies = vec![String::new(); items.len()];
    items.extend(new.iter().map(|body| hash(body.as_bytes())));
    bodies.extend(new);
    let hash = hash_of_list(&items);
    let lists = vec![PackedList { hash, items: items.clone(), bodies }];
    (Packed { text: list_reference(&hash), lists, ..Packed::default() }, items)
}

/// What is stored in place of an object that has nothing but this list of messages.
pub(crate) fn list_reference(hash: &Hash) -> String {
    let list = reference("$messages", hash);
    Value::Object(Map::from_iter([("messages".to_owned(), list)])).to_string()
}

fn reference(kind: &str, hash: &Hash) -> Value {
    Value::Object(Map::from_iter([(kind.to_owned(), Value::String(hex(hash)))]))
}

/// Where the parts are that were kept apart.
pub(super) trait Parts {
    /// Why a part is not there.
    type Error;

    /// A long text.
    fn text(&mut self, hash: &str) -> Result<String, Self::Error>;

    /// A list of messages.
    fn messages(&mut self, hash: &str) -> Result<Vec<Value>, Self::Error>;
}

/// Puts a value together again.
pub(super) fn unpack<P: Parts>(value: Value, parts: &mut P) -> Result<Value, P::Error> {
    Ok(match value {
        Value::Object(fields) if looks_like_ours(&fields) => {
            let mut put = Map::new();
            for (key, value) in fields {
                match (&*key, &value) {
                    ("$blob", Value::String(hash)) => return parts.text(hash).map(Value::String),
                    ("$messages", Value::String(hash)) => {
                        return parts.messages(hash).map(Value::Array);
                    }
                    _ => put.insert(key[1..].to_owned(), unpack(value, parts)?),
                };
            }
            Value::Object(put)
        }
        Value::Object(fields) => {
            let fields = fields.into_iter();
            let fields = fields.map(|(key, value)| Ok((key, unpack(value, parts)?)));
            Value::Object(fields.collect::<Result<_, _>>()?)
        }
        Value::Array(items) => {
            let items = items.into_iter().map(|item| unpack(item, parts));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        other => other,
    })
}

/// The hashes that a stored text refers to: of texts, and of lists. It may name some that are none,
/// and leaves none out.
pub(super) fn references(text: &str) -> impl Iterator<Item = (Kind, Hash)> + '_ {
    let kinds = [(Kind::Text, "{\"$blob\":\""), (Kind::List, "{\"$messages\":\"")];
    kinds.into_iter().flat_map(move |(kind, mark)| {
        text.match_indices(mark).filter_map(move |(at, _)| {
            let start = at + mark.len();
            Some((kind, super::sum::unhex(text.get(start..start + 32)?)?))
        })
    })
}

/// What is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A long text.
    Text,
    /// A list of messages.
    List,
}
