//! The schema that the annotations of a tool stand for, and what is said of those that have none.

use crate::loading::support::{Folder, codes};
use serde_json::{Value, json};
use tenure_cards::card::CardKind;
use tenure_cards::check::Loaded;
use tenure_cards::diagnostic::Color;

const CARD: (&str, &str) = ("a.yaml", "function_tools: tools.py:f\n");

/// What all annotations can name.
const TYPES: &str = r#"
from __future__ import annotations
import collections, datetime, decimal, enum, pathlib, typing, uuid
import collections.abc as abc
import dataclasses as dc
from dataclasses import KW_ONLY, InitVar, dataclass, field
from datetime import date
from enum import Enum, IntEnum, StrEnum, auto
from pathlib import Path
from typing import *
from typing import Annotated, Any, Callable, ClassVar, Generic, List, Literal, NamedTuple, NewType
from typing import Optional, TypedDict, TypeVar, Union
from typing_extensions import NotRequired, Required
from pydantic import BaseModel, ConfigDict, Field
from far.away import Thing
import project.models
import project.models as m
from project import shapes
from project.models import Money, Payment as Paid
from near import Near, Shade

class Size(Enum):
    SMALL = "small"
    BIG = "big"
    LARGE = BIG
    def label(self): return self.value
class Level(IntEnum):
    LOW = 1
    HIGH = 2
class Number(Enum):
    ONE = auto()
    TWO = auto()
class Word(StrEnum):
    Yes = auto()
class Rgb(Enum):
    RED = (255, 0, 0)
    BLUE = (0, 0, 255)
class Made(Enum):
    A = 1
    def __new__(cls, value): ...
class Base(str, Enum):
    pass
class Kind(Base):
    A = "a"
class Right(enum.IntFlag):
    READ = 1
class Email(str): pass
class Bag(dict): pass
@dataclass
class Spot:
    """A spot.

    Attributes:
        x: how far
    """
    x: int
    y: float = 0.5
    count: ClassVar[int] = 0
    made: int = field(default=1, init=False)
    _: KW_ONLY
    tags: set[str] = field(default_factory=set)
    size: Size = Size.BIG
    seed: InitVar[date] = None
@dataclass
class Deep(Spot):
    z: date = date(2026, 1, 31)
@dc.dataclass(frozen=True)
class Tree:
    name: str
    below: list[Tree] = field(default_factory=list)
    other: Optional["Leaf"] = None
@dataclass
class Leaf:
    of: Tree
class Pair(NamedTuple):
    when: date
    n: int = 3
class Part(TypedDict, total=False):
    a: int
    b: Required[str]
class Whole(Part):
    c: date
    d: NotRequired[int]
class Line(BaseModel):
    model_config = ConfigDict(extra="forbid")
    due: date = Field(alias="dueOn", description="until when")
    n: int = Field(default=1, ge=1, lt=9)
    text: str = Field(..., max_length=5)
    size: Size = Size.SMALL
    _private: int = 1
class Longer(Line):
    more: Optional[int]
class Renamed(BaseModel):
    model_config = {"alias_generator": str.upper}
    a: int
T = TypeVar("T")
@dataclass
class Box(Generic[T]):
    one: T
Id = NewType("Id", uuid.UUID)
Days = List[date]
type Alias = dict[str, Days]
"#;

const MODELS: &str = r#"
from decimal import Decimal
from dataclasses import dataclass
from .shapes import Shape
from near import Near as Close

@dataclass
class Money:
    amount: Decimal
    shape: Shape
Payment = Money
"#;

fn with(annotation: &str) -> Folder {
    let tools = format!("{TYPES}\ndef f(x: {annotation}): ...\n");
    Folder::new(&[
        CARD,
        ("tools.py", &tools),
        ("near.py", "import enum\nclass Near: pass\nclass Shade(enum.Enum):\n    DARK = 'dark'\n"),
        ("project/__init__.py", ""),
        ("project/models.py", MODELS),
        ("project/shapes.py", "from typing import Literal\nShape = Literal['round', 'flat']\n"),
    ])
}

