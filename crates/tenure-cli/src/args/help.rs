//! What `--help` says beyond the arguments: examples, and what to know.

pub(super) const ABOUT: &str = "Runs, checks and explains agents and workflows from files. Every point of an agent's life can be \
     hooked.";

pub(super) const PROGRAM: &str = "\
Examples:
  tenure demo                          watch a small team at work, no key needed
  tenure init hello                    write a project to start from
  tenure run hello -m \"hi\"             run it
  tenure chat hello                    talk to it
  tenure check                         find every mistake in the cards here
  tenure show last                     see what happened in the last run

Exit codes:
  0 ok   1 failed   2 usage   3 check found errors   4 not trusted   5 denied
  6 max steps or turns   7 waits for a person   8 cancelled   124 timeout
  129, 130, 143 ended by a signal";

pub(super) const RUN: &str = "\
Examples:
  tenure run greeter.md -m \"good morning\"
  tenure run agents/ --agent editor -m \"shorten this\" --timeout 30s
  git diff | tenure run reviewer.md > review.txt
  tenure run greeter.md -m hi --json | jq -r 'select(.type == \"result\").output'
  tenure run greeter.md -m hi --watch  run it again whenever a file of it changes
  tenure run workflows/story           run a workflow; `tenure run story` in its project
  tenure run . --workflow story -m \"a storm\" --user ada --seed 7
  tenure run --resume                  go on with every run here that did not finish
  tenure run --continue -m \"and then?\" another message in the last conversation

The answer goes to standard output, progress to standard error. Before anything of a project is
executed for the first time you are shown what that would be, and asked. Ctrl-C once stops the run
and lets its shutdown hooks finish; twice kills.

A workflow is a folder with an orchestrator file. What its agents say goes to standard output as it
comes, each under its name; with --quiet only the last of it does. A person who is to speak is asked
in the terminal. Without one the chat is paused there, with exit code 7.

In a project with a tenure.toml runs are recorded. One whose process died goes on with --resume, and
what was finished is not done again. A question that nobody is there to answer is kept, and the run
waits, with exit code 7, until there is an answer: `tenure answer`.";

pub(super) const CHAT: &str = "\
Examples:
  tenure chat                          the agent of this directory
  tenure chat agents/ --agent editor
  tenure chat agents/ --watch          edit its files while you talk to it
  tenure chat --continue               go on where the last conversation ended
  printf 'hi\\nbye\\n' | tenure chat greeter.md

Enter sends. For a new line: Alt-Enter, Ctrl-J, or a backslash before Enter; a code fence (```) is
sent once it is closed. /help lists the commands. Ctrl-C cancels the answer, Ctrl-D leaves. Without
a terminal every line of standard input is a message.";

pub(super) const HOOKS: &str = "\
Examples:
  tenure hooks                         all of them, by group
  tenure hooks retry                   what one does, and its options
  tenure hooks retry --json            the same with the JSON Schema of its options

A card or a workflow uses one by name:
  hooks:
    - { use: retry, with: { attempts: 3 } }";

pub(super) const AUDIT: &str = "\
Examples:
  tenure audit verify audit.jsonl          is every line as it was written, and in its place?
  tenure audit verify audit.jsonl --json

Each line has the hash of the one before, so that a line that was changed, left out or moved is
found. Exits with 1 if there is one. Lines that were cut off at the end leave no trace in the file
itself: keep the hash that is printed somewhere else, and compare it.";

pub(super) const CHECK: &str = "\
Examples:
  tenure check                         everything in this directory
  tenure check agents/editor.md
  tenure check workflows/story         one workflow
  tenure check --format json           one object a line
  tenure check --format sarif > out.sarif
  tenure check --deny-warnings         for CI

Exits with 3 if there are errors. Python files are parsed, never run.";

pub(super) const EXPLAIN: &str = "\
Examples:
  tenure explain agents/
  tenure explain agents/ --agent editor --point wrap_tool_call
  tenure explain agents/ --json
  tenure explain workflows/story       a workflow: its handoffs, what is called around its chats";

pub(super) const DUMP: &str = "\
Examples:
  tenure dump editor.md                the card with its fields in canonical order
  tenure dump editor.md --format yaml > editor.yaml

Variables such as ${API_KEY} are printed as they are written, never as their value.";

pub(super) const INIT: &str = "\
Examples:
  tenure init                          the template `hello` in ./hello
  tenure init approval                 the template `approval` in ./approval
  tenure init bots --template team     the template `team` in ./bots
  tenure init workflow                 several agents in one chat, in ./workflow
  tenure init --from fast-agent        a tenure.toml for the project in this folder

What it writes is trusted from the start, because you asked for it. Nothing is overwritten.";

pub(super) const DEMO: &str = "\
Examples:
  tenure demo
  tenure demo --keep demo              keep its files to look at and to change";

pub(super) const TRUST: &str = "\
Examples:
  tenure trust                         is this project trusted?
  tenure trust review agents/          what would it execute?
  tenure trust accept agents/
  tenure trust accept agents/ --fingerprint 5be1c0d2f3a4b5c6d7e8f9a0b1c2d3e4
  tenure trust revoke agents/

Trust is given to exact contents: when a hook, a command or a tool changes, you are asked again.
It is kept in $XDG_DATA_HOME/tenure/trust.json. Nothing in a project can grant it.
`status` exits with 4 if the project is not trusted.";

pub(super) const DOCTOR: &str = "\
Examples:
  tenure doctor
  tenure doctor agents/";

pub(super) const SCHEMA: &str = "\
Examples:
  tenure schema card > card.schema.json";

pub(super) const COMPLETIONS: &str = "\
Examples:
  tenure completions bash > ~/.local/share/bash-completion/completions/tenure
  tenure completions zsh > \"${fpath[1]}/_tenure\"
  tenure completions fish > ~/.config/fish/completions/tenure.fish";
