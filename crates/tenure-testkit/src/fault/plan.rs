//! The plan.

use super::{Fault, Place};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenure_core::hook::{Point, Points};

/// Says what goes wrong, where, and at which call. Clones are one plan: they count calls together.
///
/// Calls are counted per place, from 0, in the order in which they arrive.
///
/// ```
/// use tenure_core::ErrorKind;
/// use tenure_core::agent::Agent;
/// use tenure_core::hook::Point;
/// use tenure_models::Passthrough;
/// use tenure_testkit::{Fault, FaultPlan, FaultyHook, FaultyModel, Place};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let plan = FaultPlan::new()
///     .at(Point::BeforeAgent, 1, Fault::Panic)
///     .at(Place::Model, 1, Fault::Fail);
/// let agent = Agent::builder("tried")
///     .model(FaultyModel::new(Passthrough::new(), &plan))
///     .with_lifecycle(FaultyHook::new(&plan))
///     .build()?;
/// agent.startup().await?;
/// assert!(agent.run("first").await.is_ok());
/// assert_eq!(agent.run("second").await.unwrap_err().kind(), ErrorKind::Panicked);
/// assert_eq!(agent.run("third").await.unwrap_err().kind(), ErrorKind::Model);
/// assert_eq!(plan.injected().len(), 2);
/// agent.shutdown().await;
/// # Ok::<_, tenure_core::Error>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct FaultPlan {
    rules: Vec<Rule>,
    chance: Option<Chance>,
    run: Arc<Run>,
}

#[derive(Clone, Copy)]
struct Rule {
    place: Place,
    /// `None` for every call.
    call: Option<usize>,
    fault: Fault,
}

#[derive(Clone)]
struct Chance {
    seed: u64,
    percent: u8,
    faults: Vec<Fault>,
}

/// What has happened so far.
#[derive(Default)]
struct Run {
    calls: [AtomicUsize; Place::COUNT],
    injected: Mutex<Vec<Injected>>,
}

/// A fault that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Injected {
    /// Where.
    pub place: Place,
    /// At which call there, counted from 0.
    pub call: usize,
    /// What went wrong.
    pub fault: Fault,
}

impl FaultPlan {
    /// A plan in which nothing goes wrong yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A plan in which each call goes wrong with a chance of so many percent: it fails, panics,
    /// hangs or takes 10 ms.
    ///
    /// What goes wrong depends on the seed, the place and the number of the call, and on nothing
    /// else: the same seed makes the same plan, on every machine.
    pub fn seeded(seed: u64, percent: u8) -> Self {
        let slow = Fault::Slow(Duration::from_millis(10));
        Self {
            chance: Some(Chance {
                seed,
                percent,
                faults: vec![Fault::Fail, Fault::Panic, Fault::Hang, slow],
            }),
            ..Self::default()
        }
    }

    /// What a seeded plan chooses among. Without a fault to choose, nothing goes wrong by chance.
    #[must_use]
    pub fn among(mut self, faults: impl IntoIterator<Item = Fault>) -> Self {
        if let Some(chance) = &mut self.chance {
            chance.faults = faults.into_iter().collect();
        }
        self
    }

    /// Lets one call go wrong. Calls are counted per place, from 0.
    #[must_use]
    pub fn at(mut self, place: impl Into<Place>, call: usize, fault: Fault) -> Self {
        self.rules.push(Rule { place: place.into(), call: Some(call), fault });
        self
    }

    /// Lets every call at a place go wrong, except those that [`FaultPlan::at`] speaks of.
    #[must_use]
    pub fn always(mut self, place: impl Into<Place>, fault: Fault) -> Self {
        self.rules.push(Rule { place: place.into(), call: None, fault });
        self
    }

    /// What the plan says about one call.
    pub fn fault_at(&self, place: impl Into<Place>, call: usize) -> Option<Fault> {
        let place = place.into();
        let rule = |number: Option<usize>| {
            let here = |rule: &&Rule| rule.place == place && rule.call == number;
            self.rules.iter().find(here).map(|rule| rule.fault)
        };
        rule(Some(call))
            .or_else(|| rule(None))
            .or_else(|| self.chance.as_ref()?.fault_at(place, call))
    }

    /// Every fault that was carried out so far, in order.
    pub fn injected(&self) -> Vec<Injected> {
        self.run.injected.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many calls there were at a place so far.
    pub fn calls(&self, place: impl Into<Place>) -> usize {
        self.run.calls[place.into().index()].load(Ordering::Relaxed)
    }

    /// The points at which a hook with this plan has something to do.
    pub(super) fn points(&self) -> Points {
        if self.chance.is_some() {
            return Points::ALL;
        }
        self.rules
            .iter()
            .filter_map(|rule| match rule.place {
                Place::Hook(point) => Some(point),
                Place::Model | Place::Tool => None,
            })
            .collect::<Points>()
    }

    /// Carries out what the plan says about the next call at `place`. The error is a message.
    pub(super) async fn strike(&self, place: Place) -> Result<(), String> {
        let call = self.run.calls[place.index()].fetch_add(1, Ordering::Relaxed);
        let Some(fault) = self.fault_at(place, call) else {
            return Ok(());
        };
        self.run.injected.lock().unwrap_or_else(PoisonError::into_inner).push(Injected {
            place,
            call,
            fault,
        });
        match fault {
            Fault::Fail => return Err(format!("planned failure at {place}, call {call}")),
            Fault::Panic => panic!("planned panic at {place}, call {call}"),
            Fault::Hang => std::future::pending().await,
            Fault::Block(time) => std::thread::sleep(time),
            Fault::Slow(time) => tokio::time::sleep(time).await,
        }
        Ok(())
    }

    pub(super) async fn strike_hook(&self, point: Point) -> Result<(), String> {
        self.strike(Place::Hook(point)).await
    }
}

impl Chance {
    fn fault_at(&self, place: Place, call: usize) -> Option<Fault> {
        let drawn = mix(self.seed ^ mix(((place.index() as u64) << 48) | call as u64));
        let hit = drawn % 100 < u64::from(self.percent);
        let choice = usize::try_from(drawn >> 32).unwrap_or(0);
        (hit && !self.faults.is_empty()).then(|| self.faults[choice % self.faults.len()])
    }
}

/// SplitMix64: every bit of the result depends on every bit of the number.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules = self.rules.iter().map(|rule| (rule.place, rule.call, rule.fault));
        f.debug_struct("FaultPlan")
            .field("rules", &rules.collect::<Vec<_>>())
            .field("seeded", &self.chance.as_ref().map(|chance| (chance.seed, chance.percent)))
            .field("injected", &self.injected())
            .finish()
    }
}
