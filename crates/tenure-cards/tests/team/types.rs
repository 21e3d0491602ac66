//! Tools whose parameters are more than JSON has: the schema that a model is told and what the function
//! is called with agree.

use crate::support::Project;

const TYPES: &str = r#"
from __future__ import annotations
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, IntFlag, auto
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, Union
from uuid import UUID
from orders.items import Item, Size
import orders.items as items

class Level(IntEnum):
    LOW = auto()
    HIGH = auto()
class Rgb(Enum):
    RED = (255, 0, 0)
class Right(IntFlag):
    READ = 1
    WRITE = 2
class Email(str): pass
@dataclass
class Tree:
    name: str
    below: list[Tree] = field(default_factory=list)
class Pair(NamedTuple):
    when: date
    n: float = 3
class Trip(TypedDict, total=False):
    day: date
Id = NewType("Id", UUID)
def seen(x): return f"{type(x).__name__} {x!r}"
"#;

const ITEMS: &str = r#"
from __future__ import annotations
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
class Size(Enum):
    SMALL = "small"
    BIG = "big"
@dataclass
class Item:
    name: str
    due: date | None = None
    size: Size = Size.SMALL
    tags: set[str] = field(default_factory=set)
"#;

/// A parameter, an argument, and what the function sees, or after `!` what the model reads.
const CASES: &[(&str, &str, &str)] = &[
    ("x: date", r#""2026-01-31""#, "date datetime.date(2026, 1, 31)"),
    ("x: date", "5", "!argument `x` must be a date such as 2026-01-31, but is the number 5"),
    (
        "x: date",
        r#""soon""#,
        "!argument `x` must be a date such as 2026-01-31, but is the text \"soon\"",
    ),
    ("x: datetime", r#""2026-01-31T09:30:00""#, "datetime datetime.datetime(2026, 1, 31, 9, 30)"),
    ("x: time", r#""09:30:00""#, "time datetime.time(9, 30)"),
    ("x: timedelta", r#""PT90S""#, "timedelta datetime.timedelta(seconds=90)"),
    ("x: Path", r#""a""#, "PosixPath PosixPath('a')"),
    ("x: Id", r#""12345678-1234-5678-1234-567812345678""#, "UUID UUID("),
    ("x: Decimal", "12", "Decimal Decimal('12')"),
    ("x: Decimal", r#""12.50""#, "Decimal Decimal('12.50')"),
    ("x: Decimal", "0.1", "Decimal Decimal('0.1')"),
    ("x: bytes", r#""a""#, "bytes b'a'"),
    ("x: Email", r#""a""#, "Email 'a'"),
    ("x: float", "2", "float 2.0"),
    ("x: int", "2.0", "int 2"),
    ("x: int", "123456789012345678901234567890", "int 123456789012345678901234567890"),
    ("x: Optional[float]", "2", "float 2.0"),
    ("x: int | float", "2", "int 2"),
    ("x: Size", r#""big""#, "Size <Size.BIG: 'big'>"),
    (
        "x: Size",
        r#""huge""#,
        "!argument `x` must be \"small\" or \"big\", but is the text \"huge\"",
    ),
    ("x: Size = Size.BIG", r#""small""#, "Size <Size.SMALL: 'small'>"),
    ("x: Level", "2", "Level <Level.HIGH: 2>"),
    ("x: Rgb", r#""RED""#, "Rgb <Rgb.RED: (255, 0, 0)>"),
    ("x: Right", "3", "Right <Right."),
    ("x: Literal['a', Size.BIG]", r#""big""#, "Size <Size.BIG: 'big'>"),
    ("x: set[date]", r#"["2026-01-31"]"#, "set {datetime.date(2026, 1, 31)}"),
    ("x: tuple[date, int]", r#"["2026-01-31", 2]"#, "tuple (datetime.date(2026, 1, 31), 2)"),
    (
        "x: dict[date, Level]",
        r#"{"2026-01-31": 1}"#,
        "dict {datetime.date(2026, 1, 31): <Level.LOW: 1>}",
    ),
    ("x: Union[date, list[date]]", r#"["2026-01-31"]"#, "list [datetime.date(2026, 1, 31)]"),
    (
        "x: list[items.Item]",
        r#"[{"name": "a", "due": null, "size": "big", "tags": ["t"]}]"#,
        "list [Item(name='a', due=None, size=<Size.BIG: 'big'>, tags={'t'})]",
    ),
    (
        "x: list[Item]",
        r#"[{"name": "a"}, {"name": "b", "due": "soon"}]"#,
        "!argument `x[1].due` must be a date such as 2026-01-31 or null, but is the text \"soon\"",
    ),
    ("x: list[Item]", r#"[{"due": null}]"#, "!argument `x[0].name` is missing; it must be a text"),
    (
        "x: Item",
        r#"{"name": "a", "nome": "b"}"#,
        "!argument `x.nome` is unknown; there are `name`, `due`, `size`, `tags`",
    ),
    (
        "x: Tree",
        r#"{"name": "a", "below": [{"name": "b"}]}"#,
        "Tree Tree(name='a', below=[Tree(name='b', below=[])])",
    ),
    (
        "x: Tree",
        r#"{"name": "a", "below": [{"name": 1}]}"#,
        "!argument `x.below[0].name` must be a text, but is the number 1",
    ),
    (
        "x: Pair",
        r#"{"when": "2026-01-31", "n": 4}"#,
        "Pair Pair(when=datetime.date(2026, 1, 31), n=4.0)",
    ),
    ("x: Trip", r#"{"day": "2026-01-31"}"#, "dict {'day': datetime.date(2026, 1, 31)}"),
    ("x: Annotated[date, 'when'] = None", "null", "NoneType None"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_is_told_and_what_the_function_gets_agree() {
    let mut tools = TYPES.to_owned();
    let mut names = Vec::new();
    for (at, (parameter, ..)) in CASES.iter().enumerate() {
        tools.push_str(&format!("def t{at}({parameter}): return seen(x)\n"));
        names.push(format!("tools.py:t{at}"));
    }
    let card = format!("---\nname: a\nfunction_tools: [{}]\n---\nx\n", names.join(", "));
    let project = Project::with(
        ("orders/items.py", ITEMS),
        [("orders/__init__.py", ""), ("tools.py", tools.as_str()), ("a.md", card.as_str())],
    );
    let team = project.team();
    team.start().await.expect("it starts");
    let mut wrong = Vec::new();
    for (at, (parameter, value, expected)) in CASES.iter().enumerate() {
        let call = format!(r#"***CALL_TOOL t{at} {{"x": {value}}}"#);
        let run = team.run(None, &call).await.expect("the model reads it");
        if !run.output.starts_with(expected.trim_start_matches('!')) {
            wrong.push(format!("{parameter} of {value}\n   {}\n   {expected}", run.output));
        }
    }
    team.shutdown().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
