//! Approval in advance: calls of the tools that `--yes` names, and nothing else.

use super::question::{Allowed, TerminalAsker};
use super::screen::Screen;
use super::style::{GOOD, paint};
use super::text::{clean_line, exact, fit};
use crate::args::Yes;
use crate::exit::Stop;
use crate::person::ensure_person;
use crate::signal::Stopper;
use async_trait::async_trait;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tenure_core::ask::{Answer, Asker, PendingAsk};

/// Who answers the questions of agents: `yes` what it was given for, and the person at the terminal
/// everything else.
pub(crate) fn asker(screen: Screen, stopper: Stopper, yes: &Yes) -> YesAsker<TerminalAsker> {
    let person = TerminalAsker::new(screen.clone(), stopper);
    YesAsker { tools: yes.tools.iter().cloned().collect(), screen, person }
}

/// Approves the calls of some tools, each of them with a line, and leaves every other question to
/// somebody else.
pub(crate) struct YesAsker<A> {
    tools: BTreeSet<String>,
    screen: Screen,
    person: A,
}

impl YesAsker<TerminalAsker> {
    /// Questions are on record, and somebody elsewhere may answer them: where nobody is here they are
    /// left open.
    pub(crate) fn left_open(mut self) -> Self {
        self.person = self.person.left_open();
        self
    }

    /// Where nobody is here, whoever can wait for a person does.
    pub(crate) fn put_off(mut self) -> Self {
        self.person = self.person.put_off();
        self
    }

    /// Becomes true once a question came up that nobody was there to answer.
    pub(crate) fn unanswered(&self) -> Arc<AtomicBool> {
        self.person.unanswered()
    }
}

/// Of an action in a line, nobody reads more.
const MOST_OF_ACTION: usize = 300;

#[async_trait]
impl<A: Asker> Asker for YesAsker<A> {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        let Some(tool) = approved(&self.tools, ask) else {
            return self.person.answer(ask).await;
        };
        if !self.screen.is_quiet() {
            let action = ask.ask.action.as_ref().map(ToString::to_string).unwrap_or_default();
            self.screen.print(&format!(
                "{} {} {} {}",
                paint(GOOD, "approved by --yes:"),
                clean_line(&ask.agent),
                exact(tool),
                fit(&exact(&action), MOST_OF_ACTION)
            ));
        }
        Some(Answer::Approve)
    }

    fn is_there(&self) -> bool {
        self.person.is_there()
    }
}

/// The tool whose call is approved in advance, if it is that what is asked.
fn approved<'a>(tools: &BTreeSet<String>, ask: &'a PendingAsk) -> Option<&'a str> {
    let tool = ask.tool.as_deref().filter(|_| ask.ask.is_approval())?;
    let may_approve = Allowed::of(ask.ask.form.as_ref()).has("approve");
    (may_approve && tools.contains(tool)).then_some(tool)
}

impl Yes {
    /// Refuses names that no agent has a tool of. Tools of MCP servers are known only once those are
    /// connected, so names that begin with a server of the team, which `may_come` tells, are taken
    /// as they are; what is to be said of them is returned.
    pub(crate) fn check(
        &self,
        known: &[Arc<str>],
        may_come: impl Fn(&str) -> bool,
    ) -> Result<Option<String>, Stop> {
        if !self.tools.is_empty() {
            ensure_person("a yes beforehand, by `--yes`, is a person's")?;
        }
        let is_known = |name: &str| known.iter().any(|tool| &**tool == name);
        let unknown: Vec<&str> =
            self.tools.iter().map(String::as_str).filter(|name| !is_known(name)).collect();
        let (later, wrong): (Vec<&str>, Vec<&str>) =
            unknown.into_iter().partition(|name| may_come(name));
        if let Some(name) = wrong.first() {
            let known: Vec<&str> = known.iter().map(|tool| &**tool).collect();
            let there = match known.as_slice() {
                [] => "no agent here has a tool".to_owned(),
                known => format!("there are: {}", known.join(", ")),
            };
            return Err(Stop::usage(format!(
                "there is no tool `{}` to say --yes to; {there}",
                clean_line(name)
            )));
        }
        Ok((!later.is_empty()).then(|| {
            format!(
                "--yes {}: tools of MCP servers are known once those are connected; nobody has \
                 looked whether there is such a tool",
                clean_line(&later.join(","))
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{EventLines, Progress};
    use serde_json::json;
    use tenure_core::ask::Ask;

    fn yes(names: &[&str]) -> Yes {
        Yes { tools: names.iter().map(|name| (*name).to_owned()).collect() }
    }

    fn answer(names: &[&str], ask: &PendingAsk) -> Option<Answer> {
        let screen = Screen::new(Progress::Nothing, EventLines::Nothing);
        let tools = yes(names).tools.into_iter().collect();
        let person = |_: &PendingAsk| Some(Answer::Reject("the person".to_owned()));
        let asker = YesAsker { tools, screen, person };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(asker.answer(ask))
    }

    #[test]
    fn only_approvals_of_calls_of_named_tools_are_given() {
        let approval = || PendingAsk::new("a", Ask::approval("May I?", json!({})));
        let about = |tool: &str, mut ask: PendingAsk| {
            ask.tool = Some(tool.into());
            ask
        };
        let person = Some(Answer::Reject("the person".to_owned()));
        assert_eq!(answer(&["shell"], &about("shell", approval())), Some(Answer::Approve));
        assert_eq!(answer(&["shell"], &about("Shell", approval())), person);
        assert_eq!(answer(&["shell"], &about("shell2", approval())), person);
        assert_eq!(answer(&[], &about("shell", approval())), person);
        assert_eq!(answer(&["shell"], &approval()), person, "it is not about a tool");
        let form = json!({ "allowed_decisions": ["reject", "respond"] });
        let never = PendingAsk::new("a", Ask::approval("May I?", json!({})).form(form));
        assert_eq!(answer(&["shell"], &about("shell", never)), person, "it may not be approved");
        let input = PendingAsk::new("a", Ask::input("Which?"));
        assert_eq!(answer(&["shell"], &about("shell", input)), person, "it is no approval");
    }

    #[test]
    fn a_name_that_no_agent_has_is_refused_and_one_of_a_server_is_noted() {
        let known: Vec<Arc<str>> = vec!["fetch".into(), "shell".into()];
        let of_files = |name: &str| name.starts_with("files__");
        assert_eq!(yes(&["shell"]).check(&known, of_files).expect("it is there"), None);
        let said = yes(&["shel"]).check(&known, of_files).expect_err("it is not").to_string();
        assert_eq!(said, "there is no tool `shel` to say --yes to; there are: fetch, shell");
        let said = yes(&["x"]).check(&[], of_files).expect_err("it is not").to_string();
        assert!(said.ends_with("no agent here has a tool"), "{said}");
        let note = yes(&["files__read"]).check(&known, of_files).expect("it may come");
        let note = note.expect("a note");
        assert!(note.contains("--yes files__read"), "{note}");
        let said = yes(&["files__read", "foo__bar"]).check(&known, of_files);
        let said = said.expect_err("there is no such server").to_string();
        assert_eq!(said, "there is no tool `foo__bar` to say --yes to; there are: fetch, shell");
    }
}
