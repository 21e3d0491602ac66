//! The person's own editor: `$VISUAL`, else `$EDITOR`.

use super::super::keyboard;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{Result, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// What came of it.
#[derive(Debug, PartialEq)]
pub(super) enum Edited {
    /// The text as it is now.
    Text(String),
    /// They have none.
    NoEditor,
    /// It did not work, and why.
    Failed(String),
}

/// How often it is looked whether the editor has ended, and whether it is to end.
const LOOK: Duration = Duration::from_millis(20);
/// How long an editor that is told to end may take to leave the terminal in order.
const GRACE: Duration = Duration::from_secs(2);

/// Has the person change `text`. Dropping the future ends the editor.
pub(super) async fn edit(text: &str) -> Edited {
    let named = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    match named("VISUAL").or_else(|| named("EDITOR")) {
        Some(command) => run(command, text.to_owned()).await,
        None => Edited::NoEditor,
    }
}

async fn run(command: String, text: String) -> Edited {
    let unwanted = Arc::<Unwanted>::default();
    let _ends = Ends(unwanted.clone());
    let (send, edited) = oneshot::channel();
    std::thread::spawn(move || {
        let edited = edit_file(&command, &text, &unwanted).unwrap_or_else(|error| {
            Edited::Failed(format!("the editor `{command}` cannot be used: {error}"))
        });
        // Whoever asked may be gone.
        let _ = send.send(edited);
    });
    edited.await.unwrap_or_else(|_| Edited::Failed("the editor cannot be used".to_owned()))
}

/// Whether anybody waits for the editor still, and which process it is.
#[derive(Default)]
struct Unwanted {
    is_set: AtomicBool,
    /// While it runs and is not reaped, so that the id is its own.
    editor: Mutex<Option<Pid>>,
}

impl Unwanted {
    fn editor(&self) -> MutexGuard<'_, Option<Pid>> {
        self.editor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the editor that nobody waits for it any more: at once, because the program may be about to
/// end.
struct Ends(Arc<Unwanted>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.is_set.store(true, Ordering::Release);
        if let Some(pid) = *self.0.editor() {
            // Where this fails it has ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

fn edit_file(command: &str, text: &str, unwanted: &Unwanted) -> Result<Edited> {
    let file = Private::holding(text)?;
    // Nobody else reads what is typed into the editor.
    let _alone = keyboard::alone();
    let _modes = Modes::saved();
    // As other programs do it: it may be a command with arguments.
    let mut editor = Command::new("sh")
        .args(["-c", &format!("exec {command} \"$1\""), "sh"])
        .arg(&file.path)
        .spawn()?;
    let pid = i32::try_from(editor.id()).ok().and_then(Pid::from_raw);
    *unwanted.editor() = pid;
    let mut since = None;
    let status = loop {
        let mut running = unwanted.editor();
        if let Some(status) = editor.try_wait()? {
            *running = None;
            break status;
        }
        drop(running);
        if unwanted.is_set.load(Ordering::Acquire) {
            end(&mut editor, pid, &mut since);
        }
        std::thread::sleep(LOOK);
    };
    if !status.success() {
        let said = format!("the editor ended with {status}; nothing was changed");
        return Ok(Edited::Failed(said));
    }
    Ok(Edited::Text(std::fs::read_to_string(&file.path)?))
}

/// Asks the editor to end, once more, and ends it when it does not.
fn end(editor: &mut Child, pid: Option<Pid>, since: &mut Option<Instant>) {
    // It is not reaped yet, so the id is its own. Where a signal fails it has ended by itself, and
    // that is seen next.
    match since {
        None => {
            *since = Some(Instant::now());
            let _ = pid.map(|pid| kill_process(pid, Signal::TERM));
        }
        Some(since) if since.elapsed() >= GRACE => {
            let _ = editor.kill();
        }
        Some(_) => {}
    }
}

/// The modes of the terminal, put back as they were.
struct Modes(Option<Termios>);

impl Modes {
    fn saved() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        if let Some(modes) = &self.0 {
            // A terminal that is gone needs no modes.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, modes);
        }
    }
}

/// A file in a folder that nobody else can look into. Both are gone afterwards.
struct Private {
    folder: PathBuf,
    path: PathBuf,
}

impl Private {
    fn holding(text: &str) -> Result<Self> {
        let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let name = format!("tenure-edit-{}-{}", std::process::id(), since.as_nanos());
        let folder = std::env::temp_dir().join(name);
        // It must be new: nobody else may have put anything there.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let private = Self { path: folder.join("action.json"), folder };
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&private.path)?;
        file.write_all(text.as_bytes())?;
        Ok(private)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let folder: &Path = &self.folder;
        // What cannot be removed is in the temporary folder, and goes with it.
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future)
    }

    /// A script that can be an editor.
    fn script(dir: &Path, text: &str) -> String {
        let path = dir.join("editor.sh");
        std::fs::write(&path, text).expect("a script");
        format!("sh {}", path.display())
    }

    #[test]
    fn what_the_editor_leaves_is_the_text_and_nothing_else_stays() {
        let dir = tempfile::tempdir().expect("a folder");
        let seen = dir.path().join("seen");
        let text = format!(
            "stat -c %a \"$1\" \"$(dirname \"$1\")\" >{seen}\necho \"$1\" >>{seen}\n\
             sed -i s/old/new/ \"$1\"\n",
            seen = seen.display()
        );
        let edited = block_on(run(script(dir.path(), &text), "the old text".to_owned()));
        assert_eq!(edited, Edited::Text("the new text".to_owned()));
        let seen = std::fs::read_to_string(seen).expect("what it saw");
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines[..2], ["600", "700"]);
        assert!(!Path::new(lines[2]).exists(), "{seen}");
    }

    #[test]
    fn an_editor_that_fails_changes_nothing() {
        let dir = tempfile::tempdir().expect("a folder");
        let editor = script(dir.path(), "echo changed >\"$1\"\nexit 3\n");
        let Edited::Failed(said) = block_on(run(editor, "text".to_owned())) else {
            panic!("it failed");
        };
        assert!(said.contains("exit status: 3"), "{said}");
        let edited = block_on(run("no-such-editor-anywhere".to_owned(), String::new()));
        assert!(matches!(edited, Edited::Failed(_)), "{edited:?}");
    }

    #[test]
    fn an_editor_that_nobody_waits_for_any_more_is_ended_and_its_file_removed() {
        let dir = tempfile::tempdir().expect("a folder");
        let note = dir.path().join("note");
        let text =
            format!("echo \"$$ $1\" >{0}.new\nmv {0}.new {0}\nexec sleep 60\n", note.display());
        let editor = script(dir.path(), &text);
        let until = Instant::now() + Duration::from_secs(30);
        let wait = |what: &str, done: &dyn Fn() -> bool| {
            while !done() {
                assert!(Instant::now() < until, "{what}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        block_on(async {
            let editing = run(editor, String::new());
            let begun = async {
                while !note.exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::select! {
                edited = editing => panic!("it never ends by itself: {edited:?}"),
                () = begun => {}
            }
        });
        let seen = std::fs::read_to_string(&note).expect("what it saw");
        let (pid, file) = seen.trim().split_once(' ').expect("a pid and a path");
        let process = Path::new("/proc").join(pid);
        wait("the editor is still there", &|| !process.exists());
        wait("its file is still there", &|| !Path::new(file).exists());
    }

    #[test]
    fn the_file_is_for_its_owner_only() {
        let private = Private::holding("text").expect("a file");
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode();
        assert_eq!(mode(&private.path) & 0o777, 0o600);
        assert_eq!(mode(&private.folder) & 0o777, 0o700);
    }
}
