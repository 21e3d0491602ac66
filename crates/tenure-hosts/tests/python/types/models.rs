//! Models of pydantic.

use super::{TYPES, Table, check_arguments};
use std::path::Path;

const MODELS: &str = r#"
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator
from pydantic import v1
from pydantic.dataclasses import dataclass as checked
class Line(BaseModel):
    due: date
    size: Size = Size.SMALL
    price: Decimal = Field(default=Decimal(1), gt=0)
class Cart(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    id: UUID
    lines: list[Line]
    tags: frozenset[str] = frozenset()
class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9
class Dog(BaseModel):
    kind: Literal["dog"]
class Even(BaseModel):
    n: int
    @field_validator("n")
    def is_even(cls, n):
        if n % 2: raise ValueError("n is odd")
        return n
class Old(v1.BaseModel):
    due: date
    n: int = 1
@checked
class Checked:
    due: date
@dataclass
class Holds:
    line: Line
"#;

const MODEL_ARGUMENTS: &[(&str, &str, &str)] = &[
    (
        "Line",
        r#"{"due": "2026-01-31"}"#,
        "Line Line(due=datetime.date(2026, 1, 31), size=<Size.SMALL: 'small'>, price=Decimal('1'))",
    ),
    ("Line", r#"{"due": "soon"}"#, "!`x.due` cannot be taken: Input should be a valid date"),
    ("Line", "{}", "!`x.due` is missing"),
    ("Line", "[]", "!`x` cannot be taken: Input should be an object, but is a list of 0"),
    (
        "Line",
        r#"{"due": "2026-01-31", "price": -1}"#,
        "!`x.price` cannot be taken: Input should be greater than 0, but is the number -1",
    ),
    (
        "Cart",
        r#"{"id": "12345678-1234-5678-1234-567812345678", "lines": [{"due": "2026-01-31"}], "tags": ["a"]}"#,
        "Cart Cart(id=UUID('12345678-1234-5678-1234-567812345678'), lines=[Line(due=",
    ),
    (
        "Cart",
        r#"{"id": "12345678-1234-5678-1234-567812345678", "lines": [{"due": "2026-01-31"}, {"due": 5.5}]}"#,
        "!`x.lines[1].due` cannot be taken: ",
    ),
    (
        "Cart",
        r#"{"id": "12345678-1234-5678-1234-567812345678", "lines": [], "z": 1}"#,
        "!`x.z` cannot be taken: Extra inputs",
    ),
    ("list[Optional[Line]]", r#"[null, {"due": "x"}]"#, "!`x[1].due` cannot be taken: "),
    ("Union[Cat, Dog]", r#"{"kind": "dog"}"#, "Dog Dog(kind='dog')"),
    (
        "Annotated[Union[Cat, Dog], Field(discriminator='kind')]",
        r#"{"kind": "cat"}"#,
        "Cat Cat(kind='cat', lives=9)",
    ),
    ("Annotated[int, Field(ge=1, le=5)]", "3", "int 3"),
    (
        "Annotated[int, Field(ge=1, le=5)]",
        "7",
        "!`x` cannot be taken: Input should be less than or equal to 5, but is the number 7",
    ),
    ("Even", r#"{"n": 1}"#, "!`x.n` cannot be taken: Value error, n is odd, but is the number 1"),
    ("Old", r#"{"due": "2026-01-31"}"#, "Old Old(due=datetime.date(2026, 1, 31), n=1)"),
    ("Old", r#"{"due": "x"}"#, "!`x.due` cannot be taken: invalid date format"),
    ("Old", "{}", "!`x.due` is missing"),
    ("Checked", r#"{"due": "2026-01-31"}"#, "Checked Checked(due=datetime.date(2026, 1, 31))"),
    ("Checked", r#"{"due": "x"}"#, "!`x.due` cannot be taken: "),
    ("Holds", r#"{"line": {"due": "x"}}"#, "!`x.line.due` cannot be taken: "),
];

/// What all functions can name that take models, with the library that `scripts/setup` installs.
fn models() -> String {
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = library.join("../../.cache/pydantic/package");
    assert!(library.is_dir(), "pydantic is not installed; run scripts/setup");
    format!("import sys\nsys.path.insert(0, {:?})\n{TYPES}{MODELS}", library.display().to_string())
}

#[tokio::test]
async fn models_of_pydantic_are_made_by_pydantic() {
    check_arguments(&models(), MODEL_ARGUMENTS).await;
}

#[tokio::test]
async fn models_of_pydantic_are_told_as_they_say() {
    let results = [
        ("Line(due='2026-01-31')", r#"{"due": "2026-01-31", "size": "small", "price": "1"}"#),
        ("{'a': [Old(due='2026-01-31')]}", r#"{"a": [{"due": "2026-01-31", "n": 1}]}"#),
        (
            "Holds(Line(due='2026-01-31', size='big'))",
            r#"{"line": {"due": "2026-01-31", "size": "big", "price": "1"}}"#,
        ),
        ("Checked('2026-01-31')", r#"{"due": "2026-01-31"}"#),
    ];
    let functions = results.iter().map(|(value, _)| format!("(): return {value}"));
    let table = Table::of(&models(), functions.enumerate()).await;
    for (at, (value, expected)) in results.iter().enumerate() {
        assert_eq!(table.call(at, "{}").await, *expected, "{value}");
    }
    table.end().await;
}
