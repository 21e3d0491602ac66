use super::*;
use serde_json::json;

#[test]
fn what_is_wrong_is_said() {
    let spot = json!({ "type": "object", "properties": { "x": { "type": "integer" } },
                       "required": ["x"] });
    let schema = json!({
        "type": "object",
        "properties": {
            "x": { "type": "integer" },
            "ratio": { "type": "number" },
            "name": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "size": { "type": "string", "enum": ["small", "big"] },
            "late": { "type": "integer", "default": null },
            "yes": { "type": "boolean" },
            "spots": { "type": "array", "items": spot },
            "pair": { "type": "array", "minItems": 2, "maxItems": 2,
                      "prefixItems": [{ "type": "integer" }, { "type": "string" }] },
            "table": { "type": "object", "additionalProperties": { "type": "integer" } },
            "any": { "description": "whatever" },
            "one": { "anyOf": [{ "type": "string" }, { "type": "array",
                               "items": { "type": "integer" } }] },
        },
        "required": ["x"],
        "additionalProperties": false,
    });
    for good in [
        json!({ "x": 1 }),
        json!({ "x": 2.0, "ratio": 1, "name": null, "late": null, "any": [1, {}] }),
        json!({ "x": 1, "ratio": 0.5, "name": "n", "size": "big", "late": 3, "yes": false }),
        json!({ "x": 1, "spots": [{ "x": 1, "y": 2 }], "pair": [1, "a"], "table": { "a": 1 } }),
        json!({ "x": 1, "one": [1, 2] }),
    ] {
        assert_eq!(checked(&schema, &good, "").map(drop), Ok(()), "{good}");
    }
    for (bad, said) in [
        (json!({}), "argument `x` is missing; it must be an integer"),
        (json!({ "x": "notint" }), "argument `x` must be an integer, but is the text \"notint\""),
        (json!({ "x": 1.5 }), "argument `x` must be an integer, but is the number 1.5"),
        (json!({ "x": null }), "argument `x` must be an integer, but is null"),
        (json!({ "x": true }), "argument `x` must be an integer, but is true"),
        (json!({ "x": 1, "name": 5 }), "`name` must be a text or null, but is the number 5"),
        (json!({ "x": 1, "size": "huge" }), "must be \"small\" or \"big\", but is the text"),
        (json!({ "x": 1, "yes": 1 }), "`yes` must be true or false, but is the number 1"),
        (json!({ "x": 1, "spots": [{}] }), "argument `spots[0].x` is missing"),
        (json!({ "x": 1, "spots": {} }), "`spots` must be a list, but is an object"),
        (json!({ "x": 1, "pair": [1] }), "`pair` must be a list of 2, but is one of 1"),
        (json!({ "x": 1, "pair": [1, 2] }), "`pair[1]` must be a text"),
        (json!({ "x": 1, "table": { "a": "b" } }), "`table.a` must be an integer"),
        (json!({ "x": 1, "one": [1, "b"] }), "`one[1]` must be an integer"),
        (json!({ "x": 1, "y": 2 }), "argument `y` is unknown; there are `x`"),
        (json!([]), "the arguments must be an object, but are a list of 0"),
    ] {
        let why = checked(&schema, &bad, "").expect_err("it is wrong");
        assert!(why.contains(said), "{bad}: {why}");
    }
    assert_eq!(checked(&json!({}), &json!({ "a": 1 }), ""), Ok(None));
}

#[test]
fn numbers_are_written_as_the_schema_has_them() {
    let big = "123456789012345678901234567890";
    let schema = json!({
        "type": "object",
        "properties": {
            "i": { "type": "integer" },
            "f": { "anyOf": [{ "type": "number" }, { "type": "null" }] },
            "any": {},
            "both": { "anyOf": [{ "type": "integer" }, { "type": "number" }] },
            "tree": { "$ref": "#/$defs/Tree" },
        },
        "$defs": { "Tree": { "type": "object", "properties": {
            "f": { "type": "number" },
            "i": { "type": "array", "items": { "type": "integer" } },
            "below": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/Tree" }] },
        } } },
    });
    for (written, expected) in [
        (r#"{"i":1,"f":1.5,"any":1.0,"both":2}"#.to_owned(), None),
        (r#"{"f":null,"any":2,"both":2.5}"#.to_owned(), None),
        (r#"{"i":2.0}"#.to_owned(), Some(r#"{"i":2}"#.to_owned())),
        (r#"{"f":2}"#.to_owned(), Some(r#"{"f":2.0}"#.to_owned())),
        (format!(r#"{{"i":{big},"any":[{big}],"both":{big}}}"#), None),
        (format!(r#"{{"f":{big}}}"#), Some(r#"{"f":1.2345678901234568e+29}"#.to_owned())),
        (r#"{"i":1e20}"#.to_owned(), Some(r#"{"i":100000000000000000000}"#.to_owned())),
        (
            r#"{"tree":{"f":1,"i":[],"below":{"f":0.5,"i":[3.0,4],"below":null}},"x":"é"}"#
                .to_owned(),
            Some(
                r#"{"tree":{"f":1.0,"i":[],"below":{"f":0.5,"i":[3,4],"below":null}},"x":"é"}"#
                    .to_owned(),
            ),
        ),
    ] {
        let value = serde_json::from_str(&written).expect("it is JSON");
        let json = checked(&schema, &value, &written).expect("it fits");
        let long = written.contains(big) && expected.is_none();
        assert_eq!(json, expected.or(long.then(|| written.clone())), "{written}");
    }
    let deep = json!({ "tree": { "below": { "i": ["a"] } } });
    let why = checked(&schema, &deep, "").expect_err("it is wrong");
    assert!(why.contains("`tree.below.i[0]` must be an integer"), "{why}");
}
