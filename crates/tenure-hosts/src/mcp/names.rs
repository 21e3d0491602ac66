//! The names that a model calls tools by.

use std::collections::HashSet;

/// The longest name that every provider takes.
const LONGEST: usize = 64;

/// Names that are given to tools, none of them twice.
#[derive(Default)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// A name for a tool of a server: `<server>__<tool>`, of letters, digits, `_` and `-`, and not
    /// too long. What had to be changed for that ends in a number that stands for the whole name.
    pub(super) fn name(&mut self, server: &str, tool: &str) -> String {
        let whole = format!("{server}__{tool}");
        let plain: String = whole.chars().map(fit).collect();
        let name = if plain.len() <= LONGEST && !self.taken.contains(&plain) {
            plain
        } else {
            (0u32..)
                .map(|round| marked(&plain, digest(&whole, round)))
                .find(|name| !self.taken.contains(name))
                .unwrap_or(plain)
        };
        self.taken.insert(name.clone());
        name
    }
}

/// Whether a tool of a server can have this name.
pub(super) fn may_be_of(server: &str, name: &str) -> bool {
    let prefix: String = format!("{server}__").chars().map(fit).collect();
    // Of a long name, only the beginning is left.
    let kept = prefix.len().min(LONGEST - 9);
    name.len() > kept && name.len() <= LONGEST && name.starts_with(&prefix[..kept])
}

fn fit(it: char) -> char {
    if it.is_ascii_alphanumeric() || it == '_' || it == '-' { it } else { '_' }
}

/// A name that is cut to make room for a mark.
fn marked(plain: &str, mark: u32) -> String {
    let room = LONGEST - 9;
    format!("{}_{mark:08x}", &plain[..plain.len().min(room)])
}

/// A number that is the same for the same name, on every machine.
fn digest(whole: &str, round: u32) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    whole.bytes().chain(round.to_le_bytes()).fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_suits_every_provider_and_is_the_only_one() {
        let mut names = Names::default();
        assert_eq!(names.name("files", "read_file"), "files__read_file");
        assert_eq!(names.name("my.files", "read file"), "my_files__read_file");
        let long = "x".repeat(100);
        let all = [
            names.name("files", &long),
            names.name("files", &format!("{long}y")),
            // The same as one above, once the dot is gone.
            names.name("my files", "read.file"),
            // The same server and tool, cut elsewhere.
            names.name("files__read", "file"),
            names.name("größe", "日本"),
        ];
        for name in &all {
            assert!(name.len() <= 64 && name.chars().all(|it| it == fit(it)), "{name}");
        }
        let distinct: HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{all:?}");
        assert!(all[2].starts_with("my_files__read_file_"), "{}", all[2]);
        let mut again = Names::default();
        assert_eq!(again.name("files", &long), all[0], "the same for ever");
    }

    #[test]
    fn a_name_tells_which_servers_it_may_be_of() {
        let mut names = Names::default();
        let (long, other) = ("s".repeat(70), "s".repeat(40));
        for server in ["files", "my.files", "a__b", &long, &other] {
            for tool in ["read", &long] {
                let name = names.name(server, tool);
                assert!(may_be_of(server, &name), "{server} {name}");
            }
        }
        for name in ["files", "files__", "files_read", "file__read", "read", "__read", ""] {
            assert!(!may_be_of("files", name), "{name}");
        }
    }
}
