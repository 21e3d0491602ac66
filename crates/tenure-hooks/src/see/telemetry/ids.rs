//! Where a span stands: its trace, itself, and what it is part of.

use opentelemetry::trace::{SpanId, TraceId};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tenure_core::RunId;
use tenure_core::context::{Cx, ExecutionContext};

/// A span, as those within it know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) trace: Trace,
    pub(super) span: SpanId,
    /// Whether it is exported.
    pub(super) sampled: bool,
    /// Whether it is another process's.
    pub(super) remote: bool,
}

/// The trace that a span is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trace {
    Is(TraceId),
    /// It is called after this run. Its id is found when it is written.
    Of(RunId),
}

impl Trace {
    /// The trace of something in a context, in a run of an instance.
    pub(super) fn of(cx: &Cx<'_>, run: Option<RunId>) -> Self {
        match (cx.context(), run) {
            (Some(context), _) => Self::Is(trace_id(context.trace_id())),
            (None, Some(run)) => Self::Of(run),
            (None, None) => Self::Is(trace_id(&cx.trace_id())),
        }
    }

    pub(super) fn id(self) -> TraceId {
        match self {
            Self::Is(id) => id,
            Self::Of(run) => trace_id(&run.to_string()),
        }
    }
}

impl Place {
    /// A new span within this one.
    pub(super) fn child(self) -> Self {
        Self { span: new_span_id(), remote: false, ..self }
    }

    /// A new span that begins a trace.
    pub(super) fn root(trace: Trace, share: f64) -> Self {
        let sampled = share >= 1.0 || is_sampled(trace.id(), share);
        Self { trace, span: new_span_id(), sampled, remote: false }
    }

    /// The span that a request came from, by the W3C header `traceparent` in the metadata of its
    /// context.
    pub(super) fn incoming(context: &ExecutionContext) -> Option<Self> {
        let header = context.metadata().get("traceparent")?.as_str()?;
        let mut parts = header.trim().split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        let is_hex = |text: &str, digits| {
            text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let is_one =
            is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
        if !is_one || version == "ff" || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
        let sampled = u8::from_str_radix(flags, 16).ok()? & 1 == 1;
        let is_valid = trace != TraceId::INVALID && span != SpanId::INVALID;
        is_valid.then_some(Self { trace: Trace::Is(trace), span, sampled, remote: true })
    }
}

/// What a tool call is, for the agents that it runs: their turns are part of it.
#[derive(Clone)]
pub(super) struct Within {
    pub(super) place: Place,
    pub(super) chat: Option<Arc<str>>,
}

tokio::task_local! {
    pub(super) static WITHIN: Within;
}

fn new_span_id() -> SpanId {
    loop {
        let id = RandomIdGenerator::default().new_span_id();
        if id != SpanId::INVALID {
            return id;
        }
    }
}

/// The trace id that a trace's name means, the same wherever it is asked: it itself if it is one, else
/// one that is made of it.
fn trace_id(name: &str) -> TraceId {
    if name.len() == 32
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        && let Ok(id) = TraceId::from_hex(name)
        && id != TraceId::INVALID
    {
        return id;
    }
    // The form that ids have here: unique already, and cheaper than a hash.
    let own = name.split_once('-').and_then(|(process, number)| {
        let process = u64::from_str_radix(process, 16).ok().filter(|process| *process != 0)?;
        let number = u64::from_str_radix(number, 16).ok()?;
        Some((u128::from(process) << 64) | u128::from(spread(number)))
    });
    let id = own.unwrap_or_else(|| {
        let hash = Sha256::digest(name.as_bytes());
        hash.iter().take(16).fold(0, |id, byte| (id << 8) | u128::from(*byte))
    });
    TraceId::from(id.max(1))
}

/// Another number for each number, with bits that look like chance: samplers look at the lower ones.
fn spread(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Whether a trace is among the share that is exported. Everybody who uses the lower half of a trace
/// id for this comes to the same answer.
fn is_sampled(trace: TraceId, share: f64) -> bool {
    if share >= 1.0 {
        return true;
    }
    let bytes = trace.to_bytes();
    let lower = bytes[8..].iter().fold(0u64, |bits, byte| (bits << 8) | u64::from(*byte));
    ((lower >> 1) as f64) < share * (1u64 << 63) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(header: &str) -> Option<Place> {
        Place::incoming(&ExecutionContext::unique().with_metadata("traceparent", header))
    }

    #[test]
    fn a_header_is_read_by_its_standard() {
        let place = from("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        assert_eq!(format!("{:032x}", place.trace.id()), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(format!("{:016x}", place.span), "b7ad6b7169203331");
        assert!(place.sampled && place.remote);
        let place = from("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00").unwrap();
        assert!(!place.sampled);
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-0af7651916cd43dd8448eb211c8031ZZ-b7ad6b7169203331-01",
        ] {
            assert_eq!(from(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_trace_has_one_id_wherever_it_is_asked_for() {
        let hex = "0af7651916cd43dd8448eb211c80319c";
        assert_eq!(format!("{:032x}", trace_id(hex)), hex);
        for name in ["request 7", "6919c0de00000001-1f", "", "00000000000000000000000000000000"] {
            assert_eq!(trace_id(name), trace_id(name));
            assert_ne!(trace_id(name), TraceId::INVALID, "{name}");
        }
        assert_ne!(trace_id("6919c0de00000001-1f"), trace_id("6919c0de00000001-20"));
        let run = RunId::unique();
        assert_eq!(Trace::Of(run).id(), trace_id(&run.to_string()));
    }

    #[test]
    fn a_share_of_the_traces_is_sampled() {
        let sampled = |share| {
            let ids = (0..4000u64).map(|number| trace_id(&format!("6919c0de00000001-{number:x}")));
            ids.filter(|id| is_sampled(*id, share)).count()
        };
        assert_eq!((sampled(1.0), sampled(0.0)), (4000, 0));
        let quarter = sampled(0.25);
        assert!((850..1150).contains(&quarter), "{quarter}");
    }
}
