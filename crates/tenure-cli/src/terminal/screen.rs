//! Where progress goes while a run lasts.
//!
//! A thread of its own receives the events and shows them, so that nothing the agents do can hold
//! it up, and it cannot hold them up.

use super::group::Queue;
use super::line::{Line, Repeats, Weight, ends_all, is_in_crowd, line_of};
use super::live::{Live, TICK};
use super::record::{Happening, Instance, Record};
use super::sink::{print_json, print_plain};
use super::size::{columns, width};
use super::speech::{Said, Speech};
use super::text::clean_line;
use super::timeline::{Charset, timeline};
use super::usage;
use crate::time::rfc3339;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tenure_core::event::{Event, EventBus, Received, Subscriber};
use tenure_core::{InstanceId, RunId};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

/// More events than these cannot wait to be shown; a run that is faster loses some of its lines.
const WAITING: usize = 1 << 16;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Live lines on a terminal, so many at once.
    Live(usize),
    /// Line by line.
    Lines,
    /// Not at all.
    Nothing,
}

impl Progress {
    /// What standard error can show: live lines, so many at once, where the cursor can be moved.
    pub(crate) fn on_stderr(most: usize) -> Self {
        let moves = std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty());
        if std::io::stderr().is_terminal() && moves { Self::Live(most) } else { Self::Lines }
    }
}

/// What is printed on standard output while the run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventLines {
    /// Each event as a line of JSON.
    Json,
    /// What the speakers of a workflow say, each under its name.
    Messages,
    /// Nothing; the answer comes at the end.
    Nothing,
}

/// Shows the progress of a run. Clones are one screen.
#[derive(Clone)]
pub(crate) struct Screen {
    stage: Arc<Mutex<Stage>>,
    announced: Arc<Announced>,
}

/// Lines from outside, for the display thread to print. Whoever leaves one waits for nobody.
#[derive(Default)]
struct Announced {
    lines: Mutex<Vec<String>>,
    bell: Notify,
}

struct Stage {
    /// What is still to be shown.
    waiting: Option<Subscriber>,
    announced: Arc<Announced>,
    record: Record,
    display: Display,
    repeats: Repeats,
    speech: Speech,
    /// How many keep it quiet.
    holders: usize,
    events: EventLines,
    /// The recorded run that is shown.
    run: Option<RunId>,
    began: SystemTime,
}

enum Display {
    Live(Live),
    Lines(Lines),
    Nothing,
}

/// Progress line by line.
#[derive(Default)]
struct Lines {
    /// What is to be printed once nobody keeps it quiet any more.
    held: Vec<String>,
    /// What was said last of those that are many, and when.
    said: HashMap<String, (Duration, String)>,
}

/// How often it is said how far those are that are many.
const PROGRESS: Duration = Duration::from_secs(1);

/// The thread that shows events.
pub(crate) struct Watch {
    screen: Screen,
    over: Arc<Notify>,
    thread: JoinHandle<()>,
}

impl Screen {
    pub(crate) fn new(progress: Progress, events: EventLines) -> Self {
        let display = match progress {
            Progress::Live(most) => Display::Live(Live::new(most)),
            Progress::Lines => Display::Lines(Lines::default()),
            Progress::Nothing => Display::Nothing,
        };
        let began = SystemTime::now();
        let (record, waiting) = (Record::default(), None);
        let announced = Arc::<Announced>::default();
        let lines = announced.clone();
        let stage = Stage {
            waiting,
            announced: lines,
            record,
            display,
            repeats: Repeats::default(),
            speech: Speech::default(),
            holders: 0,
            events,
            run: None,
            began,
        };
        Self { stage: Arc::new(Mutex::new(stage)), announced }
    }

    /// Shows what happens on `bus`, from now on.
    pub(crate) fn watch(&self, bus: &EventBus, runtime: &Handle) -> Watch {
        {
            let mut stage = self.stage();
            stage.began = SystemTime::now();
            stage.waiting = Some(bus.subscribe(WAITING));
        }
        // One subscription keeps the events; the other one, made after it so that it hears of each
        // event last, is to be woken by.
        let bell = bus.subscribe(1);
        let over = Arc::new(Notify::new());
        let (screen, until, runtime) = (self.clone(), over.clone(), runtime.clone());
        let thread = std::thread::spawn(move || runtime.block_on(show(&screen, bell, &until)));
        Watch { screen: self.clone(), over, thread }
    }

    /// What it shows is this run, which is on record.
    pub(crate) fn shows(&self, run: RunId) {
        self.stage().run = Some(run);
    }