fn parameters(loaded: &Loaded) -> Value {
    let CardKind::Agent(agent) = &loaded.cards[0].kind else { panic!("it is an agent") };
    agent.function_tools[0].spec.parameters.clone()
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn day() -> Value {
    json!({ "type": "string", "format": "date" })
}

fn size() -> Value {
    json!({ "type": "string", "enum": ["small", "big"] })
}

fn with_default(mut schema: Value, default: Value) -> Value {
    schema["default"] = default;
    schema
}

#[test]
fn annotations_have_the_schema_that_they_stand_for() {
    let spot = |more: Value| {
        let mut properties = json!({
            "x": { "type": "integer", "description": "how far" },
            "y": { "type": "number", "default": 0.5 },
            "tags": { "type": "array", "items": text(), "uniqueItems": true },
            "size": with_default(size(), json!("big")),
            "seed": with_default(day(), Value::Null),
        });
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "type": "object", "properties": properties, "required": ["x"],
                "additionalProperties": false })
    };
    let mut documented = spot(json!({}));
    documented["description"] = json!("A spot.");
    let line = |more: Value| {
        let mut properties = json!({
            "dueOn": { "type": "string", "format": "date", "description": "until when" },
            "n": { "type": "integer", "minimum": 1, "exclusiveMaximum": 9, "default": 1 },
            "text": { "type": "string", "maxLength": 5 },
            "size": with_default(size(), json!("small")),
        });
        properties.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        properties
    };
    let decimal = json!({ "anyOf": [
        { "type": "number" },
        { "type": "string", "pattern": r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$" },
    ] });
    let money = json!({ "type": "object", "properties": {
        "amount": decimal, "shape": { "type": "string", "enum": ["round", "flat"] },
    }, "required": ["amount", "shape"], "additionalProperties": false });
    for (annotation, schema) in [
        ("date", day()),
        ("datetime.datetime", json!({ "type": "string", "format": "date-time" })),
        ("datetime.time", json!({ "type": "string", "format": "time" })),
        ("datetime.timedelta", json!({ "type": "string", "format": "duration" })),
        ("uuid.UUID", json!({ "type": "string", "format": "uuid" })),
        ("Path", json!({ "type": "string", "format": "path" })),
        ("pathlib.PurePath", json!({ "type": "string", "format": "path" })),
        ("bytes", json!({ "type": "string", "format": "binary" })),
        ("decimal.Decimal", decimal.clone()),
        ("Id", json!({ "type": "string", "format": "uuid" })),
        ("Days", json!({ "type": "array", "items": day() })),
        (
            "Alias",
            json!({ "type": "object", "additionalProperties": { "type": "array", "items": day() } }),
        ),
        ("abc.Sequence[date]", json!({ "type": "array", "items": day() })),
        (
            "collections.OrderedDict[str, date]",
            json!({ "type": "object", "additionalProperties": day() }),
        ),
        ("frozenset[date]", json!({ "type": "array", "items": day(), "uniqueItems": true })),
        ("tuple[date, ...]", json!({ "type": "array", "items": day() })),
        ("tuple[()]", json!({ "type": "array", "maxItems": 0 })),
        ("date | None", json!({ "anyOf": [day(), { "type": "null" }] })),
        (
            "Annotated[int, Field(ge=1, le=5)]",
            json!({ "type": "integer", "minimum": 1, "maximum": 5 }),
        ),
        (
            "Annotated[list[int], Field(min_length=1, description='some')]",
            json!({ "type": "array", "items": { "type": "integer" }, "minItems": 1,
                    "description": "some" }),
        ),
        ("Size", size()),
        ("Level", json!({ "type": "integer", "enum": [1, 2] })),
        ("Number", json!({ "type": "integer", "enum": [1, 2] })),
        ("Word", json!({ "type": "string", "enum": ["yes"] })),
        ("Rgb", json!({ "type": "string", "enum": ["RED", "BLUE"] })),
        ("Made", json!({ "type": "string", "enum": ["A"] })),
        ("Kind", json!({ "type": "string", "enum": ["a"] })),
        ("Right", json!({ "type": "integer" })),
        ("Literal[Size.BIG, 3]", json!({ "enum": ["big", 3] })),
        ("Literal[Rgb.RED]", json!({ "type": "string", "enum": ["RED"] })),
        ("Email", text()),
        ("Bag", json!({ "type": "object" })),
        ("Spot", documented),
        ("Deep", spot(json!({ "z": with_default(day(), json!("2026-01-31")) }))),
        (
            "Pair",
            json!({ "type": "object", "properties": {
                "when": day(), "n": { "type": "integer", "default": 3 },
            }, "required": ["when"], "additionalProperties": false }),
        ),
        (
            "Whole",
            json!({ "type": "object", "properties": {
                "a": { "type": "integer" }, "b": text(), "c": day(), "d": { "type": "integer" },
            }, "required": ["b", "c"] }),
        ),
        (
            "Line",
            json!({ "type": "object", "properties": line(json!({})), "required": ["dueOn", "text"],
                    "additionalProperties": false }),
        ),
        (
            "Longer",
            json!({
                "type": "object",
                "properties": line(json!({
                    "more": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
                })),
                "required": ["dueOn", "text", "more"],
                "additionalProperties": false,
            }),
        ),
        ("Renamed", json!({ "type": "object" })),
        (
            "Box[date]",
            json!({ "type": "object", "properties": { "one": {} }, "required": ["one"],
                    "additionalProperties": false }),
        ),
        ("Money", money.clone()),
        ("Paid", money.clone()),
        ("m.Money", money.clone()),
        ("project.models.Money", money),
        ("shapes.Shape", json!({ "type": "string", "enum": ["round", "flat"] })),
        (
            "list[Shade]",
            json!({ "type": "array", "items": { "type": "string", "enum": ["dark"] } }),
        ),
        ("Thing", json!({})),
        ("'list[Thing]'", json!({ "type": "array", "items": {} })),
        ("Optional[Thing]", json!({})),
    ] {
        let loaded = with(annotation).load("a.yaml");
        assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
        assert_eq!(parameters(&loaded)["properties"]["x"], schema, "{annotation}");
    }
}

