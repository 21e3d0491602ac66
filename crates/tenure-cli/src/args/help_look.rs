//! What `--help` says of the commands that look back at runs.

pub(super) const RUNS: &str = "\
Examples:
  tenure runs                          the newest runs of this project
  tenure runs --status waiting         those that wait for a person
  tenure runs --name clerk -n 5
  tenure runs --all --json | jq -r 'select(.outcome == \"failed\").id'

Every other command takes a run by its id, by the beginning of it, or as `last`.";

pub(super) const SHOW: &str = "\
Examples:
  tenure show last                     what happened, step by step
  tenure show 6919a2f4 --events        every record
  tenure show last --phases            also every phase of its agents
  tenure show last --json

A number in the first column is a step on record: `tenure restart RUN --from NUMBER` begins a new
run there. What clones and nested chats did is indented.";

pub(super) const TAIL: &str = "\
Examples:
  tenure tail                          everything, as it happens
  tenure tail last                     one run, until it is over
  tenure tail 6919a2f4 --json

It only reads, so it may be used from any terminal while a run goes on. Ctrl-C ends it, and nothing
else.";

pub(super) const EVENTS: &str = "\
Examples:
  tenure events last
  tenure events last --type 'tool.*' --type step.recorded
  tenure events last --after 120 --json";

pub(super) const ASKS: &str = "\
Examples:
  tenure asks                          what waits for an answer
  tenure asks --all                    also what was decided, by whom and when";

pub(super) const ANSWER: &str = "\
Examples:
  tenure answer 3f2a                   see the question, and be asked
  tenure answer 3f2a approve
  tenure answer 3f2a reject too expensive
  tenure answer 3f2a edit '{\"text\": \"buy oat milk\"}'
  tenure answer 3f2a respond 'ask me again tomorrow'
  tenure answer 3f2a Bern              where a text is asked for

The first answer counts, whoever gives it. Exits with 0 if it was this one, and with 1 if it was
another, or if the answer does not have the form that was asked for. A run that nobody drives goes on
with `tenure run --resume`.";

pub(super) const CANCEL: &str = "\
Examples:
  tenure cancel last
  tenure cancel 6919a2f4

A run is cancelled in good order: every end hook of it runs. If a process drives it, that process
does so now. If none does, `tenure run --resume RUN` does so when it next takes the run up.";

pub(super) const KILL: &str = "\
Examples:
  tenure kill 6919a2f4

The run is recorded as abandoned, without waiting for its hooks. Use `tenure cancel` unless they are
what does not end.";

pub(super) const REPLAY: &str = "\
Examples:
  tenure replay last                   is the code still the one that this run was recorded with?
  tenure replay 6919a2f4 --json

Every recorded step is served from the record: no model and no tool is called, and nothing is
recorded. Hooks around calls, and those that start agents, are called again. Exits with 1 at the
first difference.";

pub(super) const RESTART: &str = "\
Examples:
  tenure restart last --from 17        do step 17 and everything behind it anew
  tenure restart 6919a2f4 --from turn/tool:pay#2

The new run has a record of its own that begins with that of the old one. Steps before the one named
are served from it, and the old run stays as it is.";

pub(super) const EXPORT: &str = "\
Examples:
  tenure export last > run.jsonl       every record, one object a line
  tenure export last --format markdown -o run.md

A file that is there is not written over, unless with --force.";

pub(super) const DB: &str = "\
Examples:
  tenure db verify                     read everything, and say what is damaged
  tenure db backup runs-today.db       a copy, also while runs go on
  tenure db compact --older-than 30d   forget the details of what is long over
  tenure db compact --keep 100
  tenure db rotate-key                 seal every row with another key

Exits with 1 if damage was found.";
