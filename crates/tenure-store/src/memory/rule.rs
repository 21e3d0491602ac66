//! What is kept when two have written the same key.

use serde_json::{Map, Number, Value};

/// What is kept of a key that somebody else has written since it was read.
///
/// Two that write the same value are of one mind: that is no conflict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// What is written now. What was there is overwritten.
    #[default]
    LastWriter,
    /// What is there. What is written now is dropped.
    FirstWriter,
    /// Both: objects are merged field by field, lists get what they do not have yet. What the writer
    /// had taken out of what it read is taken out. Anything else is kept as by
    /// [`Rule::LastWriter`].
    Merge,
    /// The greater number; as by [`Rule::LastWriter`] if one is no number.
    Max,
    /// The smaller number; as by [`Rule::LastWriter`] if one is no number.
    Min,
    /// What is there; and the writer is told by a
    /// [`Conflict`](tenure_core::memory::Conflict).
    Refuse,
}

/// Rules by key; a `*` at the end of one means every key that begins so. The longest one counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(Vec<(String, Rule)>);

impl Rules {
    pub(super) fn declare(&mut self, key: String, rule: Rule) {
        self.0.retain(|(known, _)| *known != key);
        self.0.push((key, rule));
    }

    pub(super) fn of(&self, key: &str) -> Rule {
        let exact = self.0.iter().find(|(known, _)| known == key);
        let fits = |(known, _): &&(String, Rule)| {
            known.strip_suffix('*').is_some_and(|prefix| key.starts_with(prefix))
        };
        let best = || self.0.iter().filter(fits).max_by_key(|(known, _)| known.len());
        exact.or_else(best).map_or(Rule::default(), |(_, rule)| *rule)
    }
}

/// What is kept of `mine` and `theirs`, which was there before it. `base` is what the writer of
/// `mine` had read, if that is known. None if neither may be chosen.
pub(super) fn settle(
    rule: Rule,
    base: Option<&Value>,
    theirs: &Value,
    mine: Value,
) -> Option<Value> {
    match rule {
        Rule::LastWriter => Some(mine),
        Rule::FirstWriter => Some(theirs.clone()),
        Rule::Merge => Some(merged(base, theirs, mine)),
        Rule::Max => Some(if is_less(&mine, theirs) { theirs.clone() } else { mine }),
        Rule::Min => Some(if is_less(theirs, &mine) { theirs.clone() } else { mine }),
        Rule::Refuse => None,
    }
}

/// Whether both are numbers, and the first one is less. Whole numbers are compared exactly: a count
/// of more than 2^53 is not rounded.
fn is_less(one: &Value, other: &Value) -> bool {
    let (Value::Number(one), Value::Number(other)) = (one, other) else { return false };
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one < other,
        _ => one.as_f64() < other.as_f64(),
    }
}

