//! The matrix of hook outcomes (G3, G4): what a hook does x whether it is a guard x every point that a card can hook, for
//! hooks in Python and for commands, from card files to what becomes of the run. In each cell the documented outcome, a
//! guard that never lets a tool run unless it said so, and no process left behind.

mod cell;
mod deed;
mod expect;
mod ways;

use cell::run;
use deed::{Deed, Host};
use expect::{Expected, Role, expected};
use tenure_core::hook::Point;
use tenure_testkit::cases;

/// Runs the cells of one row and compares them with the table: all of them in the long form, else every third, and in
/// the next row the next ones.
async fn row(host: Host, deed: Deed) {
    let mut wrong = Vec::new();
    let cells =
        Point::ALL.into_iter().flat_map(|point| [(point, Role::Guard), (point, Role::Other)]);
    let stride = 3 / cases(1, 3);
    for (point, role) in cells.skip(deed as usize % stride).step_by(stride) {
        let wanted = expected(host, deed, point, role);
        let seen = run(host, deed, point, role).await;
        if let Err(difference) = wanted.compare(&seen) {
            wrong.push(format!("{host:?} {deed:?} at {point}, {role:?}: {difference}"));
        }
        let judges = matches!(wanted, Expected::Denied { .. } | Expected::Faulty { .. });
        if role == Role::Guard && judges && point != Point::AfterAgent && seen.tool_ran {
            wrong.push(format!("{host:?} {deed:?} at {point}: the guard let the tool run"));
        }
        if !seen.left.is_empty() {
            wrong.push(format!("{host:?} {deed:?} at {point}, {role:?}: left {:?}", seen.left));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

macro_rules! rows {
    ($($name:ident: $host:ident $deed:ident;)+) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            row(Host::$host, Deed::$deed).await;
        }
    )+};
}

rows! {
    g3_a_command_that_agrees: Command Agrees;
    g3_a_command_that_denies: Command Denies;
    g3_a_command_that_says_nothing: Command SaysNothing;
    g3_a_command_that_exits_with_1: Command Exits1;
    g3_a_command_that_exits_with_2: Command Exits2;
    g3_a_command_whose_file_is_missing: Command Missing;
    g3_a_command_that_is_not_executable: Command NotExecutable;
    g3_a_command_that_crashes: Command Crashes;
    g3_a_command_that_answers_nonsense: Command Nonsense;
    g3_a_command_that_answers_100_megabytes: Command Floods;
    g3_a_command_that_closes_its_pipes: Command ClosesPipes;
    g3_a_command_that_answers_no_utf8: Command NotUtf8;
    g4_a_command_that_hangs_ignores_signals_and_forks: Command Hangs;

    g3_a_python_hook_that_agrees: Python Agrees;
    g3_a_python_hook_that_denies: Python Denies;
    g3_a_python_hook_that_says_nothing: Python SaysNothing;
    g3_a_python_hook_that_raises: Python Raises;
    g3_a_python_hook_that_exits_with_1: Python Exits1;
    g3_a_python_hook_that_exits_with_2: Python Exits2;
    g3_a_python_hook_that_leaves_by_os_exit: Python OsExit;
    g3_a_python_hook_that_crashes: Python Crashes;
    g3_a_python_hook_that_answers_nonsense: Python Nonsense;
    g3_a_python_hook_that_answers_100_megabytes: Python Floods;
    g3_a_python_hook_that_closes_its_pipes: Python ClosesPipes;
    g3_a_python_hook_that_answers_no_utf8: Python NotUtf8;
    g4_a_python_hook_that_hangs_ignores_signals_and_forks: Python Hangs;
    g3_a_python_hook_whose_file_is_missing: Python Missing;
}
