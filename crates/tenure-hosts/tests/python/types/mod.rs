//! Arguments become what a function's annotations say, and results become JSON.

mod arguments;
mod models;
mod results;
mod signatures;

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
class Bag(dict): pass
class Row(tuple): pass
class Connection: pass
@dataclass
class Lost:
    x: "Nowhere"
"#;

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
