//! What the macros accept and refuse.
//!
//! trybuild builds the dependencies of the package that it is in once more, in a folder of its own. In `tenure`, with the
//! features that the workspace turns on, those are most of the workspace; and what a crate of macros has for its tests is
//! built a second time for all others. So this is a package of its own.

/// The `.stderr` files hold messages of the macros only: those of rustc change with its version.
#[test]
fn macros_accept_and_refuse() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
