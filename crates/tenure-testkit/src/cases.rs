//! The size of tests that try many cases.

/// Returns how many cases a test tries: `short`, or `long` if the environment variable `TENURE_LONG` is set.
///
/// A test that tries thousands of cases takes a sample of them every day and all of them before a release. Both are the
/// same test; only the number differs. In this workspace `scripts/test --long` sets the variable.
///
/// ```
/// use tenure_testkit::cases;
///
/// # if std::env::var_os("TENURE_LONG").is_none() {
/// assert_eq!(cases(40, 10_000), 40);
/// # }
/// ```
pub fn cases(short: usize, long: usize) -> usize {
    let is_long = std::env::var_os("TENURE_LONG").is_some_and(|value| !value.is_empty());
    if is_long { long } else { short }
}
