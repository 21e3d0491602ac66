//! Conditions whose values stay small.
//!
//! Some operations of the expression engine make much of little: `'x' * 100000000`, a `replace` of each letter by
//! twenty, one behind the other. What a condition compares is short, so each of them fails instead.

use crate::limit::MAX_CONDITION_VALUE;
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, State, Value, filters};
use std::sync::LazyLock;

/// The filter that each product becomes; see [`ordered`](super::ordered).
pub(super) const TIMES: &str = "_times";

/// The largest number that says how wide or how many something is to be.
const MAX_WIDTH: i64 = 1000;

static PRODUCT: LazyLock<Option<Expression<'static, 'static>>> = LazyLock::new(|| {
    static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(Environment::new);
    ENVIRONMENT.compile_expression("a * b").ok()
});

type Measure = fn(&Value, &[Value]) -> Option<usize>;

/// Puts filters in place of those that can multiply their input.
pub(super) fn teach(environment: &mut Environment<'static>) {
    environment.add_filter(TIMES, times);
    let replaced: [(&'static str, Value, Measure); 5] = [
        ("replace", Value::from_function(filters::replace), of_replace),
        ("join", Value::from_function(filters::join), of_join),
        ("indent", Value::from_function(filters::indent), of_width),
        ("batch", Value::from_function(filters::batch), of_width),
        ("slice", Value::from_function(filters::slice), of_width),
    ];
    for (name, filter, measure) in replaced {
        let bounded = move |state: &mut State<'_, '_>,
                            value: Value,
                            first: Option<Value>,
                            second: Option<Value>,
                            named: Kwargs| {
            let given = [first, second];
            let count = given.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
            let or_none = |given: Option<Value>| given.unwrap_or_else(|| Value::from(()));
            let others: Vec<Value> = given.into_iter().take(count).map(or_none).collect();
            let names: Vec<&str> = named.args().collect();
            let named_values = names.iter().filter_map(|name| named.get::<Value>(name).ok());
            let all: Vec<Value> = others.iter().cloned().chain(named_values).collect();
            bounded(measure(&value, &all))?;
            let mut arguments = vec![value];
            arguments.extend(others);
            if !names.is_empty() {
                arguments.push(named.into());
            }
            filter.call(state, &arguments)
        };
        environment.add_filter(name, bounded);
    }
    // Its values come in order: any number of them, and none by name.
    let format = Value::from_function(filters::format);
    let formatted = move |state: &mut State<'_, '_>, text: Value, values: Rest<Value>| {
        bounded(of_format(&text))?;
        let mut arguments = vec![text];
        arguments.extend(values.0);
        format.call(state, &arguments)
    };
    environment.add_filter("format", formatted);
}

fn bounded(size: Option<usize>) -> Result<(), Error> {
    if size.is_some_and(|size| size <= MAX_CONDITION_VALUE) {
        return Ok(());
    }
    let why = format!("a value would be larger than {MAX_CONDITION_VALUE} bytes");
    Err(Error::new(ErrorKind::InvalidOperation, why))
}

fn times(left: Value, right: Value) -> Result<Value, Error> {
    for (value, count) in [(&left, &right), (&right, &left)] {
        if matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Iterable) {
            bounded(count.as_usize().and_then(|count| bytes_of(value)?.checked_mul(count)))?;
        }
    }
    match &*PRODUCT {
        Some(product) => product.eval(minijinja::context! { a => left, b => right }),
        None => Err(ErrorKind::InvalidOperation.into()),
    }
}

/// The bytes of a text; of a list, those of its items.
fn bytes_of(value: &Value) -> Option<usize> {
    match value.as_str() {
        Some(text) => Some(text.len()),
        None => Some(value.len()?.saturating_mul(size_of::<Value>())),
    }
}

fn of_replace(value: &Value, others: &[Value]) -> Option<usize> {
    let text = value.to_string();
    let found = others.first().map(Value::to_string).unwrap_or_default();
    let put = others.get(1).map(Value::to_string).unwrap_or_default();
    text.matches(found.as_str()).count().checked_mul(put.len())?.checked_add(text.len())
}

