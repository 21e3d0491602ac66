//! Whether a hook guards.

/// Whether a hook's policy is `deny`. A guard must say what it decides: silence is not consent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Role {
    /// Its policy is `deny`: any failure of it denies.
    Guard,
    /// Any other hook.
    #[default]
    Other,
}
