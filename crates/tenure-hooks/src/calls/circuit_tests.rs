//! Every way through a circuit, on a clock that stands still unless it is moved.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::Config;

const SECOND: Duration = Duration::from_secs(1);

fn settings() -> Settings {
    Settings { failures: 3, window: 10 * SECOND, open_for: 5 * SECOND, probes: 2 }
}

struct Bench {
    circuit: Arc<Circuit>,
    settings: Settings,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        Self { circuit: Arc::new(Circuit::new("model")), settings: settings(), now: Instant::now() }
    }

    fn ask(&self) -> Result<Permit, Duration> {
        self.circuit.ask(&self.settings, self.now).permit
    }

    fn permit(&self) -> Permit {
        self.ask().unwrap_or_else(|left| panic!("refused for {left:?}"))
    }

    fn refused(&self) -> Duration {
        self.ask().err().expect("it is refused")
    }

    fn end(&self, permit: Permit, end: End) -> Option<Stand> {
        permit.end(&self.settings, end, self.now)
    }

    fn call(&self, end: End) -> Option<Stand> {
        self.end(self.permit(), end)
    }

    fn open(&mut self) {
        for _ in 0..2 {
            assert_eq!(self.call(End::Failed), None);
        }
        assert_eq!(self.call(End::Failed), Some(Stand::Open));
    }

    fn half_open(&mut self) -> Permit {
        self.open();
        self.now += 5 * SECOND;
        let asked = self.circuit.ask(&self.settings, self.now);
        assert_eq!(asked.changed, Some(Stand::HalfOpen));
        asked.permit.expect("a probe is allowed")
    }
}

#[test]
fn so_many_failures_within_the_window_open_it() {
    let mut bench = Bench::new();
    bench.open();
    assert_eq!((bench.circuit.stand(), bench.refused()), (Stand::Open, 5 * SECOND));
}

#[test]
fn failures_that_are_further_apart_do_not_open_it() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        assert_eq!(bench.call(End::Failed), None);
        bench.now += 5 * SECOND;
    }
    assert_eq!(bench.circuit.stand(), Stand::Closed);
}

#[test]
fn a_failure_leaves_the_window_after_exactly_its_time() {
    for (gap, opens) in [(10 * SECOND - Duration::from_nanos(1), true), (10 * SECOND, false)] {
        let mut bench = Bench::new();
        bench.call(End::Failed);
        bench.now += gap;
        bench.call(End::Failed);
        assert_eq!(bench.call(End::Failed).is_some(), opens, "{gap:?}");
    }
}

#[test]
fn successes_and_calls_that_say_nothing_do_not_count() {
    let bench = Bench::new();
    for _ in 0..2 {
        bench.call(End::Failed);
        for _ in 0..10 {
            assert_eq!(bench.call(End::Succeeded), None);
            assert_eq!(bench.call(End::Unknown), None);
        }
    }
    assert_eq!(bench.circuit.stand(), Stand::Closed);
}

#[test]
fn an_open_one_says_how_long_it_stays_open_and_then_lets_probes_through() {
    let mut bench = Bench::new();
    bench.open();
    bench.now += 4 * SECOND;
    assert_eq!(bench.refused(), SECOND);
    bench.now += SECOND - Duration::from_nanos(1);
    assert_eq!(bench.refused(), Duration::from_nanos(1));
    bench.now += Duration::from_nanos(1);
    let (_first, _second) = (bench.permit(), bench.permit());
    assert_eq!(bench.circuit.stand(), Stand::HalfOpen);
    assert_eq!(bench.refused(), SECOND, "there are two probes, and both are under way");
}

#[test]
fn it_closes_when_every_probe_has_succeeded() {
    let mut bench = Bench::new();
    let first = bench.half_open();
    assert_eq!(bench.end(first, End::Succeeded), None);
    assert_eq!(bench.call(End::Succeeded), Some(Stand::Closed));
    for _ in 0..2 {
        assert_eq!(bench.call(End::Failed), None, "old failures are forgotten");
    }
}

#[test]
fn it_opens_again_when_a_probe_fails() {
    let mut bench = Bench::new();
    let (first, second) = (bench.half_open(), bench.permit());
    assert_eq!(bench.end(first, End::Failed), Some(Stand::Open));
    assert_eq!(bench.refused(), 5 * SECOND);
    assert_eq!(bench.end(second, End::Succeeded), None, "it belongs to what is over");
    assert_eq!(bench.circuit.stand(), Stand::Open);
}

#[test]
fn a_probe_that_says_nothing_is_given_back() {
    let mut bench = Bench::new();
    let (first, second) = (bench.half_open(), bench.permit());
    assert!(bench.ask().is_err());
    drop(first);
    let third = bench.permit();
    assert!(bench.ask().is_err());
    assert_eq!(bench.end(second, End::Unknown), None);
    let fourth = bench.permit();
    assert_eq!(bench.end(third, End::Succeeded), None);
    assert_eq!(bench.end(fourth, End::Succeeded), Some(Stand::Closed));
}