fn of_join(value: &Value, others: &[Value]) -> Option<usize> {
    let between = others.first().and_then(|it| it.as_str()).map_or(0, str::len);
    let mut size: usize = 0;
    for item in value.try_iter().ok()? {
        let length = item.as_str().map_or_else(|| item.to_string().len(), str::len);
        size = size.checked_add(length)?.checked_add(between)?;
        if size > MAX_CONDITION_VALUE {
            break;
        }
    }
    Some(size)
}

/// Every number among the arguments is small.
fn of_width(_: &Value, others: &[Value]) -> Option<usize> {
    let is_small = |value: &Value| value.as_i64().is_none_or(|width| width.abs() <= MAX_WIDTH);
    others.iter().all(is_small).then_some(0)
}

/// A width in a format is short, and not taken from elsewhere.
fn of_format(text: &Value) -> Option<usize> {
    let text = text.as_str().unwrap_or_default();
    let mut numbers = text.split(|found: char| !found.is_ascii_digit());
    let is_wide = text.contains("*") || numbers.any(|number| number.len() > 3);
    (!is_wide).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::super::when::Condition;
    use serde_json::{Value, json};

    fn value(expression: &str) -> Result<Value, String> {
        Condition::compile(expression)?.value_where(|name| match name {
            "a" => Some("abc".into()),
            "n" => Some(3.into()),
            "list" => Some(json!([1, 2])),
            _ => None,
        })
    }

    #[test]
    fn what_makes_much_of_little_fails() {
        for expression in [
            "'x' * 100000000",
            "100000000 * a",
            "n * 100000000 * a",
            "(a * 1000) * 1000",
            "[1] * 100000000",
            "list * 50000",
            "[a, ('x' * 100000000)]|length",
            "a|replace('a', 'x' * 1000)|replace('x', 'y' * 1000)|replace('y', 'z' * 1000)",
            "range(99999)|join('x' * 1000)",
            "a|indent(100000000)",
            "a|indent(width=100000000)",
            "list|batch(100000000)",
            "'%100000000d'|format(1)",
            "list|slice(100000000)",
        ] {
            let error = value(expression).expect_err(expression);
            assert!(error.contains("larger than"), "{expression}: {error}");
        }
    }

    #[test]
    fn products_are_as_they_were() {
        for (expression, expected) in [
            ("n * 2", json!(6)),
            ("2 * n + 1", json!(7)),
            ("1 + 2 * n", json!(7)),
            ("n * n * n", json!(27)),
            ("n * 4 / 2 * 5", json!(30.0)),
            ("2 ** n * 2", json!(16)),
            ("-n * 2", json!(-6)),
            ("n * -2", json!(-6)),
            ("n - 2 * 2", json!(-1)),
            ("7 // 2 * n % 4", json!(1)),
            ("a * 2 ~ 'd' * n", json!("abcabcddd")),
            ("(n + 1) * (n - 1)", json!(8)),
            ("n * 2 > 5 and not n * 3 < 9", json!(true)),
            ("[n * 2, 3][0] * 2", json!(12)),
            ("{'x': n * 2}.x * 2", json!(12)),
            ("n * list|length", json!(6)),
            ("n * 2 if n * 3 == 9 else n", json!(6)),
            ("dict(x=n * 2).x", json!(6)),
            ("1.5 * 2", json!(3.0)),
            ("a|replace('b', '*')", json!("a*c")),
            ("list|join(', ')", json!("1, 2")),
            ("'%s-%03d'|format(a, n)", json!("abc-003")),
            ("[{'k': 1}, {'k': 2}]|join('-', attribute='k')", json!("1-2")),
            ("'a\\nb'|indent(2, first=True)", json!("  a\n  b")),
        ] {
            assert_eq!(value(expression), Ok(expected), "{expression}");
        }
    }
}
