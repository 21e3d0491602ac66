//! Where the generated code finds what it refers to.

use proc_macro_crate::{Error, FoundCrate, crate_name};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;

/// The path of the crate that generated code refers to: `tenure`, or else `tenure-core`, under the
/// name that the user gave it. Both have the same modules at their root.
pub(crate) fn root() -> syn::Result<TokenStream> {
    choose(crate_name)
}

fn choose(find: impl Fn(&str) -> Result<FoundCrate, Error>) -> syn::Result<TokenStream> {
    for package in ["tenure", "tenure-core"] {
        match find(package) {
            // By its name and not as `crate`: tests, examples and doctests of a package count as
            // the package itself.
            Ok(FoundCrate::Itself) => return Ok(absolute(&package.replace('-', "_"))),
            Ok(FoundCrate::Name(name)) => return Ok(absolute(&name)),
            Err(Error::CrateNotFound { .. }) => {}
            // There is no manifest to ask: not built by cargo. Then nobody has renamed it either.
            Err(_) => return Ok(absolute("tenure")),
        }
    }
    Err(syn::Error::new(
        Span::call_site(),
        "this macro needs the crate `tenure` or `tenure-core`; add one of them to the dependencies",
    ))
}

fn absolute(name: &str) -> TokenStream {
    let name = Ident::new(name, Span::call_site());
    quote!(::#name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(found: &[(&str, FoundCrate)]) -> String {
        let root = choose(|package| {
            let hit = found.iter().find(|(name, _)| *name == package);
            hit.map(|(_, krate)| krate.clone()).ok_or_else(|| Error::CrateNotFound {
                crate_name: package.to_owned(),
                path: "Cargo.toml".into(),
            })
        });
        root.map_or_else(|error| error.to_string(), |path| path.to_string().replace(' ', ""))
    }

    #[test]
    fn the_facade_comes_before_the_core_and_renames_are_followed() {
        let name = |name: &str| FoundCrate::Name(name.to_owned());
        let core = ("tenure-core", name("tenure_core"));

        assert_eq!(chosen(&[("tenure", name("tenure")), core.clone()]), "::tenure");
        assert_eq!(chosen(&[("tenure", name("agents")), core.clone()]), "::agents");
        assert_eq!(chosen(&[core]), "::tenure_core");
        assert_eq!(chosen(&[("tenure", FoundCrate::Itself)]), "::tenure");
        assert_eq!(chosen(&[("tenure-core", FoundCrate::Itself)]), "::tenure_core");
    }

    #[test]
    fn without_either_crate_the_error_says_what_to_add() {
        assert!(chosen(&[]).contains("add one of them"));
    }

    #[test]
    fn without_a_manifest_the_facade_is_assumed() {
        let root = choose(|_| Err(Error::CargoManifestDirNotSet)).expect("falls back");
        assert_eq!(root.to_string().replace(' ', ""), "::tenure");
    }
}
