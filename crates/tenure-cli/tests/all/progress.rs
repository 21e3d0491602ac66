//! Many clones at once, as they are seen: on a terminal, on a narrow one, and on none.

use crate::support::{Ran, Sandbox};
use serde_json::json;
use std::time::Instant;

/// A lead that calls its child so many times at once.
fn lead(clones: usize, wait: &str) -> Sandbox {
    let calls: Vec<_> = (0..clones)
        .map(|at| json!({ "call": "agent__child", "with": { "message": format!("part {at}") } }))
        .collect();
    let lead = json!([{ "calls": calls }, "the end"]).to_string();
    let child = json!([{ "call": "look", "wait": wait }, { "text": "done", "wait": wait }]);
    let tools = "import os\n\n\ndef look() -> str:\n    \"\"\"Looks.\"\"\"\n    return 'seen'\n";
    Sandbox::with(&[
        ("lead.md", "---\nname: lead\nmodel: script:lead.json\nagents: [child]\n---\nx\n"),
        (
            "child.md",
            "---\nname: child\nmodel: script:child.json\ntool_only: true\nfunction_tools: [tools.py:look]\n---\nx\n",
        ),
        ("lead.json", &lead),
        ("child.json", &child.to_string()),
        ("tools.py", tools),
    ])
}

const RUN: &[&str] = &["run", ".", "-m", "go", "--trust"];

/// A terminal: what stands on it, and what has been scrolled away.
struct Terminal {
    columns: usize,
    screen: Vec<Vec<char>>,
    at: (usize, usize),
    gone: Vec<String>,
    /// The most lines that were drawn over by one movement.
    highest: usize,
}

impl Terminal {
    fn new(columns: usize, rows: usize) -> Self {
        let screen = vec![Vec::new(); rows];
        Self { columns, screen, at: (0, 0), gone: Vec::new(), highest: 0 }
    }

    /// What it shows after all of this, and nothing it does not know.
    fn after(mut self, text: &str) -> Self {
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '\r' => self.at.1 = 0,
                '\n' => self.down(),
                '\x1b' => {
                    assert_eq!(rest.next(), Some('['), "only sequences of this kind are used");
                    let mut number = String::new();
                    let last = loop {
                        match rest.next().expect("a whole sequence") {
                            c if c.is_ascii_alphabetic() => break c,
                            c => number.push(c),
                        }
                    };
                    self.obey(last, &number);
                }
                c => self.put(c),
            }
        }
        self
    }

    fn obey(&mut self, what: char, number: &str) {
        match what {
            'm' => {}
            'A' => {
                let rows: usize = number.parse().expect("a number");
                assert!(
                    rows <= self.at.0,
                    "it goes up {rows} from row {}: what has been scrolled away cannot be drawn over",
                    self.at.0
                );
                self.at.0 -= rows;
                self.highest = self.highest.max(rows);
            }
            'K' => self.screen[self.at.0].truncate(self.at.1),
            'J' => {
                self.screen[self.at.0].truncate(self.at.1);
                self.screen[self.at.0 + 1..].iter_mut().for_each(Vec::clear);
            }
            other => panic!("a sequence that is not used: {number}{other}"),
        }
    }

    fn put(&mut self, c: char) {
        if self.at.1 == self.columns {
            self.at.1 = 0;
            self.down();
        }
        let line = &mut self.screen[self.at.0];
        line.resize(line.len().max(self.at.1 + 1), ' ');
        line[self.at.1] = c;
        self.at.1 += 1;
    }

    fn down(&mut self) {
        if self.at.0 + 1 == self.screen.len() {
            self.gone.push(self.screen.remove(0).into_iter().collect());
            self.screen.push(Vec::new());
        } else {
            self.at.0 += 1;
        }
    }

    /// All that stayed, from the first line to the last.
    fn all(&self) -> String {
        let shown = self.screen.iter().map(|line| line.iter().collect::<String>());
        let all: Vec<String> = self.gone.iter().cloned().chain(shown).collect();
        all.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }
}

fn on(sandbox: &Sandbox, columns: usize, rows: usize, env: &str) -> (Ran, Terminal) {
    let size = format!("stty rows {rows} cols {columns}; exec \"$@\"");
    let before = ["/bin/sh", "-c", &size, "sh", "/usr/bin/env", env];
    let ran = sandbox.on_terminal_as(&before, RUN, &[]).exits(0);
    let terminal = Terminal::new(columns, rows).after(&ran.stdout);
    (ran, terminal)
}

