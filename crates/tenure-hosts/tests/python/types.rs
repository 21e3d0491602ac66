//! Arguments become what a function's annotations say, and results become JSON.

use crate::python::support::Lab;
use tenure_core::agent::Agent;
use tenure_hosts::PythonTool;

/// What all functions of this file can name.
const TYPES: &str = r#"
import collections, dataclasses, datetime, decimal, enum, pathlib, typing, uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, auto
from pathlib import Path
from typing import Annotated, Any, Dict, FrozenSet, Generic, List, Literal, NamedTuple, NewType
from typing import Optional, Set, Tuple, TypedDict, TypeVar, Union
from uuid import UUID

class Size(Enum):
    SMALL = "small"
    BIG = "big"
class Level(IntEnum):
    LOW = 1
    HIGH = 2
class Word(str, Enum):
    YES = "yes"
class Rgb(Enum):
    RED = (255, 0, 0)
    BLUE = (0, 0, 255)
class Right(IntFlag):
    READ = 1
    WRITE = 2
class Lenient(Enum):
    A = "a"
    @classmethod
    def _missing_(cls, value):
        return cls(value.lower()) if value != value.lower() else None

@dataclass
class Spot:
    x: int
    y: float = 0.5
@dataclass
class Item:
    name: str
    due: Optional[date] = None
    size: Size = Size.SMALL
    tags: set[str] = field(default_factory=set)
@dataclass(frozen=True)
class Order:
    id: UUID
    items: list[Item]
    spots: dict[str, Spot] = field(default_factory=dict)
    made: int = field(default=7, init=False)
@dataclass
class Tree:
    name: str
    below: "list[Tree]" = field(default_factory=list)
    @property
    def all(self): return [self.name, *(it for one in self.below for it in one.all)]
@dataclass
class Positive:
    n: int
    def __post_init__(self):
        if self.n < 0:
            raise ValueError("n must not be negative")
@dataclass
class Loose:
    n: int = None
@dataclass
class Given:
    kept: date
    seed: dataclasses.InitVar[date] = None
    def __post_init__(self, seed): self.seen = seed
class Pair(NamedTuple):
    when: date
    n: int = 3
class Trip(TypedDict):
    day: date
    stops: list[Path]
class Partly(TypedDict, total=False):
    day: date
    n: int
T = TypeVar("T")
@dataclass
class Box(Generic[T]):
    one: T
    all: list[T] = field(default_factory=list)
Id = NewType("Id", UUID)
Count = NewType("Count", int)
Days = List[date]
class Email(str): pass
class Connection: pass
"#;

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
    ("Connection", "{}", "!`x` must be a Connection, and no JSON becomes one"),
    ("typing.Callable[[], int]", "1", "!`x` must be a Callable, and no JSON becomes one"),
    ("type[Spot]", r#""Spot""#, "!`x` must be a type, and no JSON becomes one"),
    (
        "'Nowhere'",
        "1",
        "!`x` is annotated with what cannot be resolved: NameError: name 'Nowhere' is not defined",
    ),
];

struct Table {
    lab: Lab,
    agent: Agent,
}

impl Table {
    /// A file with a function for each of the signatures, all of them tools of one agent.
    async fn of(head: &str, functions: impl Iterator<Item = (usize, String)>) -> Self {
        let mut source = head.to_owned();
        let mut names = Vec::new();
        for (at, function) in functions {
            source.push_str(&format!("def t{at}{function}\n"));
            names.push(format!("t{at}"));
        }
        let lab = Lab::new(&source);
        let tools =
            |lab: &Lab| names.iter().map(|name| lab.tool(name)).collect::<Vec<PythonTool>>();
        let builder = tools(&lab).into_iter().fold(lab.agent(), |agent, tool| agent.tool(tool));
        let agent = lab.started(builder).await;
        Self { lab, agent }
    }

    async fn call(&self, at: usize, arguments: &str) -> String {
        let call = format!("***CALL_TOOL t{at} {}", arguments.replace('\n', " "));
        self.agent.run(call).await.expect("the model reads it").output().to_owned()
    }

    async fn end(self) {
        self.agent.shutdown().await;
        self.lab.host.shutdown().await;
    }
}

