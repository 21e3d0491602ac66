//! The names of hooks that a build lacks.

use super::find;

/// Hooks that need a feature of this crate beyond `standard`, each with its feature.
const APART: [(&str, &str); 5] = [
    ("result_schema", "schema"),
    ("shell", "tools"),
    ("file_search", "tools"),
    ("telemetry", "telemetry"),
    ("metrics", "telemetry"),
];

/// The other hooks, in the order of the documentation.
const STANDARD: [&str; 38] = [
    "retry",
    "tool_retry",
    "cache",
    "fallback",
    "refusal",
    "breaker",
    "rate_limit",
    "concurrency",
    "timeout",
    "tool_errors",
    "sanitise",
    "validate",
    "quota",
    "route",
    "load_context",
    "prompt",
    "todo",
    "dedupe",
    "clear_tool_results",
    "select_tools",
    "window",
    "cheaper_model",
    "permissions",
    "call_limit",
    "budget",
    "dry_run",
    "emulate_tools",
    "audit",
    "pii",
    "safety",
    "approval",
    "critic",
    "log",
    "usage",
    "adapt",
    "format",
    "save",
    "notify",
];

/// Returns the feature of this crate that the hook of this name needs, if the hook was left out of this
/// build because the feature is off. `None` for a hook that is there, and for a name that is no hook's.
///
/// ```
/// use tenure_hooks::ready;
///
/// assert_eq!(ready::left_out("no_such_hook"), None);
/// assert!(ready::find("retry").is_some() || ready::left_out("retry") == Some("standard"));
/// ```
pub fn left_out(name: &str) -> Option<&'static str> {
    if find(name).is_some() {
        return None;
    }
    feature_of(name)
}

fn feature_of(name: &str) -> Option<&'static str> {
    let apart = APART.iter().find(|(hook, _)| *hook == name).map(|(_, feature)| *feature);
    apart.or_else(|| STANDARD.contains(&name).then_some("standard"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ready;

    #[test]
    fn every_hook_has_a_feature_and_nothing_else_has_one() {
        let hooks = ready::all().map(|(_, hook)| hook.name());
        let without: Vec<&str> = hooks.filter(|name| feature_of(name).is_none()).collect();
        assert_eq!(without, Vec::<&str>::new(), "name them in this file");
        let names = APART.iter().map(|(name, _)| name).chain(&STANDARD);
        let unknown: Vec<&&str> = names.filter(|name| ready::find(name).is_none()).collect();
        assert_eq!(unknown, Vec::<&&str>::new(), "there are no such hooks");
    }

    #[test]
    fn what_is_there_is_not_left_out() {
        assert_eq!(left_out("retry"), None);
        assert_eq!(left_out("rety"), None);
    }
}