fn whole(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

fn merged(base: Option<&Value>, theirs: &Value, mine: Value) -> Value {
    match (theirs, mine) {
        (Value::Object(theirs), Value::Object(mine)) => {
            let base = base.and_then(Value::as_object);
            Value::Object(merged_fields(base, theirs, mine))
        }
        (Value::Array(theirs), Value::Array(mine)) => {
            let base = base.and_then(Value::as_array).map(Vec::as_slice);
            Value::Array(merged_items(base.unwrap_or_default(), theirs, mine))
        }
        (_, mine) => mine,
    }
}

fn merged_fields(
    base: Option<&Map<String, Value>>,
    theirs: &Map<String, Value>,
    mine: Map<String, Value>,
) -> Map<String, Value> {
    let mut fields = theirs.clone();
    let read = |name: &str| base.and_then(|base| base.get(name));
    if let Some(base) = base {
        let gone = |name: &&String| !mine.contains_key(*name);
        for name in base.keys().filter(gone) {
            // Taken out here; unless the others have changed it, which they would not see again.
            if theirs.get(name) == base.get(name) {
                fields.remove(name);
            }
        }
    }
    for (name, mine) in mine {
        // What was not changed here is as the others have it, gone or not.
        if read(&name) == Some(&mine) {
            continue;
        }
        let value = match theirs.get(&name) {
            Some(theirs) => merged(read(&name), theirs, mine),
            None => mine,
        };
        fields.insert(name, value);
    }
    fields
}

fn merged_items(base: &[Value], theirs: &[Value], mine: Vec<Value>) -> Vec<Value> {
    let is_gone = |item: &&Value| base.contains(item) && !mine.contains(item);
    let mut items: Vec<Value> = theirs.iter().filter(|item| !is_gone(item)).cloned().collect();
    for item in mine {
        if !base.contains(&item) && !items.contains(&item) {
            items.push(item);
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_longest_key_that_fits_gives_the_rule() {
        let mut rules = Rules::default();
        rules.declare("*".into(), Rule::Merge);
        rules.declare("count/*".into(), Rule::Max);
        rules.declare("count/low".into(), Rule::Min);
        rules.declare("facts".into(), Rule::Refuse);
        rules.declare("facts".into(), Rule::FirstWriter);
        let of = |key| rules.of(key);
        assert_eq!(of("count/low"), Rule::Min);
        assert_eq!(of("count/lower"), Rule::Max);
        assert_eq!(of("facts"), Rule::FirstWriter);
        assert_eq!(of("fact"), Rule::Merge);
        assert_eq!(Rules::default().of("fact"), Rule::LastWriter);
    }

    #[test]
    fn each_rule_keeps_what_it_says() {
        let (one, two) = (json!(1), json!(2));
        let table = [
            (Rule::LastWriter, Some(&one)),
            (Rule::FirstWriter, Some(&two)),
            (Rule::Merge, Some(&one)),
            (Rule::Max, Some(&two)),
            (Rule::Min, Some(&one)),
            (Rule::Refuse, None),
        ];
        for (rule, kept) in table {
            assert_eq!(settle(rule, None, &two, one.clone()).as_ref(), kept, "{rule:?}");
        }
        let text = json!("many");
        assert_eq!(settle(Rule::Max, None, &two, text.clone()), Some(text));
        let (big, bigger) = (json!(u64::MAX - 1), json!(u64::MAX));
        assert_eq!(settle(Rule::Max, None, &bigger, big.clone()), Some(bigger.clone()));
        assert_eq!(settle(Rule::Min, None, &bigger, big.clone()), Some(big));
        assert_eq!(settle(Rule::Max, None, &json!(-0.5), json!(-1)), Some(json!(-0.5)));
    }

    fn merge(base: Value, theirs: Value, mine: Value) -> Value {
        settle(Rule::Merge, Some(&base), &theirs, mine).expect("merging always chooses")
    }

    #[test]
    fn fields_are_merged_and_nobodys_change_is_undone_by_one_who_did_not_make_one() {
        let base = json!({ "a": 1, "b": 1, "deep": { "x": 1 } });
        let theirs = json!({ "a": 2, "b": 1, "deep": { "x": 1, "y": 2 }, "new": true });
        let mine = json!({ "a": 1, "deep": { "x": 5 }, "own": 3 });
        let both = json!({ "a": 2, "deep": { "x": 5, "y": 2 }, "new": true, "own": 3 });
        assert_eq!(merge(base, theirs, mine), both);
        // What they took out stays out, if nothing was changed here.
        assert_eq!(
            merge(json!({ "a": 1 }), json!({}), json!({ "a": 1, "b": 2 })),
            json!({ "b": 2 })
        );
        // What they changed is not taken out by one who has not seen it.
        assert_eq!(merge(json!({ "a": 1 }), json!({ "a": 2 }), json!({})), json!({ "a": 2 }));
    }

    #[test]
    fn lists_get_what_they_do_not_have_and_lose_what_was_taken_out() {
        assert_eq!(merge(json!([1, 2]), json!([1, 2, 3]), json!([1, 2, 4])), json!([1, 2, 3, 4]));
        assert_eq!(merge(json!([1]), json!([1, 2]), json!([1, 2])), json!([1, 2]));
        assert_eq!(merge(json!([1, 2]), json!([1, 2, 3]), json!([2])), json!([2, 3]));
        let unknown = settle(Rule::Merge, None, &json!(["x", "a"]), json!(["a", "b"]));
        assert_eq!(unknown, Some(json!(["x", "a", "b"])));
        assert_eq!(merge(json!([]), json!([1]), json!("a text")), json!("a text"));
    }
}
