//! Hints for errors of confined processes.

use tenure_sandbox::{Confinement, Network};

/// The words of the system for what it does not let a process do with a file.
const REFUSED: &[&str] = &[
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Device or resource busy",
    "EROFS",
    "EACCES",
    "EPERM",
    "EBUSY",
];
/// The words of the system, and of common programs, for a network that is not there.
const UNREACHED: &[&str] = &[
    "Network is unreachable",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "ENETUNREACH",
    "EAI_AGAIN",
];

/// Returns what to say beside the error of a confined process whose last words are the system's for a refusal.
///
/// It is for the person who reads the error. Nothing is decided by it: the same words may have another cause.
pub(crate) fn hint(rules: &Confinement, words: &str) -> Option<&'static str> {
    let says = |all: &[&str]| all.iter().any(|text| words.contains(text));
    if rules.network == Network::None && says(UNREACHED) {
        return Some("it runs confined, without a network: `sandbox: { network: true }` grants it");
    }
    if !says(REFUSED) {
        return None;
    }
    Some(match words.contains(".git/") {
        true => {
            "it runs confined, and a repository is read-only to it: `sandbox: { write: [.git] }`, or \
             write = [\".git\"] under [sandbox] of tenure.toml, opens it"
        }
        false => {
            "it runs confined: what it has to write beside the project is granted with `sandbox: { write: \
             [PATH] }`, or by write = [\"PATH\"] under [sandbox] of tenure.toml; what guards it never is"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_of_a_refusal_have_a_hint() {
        let (users, none) = (
            Confinement::default(),
            Confinement { network: Network::None, ..Confinement::default() },
        );
        for (rules, words, expected) in [
            (&users, "sh: 1: cannot create /etc/x: Read-only file system", Some("[PATH]")),
            (&users, "Unable to create '/p/.git/index.lock': Read-only file system", Some(".git")),
            (&users, "OSError: [Errno 16] Device or resource busy", Some("[PATH]")),
            (&none, "curl: (6) Could not resolve host: example.net", Some("network: true")),
            (&users, "curl: (6) Could not resolve host: example.net", None),
            (&none, "no such file or directory", None),
        ] {
            let told = hint(rules, words);
            assert_eq!(told.is_some(), expected.is_some(), "{words}: {told:?}");
            assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{told:?}");
        }
    }
}
