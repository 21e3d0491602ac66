//! Questions that a server has, on their way to a person.

use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest};
use serde_json::{Value, json};
use tenure_core::ask::{Answer, Ask, Misfit, check, read_text};
use tenure_core::context::ToolCx;
use tokio::sync::oneshot;

/// How often a person is asked for an answer that fits.
const MOST_TRIES: usize = 3;

/// Asks a person, and replies; unless the server does not want to know any more.
pub(super) async fn answer(
    cx: &ToolCx<'_>,
    server: &str,
    params: ElicitRequestParams,
    mut reply: oneshot::Sender<ElicitResult>,
) {
    let answer = tokio::select! {
        biased;
        () = reply.closed() => return,
        answer = ask(cx, server, params) => answer,
    };
    let _ = reply.send(answer);
}

/// What a server asked for instead of answering a call.
pub(super) async fn input(
    cx: &ToolCx<'_>,
    server: &str,
    request: InputRequest,
) -> Result<Value, String> {
    let InputRequest::Elicitation(request) = request else {
        return Err(format!("`{server}` wants something other than input, which is not offered"));
    };
    let answer = ask(cx, server, request.params).await;
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

async fn ask(cx: &ToolCx<'_>, server: &str, params: ElicitRequestParams) -> ElicitResult {
    match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = form(serde_json::to_value(requested_schema).unwrap_or_default());
            fill_in(cx, server, &message, &schema).await
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let prompt = format!("`{server}` asks you to open {url}\n{message}\nDo you agree?");
            // To agree is up to a person. As an approval it would count as given with that of the
            // call, so it is input, and only a plain yes is one.
            let schema = json!({ "type": "boolean" });
            let said = match cx.ask(Ask::input(prompt).schema(schema.clone())).await {
                Ok(Answer::Edit(value)) => value,
                Ok(Answer::Respond(text)) => read_text(&schema, &text).unwrap_or_default(),
                Ok(Answer::Approve | Answer::Reject(_)) | Err(_) => return decline(),
            };
            if said == Value::Bool(true) { accept(None) } else { decline() }
        }
        _ => decline(),
    }
}

/// Asks until the answer fits the form.
async fn fill_in(cx: &ToolCx<'_>, server: &str, message: &str, schema: &Value) -> ElicitResult {
    let mut wrong = String::new();
    for _ in 0..MOST_TRIES {
        let prompt = format!("`{server}` asks: {message}{wrong}");
        let content = match cx.ask(Ask::input(prompt).schema(schema.clone())).await {
            Ok(Answer::Approve) => fitting(schema, defaults(schema)),
            Ok(Answer::Edit(value)) => fitting(schema, value),
            Ok(Answer::Respond(text)) => read_text(schema, &text),
            Ok(Answer::Reject(_)) | Err(_) => return decline(),
        };
        match content {
            Ok(content) => return accept(Some(content)),
            Err(misfit) => wrong = format!("\nThe last answer did not fit: {misfit}."),
        }
    }
    decline()
}

fn fitting(schema: &Value, value: Value) -> Result<Value, Misfit> {
    check(schema, &value).map(|()| value)
}

fn accept(content: Option<Value>) -> ElicitResult {
    let answer = ElicitResult::new(ElicitationAction::Accept);
    match content {
        Some(content) => answer.with_content(content),
        None => answer,
    }
}

fn decline() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Decline)
}

/// A form as it is asked: with nothing but what it names, and with titled choices also as plain
/// ones, which is what answers are held against.
fn form(mut schema: Value) -> Value {
    if let Some(properties) = schema["properties"].as_object_mut() {
        for field in properties.values_mut() {
            add_choices(field);
            if let Some(items) = field.get_mut("items") {
                add_choices(items);
            }
        }
    }
    schema["additionalProperties"] = Value::Bool(false);
    schema
}

fn add_choices(field: &mut Value) {
    let titled = field.get("oneOf").or_else(|| field.get("anyOf")).and_then(Value::as_array);
    let choices: Option<Vec<Value>> =
        titled.and_then(|all| all.iter().map(|it| it.get("const").cloned()).collect());
    if let Some(choices) = choices {
        field["enum"] = Value::Array(choices);
    }
}

/// What a form says by itself.
fn defaults(schema: &Value) -> Value {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let stated = fields.filter_map(|(name, it)| Some((name.clone(), it.get("default")?.clone())));
    Value::Object(stated.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_to_fit_the_form() {
        let form = form(json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 2 },
                "age": { "type": "integer", "minimum": 0, "maximum": 150, "default": 30 },
                "keep": { "type": "boolean", "default": true },
                "size": { "type": "string", "enum": ["small", "large"] },
                "hue": { "type": "string", "oneOf": [{ "const": "#f00", "title": "Red" }] },
                "tags": {
                    "type": "array",
                    "maxItems": 2,
                    "items": { "anyOf": [{ "const": "a", "title": "A" }, { "const": "b" }] },
                },
            },
            "required": ["name"],
        }));
        assert_eq!(defaults(&form), json!({ "age": 30, "keep": true }));
        for (answer, wrong) in [
            (json!({ "name": "Ada" }), None),
            (json!({ "name": "Ada", "age": 36, "keep": false, "size": "small" }), None),
            (json!({ "name": "Ada", "hue": "#f00", "tags": ["a", "b"] }), None),
            (json!({}), Some("name")),
            (json!({ "name": 7 }), Some("name")),
            (json!({ "name": "A" }), Some("name")),
            (json!({ "name": "Ada", "age": 1.5 }), Some("age")),
            (json!({ "name": "Ada", "age": 151 }), Some("age")),
            (json!({ "name": "Ada", "size": "xl" }), Some("size")),
            (json!({ "name": "Ada", "hue": "Red" }), Some("hue")),
            (json!({ "name": "Ada", "tags": ["c"] }), Some("tags[0]")),
            (json!({ "name": "Ada", "tags": ["a", "a", "b"] }), Some("tags")),
            (json!({ "name": "Ada", "admin": true }), Some("admin")),
            (json!("Ada"), Some("")),
        ] {
            let misfit = check(&form, &answer).err().map(|misfit| misfit.field);
            assert_eq!(misfit.as_deref(), wrong, "{answer}");
        }
    }
}
