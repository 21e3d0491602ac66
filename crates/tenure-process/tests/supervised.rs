//! Processes under a supervisor, as a program has them.
//!
//! `main` is ours, because a supervisor is forked before there are threads: with `--program` this is a program that
//! runs a script until it ends, else the tests, which run such programs.

#![cfg(target_os = "linux")]
// Without the usual harness this is not known to be a test.
#![allow(clippy::unwrap_used)]

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tenure_process::{
    Command, Confinement, Environment, Heard, Network, end_supervisor, supervise, supervisor_id,
};
use tokio_util::task::TaskTracker;

type Test = fn() -> Result<(), Failed>;

const PROGRAM: &str = "--program";
const MEASURE: &str = "--measure";
const STOPPED: &str = "--stopped";
const ADOPTS: &str = "--adopts";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some(PROGRAM) {
        let script = args.next().unwrap_or_default();
        let limit = args.next().and_then(|it| it.parse().ok()).unwrap_or(600_000);
        return program(&script, Duration::from_millis(limit));
    }
    match std::env::args().nth(1).as_deref() {
        Some(MEASURE) => return measure(),
        Some(STOPPED) => return stopped(),
        Some(ADOPTS) => return adopts(),
        _ => {}
    }
    let tests: &[(&str, Test)] = &[
        ("everything_ends_when_the_program_is_killed", everything_ends_when_the_program_is_killed),
        ("everything_ends_at_the_limit", everything_ends_at_the_limit),
        ("everything_ends_when_its_keeper_is_killed", everything_ends_when_its_keeper_is_killed),
        ("everything_ends_without_the_supervisor", everything_ends_without_the_supervisor),
        ("an_end_is_told_as_it_was", an_end_is_told_as_it_was),
        ("a_program_that_cannot_be_started_says_why", a_program_that_cannot_be_started_says_why),
        ("it_has_its_own_session_and_no_descriptor_of_ours", it_has_its_own_session),
        ("many_at_the_same_time", many_at_the_same_time),
        ("a_confined_process_writes_only_what_it_may", a_confined_process_writes_only_what_it_may),
        ("a_confined_process_reads_no_keys", a_confined_process_reads_no_keys),
        ("a_confined_process_has_no_privileges", a_confined_process_has_no_privileges),
        ("a_confined_process_has_no_network_unless_granted", a_confined_process_has_no_network),
        ("a_confined_process_reaches_no_other", a_confined_process_reaches_no_other),
        ("a_confined_process_has_the_usual_devices", a_confined_process_has_the_usual_devices),
        ("without_a_network_no_socket_of_others_is_there", without_a_network_no_socket_is_there),
        ("a_start_holds_no_thread_up", a_start_holds_no_thread_up),
        ("a_program_that_ends_leaves_no_supervisor_behind", no_supervisor_is_left_behind),
        ("a_temporary_folder_ends_with_its_process", a_temporary_folder_ends_with_its_process),
        ("everything_confined_ends_when_the_program_is_killed", everything_confined_ends),
        ("without_mounts_landlock_keeps_the_rules", without_mounts_landlock_keeps_the_rules),
        ("confinement_costs_little", confinement_costs_little),
    ];
    let trials = tests.iter().map(|(name, test)| Trial::test(*name, *test)).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs a script in the working folder, with a limit, and prints what it heard.
fn program(script: &str, limit: Duration) -> ExitCode {
    if std::env::var_os("BARE").is_none() {
        supervise().expect("it has one thread");
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let tracker = TaskTracker::new();
        let here = std::env::current_dir().unwrap();
        let environment = match std::env::var("CONFINED") {
            Ok(network) => Environment::new().confined(rules(&here, &network)),
            Err(_) => Environment::new(),
        };
        let command = Command::shell(script, here, &environment);
        match tokio::time::timeout(limit, command.run(&tracker)).await {
            Ok(heard) => {
                println!("{}", heard.as_ref().map_or_else(Clone::clone, Heard::text_and_end))
            }
            Err(_) => println!("the limit is over"),
        }
        if limit < Duration::from_secs(60) {
            // The program goes on: what has ended did so by the limit alone.
            tokio::time::sleep(Duration::from_secs(20)).await;
        }
    });
    end_supervisor();
    ExitCode::SUCCESS
}

