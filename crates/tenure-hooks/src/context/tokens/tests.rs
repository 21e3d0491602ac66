use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tenure_core::message::{History, ToolCall};

/// A counter of words that says how often it was asked.
fn counting() -> (Counter, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let seen = asked.clone();
    let count = move |text: &str| {
        seen.fetch_add(1, Ordering::Relaxed);
        text.split_whitespace().count() as u64
    };
    (Counter::by(Arc::new(count)), asked)
}

#[tokio::test]
async fn only_what_is_new_is_counted() {
    let (counter, asked) = counting();
    let mut history: History =
        (0..50).map(|number| Message::user(format!("this is message {number}"))).collect();
    let first = counter.messages(&history.clone().into()).await;
    assert_eq!((first.len(), first[0]), (50, 4 + PER_MESSAGE));
    assert_eq!(asked.load(Ordering::Relaxed), 50);
    history.push(Message::user("one more"));
    let second = counter.messages(&history.clone().into()).await;
    assert_eq!((&second[..50], second[50]), (&first[..], 2 + PER_MESSAGE));
    assert_eq!(asked.load(Ordering::Relaxed), 51);
    // The same texts in an edited copy are known, too.
    let edited: Vec<Message> = history.iter().skip(20).cloned().collect();
    assert_eq!(counter.messages(&edited.into()).await, second[20..]);
    assert_eq!(asked.load(Ordering::Relaxed), 51);
}

#[tokio::test]
async fn instruction_calls_and_tools_are_part_of_a_request() {
    let (counter, asked) = counting();
    let calls = vec![ToolCall::new("1", "look up", "{ \"a\": 1 }")];
    let mut request = ModelRequest::new(vec![Message::Assistant { content: "so".into(), calls }]);
    let counted = counter.request(&request).await;
    let of_message = PER_MESSAGE + 1 + PER_CALL + 2 + 4;
    assert_eq!(counted, Counted { fixed: ANSWER, messages: vec![of_message] });
    request.instruction = Some("be brief".into());
    let tool = ToolSpec::new("clock", "says the time").parameters(serde_json::json!({}));
    request.tools = [Arc::new(tool)].into();
    let counted = counter.request(&request).await;
    let fixed = ANSWER + PER_MESSAGE + 2 + ALL_TOOLS + PER_TOOL + 5;
    assert_eq!((counted.fixed, counted.total()), (fixed, fixed + of_message));
    let before = asked.load(Ordering::Relaxed);
    assert_eq!(counter.request(&request).await, counted);
    assert_eq!(asked.load(Ordering::Relaxed), before, "nothing of it is new");
}

#[test]
fn what_is_not_asked_for_is_forgotten_and_what_is_asked_for_stays() {
    let mut known = Known::default();
    known.keep(1, 11);
    for print in 2..(3 * REMEMBERED as u64) {
        known.keep(print, print);
        if print % 1000 == 0 {
            assert_eq!(known.find(1), Some(11));
        }
    }
    assert_eq!(known.find(2), None);
    assert!(known.new.len() + known.old.len() <= 2 * REMEMBERED + 1);
}

#[tokio::test]
async fn an_approximate_count_is_a_quarter_of_the_characters() {
    let counter = Counter::new(Encoding::Approximate);
    assert!(counter.is_loaded());
    assert_eq!(counter.text(""), 0);
    assert_eq!(counter.text("12345"), 2);
    assert_eq!(counter.text("äöüß"), 1, "characters, and not bytes");
}

#[cfg(feature = "tokens")]
mod encodings {
    use super::*;

    #[tokio::test]
    async fn texts_have_as_many_tokens_as_their_models_say() {
        // By OpenAI's own tokenizer.
        let table = [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("antidisestablishmentarianism", 6, 6),
            ("お誕生日おめでとう", 8, 9),
            ("<|endoftext|>", 7, 7),
        ];
        let (new, old) = (Counter::new(Encoding::O200kBase), Counter::new(Encoding::Cl100kBase));
        new.load().await;
        old.load().await;
        assert!(new.is_loaded() && old.is_loaded());
        for (text, by_new, by_old) in table {
            assert_eq!((new.text(text), old.text(text)), (by_new, by_old), "{text}");
        }
    }

    #[tokio::test]
    async fn a_text_of_any_kind_is_counted_in_time_that_grows_with_its_length_only() {
        let counter = Counter::new(Encoding::O200kBase);
        counter.load().await;
        let long = 400_000;
        for text in [
            "a".repeat(long),
            " ".repeat(long),
            "\u{1F600}".repeat(long / 4),
            "a b".repeat(long / 3),
        ] {
            let started = Instant::now();
            let count = counter.messages(&vec![Message::user(text)].into()).await[0];
            assert!(count > 1000, "{count}");
            assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
        }
    }

    #[tokio::test]
    async fn long_texts_are_counted_in_pieces_that_make_little_difference() {
        let counter = Counter::new(Encoding::O200kBase);
        counter.load().await;
        let sentence = "The quick brown fox jumps over the lazy dog, again and again. ";
        let one = counter.text(sentence);
        let many = counter.text(&sentence.repeat(2_000));
        assert!(many.abs_diff(one * 2_000) <= 2_000, "{one} and {many}");
    }

    #[tokio::test]
    async fn the_next_step_of_a_long_conversation_takes_a_fraction_of_the_first() {
        let counter = Counter::new(Encoding::O200kBase);
        let started = Instant::now();
        counter.load().await;
        let loaded = started.elapsed();
        let sentence = "The quick brown fox jumps over the lazy dog, and the dog does not mind. ";
        let text = |number: usize| format!("{number}: {}", sentence.repeat(10));
        let mut history: History = (0..200).map(|number| Message::user(text(number))).collect();
        let started = Instant::now();
        let first = counter.messages(&history.clone().into()).await;
        let at_first = started.elapsed();
        history.push(Message::user(text(200)));
        let started = Instant::now();
        let next = counter.messages(&history.clone().into()).await;
        let later = started.elapsed();
        assert_eq!((first.len(), &next[..200]), (200, &first[..]));
        assert!(later < at_first / 4, "{later:?} after {at_first:?}");
        let sum: u64 = next.iter().sum();
        println!("loading {loaded:?}, {sum} tokens at first {at_first:?}, then {later:?}");
    }
}