#[test]
fn a_class_that_holds_itself_is_defined_once() {
    let loaded = with("Tree").load("a.yaml");
    let tree = json!({ "$ref": "#/$defs/Tree" });
    assert_eq!(
        parameters(&loaded),
        json!({
            "type": "object",
            "properties": { "x": tree },
            "required": ["x"],
            "additionalProperties": false,
            "$defs": { "Tree": {
                "type": "object",
                "properties": {
                    "name": text(),
                    "below": { "type": "array", "items": tree },
                    "other": {
                        "anyOf": [
                            { "type": "object", "properties": { "of": tree }, "required": ["of"],
                              "additionalProperties": false },
                            { "type": "null" },
                        ],
                        "default": null,
                    },
                },
                "required": ["name"],
                "additionalProperties": false,
            } },
        })
    );
}

#[test]
fn defaults_are_told_as_a_model_would_write_them() {
    for (default, told) in [
        ("date(2026, 1, 31)", json!("2026-01-31")),
        ("datetime.datetime(2026, 1, 31, 9, 30)", json!("2026-01-31T09:30:00")),
        ("datetime.time(9)", json!("09:00:00")),
        ("datetime.timedelta(days=1, hours=25, seconds=90)", json!("P2DT1H1M30S")),
        ("datetime.timedelta(weeks=1)", json!("P7D")),
        ("datetime.timedelta()", json!("PT0S")),
        ("Path('a/b')", json!("a/b")),
        ("decimal.Decimal('1.50')", json!("1.50")),
        ("Size.SMALL", json!("small")),
        ("Shade.DARK", json!("dark")),
        ("frozenset({1, 2})", json!([1, 2])),
        ("set()", json!([])),
        ("(1, 'a')", json!([1, "a"])),
        ("b'ab'", json!("ab")),
        ("-5", json!(-5)),
    ] {
        let loaded = with(&format!("Any = {default}")).load("a.yaml");
        let parameters = parameters(&loaded);
        assert_eq!(parameters["properties"]["x"], json!({ "default": told }), "{default}");
        assert_eq!(parameters.get("required"), None, "{default}");
    }
    for unknown in ["date.today()", "Spot(1)", "Path.home()", "decimal.Decimal(x)"] {
        let loaded = with(&format!("Any = {unknown}")).load("a.yaml");
        assert_eq!(parameters(&loaded)["properties"]["x"], json!({}), "{unknown}");
    }
}

