//! A table of annotations and values.

use super::{TYPES, check_arguments};

/// An annotation, a value, and what the function sees: `type repr`. What it is not called with is an
/// error that ends with the words after `!`.
const ARGUMENTS: &[(&str, &str, &str)] = &[
    // What JSON has stays as it is.
    ("str", r#""a""#, "str 'a'"),
    ("int", "12", "int 12"),
    ("bool", "true", "bool True"),
    ("Any", r#"{"a": [1]}"#, "dict {'a': [1]}"),
    ("object", "null", "NoneType None"),
    ("dict", r#"{"a": 1}"#, "dict {'a': 1}"),
    ("list[int]", "[1, 2]", "list [1, 2]"),
    ("Literal['a', 'b']", r#""b""#, "str 'b'"),
    ("Optional[int]", "null", "NoneType None"),
    ("Count", "4", "int 4"),
    // Texts that stand for something.
    ("date", r#""2026-01-31""#, "date datetime.date(2026, 1, 31)"),
    (
        "date",
        r#""tomorrow""#,
        r#"!`x` must be a date such as 2026-01-31, but is the text "tomorrow""#,
    ),
    ("date", r#""2026-02-30""#, r#"!a date such as 2026-01-31, but is the text "2026-02-30""#),
    ("date", "20260131", "!a date such as 2026-01-31, but is the number 20260131"),
    ("date", "null", "!but is null"),
    ("datetime.date", r#""2026-01-31""#, "date datetime.date(2026, 1, 31)"),
    (
        "datetime.datetime",
        r#""2026-01-31T09:30:00Z""#,
        "datetime datetime.datetime(2026, 1, 31, 9, 30, tzinfo=datetime.timezone.utc)",
    ),
    (
        "datetime.datetime",
        r#""2026-01-31T09:30:00.5+02:00""#,
        "datetime datetime.datetime(2026, 1, 31, 9, 30, 0, 500000, \
         tzinfo=datetime.timezone(datetime.timedelta(seconds=7200)))",
    ),
    (
        "datetime.datetime",
        r#""noon""#,
        r#"!a date and time such as 2026-01-31T09:30:00Z, but is the text "noon""#,
    ),
    ("time", r#""09:30""#, "time datetime.time(9, 30)"),
    ("time", r#""25:00""#, "!a time such as 09:30:00, but is the text \"25:00\""),
    (
        "timedelta",
        r#""P1DT2H3M4.5S""#,
        "timedelta datetime.timedelta(days=1, seconds=7384, microseconds=500000)",
    ),
    ("timedelta", r#""-PT90S""#, "timedelta datetime.timedelta(days=-1, seconds=86310)"),
    ("timedelta", r#""P2W""#, "timedelta datetime.timedelta(days=14)"),
    ("timedelta", r#""P1M""#, r#"!a duration such as P1DT2H30M, but is the text "P1M""#),
    ("timedelta", r#""P""#, "!a duration such as P1DT2H30M, but is the text \"P\""),
    ("timedelta", r#""PT""#, "!a duration such as P1DT2H30M, but is the text \"PT\""),
    ("Path", r#""a/b.txt""#, "PosixPath PosixPath('a/b.txt')"),
    ("pathlib.PurePosixPath", r#""a""#, "PurePosixPath PurePosixPath('a')"),
    ("Path", "3", "!a path, but is the number 3"),
    (
        "UUID",
        r#""12345678-1234-5678-1234-567812345678""#,
        "UUID UUID('12345678-1234-5678-1234-567812345678')",
    ),
    ("uuid.UUID", r#""12""#, r#"!a UUID such as "#),
    ("Decimal", r#""12.50""#, "Decimal Decimal('12.50')"),
    ("Decimal", "0.1", "Decimal Decimal('0.1')"),
    ("Decimal", "12", "Decimal Decimal('12')"),
    (
        "Decimal",
        "123456789012345678901234567890",
        "Decimal Decimal('123456789012345678901234567890')",
    ),
    ("Decimal", r#""NaN""#, r#"!a decimal number such as 12.50, but is the text "NaN""#),
    ("Decimal", "true", "!a decimal number such as 12.50, but is true"),
    ("bytes", r#""é""#, r"bytes b'\xc3\xa9'"),
    ("bytes", "[1]", "!a text, but is a list of 1"),
    ("Email", r#""a@b""#, "Email 'a@b'"),
    ("Bag", r#"{"a": 1}"#, "Bag {'a': 1}"),
    ("Bag", "[]", "!an object, but is a list of 0"),
    ("Row", "[1, 2]", "Row (1, 2)"),
    ("Id", r#""12345678-1234-5678-1234-567812345678""#, "UUID UUID('12345678-1234-"),
    // Choices.
    ("Size", r#""big""#, "Size <Size.BIG: 'big'>"),
    ("Size", r#""SMALL""#, "Size <Size.SMALL: 'small'>"),
    ("Size", r#""huge""#, r#"!`x` must be "small" or "big", but is the text "huge""#),
    ("Level", "2", "Level <Level.HIGH: 2>"),
    ("Level", "true", "!must be 1 or 2, but is true"),
    ("Word", r#""yes""#, "Word <Word.YES: 'yes'>"),
    ("Rgb", r#""BLUE""#, "Rgb <Rgb.BLUE: (0, 0, 255)>"),
    ("Rgb", r#""GREEN""#, r#"!must be "RED" or "BLUE", but is the text "GREEN""#),
    ("Right", "3", "Right <Right."),
    ("Lenient", r#""A""#, "Lenient <Lenient.A: 'a'>"),
    ("Literal[Size.BIG, 3]", r#""big""#, "Size <Size.BIG: 'big'>"),
    ("Literal[Size.BIG, 3]", "3", "int 3"),
    ("Literal[Size.BIG, 3]", r#""small""#, r#"!must be "big" or 3, but is the text "small""#),
    ("Literal[b'a']", r#""a""#, "bytes b'a'"),
    // Containers.
    ("set[int]", "[1, 2, 2]", "set {1, 2}"),
    ("set", "[1]", "set {1}"),
    ("FrozenSet[date]", r#"["2026-01-31"]"#, "frozenset frozenset({datetime.date(2026, 1, 31)})"),
    ("Set[dict]", "[{}]", "!`x` cannot be a set: TypeError: unhashable type: 'dict'"),
    ("set[int]", r#"{"a": 1}"#, "!a list, but is an object"),
    ("tuple[int, date]", r#"[1, "2026-01-31"]"#, "tuple (1, datetime.date(2026, 1, 31))"),
    ("Tuple[Path, ...]", r#"["a"]"#, "tuple (PosixPath('a'),)"),
    ("tuple", "[1]", "tuple (1,)"),
    ("tuple[int, str]", "[1]", "!`x` must be a list of 2, but is a list of 1"),
    ("tuple[int, str]", "[1, 2]", "!`x[1]` must be a text, but is the number 2"),
    ("deque[date]", r#"["2026-01-31"]"#, "deque deque([datetime.date(2026, 1, 31)])"),
    ("Days", r#"["2026-01-31", "x"]"#, "!`x[1]` must be a date"),
    ("Sequence[date]", r#"["2026-01-31"]"#, "list [datetime.date(2026, 1, 31)]"),
    ("dict[str, Level]", r#"{"a": 1, "b": 7}"#, "!`x.b` must be 1 or 2, but is the number 7"),
    ("dict[int, str]", r#"{"1": "a"}"#, "dict {1: 'a'}"),
    (
        "dict[int, str]",
        r#"{"one": "a"}"#,
        r#"!`x.one` has a key that must be an integer, but is the text "one""#,
    ),
    (
        "Mapping[date, Level]",
        r#"{"2026-01-31": 1}"#,
        "dict {datetime.date(2026, 1, 31): <Level.LOW: 1>}",
    ),
    ("dict[Level, int]", r#"{"2": 5}"#, "dict {<Level.HIGH: 2>: 5}"),
    ("collections.OrderedDict[str, date]", r#"{"a": "2026-01-31"}"#, "OrderedDict OrderedDict("),
    // One of several.
    ("Optional[date]", "null", "NoneType None"),
    ("Optional[date]", r#""x""#, r#"!a date such as 2026-01-31 or null, but is the text "x""#),
    ("Union[date, str]", r#""x""#, "str 'x'"),
    ("Union[datetime.datetime, date]", r#""2026-01-31""#, "date datetime.date(2026, 1, 31)"),
    ("Union[float, int, Path]", "1", "int 1"),
    ("Union[int, Size]", "true", r#"!an integer or "small" or "big", but is true"#),
    (
        "Union[Spot, Pair]",
        r#"{"when": "2026-01-31"}"#,
        "Pair Pair(when=datetime.date(2026, 1, 31), n=3)",
    ),
    (
        "Union[Spot, list[Spot]]",
        r#"[{"x": 1}, {"x": "a"}]"#,
        "!`x[1].x` must be an integer, but is the text \"a\"",
    ),
    ("Union[Spot, None]", r#"{"y": 1}"#, "!`x.x` is missing; it must be an integer"),
    ("Annotated[date, 'when']", r#""2026-01-31""#, "date datetime.date(2026, 1, 31)"),
    // Classes.
    ("Spot", r#"{"x": 1}"#, "Spot Spot(x=1, y=0.5)"),
    ("Spot", r#"{"x": 1.0, "y": 2}"#, "Spot Spot(x=1, y=2.0)"),
    ("Spot", r#"{"x": 1, "z": 2}"#, "!`x.z` is unknown; there are `x`, `y`"),
    ("Spot", r#"{"x": 1.5}"#, "!`x.x` must be an integer, but is the number 1.5"),
    ("Spot", "[1]", "!`x` must be an object (Spot), but is a list of 1"),
    (
        "Order",
        r#"{"id": "12345678-1234-5678-1234-567812345678",
            "items": [{"name": "a", "due": "2026-01-31", "size": "big", "tags": ["t"]}]}"#,
        "Order Order(id=UUID('12345678-1234-5678-1234-567812345678'), items=[Item(name='a', \
         due=datetime.date(2026, 1, 31), size=<Size.BIG: 'big'>, tags={'t'})], spots={}, made=7)",
    ),
    (
        "Order",
        r#"{"id": "12345678-1234-5678-1234-567812345678",
            "items": [{"name": "a"}, {"name": "b"}, {"name": "c", "due": "soon"}]}"#,
        r#"!`x.items[2].due` must be a date such as 2026-01-31 or null, but is the text "soon""#,
    ),
    ("Order", r#"{"id": 5, "items": []}"#, "!`x.id` must be a UUID such as "),
    (
        "Order",
        r#"{"id": "12345678-1234-5678-1234-567812345678", "items": [], "made": 1}"#,
        "!`x.made` is unknown",
    ),
    (
        "Tree",
        r#"{"name": "a", "below": [{"name": "b", "below": []}]}"#,
        "Tree Tree(name='a', below=[Tree(name='b', below=[])])",
    ),
    ("Tree", r#"{"name": "a", "below": [{"name": 1}]}"#, "!`x.below[0].name` must be a text"),
    ("Positive", r#"{"n": -1}"#, "!`x` cannot be a Positive: ValueError: n must not be negative"),
    ("Loose", r#"{"n": null}"#, "Loose Loose(n=None)"),
    (
        "Given",
        r#"{"kept": "2026-01-31", "seed": "2026-02-01"}"#,
        "Given Given(kept=datetime.date(2026, 1, 31))",
    ),
    (
        "Pair",
        r#"{"when": "2026-01-31", "n": 4}"#,
        "Pair Pair(when=datetime.date(2026, 1, 31), n=4)",
    ),
    ("Pair", r#"["2026-01-31"]"#, "Pair Pair(when=datetime.date(2026, 1, 31), n=3)"),
    ("Pair", r#"{"n": 4}"#, "!`x.when` is missing; it must be a date such as 2026-01-31"),
    (
        "Trip",
        r#"{"day": "2026-01-31", "stops": ["a"], "more": 1}"#,
        "dict {'day': datetime.date(2026, 1, 31), 'stops': [PosixPath('a')], 'more': 1}",
    ),
    ("Trip", r#"{"day": "2026-01-31"}"#, "!`x.stops` is missing; it must be a list"),
    ("Partly", r#"{"n": 1}"#, "dict {'n': 1}"),
    (
        "Box[date]",
        r#"{"one": "2026-01-31", "all": ["2026-01-31"]}"#,
        "Box Box(one=datetime.date(2026, 1, 31), all=[datetime.date(2026, 1, 31)])",
    ),
    ("Box", r#"{"one": "2026-01-31"}"#, "Box Box(one='2026-01-31', all=[])"),
    // No JSON becomes these.
    (
        "Lost",
        "{}",
        "!`x` must be an object (Lost), and an annotation of it cannot be resolved: NameError: name 'Nowhere'",
    ),
    ("Connection", "{}", "!`x` must be a Connection, and no JSON becomes one"),
    ("typing.Callable[[], int]", "1", "!`x` must be a Callable, and no JSON becomes one"),
    ("type[Spot]", r#""Spot""#, "!`x` must be a type, and no JSON becomes one"),
    (
        "'Nowhere'",
        "1",
        "!`x` has an annotation that cannot be resolved: NameError: name 'Nowhere' is not defined",
    ),
];

#[tokio::test]
async fn arguments_become_what_their_annotations_say() {
    check_arguments(TYPES, ARGUMENTS).await;
}

#[tokio::test]
async fn annotations_may_be_texts() {
    let head = format!("from __future__ import annotations\n{TYPES}");
    // As a text, this can be said in every version of Python.
    let bars = [
        ("date | None", "null", "NoneType None"),
        ("int | list[date]", r#"["2026-01-31"]"#, "list [datetime.date(2026, 1, 31)]"),
        ("Literal['a|b'] | date", r#""a|b""#, "str 'a|b'"),
    ];
    check_arguments(&head, &[ARGUMENTS, &bars].concat()).await;
}
