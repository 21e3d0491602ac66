//! Reading `sandbox` in `tenure.toml` and in cards.

use super::{Grant, Preset, SandboxSettings};
use crate::card::Reader;
use crate::diagnostic::Code;
use crate::project::Settings;
use crate::source::{Node, Value};
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The name of the table and of the field.
pub(crate) const SANDBOX: &str = "sandbox";
const KEYS: &[&str] = &["preset", "network", "write", "processes", "memory_mib"];
const GRANT_KEYS: &[&str] = &["preset", "network", "write"];

/// Reads `[sandbox]`.
pub(crate) fn read(
    reader: &mut Settings<'_>,
    root: &DeTable<'_>,
    folder: &Path,
) -> SandboxSettings {
    let Some(table) = reader.table(root, SANDBOX) else { return SandboxSettings::default() };
    reader.only(table, "[sandbox]", KEYS);
    let mut count = |key: &str| {
        let number = reader.amount(table, &format!("{SANDBOX}.{key}"), key)?;
        if number >= 1.0 && number.fract() == 0.0 {
            return Some(number as u64);
        }
        let message =
            format!("`{SANDBOX}.{key}` is {number}, but must be a whole number of 1 or more");
        let at = table.get(key).map(crate::project::span)?;
        reader.problem(Code::BadSetting, at, message, "leave it out for the usual limit");
        None
    };
    let (processes, memory_mib) = (count("processes"), count("memory_mib"));
    let grant = of_table(reader, table, SANDBOX);
    let at = table.get("write").map(crate::project::span);
    for (path, at) in grant.missing(folder).zip(at.into_iter().cycle()) {
        let message = format!("`{SANDBOX}.write` names `{path}`, which is not there");
        reader.problem(Code::MeaninglessField, at, message, Grant::MISSING_HELP);
    }
    SandboxSettings { grant, processes, memory_mib }
}

/// Reads `sandbox` of a server in `tenure.toml`: a preset, or a table.
pub(crate) fn server_grant(
    reader: &mut Settings<'_>,
    server: &DeTable<'_>,
    of: &str,
) -> Option<Grant> {
    let name = format!("{of}.{SANDBOX}");
    match server.get(SANDBOX)?.get_ref() {
        DeValue::Table(table) => {
            reader.only(table, &format!("[{name}]"), GRANT_KEYS);
            Some(of_table(reader, table, &name))
        }
        _ => {
            let preset = reader.one_of(server, &name, SANDBOX, Preset::NAMES);
            Some(Grant { preset, ..Grant::default() })
        }
    }
}

fn of_table(reader: &mut Settings<'_>, table: &DeTable<'_>, of: &str) -> Grant {
    let preset = reader.one_of(table, &format!("{of}.preset"), "preset", Preset::NAMES);
    let network = table.get("network").and_then(|found| {
        let network = found.get_ref().as_bool();
        if network.is_none() {
            reader.wrong(&format!("{of}.network"), "true or false", found);
        }
        network
    });
    let write = reader.texts(table, &format!("{of}.write"), "write").unwrap_or_default();
    Grant { preset, network, write }
}

/// Reads `sandbox` of a hook or a server in a card: a preset, or a table.
pub(crate) fn grant(reader: &mut Reader<'_>, map: &Node) -> Option<Grant> {
    let node = crate::card::present(map, SANDBOX)?;
    let Value::Map(_) = &node.value else {
        let preset = reader.one_of(map, SANDBOX, Preset::NAMES);
        return Some(Grant { preset, ..Grant::default() });
    };
    reader.only(node, SANDBOX, GRANT_KEYS, Code::UnknownField);
    let preset = reader.one_of(node, "preset", Preset::NAMES);
    let network = reader.truth(node, "network");
    let write = reader.texts(node, "write").unwrap_or_default();
    Some(Grant { preset, network, write: write.into_iter().map(|(path, _)| path).collect() })
}
