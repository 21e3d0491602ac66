//! The fields about a card's own model.

use crate::card::{CardType, ModelFields, Reader, RequestParams, present};
use crate::diagnostic::Code;
use crate::source::{Node, Value};

const MODES: &[(&str, &str)] =
    &[("postprocess", "postprocess"), ("passthrough", "passthrough"), ("selectable", "selectable")];

pub(super) fn read(tree: &Node, reader: &mut Reader<'_>, card_type: CardType) -> ModelFields {
    let with_history = !matches!(card_type, CardType::IterativePlanner);
    let request_params = request_params(tree, reader);
    let mut fields = ModelFields {
        model: reader.words(tree, "model").map(|model| model.trim().to_owned()),
        use_history: card_type == CardType::Agent,
        request_params,
        api_key: reader.secret(tree, "api_key"),
        ..ModelFields::default()
    };
    if with_history {
        if let Some(use_history) = reader.truth(tree, "use_history") {
            fields.use_history = use_history;
        }
        fields.save_trajectory = reader.truth(tree, "save_trajectory").unwrap_or(false);
        fields.human_input = reader.truth(tree, "human_input").unwrap_or(false);
    }
    let effective = fields.request_params.use_history.unwrap_or(fields.use_history);
    if fields.save_trajectory && effective {
        let span = tree.entry("save_trajectory").map_or(tree.span, |(key, _)| key.span);
        reader.problem_help(
            Code::Contradiction,
            span,
            "`save_trajectory` needs an agent without history",
            "add `use_history: false`, or remove `save_trajectory`",
        );
    }
    fields
}

fn request_params(tree: &Node, reader: &mut Reader<'_>) -> RequestParams {
    let mut params = RequestParams::default();
    let Some(node) = reader.mapping(tree, "request_params") else { return params };
    params.max_steps = reader.count(node, "max_iterations");
    params.max_tokens =
        reader.count(node, "maxTokens").or_else(|| reader.count(node, "max_tokens"));
    params.model = reader.words(node, "model").map(|model| model.trim().to_owned());
    params.use_history = reader.truth(node, "use_history");
    params.parallel_tool_calls = reader.truth(node, "parallel_tool_calls");
    params.tool_result_mode = reader.one_of(node, "tool_result_mode", MODES).map(str::to_owned);
    if let Some((temperature, span)) = reader.number(node, "temperature") {
        if temperature < 0.0 {
            reader.problem_help(
                Code::OutOfRange,
                span,
                format!("`temperature` is {temperature}, but must be 0 or more"),
                "give a number of 0 or more, or leave `temperature` out",
            );
        } else {
            params.temperature = Some(temperature);
        }
    }
    let known = [
        "max_iterations",
        "maxTokens",
        "max_tokens",
        "model",
        "use_history",
        "parallel_tool_calls",
        "tool_result_mode",
        "temperature",
    ];
    if present(node, "maxTokens").is_some()
        && let Some((key, _)) = node.entry("max_tokens")
    {
        reader.problem_help(
            Code::Contradiction,
            key.span,
            "`max_tokens` and `maxTokens` mean the same",
            "keep one of the two",
        );
    }
    for (key, value) in node.map().unwrap_or_default() {
        if !known.contains(&key.text.as_str()) && value.value != Value::Null {
            let value = reader.json(value);
            params.extra.insert(key.text.clone(), value);
        }
    }
    params
}
