//! What can be typed that is no message: the commands of a chat.

use crate::terminal::Words;
use tenure_core::hook::Point;

/// The commands: what is typed, what may follow, and what it does.
const COMMANDS: [(&str, &str, &str); 13] = [
    ("/help", "", "this list"),
    ("/agents", "", "who is there; * is the one you talk to"),
    ("/agent", "NAME", "talk to another one from now on"),
    ("/tools", "", "what it can call"),
    ("/hooks", "[POINT]", "which hooks run in its life, in order"),
    ("/state", "", "its state, and the variables of this chat"),
    ("/history", "[N]", "the last messages, 10 unless you say"),
    ("/usage", "", "what it cost so far"),
    ("/servers", "", "the MCP servers, and how they are"),
    ("/prompts", "", "the prompts that its servers offer"),
    ("/prompt", "SERVER/NAME [KEY=VALUE ...]", "say what a prompt says"),
    ("/clear", "", "forget what was said; the chat goes on"),
    ("/exit", "", "leave, as Ctrl-D does"),
];

/// What was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// Nothing.
    Nothing,
    /// Something to say, to the agent that is named or to the current one.
    Say {
        to: Option<String>,
        message: String,
    },
    Help,
    Agents,
    Agent(String),
    Tools,
    Hooks(Option<Point>),
    State,
    History(usize),
    Usage,
    Servers,
    Prompts,
    Prompt {
        server: String,
        name: String,
        arguments: Vec<(String, String)>,
    },
    Clear,
    Exit,
    /// Something that is not understood, and what to do.
    Wrong(String),
}

/// How many messages `/history` shows.
const SHOWN: usize = 10;

/// Makes sense of what was typed. `agents` are those that can be talked to.
pub(super) fn parse(line: &str, agents: &[&str]) -> Typed {
    if line.trim().is_empty() {
        return Typed::Nothing;
    }
    let said = |message: &str| Typed::Say { to: None, message: message.to_owned() };
    if let Some(rest) = line.strip_prefix('@') {
        let (name, message) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        return match agents.contains(&name) {
            true if message.trim().is_empty() => Typed::Agent(name.to_owned()),
            true => Typed::Say { to: Some(name.to_owned()), message: message.to_owned() },
            false => Typed::Wrong(format!(
                "{}; put a space before the @ to say it as it is",
                no_agent(name, agents)
            )),
        };
    }
    match line.strip_prefix('/') {
        None => said(line),
        // As it is, for messages that begin with a slash.
        Some(rest) if rest.starts_with('/') => said(rest),
        Some(_) => command(line.trim(), agents),
    }
}

fn command(line: &str, agents: &[&str]) -> Typed {
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let Some((_, takes, _)) = COMMANDS.iter().find(|(it, ..)| *it == name) else {
        let names = COMMANDS.iter().map(|(name, ..)| *name);
        let guess = match closest(name, names) {
            Some(close) => format!("did you mean {close}?"),
            None => "/help lists what there is".to_owned(),
        };
        return Typed::Wrong(format!("there is no {name}; {guess} (//… says it as it is)"));
    };
    if takes.is_empty() && !rest.is_empty() {
        return Typed::Wrong(format!("{name} takes nothing behind it"));
    }
    match name {
        "/help" => Typed::Help,
        "/agents" => Typed::Agents,
        "/agent" => match agents.contains(&rest) {
            true => Typed::Agent(rest.to_owned()),
            false if rest.is_empty() => Typed::Wrong("which one? /agent NAME".to_owned()),
            false => Typed::Wrong(no_agent(rest, agents)),
        },
        "/tools" => Typed::Tools,
        "/hooks" if rest.is_empty() => Typed::Hooks(None),
        "/hooks" => match rest.parse() {
            Ok(point) => Typed::Hooks(Some(point)),
            Err(error) => Typed::Wrong(format!("{error}")),
        },
        "/state" => Typed::State,
        "/history" if rest.is_empty() => Typed::History(SHOWN),
        "/history" => match rest.parse() {
            Ok(number) => Typed::History(number),
            Err(_) => Typed::Wrong(format!("`{rest}` is no number; /history 20")),
        },
        "/usage" => Typed::Usage,
        "/servers" => Typed::Servers,
        "/prompts" => Typed::Prompts,
        "/prompt" => prompt(rest),
        "/clear" => Typed::Clear,
        _ => Typed::Exit,
    }
}

fn prompt(rest: &str) -> Typed {
    let mut words = rest.split_whitespace();
    let form = "/prompt SERVER/NAME key=value …; /prompts lists them";
    let Some((server, name)) = words.next().and_then(|word| word.split_once('/')) else {
        return Typed::Wrong(format!("which one? {form}"));
    };
    let mut arguments = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((key, value)) => arguments.push((key.to_owned(), value.to_owned())),
            None => return Typed::Wrong(format!("`{word}` is no key=value; {form}")),
        }
    }
    Typed::Prompt { server: server.to_owned(), name: name.to_owned(), arguments }
}

