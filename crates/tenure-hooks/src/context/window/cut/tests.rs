use super::super::summary;
use super::*;
use proptest::prelude::*;
use tenure_core::message::{HistoryDefect, ToolCall, ToolResult, ToolStatus};

fn call(ids: &[usize]) -> Message {
    let calls = ids.iter().map(|id| ToolCall::new(id.to_string(), "look", "{}")).collect();
    Message::Assistant { content: "".into(), calls }
}

fn result(id: usize) -> Message {
    Message::Tool(ToolResult {
        call_id: id.to_string().into(),
        name: "look".into(),
        content: "found".into(),
        status: ToolStatus::Ok,
    })
}

const PLENTY: Wanted =
    Wanted { room: u64::MAX, reserve: 0, keep: Keep::Messages(usize::MAX), pin_first: false };

/// Which messages stay, by their place.
fn kept(messages: &[Message], counts: &[u64], wanted: Wanted) -> Vec<usize> {
    let units = units(messages, counts);
    let cut = cut(&units, wanted).expect("it fits");
    cut.kept().flat_map(|at| units[at].messages.clone()).collect()
}

#[test]
fn a_call_and_all_its_results_are_one_unit() {
    let messages =
        [Message::user("a"), call(&[1, 2]), result(2), result(1), Message::assistant("b")];
    let units = units(&messages, &[1, 2, 3, 4, 5]);
    let spans: Vec<_> = units.iter().map(|unit| (unit.messages.clone(), unit.tokens)).collect();
    assert_eq!(spans, [(0..1, 1), (1..4, 9), (4..5, 5)]);
}

#[test]
fn the_end_is_kept_as_far_as_wanted_and_as_there_is_room() {
    let messages: Vec<_> = (0..10)
        .map(|at| if at % 2 == 0 { Message::user("q") } else { Message::assistant("a") })
        .chain([Message::user("last")])
        .collect();
    let counts = [10; 11];
    let all: Vec<usize> = (0..11).collect();
    assert_eq!(kept(&messages, &counts, PLENTY), all);
    let four = Wanted { keep: Keep::Messages(4), ..PLENTY };
    assert_eq!(kept(&messages, &counts, four), [8, 9, 10], "it does not begin with an answer");
    let five = Wanted { keep: Keep::Messages(5), ..PLENTY };
    assert_eq!(kept(&messages, &counts, five), [6, 7, 8, 9, 10]);
    let tokens = Wanted { keep: Keep::Tokens(35), ..PLENTY };
    assert_eq!(kept(&messages, &counts, tokens), [8, 9, 10]);
    assert_eq!(kept(&messages, &counts, Wanted { room: 59, ..PLENTY }), [6, 7, 8, 9, 10]);
    let pinned = Wanted { room: 45, pin_first: true, ..PLENTY };
    assert_eq!(kept(&messages, &counts, pinned), [0, 8, 9, 10]);
    let summarised = Wanted { room: 59, reserve: 20, ..PLENTY };
    assert_eq!(kept(&messages, &counts, summarised), [8, 9, 10]);
    let units = units(&messages, &counts);
    let too_much = cut(&units, Wanted { room: 9, ..PLENTY }).expect_err("it does not fit");
    assert_eq!((too_much.needed, too_much.cut.tail), (10, vec![10]));
}

#[test]
fn what_is_being_asked_stays_however_long_ago_it_was_said() {
    let mut messages = vec![Message::user("old"), Message::assistant("old"), Message::user("task")];
    for id in 0..20 {
        messages.extend([call(&[id]), result(id)]);
    }
    let counts = vec![10; messages.len()];
    let wanted = Wanted { keep: Keep::Messages(3), ..PLENTY };
    assert_eq!(kept(&messages, &counts, wanted), [2, 39, 40, 41, 42]);
    // A summary is not what is being asked, though it stands there as if the user had said it.
    messages.insert(3, summary::message("much was done"));
    let counts = vec![10; messages.len()];
    let wanted = Wanted { room: 35, ..wanted };
    assert_eq!(kept(&messages, &counts, wanted), [2, 42, 43]);
}

/// Conversations that are valid, with a price for each message.
pub(in crate::context) fn conversations() -> impl Strategy<Value = (Vec<Message>, Vec<u64>)> {
    let exchange = prop_oneof![
        2 => Just((0u8, 0usize)),
        2 => Just((1, 0)),
        1 => Just((2, 0)),
        1 => Just((3, 0)),
        3 => (Just(4u8), 1usize..4),
    ];
    let all = proptest::collection::vec((exchange, 1u64..50), 0..30);
    all.prop_map(|exchanges| {
        let mut messages = Vec::new();
        let mut next = 0;
        for ((kind, calls), _) in &exchanges {
            match kind {
                0 => messages.push(Message::user("asks")),
                1 => messages.push(Message::assistant("says")),
                2 => messages.push(Message::system("rules")),
                3 => messages.push(summary::message("all that was")),
                _ => {
                    let ids: Vec<usize> = (next..next + calls).collect();
                    next += calls;
                    messages.push(call(&ids));
                    messages.extend(ids.into_iter().rev().map(result));
                }
            }
        }
        let prices = exchanges.iter().map(|(_, price)| *price).cycle();
        let counts = prices.take(messages.len()).collect();
        (messages, counts)
    })
}

proptest! {
    #[test]
    fn whatever_is_cut_stays_valid_within_its_room_and_has_the_newest(
        (messages, counts) in conversations(),
        room in 1u64..400,
        reserve in prop_oneof![Just(0u64), 1u64..100],
        keep in prop_oneof![(1usize..20).prop_map(Keep::Messages), (1u64..200).prop_map(Keep::Tokens)],
        pin_first: bool,
    ) {
        prop_assume!(!messages.is_empty());
        prop_assert_eq!(HistoryDefect::find(&messages), None);
        let units = units(&messages, &counts);
        let wanted = Wanted { room, reserve, keep, pin_first };
        let (made, fits) = match cut(&units, wanted) {
            Ok(made) => (made, true),
            Err(too_much) => {
                prop_assert!(too_much.needed > room);
                prop_assert_eq!(too_much.cut.tokens(&units), too_much.needed);
                (too_much.cut, false)
            }
        };
        let places: Vec<usize> = made.kept().flat_map(|at| units[at].messages.clone()).collect();
        prop_assert!(places.is_sorted());
        prop_assert_eq!(places.last(), Some(&(messages.len() - 1)), "the newest stays");
        let left: Vec<&Message> = places.iter().map(|at| &messages[*at]).collect();
        prop_assert_eq!(HistoryDefect::find(left.iter().copied()), None);
        let asked = |it: &&Message| matches!(it, Message::User { .. }) && !summary::is_summary(it);
        if let Some(last) = messages.iter().rposition(|it| asked(&it)) {
            prop_assert!(places.contains(&last), "what is asked stays");
            let opens = left.iter().find(|it| !matches!(it, Message::System { .. }));
            let is_open = matches!(opens, Some(Message::User { .. }));
            prop_assert!(is_open || reserve > 0 || made.gone.is_empty() || !fits);
        }
        if fits {
            prop_assert!(made.tokens(&units) <= room);
        }
        let mut every: Vec<usize> = made.kept().chain(made.gone.iter().copied()).collect();
        every.sort_unstable();
        prop_assert_eq!(every, (0..units.len()).collect::<Vec<_>>(), "nothing is lost or twice");
    }
}
