//! What the macros accept and refuse.
//!
//! It stands here because it builds what this crate's tests depend on once more, in a folder of its own; with the
//! features that the tests of `tenure` have, that would be most of the workspace.

/// The `.stderr` files hold messages of the macros only: those of rustc change with its version.
#[test]
fn macros_accept_and_refuse() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
