use super::{BlobId, Content, Media, Part, Thinking};
use serde_json::json;
use std::sync::Arc;

fn mixed() -> Content {
    vec![
        Part::from("look: "),
        Media::new("image/png", *b"bytes").named("cat.png").into(),
        Thinking::new("a cat", Some(json!({ "sig": 1 }))).into(),
        Part::Json(Arc::new(json!({ "a": 1 }))),
        Part::from("!"),
    ]
    .into()
}

#[test]
fn a_content_has_the_size_of_a_text() {
    assert_eq!(size_of::<Content>(), size_of::<String>());
    assert_eq!(size_of::<Part>(), size_of::<String>());
}

#[test]
fn text_is_serialised_as_it_always_was() {
    let text = Content::from("hello");
    assert_eq!(serde_json::to_value(&text).expect("it is JSON"), json!("hello"));
    let read: Content = serde_json::from_value(json!("hello")).expect("a text");
    assert_eq!(read, text);
    let one: Content =
        serde_json::from_value(json!([{ "type": "text", "text": "hello" }])).expect("one part");
    assert_eq!(one, text);
    assert!(one.is_text());
}

#[test]
fn parts_are_read_back_with_media_by_its_hash() {
    let id = BlobId::of(b"bytes");
    let value = serde_json::to_value(mixed()).expect("it is JSON");
    assert_eq!(
        value,
        json!([
            { "type": "text", "text": "look: " },
            {
                "type": "media", "mime": "image/png", "name": "cat.png",
                "blob": id.to_string(), "size": 5,
            },
            { "type": "thinking", "text": "a cat", "signature": { "sig": 1 } },
            { "type": "json", "value": { "a": 1 } },
            { "type": "text", "text": "!" },
        ])
    );
    let read: Content = serde_json::from_value(value).expect("parts");
    assert_eq!(read, mixed());
    let media = read.media().next().expect("a picture");
    assert_eq!((media.bytes(), media.id()), (None, Some(id)));
}

#[test]
fn media_needs_one_source() {
    for wrong in [
        json!({ "type": "media", "mime": "image/png" }),
        json!({ "type": "media", "mime": "image/png", "blob": "ab", "size": 1 }),
        json!({ "type": "media", "mime": "image/png", "blob": BlobId::of(b"").to_string() }),
    ] {
        assert!(serde_json::from_value::<Part>(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn text_is_of_all_parts_that_can_be_read() {
    assert_eq!(mixed().text(), r#"look: {"a":1}!"#);
    assert_eq!(
        mixed().to_string(),
        "look: \n[cat.png, image/png, 5 bytes]\n[thinking]\n{\"a\":1}\n!"
    );
}

#[test]
fn a_new_text_leaves_the_other_parts() {
    let mut content = mixed();
    content.set_text("it is a cat");
    assert_eq!(content.text(), "it is a cat");
    assert_eq!(content.parts().len(), 3);
    assert_eq!(content.media().count(), 1);

    let mut picture = Content::from(Media::at_url("image/png", "https://example.com/cat.png"));
    picture.set_text("a cat");
    assert_eq!(picture.text(), "a cat");
    assert_eq!(picture.media().count(), 1);

    let mut plain = Content::from("one");
    plain.set_text("two");
    assert_eq!(plain, "two");
}

#[test]
fn texts_are_edited_one_by_one() {
    let mut content = mixed();
    assert_eq!(content.edit_texts(|text| text.strip_suffix(": ").map(str::to_owned)), 1);
    assert_eq!(content.text(), r#"look{"a":1}!"#);
    assert_eq!(content.edit_texts(|_| None), 0);
}

#[test]
fn a_push_keeps_text_plain_and_the_order_of_parts() {
    let mut content = Content::new();
    content.push("a");
    content.push("b");
    assert_eq!(content, "ab");
    assert!(content.is_text());
    content.push(Media::new("image/png", *b"x"));
    content.push("c");
    assert_eq!(content.text(), "abc");
    assert_eq!(content.parts().len(), 3);
}

#[test]
fn a_blob_id_is_written_and_read() {
    let id = BlobId::of(b"");
    let written = id.to_string();
    assert!(written.starts_with("e3b0c44298fc1c14"), "{written}");
    assert_eq!(written.parse::<BlobId>().expect("an id"), id);
    for wrong in ["", "e3b0", &written.to_uppercase(), &format!("{written}0")] {
        assert!(wrong.parse::<BlobId>().is_err(), "{wrong}");
    }
}