/// The rules of a project in a folder.
fn rules(here: &Path, network: &str) -> Confinement {
    if network == "outer" {
        // No more than what keeps a second one from having namespaces.
        return Confinement {
            writable: vec![here.to_owned()],
            temporary: Some(std::env::temp_dir()),
            needed: vec![here.to_owned()],
            processes: 512,
            memory: 1 << 30,
            ..Confinement::default()
        };
    }
    Confinement {
        writable: vec![here.to_owned()],
        protected: vec![
            here.join("tenure.toml"),
            here.join("hooks/guard.py"),
            here.join(".git/hooks"),
        ],
        hidden: vec![here.join("keys"), here.join("netrc")],
        temporary: Some(std::env::temp_dir()),
        needed: vec![here.to_owned()],
        network: if network == "none" { Network::None } else { Network::Users },
        processes: 512,
        memory: 1 << 30,
        is_required: true,
        ..Confinement::default()
    }
}

trait TextAndEnd {
    fn text_and_end(&self) -> String;
}

impl TextAndEnd for Heard {
    fn text_and_end(&self) -> String {
        format!("{}{}", self.text(), self.ended)
    }
}

/// Leaves its group, its session, its parents and its environment, in several ways.
const CLINGING: &str = "trap '' TERM INT HUP\n\
    sh -c 'trap \"\" TERM; echo $$ > child; sleep 600' &\n\
    setsid sh -c 'trap \"\" TERM; echo $$ > session; sleep 600' &\n\
    (setsid env -i /bin/sh -c 'echo $$ > orphan; sleep 600 & echo $! > grandchild; wait' &)\n\
    python3 -c 'import os, time\n\
if os.fork(): os._exit(0)\n\
os.setsid()\n\
if os.fork(): os._exit(0)\n\
open(\"daemon\", \"w\").write(str(os.getpid()))\n\
os.environ.clear()\n\
os.execve(\"/bin/sleep\", [\"x\", \"600\"], {})'\n\
    while ! [ -s child ] || ! [ -s session ] || ! [ -s grandchild ] || ! [ -s daemon ]; do sleep 0.02; done\n\
    echo $$ > self; mv self settled\n\
    while :; do sleep 600; done";
const CLUNG: [&str; 6] = ["settled", "child", "session", "orphan", "grandchild", "daemon"];

struct Running {
    folder: TempDir,
    child: Child,
}

impl Running {
    fn start(script: &str, limit: &str) -> Self {
        Self::start_with(script, limit, &[])
    }

    fn confined(script: &str, network: &str) -> Self {
        Self::start_with(script, "600000", &[("CONFINED", network)])
    }

    fn start_with(script: &str, limit: &str, variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in ["tenure.toml", "hooks/guard.py", ".git/hooks/old", "keys/id", "netrc", "plain"]
        {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "as it was").unwrap();
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([PROGRAM, script, limit])
            .envs(variables.iter().copied())
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self { folder, child }
    }

    fn clinging(limit: &str) -> Self {
        let running = Self::start(CLINGING, limit);
        eventually("it has settled", Duration::from_secs(20), || {
            running.folder.path().join("settled").exists()
        });
        running
    }

