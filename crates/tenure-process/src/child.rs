//! One process, in a group of its own.

#[cfg(target_os = "linux")]
use crate::supervisor::Tree;
use crate::tree::{self, MARK, Victim};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tenure_sandbox::Confinement;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

/// What is needed to start a process. Its environment is exactly `variables` and a mark of ours.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The file to run. A bare name is looked for on the `PATH` of `variables`.
    pub program: &'a OsStr,
    /// What it is given as arguments.
    pub args: &'a [&'a OsStr],
    /// The folder that it runs in.
    pub dir: &'a Path,
    /// The variables that it sees.
    pub variables: Vec<(OsString, OsString)>,
    /// The rules that it runs under. Only a [supervisor](crate::supervise) can confine: without one a process is not
    /// confined, or not started if the rules are required.
    pub sandbox: Option<Confinement>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// Whether it ended by itself, with the code 0.
    pub fn is_ok(self) -> bool {
        self == Self::Code(0)
    }

    fn of(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(status.signal().unwrap_or_default()),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => {
                let name = match signal {
                    1 => " (SIGHUP)",
                    2 => " (SIGINT)",
                    4 => " (SIGILL)",
                    6 => " (SIGABRT)",
                    8 => " (SIGFPE)",
                    9 => " (SIGKILL)",
                    11 => " (SIGSEGV)",
                    13 => " (SIGPIPE)",
                    14 => " (SIGALRM)",
                    15 => " (SIGTERM)",
                    _ => "",
                };
                write!(f, "signal {signal}{name}")
            }
        }
    }
}

/// A running process that leads its own group. Dropping it kills the group and everything that
/// descends from the process, at once; the process is then reaped on the tracker.
///
/// If it has ended by itself, dropping it kills what is left of its group, and with a
/// [supervisor](crate::supervise) everything that descends from it.
pub struct Process {
    held: Held,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    pid: u32,
    mark: Box<str>,
    ended: Option<Ended>,
    /// Whether its group has been killed. Once it has ended, that is done once and at once: later
    /// its number may be somebody else's.
    is_swept: bool,
    /// Whom killing it has killed.
    victims: Vec<Victim>,
    tracker: TaskTracker,
}

/// Who started a process, and reaps it.
enum Held {
    /// This process.
    Own(Child),
    /// A keeper of the supervisor.
    #[cfg(target_os = "linux")]
    Kept(Tree),
    /// No one any more.
    Gone,
}

/// How long somebody who was killed may take to end, for whoever waits for that.
const DYING: Duration = Duration::from_millis(700);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(1);

/// What a process may leave behind that left its group, and is known by its mark alone.
#[derive(Clone, Debug)]
pub struct Leftovers {
    mark: Box<str>,
    group: u32,
    /// When the process started: nothing older is looked at.
    started: u64,
    #[cfg(target_os = "linux")]
    tree: Option<Tree>,
}

impl Leftovers {
    /// Kills it. That takes milliseconds, since it looks at every process there is.
    pub fn kill(&self) {
        #[cfg(target_os = "linux")]
        if let Some(tree) = &self.tree {
            tree.kill();
            return;
        }
        tree::kill_marked(&self.mark, self.started);
    }

    /// Kills it, and waits until it is gone, and the group and these victims with it; but not for
    /// long. Says whether all are gone.
    pub fn end(&self, mut victims: Vec<Victim>) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(tree) = &self.tree {
            tree.kill();
            return tree.is_gone_within(DYING);
        }
        victims.extend(tree::kill_marked(&self.mark, self.started));
        soon(|| tree::are_gone(&victims, self.group, self.started))
    }
}