    /// Shows what has happened, and then keeps the screen quiet for as long as the guard lives.
    pub(crate) fn hold(&self) -> Held<'_> {
        let mut stage = self.stage();
        stage.catch_up();
        stage.tell_ends(Over::All);
        stage.holders += 1;
        if let Display::Live(live) = &mut stage.display {
            live.hold();
        }
        Held(self)
    }

    /// Prints a line that stays, whatever the display, behind what has happened before.
    pub(crate) fn print(&self, line: &str) {
        let stage = &mut *self.stage();
        stage.catch_up();
        stage.print(line);
        let now = stage.now();
        if let Display::Live(live) = &mut stage.display {
            live.draw(&stage.record, now);
        }
    }

    /// Has the display thread print a line that stays, as soon as it can. Never waits.
    pub(crate) fn announce(&self, line: String) {
        // Nobody holds this one while writing.
        self.announced.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        self.announced.bell.notify_one();
    }

    /// Takes the live lines away, for a program that ends at once: nothing is shown after this. Does
    /// nothing if somebody is drawing, and so waits for nobody.
    pub(crate) fn wipe(&self) {
        if let Ok(mut stage) = self.stage.try_lock() {
            if let Display::Live(live) = &mut stage.display {
                live.clear();
            }
            // Nobody has the stage from here on.
            std::mem::forget(stage);
        }
    }

    /// Whether it shows no progress.
    pub(crate) fn is_quiet(&self) -> bool {
        matches!(self.stage().display, Display::Nothing)
    }

    /// Whether the person has these words before them: they are what was said last.
    pub(crate) fn has_just_shown(&self, text: &str) -> bool {
        self.stage().speech.was_last(text)
    }

    /// Prints the timeline, the usage table and the last line, unless the display shows nothing.
    pub(crate) fn conclude(&self) {
        let stage = self.stage();
        // Of a run in which nothing came to life there is nothing to tell.
        if matches!(stage.display, Display::Nothing) || stage.record.instances().is_empty() {
            return;
        }
        let width = width();
        let mut lines = vec![String::new()];
        lines.extend(timeline(&stage.record, width, Charset::of_locale()));
        lines.push(String::new());
        lines.extend(usage::table(&stage.record, width));
        lines.push(String::new());
        lines.push(usage::summary(&stage.record, width));
        lines.iter().for_each(|line| print_plain(line));
    }

    /// What it cost so far, agent by agent.
    pub(crate) fn usage(&self) -> Vec<String> {
        let mut stage = self.stage();
        stage.catch_up();
        usage::table(&stage.record, width())
    }

    /// The hook that refused the last turn of an instance, and its point: of this one, else of the
    /// first one of this agent.
    pub(crate) fn denier(
        &self,
        id: Option<InstanceId>,
        agent: &str,
    ) -> Option<(String, &'static str)> {
        let stage = self.stage();
        let (hook, point) = stage.record.find(id, agent)?.denier.as_ref()?;
        Some((clean_line(hook), point.as_str()))
    }

    /// Where the last exception was raised in an instance, found in the same way: `file:line`.
    pub(crate) fn raised(&self, id: Option<InstanceId>, agent: &str) -> Option<String> {
        self.stage().record.find(id, agent)?.raised.clone()
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        // A panic while drawing must not stop a run; what is left of the display is good enough.
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps the screen quiet, for a question.
pub(crate) struct Held<'a>(&'a Screen);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let stage = &mut *self.0.stage();
        let now = stage.now();
        stage.holders = stage.holders.saturating_sub(1);
        if stage.holders > 0 {
            return;
        }
        stage.speech.release().iter().for_each(|said| stage.speech.print(said));
        match &mut stage.display {
            Display::Live(live) => live.release(&stage.record, now),
            Display::Lines(lines) => lines.held.drain(..).for_each(|line| print_plain(&line)),
            Display::Nothing => {}
        }
    }
}

impl Watch {
    /// Shows what is still waiting to be shown, and takes the live lines away.
    pub(crate) fn end(self) {
        self.over.notify_one();
        // If the thread panicked its message is on standard error already.
        drop(self.thread.join());
        let mut stage = self.screen.stage();
        stage.catch_up();
        stage.tell_ends(Over::All);
        if let Display::Live(live) = &mut stage.display {
            live.clear();
        }
    }
}

async fn show(screen: &Screen, mut bell: Subscriber, over: &Notify) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = over.notified() => return,
            // Before the bell, which may not stop ringing.
            _ = tick.tick() => screen.stage().tick(),
            rung = bell.recv() => match rung {
                Some(_) => screen.stage().catch_up_and_show(),
                None => return,
            },
            () = screen.announced.bell.notified() => screen.stage().catch_up_and_show(),
        }
    }
}

/// Which of those that are many are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    /// Those that nobody has joined for a while.
    Settled,
    /// All of whom nobody is left.
    All,
}

impl Stage {
    /// The time since the run began.
    fn now(&self) -> Duration {
        self.began.elapsed().unwrap_or_default()
    }

    /// Shows whatever waits to be shown.
    fn catch_up(&mut self) {
        while let Some(received) = self.waiting.as_mut().and_then(Subscriber::try_recv) {
            self.take(&received);
        }
        let announced = &self.announced.lines;
        let lines = std::mem::take(&mut *announced.lock().unwrap_or_else(PoisonError::into_inner));
        for line in lines {
            self.print(&line);
        }
    }

    /// Shows whatever waits, and draws if it is time to.
    fn catch_up_and_show(&mut self) {
        self.catch_up();
        let now = self.now();
        if let Display::Live(live) = &mut self.display {
            live.show(&self.record, now);
        }
    }