#[test]
fn a_hundred_and_fifty_clones_stay_readable() {
    let sandbox = lead(150, "300ms");
    let (ran, terminal) = on(&sandbox, 80, 24, "X=");
    let all = terminal.all();
    assert!(terminal.highest <= 18, "no more than three quarters are drawn over: {all}");
    assert!(terminal.highest >= 10, "and there are lines for many: {all}");
    // What was drawn on the way.
    assert!(ran.stdout.contains("child: 150 · 150 running"), "{ran}");
    assert!(ran.stdout.contains("tool look") || ran.stdout.contains("model call"), "{ran}");
    // What stayed: nothing of what was drawn over, and one line for all of them.
    assert!(!all.contains("running") && !all.contains("more\n"), "{all}");
    let together = all.lines().filter(|line| line.contains("child") && line.contains("COMPLETED"));
    let together: Vec<_> = together.collect();
    assert_eq!(together.len(), 1, "{all}");
    let (clones, lead) = (all.find(together[0]), all.find("lead"));
    assert!(clones < lead, "children end before their parents: {all}");
    assert!(together[0].contains("150 · 150 done"), "{all}");
    assert!(all.contains("151 instances: 151 completed"), "{all}");
    assert!(all.contains("the end"), "{all}");
    assert!(all.lines().count() < 24, "all of it fits a screen: {all}");
}

#[test]
fn a_narrow_terminal_without_colours_shows_the_same() {
    let sandbox = lead(150, "200ms");
    let (ran, terminal) = on(&sandbox, 40, 24, "NO_COLOR=1");
    let all = terminal.all();
    assert!(terminal.highest <= 18, "{all}");
    assert!(ran.stdout.contains("child: 150"), "{ran}");
    assert!(!ran.stdout.contains("\x1b[1m"), "{ran}");
    assert!(all.contains("150 · 150 done") && all.contains("151 completed"), "{all}");
    assert!(all.lines().all(|line| line.chars().count() <= 40), "{all}");
}

#[test]
fn five_clones_have_their_own_last_lines() {
    let sandbox = lead(5, "200ms");
    let (_, terminal) = on(&sandbox, 80, 24, "X=");
    let all = terminal.all();
    let ends = all.lines().filter(|line| line.contains("COMPLETED") && line.contains("child#"));
    assert_eq!(ends.count(), 5, "{all}");
}

#[test]
fn without_a_terminal_many_are_told_in_few_lines() {
    let sandbox = lead(150, "600ms");
    let begun = Instant::now();
    let ran = sandbox.run(RUN).exits(0);
    let seconds = begun.elapsed().as_secs() as usize;
    let about = |what: &str| ran.stderr.lines().filter(|line| line.contains(what)).count();
    assert!(about("PROGRESS") >= 1 && about("PROGRESS") <= seconds + 2, "{ran}");
    // The first twenty have begun before anybody knew how many there would be.
    assert!(about("child#") <= 20 * 4, "{ran}");
    assert_eq!(about("COMPLETED"), 2, "the lead, and all of its clones: {ran}");
    let ran = ran.says("150 · 150 done").says("151 instances: 151 completed");
    assert!(!ran.stderr.contains('\x1b'), "{ran}");
    let calls: Vec<_> = ran.stderr.lines().filter(|line| line.contains("agent__child")).collect();
    assert_eq!(calls.len(), 1, "all calls of the child are one line: {ran}");
    assert!(calls[0].contains("150 calls"), "{ran}");
}

#[test]
fn those_that_wait_for_a_place_are_counted() {
    let sandbox = lead(60, "400ms");
    let card =
        "---\nname: lead\nmodel: script:lead.json\nagents: [child]\nmax_parallel: 30\n---\nx\n";
    sandbox.write("lead.md", card);
    sandbox.run(RUN).exits(0).says("60 · 30 running · 30 waiting to start").says("60 · 60 done");
}

#[test]
fn those_that_fail_are_named_until_they_are_too_many() {
    let sandbox = lead(60, "10ms");
    sandbox.write("child.json", "[{\"error\": \"out of luck\"}]");
    let ran = sandbox.run(RUN).exits(0).says("60 · 60 failed").says("failed: out of luck");
    let named =
        ran.stderr.lines().filter(|line| line.contains("FAILED") && line.contains("child#"));
    let named = named.count();
    assert!((1..=22).contains(&named), "some are named, and not all: {named}\n{ran}");
    let lines = ran.stderr.lines().filter(|line| line.contains("TOOL")).count();
    assert!(lines <= 6, "the same line is not told sixty times: {ran}");
    ran.says("more of these: MODEL child call 1 failed: out of luck");
}
