//! Each kind of handoff.

use crate::routing::support::*;
use serde_json::json;
use tenure_core::ask::{Answer, PendingAsk};
use tenure_flow::route::handoff::{Condition, HandoffRule, Handoffs, ModelCondition};
use tenure_flow::route::{Pattern, Routing, Selector, Target};
use tenure_flow::{ChatReport, ChatStatus, FlowBuilder, StartupMode};
use tenure_testkit::Recorder;

fn answers(text: &'static str) -> impl Fn(&PendingAsk) -> Option<Answer> {
    move |_| Some(Answer::Respond(text.to_owned()))
}

async fn run(flow: FlowBuilder, rules: impl Into<Vec<HandoffRule>>) -> ChatReport {
    let flow = flow.router(Handoffs::new(rules.into())).build().expect("a flow");
    flow.chat().message("go").run().await
}

#[tokio::test]
async fn after_work_goes_to_its_target_and_the_last_one_counts() {
    let rules =
        [after("a", "c"), after("a", "b").described("the short way"), after("b", "terminate")];
    let report = run(cast(&["a", "b", "c"]), rules).await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(chosen(&report), ["a", "b", "terminate"]);
    assert_eq!(reason(&report, 0), "it is the initial agent");
    assert_eq!(reason(&report, 1), "handoff 2, \"the short way\": after `a` comes `b`");
    assert_eq!(reason(&report, 2), "handoff 3: after `b` comes `terminate`");
}

#[tokio::test]
async fn expressions_are_tried_in_order_and_ahead_of_after_work() {
    let rules = || {
        [
            after("a", "d"),
            when("a", "b", "${stage} == 'second' and not ${stopped}"),
            when("a", "c", "${stage} != None or ${stopped} == True"),
            after("b", "end"),
            after("c", "end"),
            after("d", "end"),
        ]
    };
    let names = ["a", "b", "c", "d"];
    for (stage, stopped, expected) in [
        (json!("second"), json!(false), "b"),
        (json!("second"), json!(true), "c"),
        (json!("first"), json!(false), "c"),
        (json!(null), json!(false), "d"),
    ] {
        let flow = cast(&names).router(Handoffs::new(rules())).build().expect("a flow");
        let chat = flow.chat().variable("stage", stage.clone()).variable("stopped", stopped);
        let report = chat.run().await;
        assert_eq!(chosen(&report), ["a", expected, "terminate"], "{stage}");
        assert_eq!(report.routing[1].fallback.as_deref(), (expected != "d").then_some("d"));
    }
}

#[tokio::test]
async fn a_reason_says_which_rule_and_which_values() {
    let rules = [
        after("a", "b"),
        when("a", "c", "${score} > 2 and 'x' in ${tags}").described("good enough"),
        after("c", "stop"),
    ];
    let flow = cast(&["a", "b", "c"]).router(Handoffs::new(rules)).build().expect("a flow");
    let chat = flow.chat().variable("score", 3).variable("tags", json!(["x", "y"]));
    let report = chat.run().await;
    assert_eq!(
        reason(&report, 1),
        "handoff 2, \"good enough\": `${score} > 2 and 'x' in ${tags}` holds after `a` (score is \
         3, tags is [\"x\",\"y\"])"
    );
    assert_eq!(
        report.routing[1].metadata,
        json!({ "rule": 2, "variables": { "score": 3, "tags": ["x", "y"] } })
    );
}

#[tokio::test]
async fn conditions_see_what_a_turn_has_just_changed() {
    let a = speaker("a").with_lifecycle(sets([json!({ "round": 1 }), json!({ "round": 2 })]));
    let flow = cast(&[]).agent(built(a)).agent(built(speaker("b")));
    let rules = [when("a", "terminate", "${round} >= 2"), after("a", "b"), after("b", "a")];
    let report = run(flow, rules).await;
    assert_eq!(chosen(&report), ["a", "b", "a", "terminate"]);
}