async fn check_arguments(head: &str, cases: &[(&str, &str, &str)]) {
    let body = "return f'{type(x).__name__} {x!r}'";
    let functions = cases.iter().map(|(annotation, ..)| format!("(x: {annotation}): {body}"));
    let table = Table::of(head, functions.enumerate()).await;
    let mut wrong = Vec::new();
    for (at, (annotation, value, expected)) in cases.iter().enumerate() {
        let output = table.call(at, &format!(r#"{{"x": {value}}}"#)).await;
        let fits = match expected.strip_prefix('!') {
            Some(error) => output.starts_with("argument `x") && output.contains(error),
            None => output.starts_with(expected),
        };
        if !fits {
            wrong.push(format!("{annotation} of {value}\n   {output}\n   {expected}"));
        }
    }
    table.end().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn arguments_become_what_their_annotations_say() {
    check_arguments(TYPES, ARGUMENTS).await;
}

#[tokio::test]
async fn annotations_may_be_texts() {
    let head = format!("from __future__ import annotations\n{TYPES}");
    check_arguments(&head, ARGUMENTS).await;
}

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

const FUNCTIONS: &str = r#"
from __future__ import annotations
import functools
from datetime import date
from typing import TYPE_CHECKING, Optional
if TYPE_CHECKING:
    from tenure import CallContext
def kind(*values): return " ".join(f"{type(it).__name__}:{it}" for it in values)
def logged(function):
    @functools.wraps(function)
    def wrapper(**kw): return "logged " + function(**kw)
    return wrapper
def t0(day: date = date(2026, 1, 1), n: int = None, *, last: Optional[date] = None) -> Nowhere: return kind(day, n, last)
async def t1(ctx: CallContext, day: date): return kind(day) + ctx.agent_name
def t2(day: date, **more: date): return kind(day, *more.values())
@logged
def t3(day: date): return kind(day)
def t4(untyped, day: date, any: object): return kind(untyped, day, any)
t5 = logged
"#;

#[tokio::test]
async fn defaults_and_contexts_stay_as_they_are() {
    let names = || (0..5).map(|at| format!("t{at}"));
    let lab = Lab::new(FUNCTIONS);
    let agent = lab.started(names().fold(lab.agent(), |it, name| it.tool(lab.tool(&name)))).await;
    for (call, expected) in [
        (r#"t0 {}"#, "date:2026-01-01 NoneType:None NoneType:None"),
        (
            r#"t0 {"day": "2026-01-31", "n": null, "last": null}"#,
            "date:2026-01-31 NoneType:None NoneType:None",
        ),
        (r#"t0 {"last": "2026-01-31"}"#, "date:2026-01-01 NoneType:None date:2026-01-31"),
        (r#"t0 {"day": null}"#, "argument `day` must be a date such as 2026-01-31, but is null"),
        (r#"t1 {"day": "2026-01-31"}"#, "date:2026-01-31agent"),
        (r#"t2 {"day": "2026-01-31", "a": "2026-02-01"}"#, "date:2026-01-31 date:2026-02-01"),
        (r#"t2 {"day": "2026-01-31", "a": "soon"}"#, "argument `a` must be a date"),
        (r#"t3 {"day": "2026-01-31"}"#, "logged date:2026-01-31"),
        (r#"t3 {"day": "x"}"#, "argument `day` must be a date"),
        (
            r#"t4 {"untyped": "2026-01-31", "day": "2026-01-31", "any": [1]}"#,
            "str:2026-01-31 date:2026-01-31 list:[1]",
        ),
    ] {
        let report = agent.run(format!("***CALL_TOOL {call}")).await.expect("the model reads it");
        assert!(report.output().starts_with(expected), "{call}: {}", report.output());
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn integers_of_any_length_keep_their_value() {
    let body = "return f'{type(x).__name__} {x + 1}'";
    let schema = |kind: &str| serde_json::json!({ "type": "object", "properties": { "x": { "type": kind } } });
    let lab = Lab::new(&format!(
        "def whole(x: int): {body}\ndef half(x: float): return f'{{type(x).__name__}} {{x}}'\n\
         def listed(x: list): return str(x[0]['a'])\n"
    ));
    let tool = |name: &str, kind: &str| {
        let spec = tenure_core::tool::ToolSpec::new(name, "a tool").parameters(schema(kind));
        lab.host.tool(lab.function(name), spec)
    };
    let agent = lab.agent().tool(tool("whole", "integer")).tool(tool("half", "number"));
    let agent = lab.started(agent.tool(tool("listed", "array"))).await;
    for (call, expected) in [
        (r#"whole {"x": 1}"#, "int 2"),
        (r#"whole {"x": 9223372036854775807}"#, "int 9223372036854775808"),
        (r#"whole {"x": 18446744073709551615}"#, "int 18446744073709551616"),
        (r#"whole {"x": 18446744073709551616}"#, "int 18446744073709551617"),
        (r#"whole {"x": -123456789012345678901234567890}"#, "int -123456789012345678901234567889"),
        (r#"whole {"x": 2.0}"#, "int 3"),
        (r#"whole {"x": 1e3}"#, "int 1001"),
        (r#"whole {"x": 1e999}"#, "number out of range"),
        (r#"whole {"x": NaN}"#, "Invalid JSON arguments"),
        (r#"half {"x": 1}"#, "float 1.0"),
        (r#"half {"x": 123456789012345678901234567890}"#, "float 1.2345678901234568e+29"),
        (
            r#"listed {"x": [{"a": 123456789012345678901234567890}]}"#,
            "123456789012345678901234567890",
        ),
    ] {
        let said = match agent.run(format!("***CALL_TOOL {call}")).await {
            Ok(report) => report.output().to_owned(),
            Err(error) => format!("{error:?}"),
        };
        assert!(said.contains(expected), "{call}: {said}");
    }
    agent.shutdown().await;
}

#[tokio::test]
async fn a_function_of_plain_types_is_called_without_any_conversion() {
    let lab = Lab::new(
        r#"
import __main__
from typing import Optional
def plain(a: str, b: int = 1, c: dict = None, d=None) -> "Nowhere": return state()
def listed(a: "list[Optional[int]]"): return state()
def state(): return f"{bool(__main__.LATER)} {[it.plan for it in __main__.functions.values()][-1]}"
"#,
    );
    let agent = lab.agent().tool(lab.tool("plain")).tool(lab.tool("listed"));
    let agent = lab.started(agent).await;
    // The parts that convert are not even compiled for the first, and do nothing for the second.
    for (call, state) in
        [(r#"plain {"a": "x"}"#, "True None"), (r#"listed {"a": [1]}"#, "False None")]
    {
        let report = agent.run(format!("***CALL_TOOL {call}")).await.expect("it runs");
        assert_eq!(report.output(), state, "{call}");
    }
    agent.shutdown().await;
}
