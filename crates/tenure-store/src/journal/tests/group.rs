//! One writer, many who write and read.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[test]
fn what_many_write_at_once_is_in_order_and_without_a_gap_in_each_run() {
    let place = Place::new();
    let driving = place.drive();
    let runs: Vec<RunId> = (0..16).map(|_| RunId::unique()).collect();
    thread::scope(|threads| {
        for run in &runs {
            let writer = driving.writer().clone();
            threads.spawn(move || {
                for number in 0..50 {
                    // Every other one is waited for; the order is the same.
                    if number % 2 == 0 {
                        writer.send(append(*run, step(number)));
                    } else {
                        let seq = writer.commit_blocking(append(*run, step(number)));
                        assert_eq!(seq.expect("it is written"), json!(number + 1));
                    }
                }
            });
        }
    });
    drop(driving);
    for run in runs {
        let records = place.store.records(run, 0, usize::MAX).expect("they are read");
        let ordinals: Vec<_> = records.iter().map(|it| it.step.as_ref().unwrap().ordinal).collect();
        assert_eq!(ordinals, (0..50).collect::<Vec<u32>>());
        let later = place.store.records(run, 48, 1).expect("they are read");
        assert_eq!(later, records[48..49]);
    }
}

#[tokio::test]
async fn a_job_that_fails_is_undone_and_those_beside_it_are_not() {
    let place = Place::new();
    let driving = place.drive();
    let (run, writer) = (RunId::unique(), driving.writer());
    // While the first is at work the others gather in one group.
    writer.send(Box::new(|_| {
        thread::sleep(std::time::Duration::from_millis(50));
        Ok(Value::Null)
    }));
    let bad: Job = Box::new(move |tx| {
        tx.append(&run.to_string(), step(7))?;
        Err(StoreError::new(StoreErrorKind::Unknown, "no"))
    });
    let wild: Job = Box::new(move |tx| {
        tx.append(&run.to_string(), step(8))?;
        panic!("on purpose")
    });
    let results = tokio::join!(
        writer.commit(append(run, step(0))),
        writer.commit(bad),
        writer.commit(append(run, step(1))),
        writer.commit(wild),
        writer.commit(append(run, step(2))),
    );
    assert_eq!(results.0.unwrap(), json!(1));
    assert_eq!(results.1.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert_eq!(results.2.unwrap(), json!(2));
    assert!(results.3.unwrap_err().to_string().contains("panicked"));
    assert_eq!(results.4.unwrap(), json!(3));
    // Alone, too.
    let bad: Job = Box::new(move |tx| {
        tx.append(&run.to_string(), step(7))?;
        Err(StoreError::new(StoreErrorKind::Unknown, "no"))
    });
    writer.commit(bad).await.expect_err("it fails");
    writer.commit(append(run, step(3))).await.expect("the next one does not");
    let records = place.store.records(run, 0, 10).expect("they are read");
    let ordinals: Vec<_> = records.iter().map(|it| it.step.as_ref().unwrap().ordinal).collect();
    assert_eq!(ordinals, [0, 1, 2, 3]);
}

#[test]
fn readers_see_a_prefix_at_every_moment_and_never_wait_for_the_writer() {
    let place = Place::new();
    let driving = place.drive();
    let (run, done) = (RunId::unique(), Arc::new(AtomicBool::new(false)));
    thread::scope(|threads| {
        for _ in 0..4 {
            let (store, done) = (place.store.clone(), done.clone());
            threads.spawn(move || {
                let mut seen = 0;
                while !done.load(Ordering::Acquire) {
                    let records = store.records(run, 0, usize::MAX).expect("they are read");
                    assert!(records.len() >= seen, "{} after {seen}", records.len());
                    seen = records.len();
                }
            });
        }
        for number in 0..200 {
            driving.writer().commit_blocking(append(run, step(number))).expect("it is written");
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(place.store.records(run, 0, usize::MAX).expect("they are read").len(), 200);
}

#[test]
fn a_row_of_another_process_comes_between_without_breaking_the_chain() {
    let place = Place::new();
    let driving = place.drive();
    let run = RunId::unique();
    let other = crate::testing::open_existing(place.store.path()).expect("it opens");
    for number in 0..10 {
        driving.writer().commit_blocking(append(run, step(2 * number))).expect("it is written");
        let seq = other.write(append(run, step(2 * number + 1))).expect("it is written");
        assert_eq!(seq, json!(2 * number + 2));
    }
    assert_eq!(place.store.records(run, 0, usize::MAX).expect("it is whole").len(), 20);
}

#[test]
fn a_writer_that_was_stopped_has_written_what_was_sent_and_refuses_more() {
    let place = Place::new();
    let driving = place.drive();
    let (run, writer) = (RunId::unique(), driving.writer().clone());
    (0..100).for_each(|number| writer.send(append(run, step(number))));
    drop(driving);
    let error = writer.commit_blocking(append(run, step(100))).expect_err("it is stopped");
    assert!(error.to_string().contains("does not drive"), "{error}");
    assert_eq!(place.store.records(run, 0, usize::MAX).expect("they are read").len(), 100);
    drop(place.drive());
}
