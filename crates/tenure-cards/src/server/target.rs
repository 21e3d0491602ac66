//! The targets of `mcp_connect`: an address, or a line with a program.

/// What a target says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Url(String),
    /// The program and what it is given.
    Command(Vec<String>),
}

impl Target {
    /// Reads a target. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.trim();
        if let Some(scheme) = scheme(text) {
            return match scheme.to_ascii_lowercase().as_str() {
                "http" | "https" => Ok(Self::Url(text.to_owned())),
                _ => Err("is an address that is neither http nor https"),
            };
        }
        let mut words = words(text)?;
        match words.first().map(String::as_str) {
            None | Some("") => return Err("names no program"),
            // The name of a package of npm stands for the program that runs it.
            Some(package) if package.starts_with('@') => {
                words.splice(0..0, ["npx".to_owned(), "-y".to_owned()]);
            }
            Some(_) => {}
        }
        Ok(Self::Command(words))
    }
}

fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (!scheme.is_empty() && scheme.chars().all(plain)).then_some(scheme)
}

/// The name of a server that is given none: the host of an address, the package that npx or uvx
/// runs, else the program.
pub(crate) fn default_name(target: &Target) -> String {
    let name = match target {
        Target::Url(url) => {
            let rest = url.split_once("://").map_or("", |(_, rest)| rest);
            let host = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
            match host.strip_prefix('[') {
                Some(address) => address.split(']').next().unwrap_or_default(),
                None => host.split(':').next().unwrap_or_default(),
            }
        }
        Target::Command(words) => {
            let program = words.first().map_or("", String::as_str);
            let mut rest = words.iter().skip(1).map(String::as_str);
            let package = match program {
                "npx" | "uvx" => rest.find(|word| !word.starts_with('-')),
                _ => None,
            };
            let last = |path: &'_ str| path.rsplit('/').next().unwrap_or_default().to_owned();
            return slug(&match package {
                // `@scope/name@1.2.3` is `name`.
                Some(package) => {
                    let name = last(package);
                    name.split('@').next().unwrap_or_default().to_owned()
                }
                None => last(program),
            });
        }
    };
    slug(name)
}

fn slug(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        match character {
            // What stands twice in a row stands between a server and its tool.
            '_' if out.ends_with('_') => {}
            c if c.is_ascii_alphanumeric() || c == '_' || c == '-' => {
                out.push(c.to_ascii_lowercase());
            }
            _ if out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    match out.trim_start_matches('-').trim_end_matches(['-', '_']) {
        "" => "mcp-server".to_owned(),
        name => name.to_owned(),
    }
}

/// The words of a line, as a shell would split it; nothing else that a shell does is done.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            c if c.is_whitespace() => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err("has a quote that is never closed"),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match characters.next() {
                        Some('"') => break,
                        Some('\\') => match characters.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err("has a quote that is never closed"),
                        },
                        Some(c) => word.push(c),
                        None => return Err("has a quote that is never closed"),
                    }
                }
            }
            '\\' => match characters.next() {
                Some(c) => word.get_or_insert_default().push(c),
                None => return Err("ends in a backslash"),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Result<Target, &'static str> {
        Ok(Target::Command(words.iter().map(|&word| word.to_owned()).collect()))
    }

    #[test]
    fn a_line_is_split_as_a_shell_splits_it_and_nothing_else_is_done() {
        for (line, expected) in [
            ("npx -y server", command(&["npx", "-y", "server"])),
            ("  a  'b c' \"d \\\" e\" f\\ g", command(&["a", "b c", "d \" e", "f g"])),
            ("a '' \"\"", command(&["a", "", ""])),
            ("a $(b) | c > d", command(&["a", "$(b)", "|", "c", ">", "d"])),
            ("@scope/server@1 x", command(&["npx", "-y", "@scope/server@1", "x"])),
            ("a 'b", Err("has a quote that is never closed")),
            ("a \"b\\", Err("has a quote that is never closed")),
            ("a\\", Err("ends in a backslash")),
            ("", Err("names no program")),
            ("'' a", Err("names no program")),
            ("ftp://x", Err("is an address that is neither http nor https")),
            ("HTTPS://x/y", Ok(Target::Url("HTTPS://x/y".to_owned()))),
        ] {
            assert_eq!(Target::parse(line), expected, "{line}");
        }
    }

    #[test]
    fn a_server_without_a_name_is_called_after_its_target() {
        for (target, name) in [
            ("https://mcp.example.com:8443/mcp?x=1", "mcp-example-com"),
            ("http://[::1]:80/", "1"),
            ("npx -y @modelcontextprotocol/server-filesystem@2025.1 .", "server-filesystem"),
            ("@modelcontextprotocol/server-memory", "server-memory"),
            ("uvx mcp-server-fetch@latest", "mcp-server-fetch"),
            ("npx", "npx"),
            ("/usr/local/bin/My.Server --x", "my-server"),
            ("./!!!", "mcp-server"),
            ("./my__own___server_", "my_own_server"),
        ] {
            let target = Target::parse(target).expect("it can be read");
            assert_eq!(default_name(&target), name, "{target:?}");
        }
    }
}
