//! Where hooks keep what they know.

use std::borrow::Cow;
use tenure_core::context::Cx;

/// The key of a hook's state: as it is for the hook that has the name of its kind, and with its own
/// name for another one of the kind, so that two in one agent do not share what they keep.
pub(crate) fn own_key<'k>(cx: &Cx<'_>, kind: &str, key: &'k str) -> Cow<'k, str> {
    match cx.hook_name() {
        name if name == kind || name.is_empty() => Cow::Borrowed(key),
        name => Cow::Owned(format!("{key}:{name}")),
    }
}
