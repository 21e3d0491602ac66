//! `tenure demo`: a small team at work, from files like those that users write.

use super::files;
use super::project::Opened;
use super::session::{Session, Wishes};
use crate::args::Demo;
use crate::exit::{Exit, Stop};
use crate::signal::Stopper;
use crate::terminal::question::{Allowed, question};
use crate::terminal::style::{BOLD, CALM, DIM, GOOD, paint};
use crate::terminal::text::for_shell;
use crate::terminal::{EventLines, Progress, Screen, print_plain};
use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenure_core::ask::{Answer, Asker, PendingAsk};

const MESSAGE: &str = "octopuses";

pub(super) fn run(args: &Demo) -> Result<Exit> {
    let folder = Folder::new(args.keep.as_deref())?;
    files::write(&folder.path, files::DEMO)?;
    introduce();
    let opened = Opened::at(&folder.path)?;
    ensure!(opened.complain(), "the demo does not pass its own check");

    // These files come with the program, so whoever runs it trusts them already.
    let screen = Screen::new(Progress::Lines, EventLines::Nothing);
    let stopper = Stopper::default();
    let asker = DemoAsker { screen: screen.clone() };
    let Ok(session) = Session::new(opened.loaded, Wishes::default(), screen, stopper, asker) else {
        bail!("the demo cannot be built");
    };
    let ended = session.run("editor", MESSAGE.to_owned())?;
    heading("What it said");
    ended.answer()?;
    heading("What happened when");
    ended.conclude();
    ended.complain();
    print_plain("");
    if let Some(kept) = &args.keep {
        let kept = for_shell(kept);
        print_plain(&format!("The files are in {kept}: tenure run {kept} -m {MESSAGE}"));
    }
    print_plain(&format!("{} tenure init hello", paint(GOOD, "next:")));
    Ok(ended.exit())
}

fn heading(title: &str) {
    print_plain(&format!("\n{}", paint(CALM, format_args!("── {title}"))));
}

/// Shows the files that matter, and what to look out for.
fn introduce() {
    print_plain(&paint(BOLD, "Tenure: a small team at work. No key, no network."));
    heading("A card, editor.md: an agent, its tools and its hooks");
    show(files::DEMO, "editor.md", |_| true);
    heading("Two of its hooks, hooks.py: plain Python");
    let mut inside = false;
    show(files::DEMO, "hooks.py", |line| {
        inside |= line.starts_with("async def guard");
        inside
    });
    heading(&format!("tenure run . -m {MESSAGE}"));
    for (what, why) in [
        ("on_start, on_shutdown", "Python hooks run when an agent starts and stops"),
        ("audit", "a hook can be any command, here a shell script"),
        ("researcher#1[tool]", "an agent used as a tool is a clone with a life of its own"),
        ("guard", "says no to one tool; the turn goes on with that answer"),
        ("approve", "asks a person, and the run waits"),
    ] {
        print_plain(&paint(DIM, format_args!("  {what:<23}{why}")));
    }
    print_plain("");
}

fn show(files: &[files::Embedded], name: &str, mut wanted: impl FnMut(&str) -> bool) {
    let text = files.iter().find(|(file, _)| *file == name).map_or("", |(_, text)| *text);
    for line in text.lines().filter(|line| wanted(line)) {
        print_plain(&format!("  {} {line}", paint(DIM, "│")));
    }
}

/// Answers the one question of the demo, for everybody to see.
struct DemoAsker {
    screen: Screen,
}

/// Long enough to see that the run waits.
const THOUGHT: Duration = Duration::from_millis(400);

#[async_trait]
impl Asker for DemoAsker {
    async fn answer(&self, ask: &PendingAsk) -> Option<Answer> {
        self.screen.print(&question(ask));
        tokio::time::sleep(THOUGHT).await;
        let answer = paint(BOLD, "a");
        self.screen.print(&format!(
            "{}: {answer}   {}\n",
            Allowed::of(None).choices(),
            paint(DIM, "(the demo answers for you)")
        ));
        Some(Answer::Approve)
    }
}

/// Where the files of the demo are: a fresh folder that nobody else can read, gone afterwards.
struct Folder {
    path: PathBuf,
    keep: bool,
}

impl Folder {
    fn new(keep: Option<&Path>) -> Result<Self> {
        if let Some(path) = keep {
            if path.exists() {
                let path = path.display();
                return Err(Stop::usage(format!("`{path}` exists; name a new folder")).into());
            }
            std::fs::create_dir_all(path)
                .with_context(|| format!("the folder {} cannot be made", path.display()))?;
            return Ok(Self { path: path.to_owned(), keep: true });
        }
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let name = format!("tenure-demo-{}-{}", std::process::id(), since.subsec_nanos());
        let path = std::env::temp_dir().join(name);
        // It must be new: nobody else may have put files there.
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("the folder {} cannot be made", path.display()))?;
        Ok(Self { path, keep: false })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.keep {
            // What cannot be removed is in the temporary folder, and goes with it.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
