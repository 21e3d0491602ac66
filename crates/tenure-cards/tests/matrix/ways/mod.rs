//! Every way in which a guard fails to say yes (G3, G4), at every point that a guard may stand at. Whatever it does
//! instead, the tool behind it does not run, and no process is left.
//!
//! To add a way, add a line to a table in `python.rs` or `command.rs`. The long form runs each of them at each point; else
//! every third way is run, each at another point.

mod command;
mod python;

use super::cell::{Project, Seen};
use super::deed::{Host, decides};
use super::expect::{Expected, Role};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;
use tenure_core::Outcome;
use tenure_core::hook::{FaultKind, Point};
use tenure_testkit::cases;

/// The time that a guard has which hangs; the others have a minute, since the machine may be busy.
const SHORT: &str = "1s";
const LONG: &str = "60s";

/// Several of them wait for a clock.
const AT_ONCE: usize = 3;

/// A guard that does not say yes.
struct Way {
    host: Host,
    /// The line of the table.
    line: &'static str,
    limit: &'static str,
    /// Makes its file for a point.
    file: fn(&'static str, Point) -> String,
    /// Whether what it returns may count as the result of what it wraps, which then does not happen.
    may_answer: bool,
}

impl Way {
    fn points() -> impl Iterator<Item = Point> {
        Point::ALL.into_iter().filter(|point| decides(*point))
    }

    async fn at(&self, point: Point) -> Seen {
        let text = (self.file)(self.line, point);
        Project::new(self.host, &text, point, Role::Guard, Some(self.limit)).run(|_| ()).await
    }

    /// Says how the guard opened, or what it left.
    fn judge(&self, point: Point, seen: &Seen) -> Option<String> {
        let failed = Expected::Faulty { point, role: Role::Guard, kind: FaultKind::Failed };
        let got = (seen.started, seen.outcome, seen.tool_ran);
        let answered = self.may_answer
            && point == Point::WrapModelCall
            && got == (true, Some(Outcome::Ok), false);
        // A file that cannot be read as Python is refused when it is checked.
        let refused = got == (false, None, false);
        let held = got == failed.wanted() || answered || refused;
        if held && seen.left.is_empty() {
            return None;
        }
        Some(format!("{self} at {point}: {seen:?}"))
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.host, self.line)
    }
}

/// Runs the cells of these ways, several at a time.
async fn none_opens(ways: &[Way]) {
    let is_long = cases(0, 1) == 1;
    let all = ways.iter().flat_map(|way| Way::points().map(move |point| (way, point)));
    let cells: Vec<_> = if is_long {
        all.collect()
    } else {
        let points: Vec<_> = Way::points().collect();
        let sample = ways.iter().enumerate().step_by(3);
        sample.map(|(number, way)| (way, points[number / 3 % points.len()])).collect()
    };
    assert!(!cells.is_empty());
    let (count, cells) = (cells.len(), Mutex::new(cells.into_iter()));
    let wrong = Mutex::new(BTreeSet::new());
    let work = async || {
        loop {
            let next = cells.lock().expect("no cell panics here").next();
            let Some((way, point)) = next else { break };
            let seen = way.at(point).await;
            let opened = way.judge(point, &seen);
            wrong.lock().expect("no cell panics here").extend(opened);
        }
    };
    futures_util::future::join_all((0..AT_ONCE).map(|_| work())).await;
    let wrong: Vec<_> = wrong.into_inner().expect("no cell panicked").into_iter().collect();
    eprintln!("{} ways in {count} cells, {} opened", ways.len(), wrong.len());
    assert!(wrong.is_empty(), "{} of {count} cells:\n{}", wrong.len(), wrong.join("\n"));
}

fn parameters(point: Point) -> &'static str {
    match point {
        Point::WrapToolCall | Point::WrapModelCall => "ctx, next",
        _ => "ctx",
    }
}

/// A function with these statements.
fn function(keyword: &str, body: &str, point: Point) -> String {
    let body = body.replace('\n', "\n    ");
    format!("{}\n\n{keyword} hook({}):\n    {body}\n", python::PRELUDE, parameters(point))
}

/// A function that is async at every other point.
fn statements(body: &'static str, point: Point) -> String {
    let is_async = (body.len() + point as usize).is_multiple_of(2);
    function(if is_async { "async def" } else { "def" }, body, point)
}

fn value(expression: &'static str, point: Point) -> String {
    let is_async = (expression.len() + point as usize).is_multiple_of(2);
    let keyword = if is_async { "async def" } else { "def" };
    function(keyword, &format!("return {expression}"), point)
}

fn module(text: &'static str, point: Point) -> String {
    text.replace("PARAMS", parameters(point)) + "\n"
}

fn script(body: &'static str, _point: Point) -> String {
    format!("{}cat > /dev/null\n{body}\n", command::PRELUDE)
}

fn reply(text: &'static str, _point: Point) -> String {
    format!("{}cat > /dev/null\ncat <<'END'\n{text}\nEND\n", command::PRELUDE)
}

macro_rules! ways {
    ($($name:ident: $host:ident $table:path, $limit:ident, $file:ident, may_answer: $may_answer:literal;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                none_opens(&table(&$table, Host::$host, $limit, $file, $may_answer)).await;
            }
        )+

        #[test]
        fn there_are_enough_ways() {
            let lines = [$($table.len()),+].iter().sum::<usize>();
            let cells = lines * Way::points().count();
            assert!(cells >= 389, "{lines} ways are {cells} cells");
        }
    };
}

fn table(
    lines: &[&'static str],
    host: Host,
    limit: &'static str,
    file: fn(&'static str, Point) -> String,
    may_answer: bool,
) -> Vec<Way> {
    lines.iter().map(|line| Way { host, line, limit, file, may_answer }).collect()
}

ways! {
    g3_no_python_guard_that_fails_opens: Python python::BODIES, LONG, statements, may_answer: false;
    g4_no_python_guard_that_hangs_opens: Python python::HANGS, SHORT, statements, may_answer: false;
    g3_no_python_guard_that_returns_something_else_opens: Python python::VALUES, LONG, value, may_answer: true;
    g3_no_python_guard_whose_file_is_broken_opens: Python python::MODULES, LONG, module, may_answer: true;
    g3_no_command_that_replies_something_else_opens: Command command::REPLIES, LONG, reply, may_answer: false;
    g3_no_command_that_fails_opens: Command command::SCRIPTS, LONG, script, may_answer: false;
    g4_no_command_that_hangs_opens: Command command::HANGS, SHORT, script, may_answer: false;
}