#[test]
fn annotations_that_cannot_work_are_reported_where_they_stand() {
    let head = r#"
import sqlite3, typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Callable, Optional
if TYPE_CHECKING:
    from tenure import CallContext
    from decimal import Decimal
from near import Near, Nowhere
import near
class Client: pass
class Odd(Client, metaclass=type): pass
@dataclass
class Held:
    client: Client
for LOOPED in (int,): pass
def helper(): ...
"#;
    let near = "class Near: pass\n";
    for (annotation, code, said) in [
        (
            "sqlite3.Connection",
            "T0413",
            "`x` of the tool `f` cannot be given: no JSON becomes a `sqlite3.Connection`",
        ),
        ("Callable[[int], str]", "T0413", "no JSON becomes a `typing.Callable`"),
        ("type[int]", "T0413", "no JSON becomes a `builtins.type`"),
        ("Optional[typing.Iterator[int]]", "T0413", "no JSON becomes a `typing.Iterator`"),
        ("list[Client]", "T0413", "no JSON becomes a `Client`"),
        (
            "Held",
            "T0413",
            "`Held.client` of the tool `f` cannot be given: no JSON becomes a `Client`",
        ),
        ("Near", "T0413", "no JSON becomes a `Near`"),
        ("helper", "T0413", "`helper` is a function, and no type"),
        ("Decimal", "T0414", "`Decimal` is imported for type checkers only"),
        ("'Decimal'", "T0414", "move the import of `Decimal` out of `if TYPE_CHECKING:`"),
        ("Clint", "T0414", "there is no `Clint`"),
        ("Clint", "T0414", "did you mean `Client`?"),
        ("dict[str, 'Missing']", "T0414", "import `Missing`, or define it"),
        ("Nowhere", "T0414", "define `Nowhere` in `near.py`"),
        ("near.Nearr", "T0414", "`near.py` has `Near`; did you mean that?"),
    ] {
        let tools = format!("{head}\ndef f(x: {annotation}): ...\n");
        let folder = Folder::new(&[CARD, ("tools.py", &tools), ("near.py", near)]);
        let loaded = folder.load("a.yaml");
        let text = loaded.report.render_text(Color::Never);
        assert_eq!(codes(&loaded), [code], "{annotation}\n{text}");
        assert!(text.contains(said), "{annotation}\n{text}");
        let place = if annotation == "Held" { "tools.py:14:13" } else { "tools.py:18:" };
        assert!(text.contains(place), "{annotation}\n{text}");
    }
    // What need not be given is left out, and the tool can be used.
    for (annotation, code) in [
        ("int, y: sqlite3.Connection = None", "T0413"),
        ("int, y: Optional['Decimal'] = None", "T0414"),
        ("int, y: Held = None", "T0413"),
    ] {
        let tools = format!("{head}\ndef f(x: {annotation}): ...\n");
        let folder = Folder::new(&[CARD, ("tools.py", &tools), ("near.py", near)]);
        let loaded = folder.load("a.yaml");
        assert_eq!(codes(&loaded), [code], "{annotation}");
        assert!(!loaded.report.has_errors(), "{annotation}");
        let properties = parameters(&loaded)["properties"].clone();
        assert_eq!(properties, json!({ "x": { "type": "integer" } }), "{annotation}");
    }
    for fine in ["LOOPED", "Odd", "int, ctx: CallContext", "int) -> Nothing: ...\ndef g(y: int"] {
        let tools = format!("{head}\ndef f(x: {fine}): ...\n");
        let folder = Folder::new(&[CARD, ("tools.py", &tools), ("near.py", near)]);
        let loaded = folder.load("a.yaml");
        assert!(loaded.report.is_empty(), "{fine}\n{}", loaded.report.render_text(Color::Never));
    }
}

#[test]
fn files_outside_of_the_project_are_not_read_for_types() {
    let folder = Folder::new(&[
        CARD,
        ("tools.py", "from outside import Spot\nfrom broken import Other\ndef f(x: Spot): ...\n"),
        ("broken.py", "class ("),
    ]);
    let elsewhere = tenure_testkit::TestFolder::new(&[("outside.py", "class Spot: pass\n")]);
    let link = folder.0.path().join("outside.py");
    std::os::unix::fs::symlink(elsewhere.path().join("outside.py"), link).expect("a link");
    let loaded = folder.load("a.yaml");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    assert_eq!(parameters(&loaded)["properties"]["x"], json!({}));
}

#[test]
fn names_that_go_in_circles_and_classes_without_end_come_to_an_end() {
    let mut many = String::from("from dataclasses import dataclass\n");
    for at in 0..40 {
        many.push_str(&format!(
            "@dataclass\nclass C{at}:\n    a: 'C{next}'\n    b: 'C{next}'\n",
            next = at + 1
        ));
    }
    many.push_str("C40 = int\n");
    let circles = "from one import A\nfrom tools import B\nC = D\nD = C\n";
    let folder = Folder::new(&[
        CARD,
        ("tools.py", &format!("{circles}{many}\ndef f(x: A, y: B, z: C, w: C0): ...\n")),
        ("one.py", "from two import A\n"),
        ("two.py", "from one import A\n"),
    ]);
    let loaded = folder.load("a.yaml");
    assert!(loaded.report.is_empty(), "{}", loaded.report.render_text(Color::Never));
    assert!(parameters(&loaded).to_string().len() < 100_000);
}
