//! Options of a hook: read, checked, and described.

use super::apart::Apart;
use super::read::read;
use super::wrong::Wrong;
use super::{About, Makings, Refusal};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::ptr;
use tenure_core::hook::Registration;

/// What a hook takes by `with`. Unknown fields are refused (`#[serde(deny_unknown_fields)]`), what is
/// left out has a default, and the comments of the fields are its documentation.
pub(crate) trait Options: DeserializeOwned + JsonSchema {
    /// What is said of the hook.
    const ABOUT: About;

    /// The hook itself. Whatever cannot work is refused here, and not when it is called.
    fn make(self, makings: &dyn Makings) -> Result<Registration, Refusal>;
}

pub(super) fn make<O: Options>(
    with: &Value,
    makings: &dyn Makings,
) -> Result<Registration, Refusal> {
    let nothing = Value::Object(Map::new());
    let with = if with.is_null() { &nothing } else { with };
    let options: O = read(with, &[]).map_err(Wrong::into_refusal)?;
    options.make(makings).map(|registration| registration.kind(O::ABOUT.name))
}

/// No more than this is told of one hook.
const MOST: usize = 20;

/// Everything that is wrong with what `with` says, of which `first` is known. What is found wrong is
/// left out, and the rest is read and checked again. What is only wrong because something else is
/// left out is not told.
pub(super) fn refusals<O: Options>(
    with: &Value,
    makings: &dyn Makings,
    first: Refusal,
) -> Vec<Refusal> {
    let apart = Apart::new(makings);
    let (mut all, mut left_out): (Vec<Refusal>, Vec<*const Value>) = (Vec::new(), Vec::new());
    let mut paths: Vec<String> = Vec::new();
    while all.len() < MOST {
        let (refusal, at, follows) = match read::<O>(with, &left_out) {
            Err(wrong) => {
                let follows = paths.iter().any(|path| holds(&wrong.path, path));
                let at = wrong.at;
                (wrong.into_refusal(), at, follows)
            }
            Ok(options) => {
                let refusal = match all.is_empty() {
                    true => first.clone(),
                    false => match options.make(&apart) {
                        Ok(_) => break,
                        Err(refusal) => refusal,
                    },
                };
                let key = top(refusal.field());
                let written = with.get(key);
                let follows = !all.is_empty()
                    && (written.is_none() || paths.iter().any(|path| names(&refusal, path)));
                (refusal, written.map(ptr::from_ref), follows)
            }
        };
        if !follows {
            paths.push(refusal.field().to_owned());
            all.push(refusal);
        }
        match at {
            Some(at) if !left_out.contains(&at) => left_out.push(at),
            _ => break,
        }
    }
    if all.is_empty() {
        all.push(first);
    }
    all
}

/// Whether what is at `outer` holds what is at `inner`, or is it.
fn holds(outer: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(outer);
    rest.is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Whether a refusal is about the option that something was left out of, or speaks of it.
fn names(refusal: &Refusal, path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or_default();
    let says = |name: &str| refusal.message().contains(&format!("`{name}"));
    top(refusal.field()) == top(path) || says(top(path)) || says(top(last))
}

/// The option that a path leads into.
fn top(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}

pub(super) fn schema<O: Options>() -> Value {
    SchemaGenerator::default().into_root_schema_for::<O>().to_value()
}