#[tokio::test]
async fn a_condition_that_cannot_be_evaluated_does_not_hold_and_is_reported() {
    let (bus, recorder) = Recorder::with_bus();
    let rules = [
        when("a", "c", "${nowhere} == 1"),
        when("a", "c", "${word} < 3"),
        when("a", "c", "${word}.length.x == 3"),
        after("a", "b"),
        after("b", "end"),
    ];
    let flow = cast(&["a", "b", "c"]).events(&bus).router(Handoffs::new(rules));
    let flow = flow.build().expect("a flow");
    let report = flow.chat().variable("word", "three").run().await;
    assert_eq!(report.status, ChatStatus::Completed);
    assert_eq!(chosen(&report), ["a", "b", "terminate"]);
    let errors: Vec<_> =
        recorder.events().into_iter().filter(|it| it.name() == "handoff.error").collect();
    let of = |number: u64| {
        let mut of = errors.iter().map(|it| said(it)).filter(|it| it["rule"] == number);
        of.next().unwrap_or_else(|| panic!("an error of rule {number}: {errors:?}"))
    };
    assert_eq!(
        of(1),
        json!({
            "rule": 1,
            "source": "a",
            "target": "c",
            "condition": "${nowhere} == 1",
            "error": "`nowhere` is not a variable that handoffs see; declare it",
        })
    );
    assert_eq!(of(3)["condition"], "${word}.length.x == 3");
}

#[tokio::test]
async fn conditions_see_declared_variables_and_the_systems_and_no_others() {
    let handoffs = |declared: &[&'static str]| {
        let rules = [
            when("a", "b", "${scratch} == 1"),
            when("a", "c", "${unset} == None and ${workflow_name} == 'stage'"),
            after("b", "end"),
            after("c", "end"),
        ];
        Handoffs::new(rules).declared(declared.iter().copied())
    };
    for (declared, expected) in [(&["unset"][..], "c"), (&["unset", "scratch"], "b")] {
        let flow = cast(&["a", "b", "c"]).router(handoffs(declared)).build().expect("a flow");
        let report = flow.chat().variable("scratch", 1).run().await;
        assert_eq!(chosen(&report), ["a", expected, "terminate"], "{declared:?}");
    }
}

#[tokio::test]
async fn a_model_judges_conditions_in_one_question_and_in_order() {
    let (model, asked) = questions(&["2", "none"]);
    let rules = [
        judged("a", "c", "the user is angry"),
        judged("a", "b", "the user wants a ${what}"),
        after("a", "end"),
        after("b", "a"),
    ];
    let router = Handoffs::new(rules).selector(Selector::new(SELECTOR));
    let flow = cast(&["a", "b", "c"]).helper(selector(model)).router(router).build();
    let flow = flow.expect("a flow");
    let report = flow.chat().message("hello").variable("what", "refund").run().await;
    assert_eq!(chosen(&report), ["a", "b", "a", "terminate"]);
    assert_eq!(
        reason(&report, 1),
        "handoff 2: the model finds that `the user wants a ${what}` holds after `a` (what is \
         \"refund\")"
    );
    let asked = asked.lock().expect("no test failed");
    assert_eq!(
        asked[0],
        "Which of these statements is true now?\n1. the user is angry\n2. the user wants a \
         refund\n\nThe conversation so far:\n[user] hello\n[a] a\n\nAnswer with the number of the \
         first statement that is true, or with `none` if none of them is. Answer nothing else."
    );
    assert_eq!(asked.len(), 2);
}