fn no_agent(name: &str, agents: &[&str]) -> String {
    match closest(name, agents.iter().copied()) {
        Some(close) => format!("there is no agent `{name}`; did you mean `{close}`?"),
        None => format!("there is no agent `{name}`; there are: {}", agents.join(", ")),
    }
}

/// The word that was probably meant.
fn closest<'a>(typed: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = words.map(|word| (distance(typed, word), word));
    let near = near.filter(|(far, word)| *far <= 2.min(word.chars().count() / 2));
    near.min().map(|(_, word)| word)
}

/// How many characters have to be put in, left out or replaced to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (at, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (to, y) in b.iter().enumerate() {
            let step = corner + usize::from(x != *y);
            corner = row[to + 1];
            row[to + 1] = step.min(corner + 1).min(row[to] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

/// The list of commands, for people.
pub(super) fn help() -> Vec<(String, &'static str)> {
    let command = |(name, takes, does): &(&str, &str, &'static str)| {
        (format!("{name} {takes}").trim_end().to_owned(), *does)
    };
    COMMANDS.iter().map(command).collect()
}

/// What the line editor completes.
pub(super) fn words(agents: &[&str], prompts: &[String]) -> Words {
    let agents: Vec<String> = agents.iter().map(|name| (*name).to_owned()).collect();
    let follow = |name: &str| match name {
        "/agent" => agents.clone(),
        "/hooks" => Point::ALL.iter().map(|point| point.as_str().to_owned()).collect(),
        "/prompt" => prompts.to_vec(),
        _ => Vec::new(),
    };
    let commands = COMMANDS.iter().map(|(name, ..)| ((*name).to_owned(), follow(name))).collect();
    Words { commands, agents }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENTS: [&str; 2] = ["clerk", "cook"];

    fn said(to: Option<&str>, message: &str) -> Typed {
        Typed::Say { to: to.map(str::to_owned), message: message.to_owned() }
    }

    #[test]
    fn what_is_typed_is_understood() {
        let prompt = Typed::Prompt {
            server: "files".to_owned(),
            name: "review".to_owned(),
            arguments: vec![("a".to_owned(), "b=c".to_owned())],
        };
        for (line, expected) in [
            ("hello", said(None, "hello")),
            ("  /not a command", said(None, "  /not a command")),
            ("//etc", said(None, "/etc")),
            ("@cook what is for lunch?", said(Some("cook"), "what is for lunch?")),
            ("@cook", Typed::Agent("cook".to_owned())),
            ("", Typed::Nothing),
            (" \n ", Typed::Nothing),
            ("/exit ", Typed::Exit),
            ("/agent cook", Typed::Agent("cook".to_owned())),
            ("/hooks", Typed::Hooks(None)),
            ("/hooks after_chat", Typed::Hooks(Some(Point::AfterChat))),
            ("/history 3", Typed::History(3)),
            ("/prompt files/review a=b=c", prompt),
        ] {
            assert_eq!(parse(line, &AGENTS), expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_not_understood_says_what_was_probably_meant() {
        for (line, part) in [
            ("/agnts", "there is no /agnts; did you mean /agents?"),
            ("/quit", "did you mean /exit?"),
            ("/elephants", "/help lists what there is"),
            ("/agent", "/agent NAME"),
            ("/agent clark", "did you mean `clerk`?"),
            ("/agent zoe", "there are: clerk, cook"),
            ("@zoe hi", "put a space before the @"),
            ("/history ten", "is no number"),
            ("/state all", "takes nothing"),
            ("/hooks tea", "tea"),
            ("/prompt x", "SERVER/NAME"),
            ("/prompt a/b c", "is no key=value"),
        ] {
            let Typed::Wrong(text) = parse(line, &AGENTS) else { panic!("{line} is understood") };
            assert!(text.contains(part), "{line}: {text}");
        }
    }

    #[test]
    fn every_command_of_the_list_is_understood() {
        for (name, takes, _) in COMMANDS {
            let line = match takes {
                "NAME" => format!("{name} clerk"),
                "SERVER/NAME [KEY=VALUE ...]" => format!("{name} a/b"),
                _ => name.to_owned(),
            };
            let typed = parse(&line, &AGENTS);
            assert!(!matches!(typed, Typed::Wrong(_)), "{line}: {typed:?}");
            assert_eq!(typed == Typed::Exit, name == "/exit", "{line}");
        }
    }
}
