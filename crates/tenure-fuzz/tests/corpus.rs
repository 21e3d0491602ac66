//! Every file of the corpus, given to its reader under the limits that the long form has.

use std::path::Path;
use tenure_fuzz::{TARGETS, Verdict, Worker, corpus, files};

fn replay(name: &str) {
    let mut worker = Worker::new(Path::new(env!("CARGO_BIN_EXE_tenure-fuzz")), name);
    let inputs = files(&corpus(name));
    assert!(inputs.len() >= 3, "{name} has a corpus of {}", inputs.len());
    for file in inputs {
        let input = std::fs::read(&file).expect("it can be read");
        let verdict = worker.run(&input).expect("the reader starts");
        assert!(matches!(verdict, Verdict::Fine(_)), "{}: {verdict:?}", file.display());
    }
}

macro_rules! readers {
    ($($name:ident)*) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        #[test]
        fn every_reader_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert_eq!(TARGETS.iter().map(|target| target.name).collect::<Vec<_>>(), replayed);
        }
    };
}

readers!(cards workflows toml python when templates frames replies journal);

#[test]
fn a_reader_that_does_not_exist_is_a_crash_and_not_a_pass() {
    let mut worker = Worker::new(Path::new(env!("CARGO_BIN_EXE_tenure-fuzz")), "nothing");
    assert!(matches!(worker.run(b"x"), Ok(Verdict::Crashed(_))));
}
