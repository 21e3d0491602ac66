//! The parts of the program that a build may lack, and what is said to a card that uses one.

/// A part that a feature of this crate switches on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    /// The ready-made hooks.
    Hooks,
    /// Tool servers.
    Mcp,
    /// Models over the network.
    Providers,
}

impl Feature {
    /// The name of the feature, in this crate and in the program.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::Mcp => "mcp",
            Self::Providers => "providers",
        }
    }

    /// Whether it is part of this build.
    pub(crate) const fn is_built(self) -> bool {
        match self {
            Self::Hooks => cfg!(feature = "hooks"),
            Self::Mcp => cfg!(feature = "mcp"),
            Self::Providers => cfg!(feature = "providers"),
        }
    }

    /// Returns what is said of something that needs it and is not there, as in "the hook `retry`".
    pub(crate) fn missing(self, what: &str) -> String {
        format!("{what} is not part of this program, which was built without `{}`", self.name())
    }

    /// Returns what to do to get it.
    pub(crate) fn help(self) -> String {
        format!(
            "build it with `--features {}`, or install all of it: `cargo install --path \
             crates/tenure-cli`",
            self.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_feature_and_how_to_get_it() {
        let said =
            |feature: Feature, what| format!("{}; {}", feature.missing(what), feature.help());
        assert_eq!(
            said(Feature::Hooks, "the hook `retry`"),
            "the hook `retry` is not part of this program, which was built without `hooks`; build it \
             with `--features hooks`, or install all of it: `cargo install --path crates/tenure-cli`"
        );
        for feature in [Feature::Hooks, Feature::Mcp, Feature::Providers] {
            assert!(said(feature, "it").contains(&format!("`--features {}`", feature.name())));
        }
    }
}