/// Whether something happens within the time that dying takes.
fn soon(mut done: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    while !done() {
        if since.elapsed() >= DYING {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// A process that was killed and is to be reaped. If the runtime that waits for it ends before
/// that, whoever drops it waits instead: what is killed ends a moment later, not at once.
struct Dying(Held);

impl Dying {
    async fn reap(&mut self) {
        match &mut self.0 {
            Held::Own(child) => drop(child.wait().await),
            #[cfg(target_os = "linux")]
            Held::Kept(tree) => tree.gone().await,
            Held::Gone => {}
        }
    }
}

impl Drop for Dying {
    fn drop(&mut self) {
        match &mut self.0 {
            Held::Own(child) => drop(soon(|| !matches!(child.try_wait(), Ok(None)))),
            #[cfg(target_os = "linux")]
            Held::Kept(tree) => drop(tree.is_gone_within(DYING)),
            Held::Gone => {}
        }
    }
}

/// No other process of ours, and none of another of ours on this machine, has the same mark.
fn fresh_mark() -> Box<str> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{}-{number}", std::process::id(), tree::own_start()).into()
}

impl Process {
    /// Starts a process with pipes for its standard streams.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing of the process is left.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime whose I/O and time are enabled.
    pub async fn spawn(launch: Launch<'_>, tracker: &TaskTracker) -> io::Result<Self> {
        Self::spawn_with(launch, None, tracker).await
    }

    /// Starts a process whose standard input is this, else a pipe, and which has pipes for what it writes; else as
    /// [`Process::spawn`].
    pub async fn spawn_with(
        mut launch: Launch<'_>,
        stdin: Option<OwnedFd>,
        tracker: &TaskTracker,
    ) -> io::Result<Self> {
        let mark = fresh_mark();
        launch.variables.push((MARK.into(), (&*mark).into()));
        let streams = Streams::new(stdin)?;
        #[cfg(target_os = "linux")]
        if let Some(started) = Tree::start(&launch, streams.theirs()).await {
            let (tree, pid) = started?;
            return streams.process(Held::Kept(tree), pid, mark, tracker);
        }
        if launch.sandbox.is_some_and(|rules| rules.is_required) {
            let why = "it is to run confined, and this program has no supervisor; call `supervise()` first in `main`";
            return Err(io::Error::other(why));
        }
        let child = Command::new(launch.program)
            .args(launch.args)
            .current_dir(launch.dir)
            .env_clear()
            .envs(launch.variables)
            .stdin(Stdio::from(streams.stdin.0.try_clone()?))
            .stdout(Stdio::from(streams.stdout.1.try_clone()?))
            .stderr(Stdio::from(streams.stderr.1.try_clone()?))
            .process_group(0)
            .spawn()?;
        let pid = child.id().unwrap_or_default();
        streams.process(Held::Own(child), pid, mark, tracker)
    }

    /// The process's id, which is its group's too.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its standard input; once.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Its standard output; once.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Its standard error; once.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.stderr.take()
    }

    /// What it leaves behind when it has ended by itself.
    pub fn leftovers(&self) -> Leftovers {
        let (mark, group) = (self.mark.clone(), self.pid);
        Leftovers {
            mark,
            group,
            started: tree::start_of(self.pid),
            #[cfg(target_os = "linux")]
            tree: self.tree().cloned(),
        }
    }

    /// Waits until the process itself has ended; what it started may live on until this is dropped.
    /// Can be called again, and dropped at any time.
    pub async fn wait(&mut self) -> io::Result<Ended> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let ended = match &mut self.held {
            Held::Own(child) => Ended::of(child.wait().await?),
            #[cfg(target_os = "linux")]
            Held::Kept(tree) => tree.wait().await,
            Held::Gone => return Err(io::ErrorKind::NotFound.into()),
        };
        self.ended = Some(ended);
        Ok(ended)
    }

    /// Asks the process and its group to end, unless it has.
    pub fn terminate(&self) {
        #[cfg(target_os = "linux")]
        if let Some(tree) = self.tree() {
            return tree.terminate();
        }
        if self.ended.is_none() && !self.is_swept {
            tree::terminate_group(self.pid);
        }
    }

    /// Kills the process, its group and everything that descends from it, now.
    pub fn kill(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(tree) = self.tree() {
            tree.kill();
            self.is_swept = true;
            return;
        }
        match self.ended {
            None => self.victims.extend(tree::kill_tree(self.pid, &self.mark)),
            Some(_) if !self.is_swept => tree::kill_group(self.pid),
            Some(_) => {}
        }
        self.is_swept = true;
    }

    #[cfg(target_os = "linux")]
    fn tree(&self) -> Option<&Tree> {
        match &self.held {
            Held::Kept(tree) => Some(tree),
            _ => None,
        }
    }

    /// Whom killing it has killed; once.
    pub fn victims(&mut self) -> Vec<Victim> {
        std::mem::take(&mut self.victims)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        let mut held = std::mem::replace(&mut self.held, Held::Gone);
        if let Held::Own(child) = &mut held
            && (self.ended.is_some() || matches!(child.try_wait(), Ok(Some(_))))
        {
            return;
        }
        let mut dying = Dying(held);
        // Without a runtime nobody is left to wait for it, and it is waited for here.
        if let Ok(runtime) = Handle::try_current() {
            let reap = async move { dying.reap().await };
            drop(self.tracker.spawn_on(reap, &runtime));
        }
    }
}

/// The two ends of each standard stream: that which is read, and that which is written.
struct Streams {
    stdin: (OwnedFd, Option<OwnedFd>),
    stdout: (OwnedFd, OwnedFd),
    stderr: (OwnedFd, OwnedFd),
}

impl Streams {
    fn new(stdin: Option<OwnedFd>) -> io::Result<Self> {
        let pipe = || io::pipe().map(|(read, write)| (OwnedFd::from(read), OwnedFd::from(write)));
        let stdin = match stdin {
            Some(given) => (given, None),
            None => pipe().map(|(read, write)| (read, Some(write)))?,
        };
        Ok(Self { stdin, stdout: pipe()?, stderr: pipe()? })
    }

    #[cfg(target_os = "linux")]
    fn theirs(&self) -> [std::os::fd::BorrowedFd<'_>; 3] {
        use std::os::fd::AsFd as _;
        [self.stdin.0.as_fd(), self.stdout.1.as_fd(), self.stderr.1.as_fd()]
    }

    /// The process that has them; what is its own is closed here.
    fn process(
        self,
        held: Held,
        pid: u32,
        mark: Box<str>,
        tracker: &TaskTracker,
    ) -> io::Result<Process> {
        let stdin = self.stdin.1.map(|end| ChildStdin::from_std(end.into())).transpose()?;
        Ok(Process {
            held,
            stdin,
            stdout: Some(ChildStdout::from_std(self.stdout.0.into())?),
            stderr: Some(ChildStderr::from_std(self.stderr.0.into())?),
            pid,
            mark,
            ended: None,
            is_swept: false,
            victims: Vec::new(),
            tracker: tracker.clone(),
        })
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("pid", &self.pid).field("ended", &self.ended).finish()
    }
}
