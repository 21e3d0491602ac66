//! A tool from a function's signature, annotations and docstring.

use super::docstring;
use super::files::{Found, PythonFiles};
use super::module::{Parameter, ParameterKind};
use super::types::{Annotation, Need, Said, Types};
use crate::diagnostic::Report;
use serde_json::{Map, Value, json};
use std::path::Path;
use tenure_core::tool::ToolSpec;

/// The parameters that a worker fills in itself.
const INJECTED: [&str; 2] = ["ctx", "context_variables"];

/// Why a function cannot be a tool: the parameter, and what is wrong with it.
pub(crate) struct UnfitTool<'a> {
    pub(crate) parameter: &'a Parameter,
    pub(crate) problem: String,
}

/// The tool that a function makes. What is wrong with its annotations is reported in its file.
pub(crate) fn tool_spec<'a>(
    found: &'a Found,
    name: &str,
    (files, root): (&mut PythonFiles, &Path),
    report: &mut Report,
) -> Result<ToolSpec, UnfitTool<'a>> {
    let function = found.function();
    let doc = docstring::read(function.docstring.as_deref().unwrap_or_default());
    let mut types = Types::new((files, root), report, name, &function.variables);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut others = Value::Bool(false);
    for parameter in &function.parameters {
        let read = |types: &mut Types<'_>| {
            let of = format!("`{}`", parameter.name);
            let need = Need::with_default(parameter.default.as_ref());
            let annotation = parameter.annotation.as_deref()?;
            Some(types.read(Annotation::new(found.parsed(), &of), annotation, need))
        };
        match parameter.kind {
            ParameterKind::Keywords => {
                let schema = read(&mut types).map(|said| said.schema);
                others = schema.filter(|schema| *schema != json!({})).unwrap_or(true.into());
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
        let Said { mut schema, description, is_left_out } = read(&mut types).unwrap_or_default();
        if is_left_out {
            continue;
        }
        let default = parameter.default.as_deref();
        let default = default.and_then(|default| types.default(found.parsed(), default));
        let said = description.or_else(|| doc.parameters.get(&parameter.name).cloned());
        if let Value::Object(map) = &mut schema {
            if let Some(said) = said.filter(|said| !said.is_empty()) {
                map.insert("description".into(), said.into());
            }
            map.extend(default.map(|default| ("default".to_owned(), default)));
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
        map.insert("additionalProperties".into(), others);
        let definitions = types.into_definitions();
        if !definitions.is_empty() {
            map.insert("$defs".into(), definitions.into());
        }
    }
    let description = if doc.summary.is_empty() { name.to_owned() } else { doc.summary };
    Ok(ToolSpec::new(name, description).parameters(parameters))
}
