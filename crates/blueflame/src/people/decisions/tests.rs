//! Decisions files, good and bad.

use std::fmt::Write as _;

use blueflame_core::money::{Budget, Usd};

use super::*;
use crate::people::samples::{PLAN, Sample};
use crate::people::{Cancel, Respondent};

fn read(text: &str) -> Decisions {
    Decisions::read(text.as_bytes(), Path::new("decisions.yaml")).unwrap()
}

/// What is answered the next times, until there is nothing more to say.
fn answers(decisions: &mut Decisions, sample: &Sample) -> Vec<String> {
    let mut said = Vec::new();
    for _ in 0..5 {
        match decisions.answer(&sample.occasion()) {
            Ok(Some(answer)) => said.push(serde_json::to_string(&answer).unwrap()),
            Ok(None) => {
                said.push("not named".to_owned());
                break;
            }
            Err(unanswered) => {
                said.push(unanswered.to_string());
                break;
            }
        }
    }
    said
}

#[test]
fn the_file_of_the_documentation_is_read() {
    let text = r#"
plan: [approve]
changesets: { auth: approve, api: {reject: "reason"}, "*": approve }
session: [continue, stop]
validation_failed: [requeue]
validator_failed: [retry]
budget: [stop]
"#;
    let mut decisions = read(text);
    for (sample, said) in [
        (Sample::plan(), vec![r#"{"plan":"approve"}"#, "no answer to the question: `plan`"]),
        (
            Sample::changeset(),
            vec![r#"{"changeset":"approve"}"#, "no answer to the question: `changeset auth`"],
        ),
        (
            Sample::session(),
            vec![
                r#"{"session":{"continue":{}}}"#,
                r#"{"session":"stop"}"#,
                "no answer to the question: `session`",
            ],
        ),
        (
            Sample::disputed(),
            vec![
                r#"{"validation_failed":{"requeue":{"notes":""}}}"#,
                "no answer to the question: `validation_failed task-001`",
            ],
        ),
        (
            Sample::unjudged(),
            vec![
                r#"{"validator_failed":"retry"}"#,
                "no answer to the question: `validator_failed task-001`",
            ],
        ),
        (Sample::budget(), vec![r#"{"budget":"stop"}"#, "no answer to the question: `budget`"]),
    ] {
        assert_eq!(answers(&mut decisions, &sample), said);
    }
    assert_eq!(decisions.unused(), ["changesets.api"]);
}

#[test]
fn every_answer_can_be_written() {
    let text = r#"
plan: [quit, {replan: "smaller tasks"}, approve]
changesets: {auth: [skip, {reject: "no tests"}, approve]}
session: [replan, {replan: "less"}, continue]
validation_failed:
  - {requeue: "mind the clock"}
  - {edit: {description: "Check exp.", file_locks: [src/auth/, tests/auth]}}
  - drop
validator_failed: [manual-pass, skip]
budget: [{raise_usd: 5.25}, stop]
"#;
    let mut decisions = read(text);
    let mut said = String::new();
    for sample in [
        Sample::plan(),
        Sample::changeset(),
        Sample::session(),
        Sample::disputed(),
        Sample::unjudged(),
        Sample::budget(),
    ] {
        for answer in answers(&mut decisions, &sample) {
            writeln!(said, "{answer}").unwrap();
        }
    }
    insta::assert_snapshot!(said);
    assert_eq!(decisions.unused(), Vec::<String>::new());
}

#[test]
fn a_single_value_is_a_list_of_one() {
    let mut decisions = read("plan: approve\nchangesets: {auth: skip}\n");
    assert_eq!(answers(&mut decisions, &Sample::plan()).len(), 2);
    assert_eq!(
        answers(&mut decisions, &Sample::changeset()),
        [r#"{"changeset":"skip"}"#, "no answer to the question: `changeset auth`"]
    );
}

#[test]
fn a_star_answers_for_groups_without_a_name_of_their_own() {
    let sample = Sample::changeset();
    let approve = r#"{"changeset":"approve"}"#;
    let none = "no answer to the question: `changeset auth`";
    for (text, said) in [
        // A single one is the answer every time.
        ("changesets: {'*': approve}", vec![approve; 5]),
        // A list is worked through.
        ("changesets: {'*': [approve]}", vec![approve, none]),
        ("changesets: {'*': []}", vec![none]),
        // What is named is not answered by the star, not even in the end.
        ("changesets: {'*': skip, auth: approve}", vec![approve, none]),
        ("changesets: {api: approve}", vec!["not named"]),
        ("", vec!["not named"]),
    ] {
        assert_eq!(answers(&mut read(text), &sample), said, "{text}");
    }
    // Each group works through the list for itself.
    let (auth, api) = (GroupName::new("auth").unwrap(), GroupName::new("api").unwrap());
    let mut decisions = read("changesets: {'*': [skip, approve, approve]}");
    let any = decisions.any_changeset.as_mut().unwrap();
    let next = |any: &mut Fallback, group| any.next(group).map(|written| written.answer.clone());
    assert_eq!(next(any, &auth), Some(ChangesetAnswer::Skip));
    assert_eq!(next(any, &auth), Some(ChangesetAnswer::Approve));
    assert_eq!(next(any, &api), Some(ChangesetAnswer::Skip));
    assert_eq!(decisions.unused(), ["changesets[\"*\"][2]"]);
}

#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let texts = [
        "plann: approve\nsesion: stop\nbudgets: stop\nfood: pizza\n",
        "- approve\n",
        "plan: aprove\n",
        "plan: yes\n",
        "plan:\n",
        "plan: [approve, replan, {replan: ''}, {edit: [x]}, {edit: }, {approve: true}]\n",
        "plan: [[approve]]\n",
        "plan: [{replan: a, edit: b}, {}]\n",
        "plan: [{repaln: a}]\n",
        "changesets: approve\n",
        "changesets: [approve]\n",
        "changesets: {auth: reject, 'a/b': approve, api: {approve: 1}, \"*\": maybe}\n",
        "session: [go, {continue: [task-001]}]\n",
        "validation_failed: [retry, {edit: {}}, {edit: {files: [x]}}, {edit: description}]\n",
        "validation_failed: {edit: {file_locks: src, description: ''}}\n",
        "validation_failed: {edit: {file_locks: ['/etc', [x], '*.rs']}}\n",
        "validator_failed: [manual_pass, {retry: 1}, accept]\n",
        "budget: [raise, {raise_usd: $5}, {raise_usd: -1}, {raise_usd: '5'}, {raise_usd: 0}]\n",
        "budget: [{raise_tokens: 1.5}, {raise_tokens: 100_000}, {raise: 5}, {raise_usd: .nan}]\n",
        "plan: &x approve\nsession: *x\nplan: quit\n",
    ];
    let mut said = String::new();
    for text in texts {
        let problems = Decisions::read(text.as_bytes(), Path::new("d.yaml")).unwrap_err();
        writeln!(said, "---\n{}", text.trim_end()).unwrap();
        for problem in problems {
            let place = problem.span.and_then(|span| text.get(span.start..span.end));
            let place = place.map(|place| format!(" at «{place}»")).unwrap_or_default();
            let hint = problem.hint.as_ref().map(|hint| format!("; hint: {hint}"));
            let hint = hint.unwrap_or_default();
            writeln!(said, "  {problem}{}{hint}", place.replace('\n', "⏎")).unwrap();
        }
    }
    insta::assert_snapshot!(said);
}

#[test]
fn an_edited_plan_is_read_beside_the_decisions_file_and_checked() {
    let sample = Sample::plan();
    sample.write_beside("good.yaml", &PLAN.replace("Add auth tests", "Test it"));
    sample.write_beside("bad.yaml", &PLAN.replace("[tests/auth/]", "[.env]"));
    let text = "plan: [{edit: good.yaml}, {edit: bad.yaml}, {edit: none.yaml}]\n";
    let file = sample.directory.path().join("decisions.yaml");
    let mut decisions = Decisions::read(text.as_bytes(), &file).unwrap();
    let mut next = || decisions.answer(&sample.occasion());
    let Ok(Some(Answer::Plan(PlanAnswer::Edit { plan }))) = next() else { panic!("no edit") };
    assert_eq!(plan.tasks[1].title, "Test it");
    let Err(Unanswered::BadDecisions(bad)) = next() else { panic!("it was taken") };
    assert!(bad.file.ends_with("bad.yaml"));
    assert_eq!(
        bad.problems[0].to_string(),
        "`tasks[1].file_locks[0]` of task `task-002` can never be written: `.env*` is blocked, \
         got `.env`"
    );
    let Err(Unanswered::BadDecisions(bad)) = next() else { panic!("it was there") };
    assert_eq!(bad.file, file);
    let message = bad.problems[0].to_string();
    assert!(message.starts_with("`plan[2]` names a plan that cannot be read: `/"), "{message}");
}

#[test]
fn answers_that_do_not_fit_the_session_are_refused_with_their_place() {
    for (text, sample, message) in [
        (
            "budget: {raise_tokens: 5}",
            Sample::budget(),
            "`budget` raises by 5 tokens, but the session's budget is $0.50",
        ),
        (
            "validation_failed: {edit: {file_locks: [.env]}}",
            Sample::disputed(),
            "`validation_failed` can never be written: `.env*` is blocked, got `.env`",
        ),
        (
            "validation_failed: {edit: {file_locks: [src/x, lib/y]}}",
            Sample::disputed(),
            "`validation_failed` is outside of the allowed paths, got `lib/y`",
        ),
    ] {
        let Err(Unanswered::BadDecisions(bad)) = read(text).answer(&sample.occasion()) else {
            panic!("{text} was taken");
        };
        assert_eq!(bad.problems[0].to_string(), message);
        assert!(bad.problems[0].span.is_some());
    }
}

#[test]
fn yes_answers_what_it_stands_for_and_only_that() {
    let cancel = Cancel::new().unwrap();
    let raise = "budget: [{raise_usd: 1}]\nplan: []\n";
    for (sample, alone, beside_a_file) in [
        (Sample::plan(), r#"{"plan":"approve"}"#, "no answer to the question: `plan`"),
        (Sample::changeset(), r#"{"changeset":"approve"}"#, r#"{"changeset":"approve"}"#),
        (Sample::session(), r#"{"session":{"continue":{}}}"#, r#"{"session":{"continue":{}}}"#),
        (
            Sample::disputed(),
            "no answer to the question: `validation_failed task-001`",
            "no answer to the question: `validation_failed task-001`",
        ),
        (
            Sample::unjudged(),
            "no answer to the question: `validator_failed task-001`",
            "no answer to the question: `validator_failed task-001`",
        ),
        (
            Sample::budget(),
            "no answer to the question: `budget`",
            r#"{"budget":{"raise":{"by":{"usd":1000000}}}}"#,
        ),
    ] {
        for (decisions, said) in [(None, alone), (Some(read(raise)), beside_a_file)] {
            let mut respondent = Respondent::new(decisions, true, None);
            let answer = respondent.prepared(&sample.occasion(), &cancel);
            let answer = match answer {
                Ok(answer) => {
                    let answer = answer.expect("nobody else could be asked");
                    // The core takes what we answer.
                    let mut state = sample.state.clone();
                    let gate = sample.gate.clone();
                    let event =
                        blueflame_core::event::Event::GateAnswered { gate, answer: answer.clone() };
                    state.apply(jiff::Timestamp::UNIX_EPOCH, &event).unwrap();
                    serde_json::to_string(&answer).unwrap()
                }
                Err(unanswered) => unanswered.to_string(),
            };
            assert_eq!(answer, said);
        }
    }
    assert_eq!(
        read("budget: {raise_usd: 0.5}").budget.unwrap().answers[0].answer,
        BudgetAnswer::Raise { by: Budget::Usd(Usd::from_micros(500_000)) }
    );
}

#[test]
fn without_anyone_every_question_is_named() {
    let cancel = Cancel::new().unwrap();
    let mut nobody = Respondent::new(None, false, None);
    for sample in [Sample::plan(), Sample::changeset(), Sample::session(), Sample::budget()] {
        let Err(unanswered) = nobody.prepared(&sample.occasion(), &cancel) else { panic!("who?") };
        let failure = crate::failure::Failure::from(unanswered);
        assert_eq!(failure.kind().code(), 4);
    }
    let questions = nobody.answer_questions(&[], &cancel);
    assert!(matches!(questions, Err(Unanswered::NoAnswer { .. })));
    cancel.interrupt();
    let sample = Sample::plan();
    let interrupted = Respondent::new(None, true, None).prepared(&sample.occasion(), &cancel);
    assert!(matches!(interrupted, Err(Unanswered::Interrupted)), "not even yes");
}
