//! A tool from a function's signature, annotations and docstring.

use super::module::{Function, Module, Parameter, ParameterKind};
use super::{docstring, schema};
use serde_json::{Map, Value, json};
use tenure_core::tool::ToolSpec;

/// The parameters that a worker fills in itself.
const INJECTED: [&str; 2] = ["ctx", "context_variables"];

/// Why a function cannot be a tool: the parameter, and what is wrong with it.
pub(crate) struct UnfitTool<'a> {
    pub(crate) parameter: &'a Parameter,
    pub(crate) problem: String,
}

/// The tool that `function` makes.
pub(crate) fn tool_spec<'a>(
    function: &'a Function,
    name: &str,
    module: &Module,
) -> Result<ToolSpec, UnfitTool<'a>> {
    let doc = docstring::read(function.docstring.as_deref().unwrap_or_default());
    let (mut properties, mut required, mut open) = (Map::new(), Vec::new(), false);
    for parameter in &function.parameters {
        match parameter.kind {
            ParameterKind::Keywords => {
                open = true;
                continue;
            }
            ParameterKind::Rest => {
                return Err(UnfitTool {
                    parameter,
                    problem: format!(
                        "takes `*{}`; a model gives arguments by name, so take a list",
                        parameter.name
                    ),
                });
            }
            ParameterKind::PositionalOnly => {
                return Err(UnfitTool {
                    parameter,
                    problem: format!(
                        "takes `{}` by position only; a model gives arguments by name, so remove \
                         the `/`",
                        parameter.name
                    ),
                });
            }
            ParameterKind::Plain | ParameterKind::KeywordOnly => {}
        }
        if INJECTED.contains(&parameter.name.as_str()) {
            continue;
        }
        let (mut schema, noted) = match &parameter.annotation {
            Some(annotation) => schema::annotation(annotation, module),
            None => (json!({}), None),
        };
        let said = noted.or_else(|| doc.parameters.get(&parameter.name).cloned());
        if let Value::Object(map) = &mut schema {
            if let Some(said) = said.filter(|said| !said.is_empty()) {
                map.insert("description".into(), said.into());
            }
            if let Some(default) = parameter.default.as_deref().and_then(schema::literal) {
                map.insert("default".into(), default);
            }
        }
        if parameter.default.is_none() {
            required.push(Value::from(parameter.name.as_str()));
        }
        properties.insert(parameter.name.clone(), schema);
    }
    let mut parameters = json!({ "type": "object", "properties": properties });
    if let Value::Object(map) = &mut parameters {
        if !required.is_empty() {
            map.insert("required".into(), required.into());
        }
        map.insert("additionalProperties".into(), open.into());
    }
    let description = if doc.summary.is_empty() { name.to_owned() } else { doc.summary };
    Ok(ToolSpec::new(name, description).parameters(parameters))
}
