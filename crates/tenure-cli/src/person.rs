//! Decisions that are a person's: what Tenure started makes none of them.
//!
//! An agent with a shell could answer its own questions and trust its own files. So whatever stands for the word of
//! a person is refused beneath a process of Tenure: an answer, trust, a yes given beforehand, and a terminal to be
//! asked on. What only takes something away (`cancel`, `kill`, `trust revoke`) is not.

use crate::exit::Stop;
use crate::terminal::text::clean_line;
use std::sync::OnceLock;
use tenure_hosts::Lineage;

/// The most characters of a name that stands beside the user's.
const MOST_NAME: usize = 80;

/// Refuses what is a person's to decide if Tenure started this process. `what` is a whole clause, as in "an answer is
/// a person's".
pub(crate) fn ensure_person(what: &str) -> Result<(), Stop> {
    let Some(lineage) = lineage() else { return Ok(()) };
    let sign = match lineage {
        Lineage::BeneathTenure(pid) => {
            format!("process {pid}, which this one descends from, is Tenure")
        }
        Lineage::BeneathMarked(pid) => {
            format!("Tenure started process {pid}, which this one descends from")
        }
        _ => "Tenure started this process".to_owned(),
    };
    Err(Stop::untrusted(format!(
        "{what}: {sign}; nothing was decided; do it yourself, in a terminal that no agent, hook or tool opened"
    )))
}

/// Whether Tenure started this process, or what started it.
pub(crate) fn is_beneath_tenure() -> bool {
    lineage().is_some()
}

fn lineage() -> Option<Lineage> {
    static LINEAGE: OnceLock<Option<Lineage>> = OnceLock::new();
    *LINEAGE.get_or_init(Lineage::of_this_process)
}

/// Returns the name that an answer is recorded with: the user of the system, and beside it the name that was given.
pub(crate) fn signature(given: Option<&str>) -> String {
    let user = user_of(rustix::process::getuid().as_raw());
    let given: String =
        clean_line(given.unwrap_or_default()).trim().chars().take(MOST_NAME).collect();
    if given.is_empty() || given == user { user } else { format!("{user} ({given})") }
}

/// The name of a user. One that is in no file of this machine is known by its number.
fn user_of(uid: u32) -> String {
    let known = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_in(&known, uid).unwrap_or_else(|| format!("uid {uid}"))
}

/// The name of a user in a text like `/etc/passwd`.
fn name_in(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == uid).then(|| clean_line(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_known_by_the_number_and_not_by_the_environment() {
        let passwd = "# users\nroot:x:0:0:root:/root:/bin/sh\n:x:7:7::/:\nbroken\nada:x:1000:1000::/home/ada:\n";
        assert_eq!(name_in(passwd, 1000).as_deref(), Some("ada"));
        assert_eq!(name_in(passwd, 0).as_deref(), Some("root"));
        assert_eq!(name_in(passwd, 7), None);
    }

    #[test]
    fn a_given_name_stands_beside_the_user_and_never_in_its_place() {
        let user = user_of(rustix::process::getuid().as_raw());
        assert_eq!(signature(None), user);
        assert_eq!(signature(Some(" ")), user);
        assert_eq!(signature(Some(&user)), user);
        assert_eq!(signature(Some("ada")), format!("{user} (ada)"));
        assert!(signature(Some(&"a".repeat(5000))).len() < user.len() + 100);
    }
}
