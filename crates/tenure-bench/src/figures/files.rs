//! Loading and checking a folder of cards, against parsing their YAML and nothing else.
//!
//! Both build the same trees by the same reader. Loading also reads the files, understands the
//! fields, looks into the Python files that hooks and tools name, and checks what holds between
//! cards.

use super::Measured;
use crate::measure::{Bench, since};
use crate::report::Figure;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tenure_cards::check::{LoadOptions, load};
use tenure_cards::diagnostic::Report;
use tenure_cards::source::{Source, Span, parse_yaml};

const CARDS: usize = 200;

const HOOKS: &str = "\
async def start(ctx):
    pass

async def stop(ctx):
    pass

async def guard(ctx, next):
    return await next()

def lookup(key: str, limit: int = 10) -> str:
    '''Looks something up.'''
    return key
";

/// A card as people write them: a description, a child, tools, and four hooks.
fn card(number: usize) -> String {
    let child = if number == 0 {
        String::new()
    } else {
        format!("agents: [agent_{:03}]\nmax_parallel: 4\nchild_timeout_sec: 30\n", number - 1)
    };
    format!(
        "type: agent\nname: agent_{number:03}\ndescription: Looks after part {number} of the work\n\
         model: passthrough\n{child}use_history: false\nfunction_tools: [hooks.py:lookup]\n\
         request_params:\n  max_iterations: 12\n  temperature: 0.2\n\
         lifecycle_hooks:\n  on_start: hooks.py:start\n  \
         on_shutdown: {{ run: hooks.py:stop, timeout: 5s }}\nhooks:\n  \
         - {{ on: wrap_tool_call, run: hooks.py:guard, policy: deny, when: \"tool.name == 'lookup'\", \
         name: guard }}\n  - {{ on: before_agent, run: hooks.py:start, after: [guard], retries: 2 }}\n\
         instruction: |\n  You look after part {number}.\n  Answer in one sentence, and name your sources.\n"
    )
}

/// Cards in a folder of their own, which is removed at the end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Result<Self, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("tenure-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let folder = Self(folder);
        fs::write(folder.0.join("tenure.toml"), "")?;
        fs::write(folder.0.join("hooks.py"), HOOKS)?;
        for number in 0..CARDS {
            fs::write(folder.0.join(format!("card_{number:03}.yaml")), card(number))?;
        }
        Ok(folder)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Loading a folder.
pub(crate) fn loading(bench: &Bench) -> Measured {
    let folder = Folder::new()?;
    let options = LoadOptions::default();
    let first = load(folder.path(), &options);
    if first.report.has_errors() || first.cards.len() != CARDS {
        return Err(format!("the cards of the figure are wrong: {:?}", first.report).into());
    }
    let texts: Vec<String> = (0..CARDS).map(card).collect();
    let [loaded, parsed] = bench.race([
        &mut || {
            let start = Instant::now();
            black_box(load(folder.path(), &options));
            since(start)
        },
        &mut || {
            let start = Instant::now();
            for text in &texts {
                let source = Arc::new(Source::new("card.yaml", text.as_str()));
                let mut report = Report::default();
                black_box(parse_yaml(&source, Span::new(0, text.len()), &mut report));
            }
            since(start)
        },
    ]);
    Ok(vec![Figure::ratio("load_ratio", 4.0, ("load_ns", loaded), ("parse_ns", parsed))])
}