    /// Time has passed.
    fn tick(&mut self) {
        self.catch_up();
        self.tell_ends(Over::Settled);
        self.tell_progress();
        let now = self.now();
        if let Display::Live(live) = &mut self.display {
            live.draw(&self.record, now);
        }
    }

    /// Says what became of those that are many.
    fn tell_ends(&mut self, over: Over) {
        if over == Over::All {
            let repeated = self.repeats.end();
            repeated.iter().for_each(|line| self.print(line));
        }
        for group in self.record.groups.over(self.now(), over == Over::All) {
            if let Display::Lines(lines) = &mut self.display {
                lines.said.remove(&group.name);
            }
            if !matches!(self.display, Display::Nothing) {
                self.print(&Line::end_of(&group).render(columns()));
            }
        }
    }

    /// Says how far those are that are many, line by line and not too often.
    fn tell_progress(&mut self) {
        let now = self.now();
        let Display::Lines(lines) = &mut self.display else { return };
        let mut due = Vec::new();
        for group in self.record.groups.at_work().filter(|group| group.is_crowd()) {
            let alive = self.record.alive();
            let waits = |it: &Instance| it.is_waiting() && it.template() == group.name;
            let waiting = alive.filter(|(_, it)| waits(it)).count();
            let queue = Queue { waiting, to_start: self.record.to_start(group) };
            let counts = group.counts(queue);
            let is_due = lines
                .said
                .get(&group.name)
                .is_none_or(|(at, said)| now.saturating_sub(*at) >= PROGRESS && *said != counts);
            if is_due {
                lines.said.insert(group.name.clone(), (now, counts));
                due.push(Line::progress_of(group, queue, now).render(columns()));
            }
        }
        due.iter().for_each(|line| self.print(line));
    }

    fn print(&mut self, line: &str) {
        match &mut self.display {
            Display::Live(live) => live.print(line),
            Display::Lines(lines) if self.holders > 0 => lines.held.push(line.to_owned()),
            Display::Lines(_) | Display::Nothing => print_plain(line),
        }
    }

    fn take(&mut self, received: &Received) {
        match received {
            Received::Event(event) => self.take_event(event),
            Received::Missed(missed) => {
                self.record.missed += missed;
                if matches!(self.events, EventLines::Json) {
                    print_json(json!({ "type": "missed", "events": missed, "run": self.run }));
                }
            }
        }
    }

    /// Prints what somebody said, in its place among the lines of progress.
    fn speak(&mut self, said: Said) {
        if self.holders > 0 {
            return self.speech.hold(said);
        }
        if let Display::Live(live) = &mut self.display {
            live.clear();
        }
        self.speech.print(&said);
    }

    fn take_event(&mut self, event: &Event) {
        match self.events {
            EventLines::Json => print_json(event_json(event, self.run)),
            EventLines::Messages => {
                if let Some(said) = self.speech.take(event) {
                    self.speak(said);
                }
            }
            EventLines::Nothing => {}
        }
        let at = event.time.duration_since(self.began).unwrap_or_default();
        let happening = Happening::new(event, at);
        let took = self.record.note(happening);
        let line = line_of(happening, took, &self.record);
        let line = line.filter(|line| match self.display {
            Display::Nothing => false,
            Display::Lines(_) => !is_in_crowd(happening, line, &self.record),
            Display::Live(_) => {
                line.weight != Weight::Passing && !is_in_crowd(happening, line, &self.record)
            }
        });
        if ends_all(happening, &self.record) {
            self.tell_ends(Over::All);
        }
        if let Some(line) = line.filter(|line| self.repeats.is_told(happening.kind, line)) {
            self.print(&line.render(columns()));
        }
    }
}

fn event_json(event: &Event, run: Option<RunId>) -> Value {
    let mut value = serde_json::to_value(event).unwrap_or_else(|error| {
        // Nothing in an event can fail to serialise; if it ever does, the reader is told.
        json!({ "error": error.to_string() })
    });
    durations_in_millis(&mut value["data"]);
    value["type"] = "event".into();
    value["name"] = event.name().into();
    value["time"] = rfc3339(event.time).into();
    if let Some(run) = run {
        value["run"] = json!(run);
    }
    value
}

/// Durations as programs read them: `took` of seconds and nanoseconds becomes `took_ms`.
fn durations_in_millis(data: &mut Value) {
    let Some(fields) = data.as_object_mut() else { return };
    let millis = |value: &Value| {
        let parts = value.as_object().filter(|parts| parts.len() == 2)?;
        let (secs, nanos) = (parts.get("secs")?.as_f64()?, parts.get("nanos")?.as_f64()?);
        Some(secs * 1e3 + nanos / 1e6)
    };
    let found = fields.iter().filter_map(|(name, value)| Some((name.clone(), millis(value)?)));
    for (name, millis) in found.collect::<Vec<_>>() {
        fields.remove(&name);
        fields.insert(format!("{name}_ms"), millis.into());
    }
}
