//! What tools return.

use super::{TYPES, Table};

/// What a function returns, and what the model reads. What ends with an error begins with `!`.
const RESULTS: &[(&str, &str)] = &[
    ("'text'", "text"),
    ("Size.BIG", "big"),
    ("Level.HIGH", "2"),
    ("Rgb.RED", "RED"),
    ("Word.YES", "yes"),
    ("Email('a@b')", "a@b"),
    ("None", "null"),
    ("[1, 2.5, True, None, 'é']", r#"[1, 2.5, true, null, "é"]"#),
    ("Spot(1)", r#"{"x": 1, "y": 0.5}"#),
    ("Pair(date(2026, 1, 31))", r#"{"when": "2026-01-31", "n": 3}"#),
    (
        "Item('a', date(2026, 1, 31), Size.BIG, {'b', 'a', 'c'})",
        r#"{"name": "a", "due": "2026-01-31", "size": "big", "tags": ["a", "b", "c"]}"#,
    ),
    (
        "datetime.datetime(2026, 1, 31, 9, tzinfo=datetime.timezone.utc)",
        "2026-01-31T09:00:00+00:00",
    ),
    ("time(9, 30)", "09:30:00"),
    ("[timedelta(days=1, seconds=7384, microseconds=500000)]", r#"["P1DT2H3M4.5S"]"#),
    ("[timedelta(0), -timedelta(seconds=90)]", r#"["PT0S", "-PT1M30S"]"#),
    ("[Path('a/b')]", r#"["a/b"]"#),
    ("Decimal('1.10')", "1.10"),
    (
        "{'n': UUID('12345678-1234-5678-1234-567812345678')}",
        r#"{"n": "12345678-1234-5678-1234-567812345678"}"#,
    ),
    ("frozenset({3, 1, 2})", "[1, 2, 3]"),
    ("deque([1])", "[1]"),
    ("b'ab'", "ab"),
    (r"b'\xff\x00'", "/wA="),
    (
        "{Size.BIG: 1, date(2026, 1, 31): 2, 3: 3, None: 4}",
        r#"{"big": 1, "2026-01-31": 2, "3": 3, "null": 4}"#,
    ),
    ("collections.UserDict(a=Level.LOW)", r#"{"a": 1}"#),
    ("(Spot(1), [Spot(2)])", r#"[{"x": 1, "y": 0.5}, [{"x": 2, "y": 0.5}]]"#),
    ("[10 ** 30]", "[1000000000000000000000000000000]"),
    ("[Size]", "<enum 'Size'>"),
    (
        "{'a': [1.0, float('nan')]}",
        "!ValueError: the result has nan at `a[1]`, and JSON has no such number",
    ),
    ("[{'b': -float('inf')}]", "!ValueError: the result has -inf at `[0].b`"),
    ("float('inf')", "!ValueError: the result has inf, and JSON has no such number"),
];

#[tokio::test]
async fn results_are_told_in_the_form_in_which_they_would_be_given() {
    let functions = RESULTS.iter().map(|(value, _)| format!("(): return {value}"));
    let table = Table::of(TYPES, functions.enumerate()).await;
    let mut wrong = Vec::new();
    for (at, (value, expected)) in RESULTS.iter().enumerate() {
        let output = table.call(at, "{}").await;
        let fits = match expected.strip_prefix('!') {
            Some(error) => output.starts_with(error),
            None => output == *expected || value.starts_with("[Size]") && output.contains(expected),
        };
        if !fits {
            wrong.push(format!("{value}\n   {output}\n   {expected}"));
        }
    }
    table.end().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Values go in and come out as they are, whatever their type and however they are nested.
#[tokio::test]
async fn what_a_tool_is_given_is_what_it_tells() {
    let values = [
        (
            "Order",
            r#"{"id": "12345678-1234-5678-1234-567812345678", "items": [{"name": "a", "due": null, "size": "big", "tags": ["s", "t"]}], "spots": {"é": {"x": -1, "y": 0.25}}, "made": 7}"#,
        ),
        (
            "Tree",
            r#"{"name": "a", "below": [{"name": "b", "below": [{"name": "c", "below": []}]}]}"#,
        ),
        ("Trip", r#"{"day": "2026-01-31", "stops": ["a", "b/c"]}"#),
        ("dict[date, Tuple[Level, ...]]", r#"{"2026-01-31": [1, 2], "2026-02-01": []}"#),
        (
            "list[Union[datetime.datetime, timedelta, Decimal]]",
            r#"["2026-01-31T09:30:00+01:00", "P1DT12H", "12.50"]"#,
        ),
        ("Optional[Pair]", r#"{"when": "2026-01-31", "n": 123456789012345678901234567890}"#),
    ];
    let functions = values.iter().map(|(annotation, _)| format!("(x: {annotation}): return x"));
    let table = Table::of(TYPES, functions.enumerate()).await;
    for (at, (annotation, value)) in values.iter().enumerate() {
        let given = value.replace(r#", "made": 7"#, "");
        let output = table.call(at, &format!(r#"{{"x": {given}}}"#)).await;
        assert_eq!(output, *value, "{annotation}");
    }
    table.end().await;
}
