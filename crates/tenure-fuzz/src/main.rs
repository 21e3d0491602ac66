//! Drives the readers with mutated files, each input under a limit of time and memory.
//!
//!     tenure-fuzz run [--seconds N] [--seed N] [reader ...]
//!     tenure-fuzz replay <reader> <file>
//!
//! What fails is kept in `fuzz/found/<reader>/`, and the exit code is 1.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tenure_fuzz::{Cost, Mutator, TARGETS, Target, Verdict, Worker, corpus, files, serve, target};

fn main() -> Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["work", name] => serve(name).map(|()| ExitCode::SUCCESS),
        ["replay", name, file] => replay(name, Path::new(file)),
        ["run", rest @ ..] => run(rest),
        _ => bail!(
            "usage: tenure-fuzz run [--seconds N] [--seed N] [reader ...] | replay <reader> <file>"
        ),
    }
}

fn replay(name: &str, file: &Path) -> Result<ExitCode> {
    let input =
        std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    let verdict = Worker::new(&std::env::current_exe()?, name).run(&input)?;
    println!("{verdict:?}");
    Ok(if matches!(verdict, Verdict::Fine(_)) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run(args: &[&str]) -> Result<ExitCode> {
    let (mut seconds, mut seed, mut chosen) = (60, 1, Vec::new());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut number = || -> Result<u64> {
            args.next()
                .and_then(|text| text.parse().ok())
                .with_context(|| format!("`{arg}` needs a number"))
        };
        match *arg {
            "--seconds" => seconds = number()?,
            "--seed" => seed = number()?,
            name => {
                chosen.push(target(name).with_context(|| format!("there is no reader `{name}`"))?)
            }
        }
    }
    if chosen.is_empty() {
        chosen.extend(TARGETS);
    }
    let mut failures = 0;
    for target in chosen {
        failures += drive(target, Duration::from_secs(seconds), seed)?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Drives one reader, and returns how often it failed.
fn drive(target: &Target, time: Duration, seed: u64) -> Result<usize> {
    let seeds: Vec<Vec<u8>> = files(&corpus(target.name))
        .into_iter()
        .map(std::fs::read)
        .collect::<std::io::Result<_>>()?;
    if seeds.is_empty() {
        bail!("the corpus of `{}` is empty", target.name);
    }
    let mut worker = Worker::new(&std::env::current_exe()?, target.name);
    let mut mutator = Mutator::new(seed, seeds.clone(), target.words);
    let began = Instant::now();
    let (mut count, mut failures, mut most) = (0u64, 0, Cost::default());
    let mut seeds = seeds.into_iter();
    while began.elapsed() < time && failures < 20 {
        let input = seeds.next().unwrap_or_else(|| mutator.next_input());
        count += 1;
        let verdict = worker.run(&input)?;
        match verdict {
            Verdict::Fine(cost) => {
                most.cpu = most.cpu.max(cost.cpu);
                most.memory = most.memory.max(cost.memory);
            }
            wrong => {
                failures += 1;
                let file = keep(target.name, failures, seed, &input)?;
                println!("{}: {} bytes in {}: {wrong:?}", target.name, input.len(), file.display());
            }
        }
    }
    println!(
        "{}: {count} inputs in {:.0} s, {failures} failures, at most {} ms and {} MB",
        target.name,
        began.elapsed().as_secs_f64(),
        most.cpu.as_millis(),
        most.memory >> 20,
    );
    Ok(failures)
}

fn keep(name: &str, number: usize, seed: u64, input: &[u8]) -> Result<PathBuf> {
    let folder = corpus(name).join("../../found").join(name);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(format!("{seed}-{number}"));
    std::fs::write(&file, input)?;
    Ok(file)
}
