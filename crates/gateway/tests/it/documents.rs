//! The examples in the documentation work.

use blueflame_gateway::dialect::Dialect;
use blueflame_gateway::script::{Script, Sight};

#[test]
fn every_script_in_the_documentation_is_good() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripted-model.md");
    let text = std::fs::read_to_string(path).unwrap();
    let examples: Vec<&str> =
        text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert_eq!(examples.len(), 2);
    let mut answers = Vec::new();
    for example in examples {
        let (script, warnings) = Script::read(example.as_bytes()).unwrap();
        assert_eq!(warnings, []);
        for prompt in ["role=planner", "role=worker", "role=worker task=task-001 attempt=1"] {
            let body =
                format!(r#"{{"messages":[{{"role":"user","content":"blueflame: {prompt}"}}]}}"#);
            let sight = Sight::of(Dialect::Messages, body.as_bytes()).unwrap();
            let answer = script.answer(&sight);
            let said = String::from_utf8_lossy(&answer.pieces.concat()).into_owned();
            answers.push((answer.status, said));
        }
    }
    assert_eq!(
        answers.iter().map(|(status, _)| *status).collect::<Vec<_>>(),
        [200, 200, 200, 200, 200, 529]
    );
    assert!(answers[0].1.contains("StructuredOutput") && answers[0].1.contains("task-001"));
    assert!(answers[1].1.contains("git commit"), "{}", answers[1].1);
    assert!(answers[3].1.contains("Nothing more to do."));
}