#[test]
fn a_probe_that_hangs_makes_room_after_the_time_that_it_was_open() {
    let mut bench = Bench::new();
    let (first, second) = (bench.half_open(), bench.permit());
    bench.now += 5 * SECOND - Duration::from_millis(1);
    assert_eq!(bench.refused(), Duration::from_millis(1), "the first is about to be given up");
    bench.now += Duration::from_millis(1);
    let (third, fourth) = (bench.permit(), bench.permit());
    assert_eq!(bench.refused(), SECOND, "those that hang are not waited for, and the others are");
    drop(first);
    assert_eq!(bench.refused(), SECOND, "one that was given up has nothing to give back");
    // It succeeds at last. That says as much as if it had been quick.
    assert_eq!(bench.end(second, End::Succeeded), None);
    assert_eq!(bench.end(third, End::Succeeded), Some(Stand::Closed));
    drop(fourth);
    assert_eq!(bench.circuit.stand(), Stand::Closed);
}

#[test]
fn a_probe_that_hung_and_fails_opens_it_again() {
    let mut bench = Bench::new();
    let first = bench.half_open();
    bench.now += 60 * SECOND;
    let (second, third) = (bench.permit(), bench.permit());
    assert_eq!(bench.end(first, End::Failed), Some(Stand::Open));
    drop((second, third));
    assert_eq!(bench.refused(), 5 * SECOND);
}

#[test]
fn the_end_of_a_call_from_before_a_change_says_nothing() {
    let mut bench = Bench::new();
    let late = [bench.permit(), bench.permit(), bench.permit()];
    let probe = bench.half_open();
    for permit in late {
        assert_eq!(bench.end(permit, End::Failed), None);
    }
    assert_eq!(bench.circuit.stand(), Stand::HalfOpen);
    drop(probe);
    assert_eq!(
        (bench.call(End::Succeeded), bench.call(End::Succeeded)),
        (None, Some(Stand::Closed))
    );
}

/// What is done to a circuit.
#[derive(Clone, Copy, Debug)]
enum Act {
    Ask,
    End(usize, End),
    GiveUp(usize),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let end = prop_oneof![Just(End::Succeeded), Just(End::Failed), Just(End::Unknown)];
    prop_oneof![
        4 => Just(Act::Ask),
        4 => (0_usize..8, end).prop_map(|(at, end)| Act::End(at, end)),
        1 => (0_usize..8).prop_map(Act::GiveUp),
        2 => (1_u64..6_000).prop_map(Act::Wait),
    ]
}

proptest! {
    #![proptest_config(Config { cases: tenure_testkit::cases(500, 2_000) as u32, failure_persistence: None, ..Config::default() })]

    /// Whatever is done, in whatever order: it stands where a plain reading of its rules says.
    #[test]
    fn it_never_does_anything_else(acts in prop::collection::vec(act(), 1..80)) {
        let mut bench = Bench::new();
        let settings = settings();
        let mut permits: Vec<(Permit, u64, Instant)> = Vec::new();
        // The plain reading: where it stands since which change, and what has happened since.
        let (mut stand, mut epoch) = (Stand::Closed, 0_u64);
        let (mut failed, mut opened) = (Vec::<Instant>::new(), bench.now);
        let mut succeeded = 0;
        for act in acts {
            match act {
                Act::Wait(millis) => bench.now += Duration::from_millis(millis),
                Act::Ask => {
                    if stand == Stand::Open && bench.now >= opened + settings.open_for {
                        (stand, succeeded, epoch) = (Stand::HalfOpen, 0, epoch + 1);
                    }
                    let counts = |(_, since, at): &&(Permit, u64, Instant)| {
                        *since == epoch && bench.now < *at + settings.open_for
                    };
                    let under_way = permits.iter().filter(counts).count();
                    let allowed = match stand {
                        Stand::Closed => true,
                        Stand::Open => false,
                        Stand::HalfOpen => under_way + succeeded < settings.probes as usize,
                    };
                    let asked = bench.ask();
                    prop_assert_eq!(asked.is_ok(), allowed);
                    match asked {
                        Ok(permit) => permits.push((permit, epoch, bench.now)),
                        Err(left) => prop_assert!(left > Duration::ZERO && left <= settings.open_for),
                    }
                }
                Act::GiveUp(at) if at < permits.len() => drop(permits.remove(at)),
                Act::End(at, end) if at < permits.len() => {
                    let (permit, since, _) = permits.remove(at);
                    bench.end(permit, end);
                    match (since == epoch, stand, end) {
                        (true, Stand::Closed, End::Failed) => {
                            failed.push(bench.now);
                            failed.retain(|at| bench.now - *at < settings.window);
                            if failed.len() >= settings.failures {
                                (stand, opened, epoch) = (Stand::Open, bench.now, epoch + 1);
                            }
                        }
                        (true, Stand::HalfOpen, End::Failed) => {
                            (stand, opened, epoch) = (Stand::Open, bench.now, epoch + 1);
                        }
                        (true, Stand::HalfOpen, End::Succeeded) => {
                            succeeded += 1;
                            if succeeded == settings.probes as usize {
                                (stand, epoch) = (Stand::Closed, epoch + 1);
                                failed.clear();
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
            prop_assert_eq!(bench.circuit.stand(), stand);
        }
    }
}