#[tokio::test]
async fn conditions_of_both_kinds_keep_their_order() {
    let rules = || {
        [
            when("a", "b", "${first}"),
            judged("a", "c", "it rains"),
            when("a", "d", "${second}"),
            judged("a", "e", "it snows"),
            after("a", "end"),
        ]
    };
    let cases: [(bool, bool, &[&'static str], &str); 5] = [
        // Not even asked: the first one holds.
        (true, true, &[], "b"),
        (false, true, &["1"], "c"),
        (false, true, &["2"], "d"),
        (false, false, &["2"], "e"),
        (false, false, &["none"], "terminate"),
    ];
    for (first, second, script, expected) in cases {
        let (model, asked) = questions(script);
        let router = Handoffs::new(rules()).selector(Selector::new(SELECTOR));
        let flow = cast(&["a", "b", "c", "d", "e"]).helper(selector(model)).router(router);
        let flow = flow.build().expect("a flow");
        let report = flow.chat().variable("first", first).variable("second", second).run().await;
        assert_eq!(chosen(&report)[1], expected, "{first} {second} {script:?}");
        assert_eq!(asked.lock().expect("no test failed").len(), script.len());
    }
}

#[tokio::test]
async fn a_model_that_talks_nonsense_is_asked_three_times_and_then_nothing_holds() {
    let (bus, recorder) = Recorder::with_bus();
    let (model, asked) = questions(&["maybe", "7", "1 and 2"]);
    let rules = [judged("a", "b", "it rains"), judged("a", "b", "it snows"), after("a", "c")];
    let rules = rules.into_iter().chain([after("c", "end")]);
    let router = Handoffs::new(rules).selector(Selector::new(SELECTOR));
    let flow = cast(&["a", "b", "c"]).helper(selector(model)).router(router).events(&bus);
    let report = flow.build().expect("a flow").run("hello").await;
    assert_eq!(chosen(&report), ["a", "c", "terminate"]);
    let asked = asked.lock().expect("no test failed");
    assert!(
        asked[1]
            .ends_with("You answered \"maybe\" before, but that is neither a number nor `none`.")
    );
    assert!(
        asked[2].ends_with("You answered \"7\" before, but there is no statement 7, only 1 to 2.")
    );
    let errors: Vec<_> =
        recorder.events().into_iter().filter(|it| it.name() == "handoff.error").collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(
        said(&errors[0])["error"],
        "the model said \"1 and 2\" (3 answers), but that says more than one thing"
    );
}

#[tokio::test]
async fn a_condition_before_the_reply_sends_the_turn_elsewhere_without_a_reply() {
    let rules = [
        after("a", "b"),
        before("b", "c", "${skip_b} == True").described("b is not needed"),
        before("c", "d", "${skip_c}"),
        after("d", "end"),
    ];
    let flow = cast(&["a", "b", "c", "d"]).router(Handoffs::new(rules)).build().expect("a flow");
    let report = flow.chat().variable("skip_b", true).variable("skip_c", true).run().await;
    assert_eq!(chosen(&report), ["a", "d", "terminate"]);
    let spoke: Vec<_> = report.turn_summaries.iter().map(|it| &*it.agent).collect();
    assert_eq!(spoke, ["a", "d"]);
    assert_eq!(
        reason(&report, 1),
        "handoff 3: `${skip_c}` holds before `c` replies (skip_c is true)"
    );
    assert_eq!(
        report.routing[1].metadata["instead_of"],
        json!([
            { "target": "b", "reason": "handoff 1: after `a` comes `b`" },
            {
                "target": "c",
                "reason": "handoff 2, \"b is not needed\": `${skip_b} == True` holds before `b` \
                           replies (skip_b is true)"
            },
        ])
    );
    let report = flow.chat().variable("skip_b", false).variable("skip_c", true).run().await;
    assert_eq!(chosen(&report), ["a", "b", "terminate"], "no rule follows b: complete");
}

#[tokio::test]
async fn a_circle_before_replies_is_an_error_that_names_the_agents() {
    let rules = [before("a", "b", "${x}"), before("b", "a", "${x}")];
    let flow = cast(&["a", "b"]).router(Handoffs::new(rules)).build().expect("a flow");
    let report = flow.chat().variable("x", 1).run().await;
    assert_eq!(report.status, ChatStatus::Failed);
    assert_eq!(report.turns, 0);
    let error = report.error.expect("an error").to_string();
    assert!(
        error.contains("go in a circle, so that nobody replies: `a` -> `b` -> `a`; change"),
        "{error}"
    );
    let report = flow.chat().variable("x", 0).run().await;
    assert_eq!(chosen(&report), ["a", "terminate"]);
}

#[tokio::test]
async fn what_no_rule_speaks_of_ends_the_chat_or_goes_to_the_person() {
    let report = run(cast(&["a", "b"]), []).await;
    assert_eq!(chosen(&report), ["a", "terminate"]);
    assert_eq!(reason(&report, 1), "no handoff follows `a`: the chat is complete");

    let person = || cast(&["a", "b"]).user(true).on_ask(answers("well"));
    let report = run(person().max_turns(2), []).await;
    // The one that the person answered speaks again.
    assert_eq!(chosen(&report), ["a", "user", "a", "user", "a"]);
    assert_eq!(reason(&report, 1), "no handoff follows `a`: it goes to `user`");
    assert_eq!(reason(&report, 2), "the user has answered this agent");

    let router = Handoffs::new([]).otherwise(Target::End);
    let report = person().router(router).build().expect("a flow").run("go").await;
    assert_eq!(chosen(&report), ["a", "terminate"]);
}

#[tokio::test]
async fn rules_of_the_user_decide_what_follows_their_turn() {
    let rules = [
        after("a", "user_proxy"),
        when("user", "b", "${ready} == True"),
        after("user", "c"),
        after("c", "User"),
        after("b", "TERMINATE"),
    ];
    let c = speaker("c").with_lifecycle(sets([json!({ "ready": true })]));
    let flow = cast(&["a", "b"]).agent(built(c)).user(true).on_ask(answers("well"));
    let flow = flow.router(Handoffs::new(rules)).build().expect("a flow");
    let report = flow.chat().variable("ready", false).run().await;
    assert_eq!(report.status, ChatStatus::Completed, "{:?}", report.error);
    assert_eq!(chosen(&report), ["a", "user", "c", "user", "b", "terminate"]);
}

#[tokio::test]
async fn a_condition_before_the_users_turn_counts_too() {
    let rules = [after("a", "user"), before("user", "b", "${quiet}"), after("b", "end")];
    let flow = cast(&["a", "b"]).user(true).router(Handoffs::new(rules)).build().expect("a flow");
    let report = flow.chat().variable("quiet", true).run().await;
    assert_eq!(chosen(&report), ["a", "b", "terminate"]);
}

#[test]
fn aliases_mean_the_person_and_the_end_unless_an_agent_is_called_so() {
    for name in ["user", "User", "user_proxy", "UserProxyAgent", "human"] {
        assert_eq!(Target::of_alias(name), Some(Target::User), "{name}");
    }
    for name in ["terminate", "TERMINATE", "end", "stop", "exit"] {
        assert_eq!(Target::of_alias(name), Some(Target::End), "{name}");
    }
    assert_eq!(Target::of_alias("writer"), None);
    assert_eq!(Target::of_name("end", ["end"]), Some(Target::Agent("end".into())));
    assert_eq!(Target::of_name("end", ["a"]), Some(Target::End));
    assert_eq!(Target::of_name("b", ["a"]), None);
}

#[test]
fn a_condition_that_does_not_compile_says_why() {
    for (text, expected) in [
        ("${x", "`${` is not closed; write `${name}`"),
        ("${x.y} == 1", "`${x.y}` is no variable; write `${name}` and the rest outside"),
        ("${} == 1", "`${}` is no variable; write `${name}` and the rest outside"),
        ("  ", "the condition is empty; write one such as `${done} == True`"),
    ] {
        assert_eq!(Condition::compile(text).expect_err(text), expected);
    }
    assert!(Condition::compile("${x} == = 1").is_err());
    assert!(ModelCondition::new(" ").is_err());
    assert!(ModelCondition::new("the ${x is there").is_err());
    let condition = ModelCondition::new("${b} and ${a} and ${b}").expect("a condition");
    assert_eq!(condition.variables(), ["b", "a"]);
}

#[test]
fn quoted_text_is_left_alone_and_every_operator_works() {
    let holds = |text: &str| {
        let condition = Condition::compile(text).expect(text);
        condition.holds(|name| match name {
            "n" => Some(json!(3)),
            "s" => Some(json!("it's ${n}")),
            "o" => Some(json!({ "deep": { "er": [1, 2] } })),
            "none" | "z" => Some(json!(null)),
            _ => None,
        })
    };
    for text in [
        "${n} == 3",
        "${n} != 4 and ${n} > 2 and ${n} >= 3 and ${n} < 4 and ${n} <= 3",
        "${n} in [1, 2, 3]",
        "${n} not in [1, 2]",
        "not ${z}",
        "${z} == None",
        "${z} is none",
        "${s} == \"it's ${n}\"",
        "${s} == 'it\\'s ${n}'",
        "'s ${' in ${s}",
        "${o}.deep.er[1] == 2",
        "(${n} == 1 or ${n} == 3) == True",
        "${ n } == 3",
        "n == 3",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
    }
    assert_eq!(holds("${n} == '3'"), Ok(false));
    assert_eq!(holds("False"), Ok(false));
    assert!(holds("${o}.nothing.there").is_err());
    assert!(holds("${other}").expect_err("it is not there").contains("`other`"));
}

#[test]
fn a_plan_that_lacks_its_selector_is_refused() {
    let error = Routing::new(Pattern::Auto).router().err().expect("refused").to_string();
    assert!(error.contains("Auto needs a selector"), "{error}");
    let judged = Routing::new(Pattern::Default).handoffs([judged("a", "b", "it rains")]);
    assert!(judged.needs_selector());
    let error = judged.router().err().expect("refused").to_string();
    assert!(error.contains("plain words need a selector"), "{error}");
    for (pattern, name) in [
        (Pattern::Default, "default"),
        (Pattern::Auto, "auto"),
        (Pattern::RoundRobin, "round_robin"),
        (Pattern::Random, "random"),
    ] {
        let plan = Routing::new(pattern).selector(Selector::new(SELECTOR));
        assert_eq!(plan.router().expect("a router").name(), name);
        assert_eq!(Pattern::of_name(pattern.as_str()), Some(pattern));
    }
    assert_eq!(Pattern::of_name("SwarmPattern"), None);
}

#[tokio::test]
async fn a_comparison_of_things_without_an_order_does_not_hold_and_is_reported() {
    for (condition, expected) in [
        ("${key} > 3", "`>` compares a text with a number"),
        ("3 < ${key}", "`<` compares a number with a text"),
        ("${approved} < 'a'", "`<` compares a truth value with a text"),
        ("${nothing} > 3", "`>` compares nothing (None) with a number"),
        ("not ${nothing} > 3", "`>` compares nothing (None) with a number"),
    ] {
        let (bus, recorder) = Recorder::with_bus();
        let rules = [when("a", "b", condition), after("a", "terminate")];
        let flow = cast(&["a", "b"]).events(&bus).router(Handoffs::new(rules));
        let chat = flow.build().expect("a flow");
        let chat = chat.chat().variable("key", "abc").variable("approved", true);
        let report = chat.variable("nothing", json!(null)).message("go").run().await;
        assert_eq!(chosen(&report), ["a", "terminate"], "{condition}");
        let errors: Vec<_> =
            recorder.events().into_iter().filter(|it| it.name() == "handoff.error").collect();
        assert_eq!(errors.len(), 1, "{condition}: {errors:?}");
        let told = said(&errors[0]).to_string();
        assert!(told.contains(expected), "{condition}: {told}");
    }
}

#[tokio::test]
async fn the_initial_agent_follows_the_first_message_whichever_way_it_came() {
    let rules = || {
        [
            after("user", "planner"),
            after("clerk", "user"),
            after("planner", "terminate"),
            before("clerk", "planner", "${busy} == True"),
        ]
    };
    for (busy, expected) in
        [(false, vec!["clerk", "user", "planner"]), (true, vec!["planner", "terminate"])]
    {
        let flow = cast(&["planner", "clerk"])
            .router(Handoffs::new(rules()))
            .initial_agent("clerk")
            .startup_mode(StartupMode::UserDriven)
            .user(true)
            .on_ask(answers("hi"))
            .build()
            .expect("a flow");
        let given = flow.chat().variable("busy", busy).message("hi").run().await;
        assert_eq!(chosen(&given)[..expected.len()], expected);
        let typed = flow.chat().variable("busy", busy).run().await;
        assert_eq!(chosen(&typed)[0], "user");
        assert_eq!(chosen(&typed)[1..], *chosen(&given));
        assert_eq!(reason(&typed, 1), reason(&given, 0));
    }
}
