//! What is known of types by their names.

use serde_json::{Value, json};

/// The name at the end of a path.
pub(super) fn short(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Modules of Python whose types are known here. A file of the project cannot take their place.
pub(super) const MODULES: &[&str] = &[
    "abc",
    "asyncio",
    "collections",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "io",
    "logging",
    "pathlib",
    "queue",
    "socket",
    "sqlite3",
    "subprocess",
    "threading",
    "types",
    "typing",
    "typing_extensions",
    "uuid",
];

/// The schema of a type, by its path; `None` if the name says nothing of it.
pub(super) fn schema(path: &str) -> Option<Value> {
    let (module, name) = path.rsplit_once('.')?;
    Some(match (module, name) {
        ("builtins", "str") => json!({ "type": "string" }),
        ("builtins", "int") => json!({ "type": "integer" }),
        ("builtins", "float") => json!({ "type": "number" }),
        ("builtins", "bool") => json!({ "type": "boolean" }),
        ("builtins", "bytes") => json!({ "type": "string", "format": "binary" }),
        ("types", "NoneType") => json!({ "type": "null" }),
        ("builtins", "object") | (_, "Any" | "TypeVar") => json!({}),
        ("datetime", "datetime") => json!({ "type": "string", "format": "date-time" }),
        ("datetime", "date" | "time") => json!({ "type": "string", "format": name }),
        ("datetime", "timedelta") => json!({ "type": "string", "format": "duration" }),
        ("uuid", "UUID") => json!({ "type": "string", "format": "uuid" }),
        ("pathlib", _) => json!({ "type": "string", "format": "path" }),
        ("decimal", "Decimal") => json!({ "anyOf": [
            { "type": "number" },
            { "type": "string", "pattern": r"^[+-]?\d+(\.\d+)?([eE][+-]?\d+)?$" },
        ] }),
        ("builtins" | "typing" | "collections" | "collections.abc", name) => match name {
            "list" | "List" | "tuple" | "Tuple" | "Sequence" | "MutableSequence" | "Iterable"
            | "Collection" | "deque" | "Deque" => json!({ "type": "array" }),
            "set" | "Set" | "MutableSet" | "AbstractSet" | "frozenset" | "FrozenSet" => {
                json!({ "type": "array", "uniqueItems": true })
            }
            "dict" | "Dict" | "Mapping" | "MutableMapping" | "OrderedDict" => {
                json!({ "type": "object" })
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Whether no JSON becomes this type of Python's own.
pub(super) fn is_impossible(path: &str) -> bool {
    let Some((module, name)) = path.rsplit_once('.') else { return false };
    match module {
        "builtins" => ["type", "complex", "range", "slice", "memoryview", "bytearray", "property"]
            .contains(&name),
        "typing" | "typing_extensions" | "collections.abc" => matches!(
            name,
            "Callable"
                | "Type"
                | "Iterator"
                | "Generator"
                | "AsyncIterator"
                | "AsyncIterable"
                | "AsyncGenerator"
                | "Awaitable"
                | "Coroutine"
                | "IO"
                | "TextIO"
                | "BinaryIO"
                | "NoReturn"
                | "Never"
        ),
        "asyncio" => matches!(name, "Queue" | "Lock" | "Event" | "Task" | "Future" | "Semaphore"),
        "io" => matches!(name, "StringIO" | "BytesIO" | "TextIOWrapper" | "BufferedReader"),
        "logging" => matches!(name, "Logger" | "LoggerAdapter"),
        "queue" => name == "Queue",
        "socket" => name == "socket",
        "sqlite3" => matches!(name, "Connection" | "Cursor"),
        "subprocess" => name == "Popen",
        "threading" => matches!(name, "Thread" | "Lock" | "RLock" | "Event" | "Semaphore"),
        "types" => matches!(name, "FunctionType" | "ModuleType" | "MethodType"),
        _ => false,
    }
}

/// Whether a name is Python's own.
pub(super) fn is_builtin(name: &str) -> bool {
    const TYPES: &[&str] = &[
        "bool",
        "bytearray",
        "bytes",
        "complex",
        "dict",
        "float",
        "frozenset",
        "int",
        "list",
        "memoryview",
        "object",
        "property",
        "range",
        "set",
        "slice",
        "str",
        "tuple",
        "type",
    ];
    // Exceptions are the only builtins that begin with a capital, beside constants.
    TYPES.contains(&name)
        || ["Error", "Exception", "Warning", "Exit", "Interrupt", "Iteration", "Group"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Whether a class is no more than it says itself for having this base.
pub(super) fn is_bare(path: &str) -> bool {
    matches!(
        path,
        "builtins.object"
            | "abc.ABC"
            | "typing.Generic"
            | "typing.Protocol"
            | "typing_extensions.Protocol"
    )
}