    fn clung(&self) -> Vec<u32> {
        CLUNG.map(|file| read_pid(&self.folder.path().join(file))).into()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn said(self) -> String {
        let output = self.child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

fn read_pid(file: &Path) -> u32 {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
    text.trim().parse().unwrap()
}

fn stat(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(rest.split_ascii_whitespace().map(str::to_owned).collect())
}

fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| stat[0] != "Z")
}

fn parent(pid: u32) -> u32 {
    stat(pid).unwrap()[1].parse().unwrap()
}

fn eventually(what: &str, within: Duration, mut is: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is() {
        assert!(since.elapsed() < within, "not within {within:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn all_gone(pids: &[u32]) {
    let left = || pids.iter().copied().filter(|pid| is_alive(*pid)).collect::<Vec<_>>();
    let since = Instant::now();
    while !left().is_empty() {
        assert!(since.elapsed() < Duration::from_secs(1), "after a second {:?} live", left());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal(pid: u32) {
    send(pid, rustix::process::Signal::KILL);
}

fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn everything_ends_when_the_program_is_killed() -> Result<(), Failed> {
    let mut running = Running::clinging("600000");
    let pids = running.clung();
    running.kill();
    all_gone(&pids);
    Ok(())
}

fn everything_ends_at_the_limit() -> Result<(), Failed> {
    let mut running = Running::clinging("6000");
    let pids = running.clung();
    eventually("the limit is over", Duration::from_secs(10), || !is_alive(pids[0]));
    all_gone(&pids);
    assert!(matches!(running.child.try_wait(), Ok(None)), "the program lives");
    running.kill();
    Ok(())
}

fn everything_ends_when_its_keeper_is_killed() -> Result<(), Failed> {
    let running = Running::clinging("600000");
    let pids = running.clung();
    signal(parent(pids[0]));
    all_gone(&pids);
    assert_eq!(running.said().trim(), "signal 9 (SIGKILL)");
    Ok(())
}

fn everything_ends_without_the_supervisor() -> Result<(), Failed> {
    let mut running = Running::clinging("600000");
    let pids = running.clung();
    signal(parent(parent(pids[0])));
    running.kill();
    all_gone(&pids);
    Ok(())
}

fn an_end_is_told_as_it_was() -> Result<(), Failed> {
    for (script, expected) in [
        ("printf out; exit 3", "outexit code 3"),
        ("kill -SEGV $$", "signal 11 (SIGSEGV)"),
        ("cat; printf done", "doneexit code 0"),
        ("env -u TENURE_PROCESS true && echo $TENURE_PROCESS | grep -c -", "1\nexit code 0"),
    ] {
        assert_eq!(Running::start(script, "600000").said().trim(), expected, "{script}");
    }
    Ok(())
}

fn a_program_that_cannot_be_started_says_why() -> Result<(), Failed> {
    // The shell is there; its folder is not any more when the command starts.
    let said = Running::start("rmdir \"$PWD\"; ./x", "600000").said();
    assert!(said.contains("exit code 127"), "{said}");
    Ok(())
}

fn it_has_its_own_session() -> Result<(), Failed> {
    let said =
        Running::start("cut -d' ' -f5,6 /proc/$$/stat; echo $$; ls /proc/$$/fd", "600000").said();
    let mut words = said.split_whitespace();
    let (group, session, own) = (words.next(), words.next(), words.next());
    assert_eq!((group, session), (own, own), "{said}");
    let descriptors: Vec<_> = words.collect();
    assert_eq!(descriptors, ["0", "1", "2", "exit", "code", "0"], "{said}");
    Ok(())
}

fn many_at_the_same_time() -> Result<(), Failed> {
    let programs: Vec<_> = (0..20)
        .map(|number| Running::start(&format!("sleep 0.05; echo {number}"), "600000"))
        .collect();
    for (number, running) in programs.into_iter().enumerate() {
        assert_eq!(running.said().trim(), format!("{number}\nexit code 0"));
    }
    Ok(())
}

/// Runs a line in a confined shell; 0 and 1 say whether it worked.
fn works(line: &str, network: &str) -> (bool, String) {
    let said = Running::confined(&format!("{line} 2>&1 && echo WORKS"), network).said();
    (said.contains("WORKS"), said)
}

fn all(cases: &[(&str, bool)], network: &str) -> Result<(), Failed> {
    let mut wrong = String::new();
    for (line, expected) in cases {
        let (is, said) = works(line, network);
        if is != *expected {
            wrong.push_str(&format!("\n{line}: expected {expected}: {said}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

fn a_confined_process_writes_only_what_it_may() -> Result<(), Failed> {
    all(
        &[
            ("echo x > plain", true),
            ("echo x > hooks/mark", true),
            ("mkdir new && echo x > new/file && mv new/file moved && rm moved", true),
            ("echo x > $TMPDIR/x && cat $TMPDIR/x", true),
            ("echo x > /dev/null", true),
            ("python3 -c 'import multiprocessing; multiprocessing.Lock()'", true),
            ("echo x > tenure.toml", false),
            ("rm -f tenure.toml", false),
            ("mv tenure.toml other", false),
            ("mv plain tenure.toml", false),
            ("ln -f plain hooks/guard.py", false),
            ("echo x > hooks/guard.py", false),
            ("mv hooks aside", false),
            ("mv .git aside", false),
            ("echo x > .git/hooks/pre-commit", false),
            ("chmod 600 tenure.toml", false),
            ("echo x > /usr/local/written-by-a-test", false),
            ("echo x > $HOME/written-by-a-test", false),
            ("echo x > /proc/sys/kernel/hostname", false),
            ("touch /etc/hosts", false),
        ],
        "users",
    )
}

fn a_confined_process_reads_no_keys() -> Result<(), Failed> {
    all(
        &[
            ("cat plain", true),
            ("cat tenure.toml", true),
            ("cat keys/id", false),
            ("test -s netrc", false),
            ("mv keys aside && cat aside/id", false),
            ("rm -r keys", false),
        ],
        "users",
    )
}

fn a_confined_process_has_no_privileges() -> Result<(), Failed> {
    all(
        &[
            ("grep -q 'NoNewPrivs:.1' /proc/self/status", true),
            ("grep -q 'Seccomp:.2' /proc/self/status", true),
            ("test $(ulimit -c) = 0", true),
            ("python3 -c 'x = bytearray(2 << 30)'", false),
            ("mount -t tmpfs none new", false),
            ("umount tenure.toml", false),
            ("unshare -U true", false),
            ("unshare -m true", false),
            // PTRACE_TRACEME, and a key of the session.
            (
                "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)'",
                false,
            ),
            (
                "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(250, 0, -3, 1) < 0)'",
                false,
            ),
            ("python3 -c 'import subprocess; subprocess.run([\"true\"], check=True)'", true),
        ],
        "users",
    )
}

fn a_confined_process_has_no_network() -> Result<(), Failed> {
    let connect = |port: u16| {
        format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'")
    };
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = connect(listener.local_addr().unwrap().port());
    assert!(works(&connect, "users").0);
    assert!(!works(&connect, "none").0);
    // Pairs of sockets are within the process.
    all(&[("python3 -c 'import socket; socket.socketpair()'", true)], "none")
}

fn a_confined_process_reaches_no_other() -> Result<(), Failed> {
    // The keeper is its parent, and has its user.
    let parent = "kill -0 $(cut -d' ' -f4 /proc/$$/stat)";
    all(&[(parent, false), ("sleep 5 & kill $!", true), ("kill -0 $$", true)], "users")
}

fn a_confined_process_has_the_usual_devices() -> Result<(), Failed> {
    let usual = "^(null|zero|full|random|urandom|tty|fd|stdin|stdout|stderr|ptmx|pts|shm|nvidia.*|dri|kfd|dxg)$";
    let others = format!("ls /dev | grep -Ev '{usual}'");
    all(
        &[
            ("head -c 4 /dev/urandom > /dev/null", true),
            ("echo x > /dev/full", false),
            ("echo x | cat /dev/stdin > /dev/stdout", true),
            ("bash -c 'cat <(echo x)'", true),
            ("python3 -c 'import pty, sys; sys.exit(pty.spawn([\"true\"]))'", true),
            ("echo x > /dev/shm/x && rm /dev/shm/x", true),
            ("echo x > /dev/new", false),
            ("rm -f /dev/null", false),
            // The terminals of the user are not among its own.
            ("ls /dev/pts | grep -v ptmx", false),
            (others.as_str(), false),
        ],
        "users",
    )
}

fn without_a_network_no_socket_is_there() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a service");
    let _listener = std::os::unix::net::UnixListener::bind(&path)?;
    let connect = format!(
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\")'",
        path.display()
    );
    all(&[(connect.as_str(), true)], "users")?;
    // One that it makes itself is its own.
    let own = "python3 -c 'import socket\ns = socket.socket(socket.AF_UNIX)\ns.bind(\"own\")\n\
               s.listen()\nsocket.socket(socket.AF_UNIX).connect(\"own\")'";
    all(&[(connect.as_str(), false), (own, true)], "none")
}

/// Has a start wait for a supervisor that does nothing, and prints how long a limit took that is much shorter.
fn stopped() -> ExitCode {
    supervise().expect("it has one thread");
    let supervisor = supervisor_id().unwrap();
    send(supervisor, rustix::process::Signal::STOP);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let since = Instant::now();
    let command = Command::shell("echo x", "/", &Environment::new());
    let ran = runtime.block_on(async {
        tokio::time::timeout(Duration::from_millis(300), command.run(&TaskTracker::new())).await
    });
    println!("{} {}", ran.is_err(), since.elapsed().as_millis());
    send(supervisor, rustix::process::Signal::CONT);
    ExitCode::SUCCESS
}

fn a_start_holds_no_thread_up() -> Result<(), Failed> {
    let output = std::process::Command::new(std::env::current_exe()?).arg(STOPPED).output()?;
    let said = String::from_utf8(output.stdout)?;
    let (is_cut, took) = said.trim().split_once(' ').ok_or("it printed nothing")?;
    assert_eq!(is_cut, "true");
    assert!(took.parse::<u64>()? < 5_000, "{took} ms");
    Ok(())
}

fn no_supervisor_is_left_behind() -> Result<(), Failed> {
    let output = std::process::Command::new(std::env::current_exe()?).arg(ADOPTS).output()?;
    assert_eq!(String::from_utf8(output.stdout)?.trim(), "[]", "zombies");
    Ok(())
}

/// Runs a program, and prints the processes that it left: they come here, and are not reaped.
fn adopts() -> ExitCode {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    assert_eq!(Running::start("echo x", "600000").said().trim(), "x\nexit code 0");
    std::thread::sleep(Duration::from_millis(300));
    println!("{:?}", children());
    ExitCode::SUCCESS
}

fn children() -> Vec<u32> {
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|stat| stat[1] == own.to_string())).collect()
}

fn a_temporary_folder_ends_with_its_process() -> Result<(), Failed> {
    let said = Running::confined("echo x > $TMPDIR/file; echo $TMPDIR", "users").said();
    let folder = Path::new(said.lines().next().unwrap());
    assert!(folder.starts_with(std::env::temp_dir()), "{said}");
    eventually("it is gone", Duration::from_secs(2), || !folder.exists());
    Ok(())
}

fn everything_confined_ends() -> Result<(), Failed> {
    let mut running = Running::start_with(CLINGING, "600000", &[("CONFINED", "none")]);
    eventually("it has settled", Duration::from_secs(20), || {
        running.folder.path().join("settled").exists()
    });
    let pids = running.clung();
    running.kill();
    all_gone(&pids);
    Ok(())
}

/// A confined process is refused namespaces, so that one within it has landlock alone.
fn without_mounts_landlock_keeps_the_rules() -> Result<(), Failed> {
    let own = std::env::current_exe()?;
    let mut wrong = String::new();
    for (line, expected) in [
        ("cat plain", true),
        ("echo x > plain", true),
        ("echo x > data/new", true),
        ("echo x > $TMPDIR/x", true),
        ("ls keys", true),
        ("cat tenure.toml", true),
        ("echo x > tenure.toml", false),
        ("rm -f tenure.toml", false),
        ("mv data hooks/guard.py", false),
        ("echo x > hooks/guard.py", false),
        ("echo x > .git/hooks/new", false),
        ("cat keys/id", false),
        ("cat netrc", false),
        ("echo x > /etc/written-by-a-test", false),
        // What landlock cannot tell apart from what is protected.
        ("echo x > hooks/mark", false),
    ] {
        let script = format!(
            "mkdir data; CONFINED=users '{}' {PROGRAM} '{line} 2>&1 && echo WORKS' 600000",
            own.display()
        );
        let said = Running::confined(&script, "outer").said();
        if said.contains("WORKS") != expected || !said.contains("exit code") {
            wrong.push_str(&format!("\n{line}: expected {expected}: {said}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

/// Prints the figures with `--nocapture`. What it fails at is many times what it should cost, because the machine may
/// be busy.
fn confinement_costs_little() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let own = std::env::current_exe()?;
    let output =
        std::process::Command::new(own).arg(MEASURE).current_dir(folder.path()).output()?;
    let said = String::from_utf8(output.stdout)?;
    let times: Vec<f64> = said.split_whitespace().filter_map(|time| time.parse().ok()).collect();
    let [bare, supervised, confined] = times[..] else { return Err(said.into()) };
    println!("/bin/true: {bare} ms, supervised {supervised} ms, confined {confined} ms");
    assert!(confined < bare + 20.0, "{said}");
    Ok(())
}

/// Prints the least milliseconds of `/bin/true`, alone, by a supervisor, and confined.
fn measure() -> ExitCode {
    supervise().expect("it has one thread");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let here = std::env::current_dir().unwrap();
    let mut least = [Duration::MAX; 3];
    let tracker = TaskTracker::new();
    let environments = [Environment::new(), Environment::new().confined(rules(&here, "users"))];
    let commands =
        environments.map(|it| Command::new(vec!["/bin/true".to_owned()], here.clone(), &it));
    for _ in 0..200 {
        let since = Instant::now();
        std::process::Command::new("/bin/true").output().unwrap();
        least[0] = least[0].min(since.elapsed());
        for (command, least) in commands.iter().zip(&mut least[1..]) {
            let since = Instant::now();
            runtime.block_on(command.run(&tracker)).unwrap();
            *least = since.elapsed().min(*least);
        }
    }
    let least = least.map(|time| format!("{:.2}", time.as_secs_f64() * 1000.0));
    println!("{}", least.join(" "));
    ExitCode::SUCCESS
}
