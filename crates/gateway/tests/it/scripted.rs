//! The scripted model behind a real gateway.

use std::sync::Arc;
use std::time::Duration;

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::facts::Fact;
use blueflame_gateway::gateway::Settings;
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::{Timeouts, Upstream};
use tokio::io::AsyncWriteExt;

use crate::wire::*;

async fn scripted(text: &str) -> Served {
    let (script, _) = Script::read(text.as_bytes()).unwrap();
    let timeouts = Timeouts {
        first_byte: Duration::from_millis(200),
        idle: Duration::from_millis(200),
        ..Timeouts::default()
    };
    let settings = Settings { timeouts, ..Settings::new(Upstream::Script(script.into())) };
    serve(settings, Allowance::unlimited()).await
}

fn body(task: &str) -> String {
    format!(
        r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"blueflame: role=worker task={task} attempt=1\nwork"}}]}}"#
    )
}

#[tokio::test]
async fn agents_side_by_side_each_get_their_own_answers() {
    let replies: String = (0..20)
        .map(|task| format!("  - {{when: {{task: t{task}}}, say: answer-{task}., pause: 1ms}}\n"))
        .collect();
    let served = Arc::new(scripted(&format!("replies:\n{replies}")).await);
    let mut asking = tokio::task::JoinSet::new();
    for round in 0..100 {
        let served = Arc::clone(&served);
        let task = round % 20;
        asking.spawn(async move {
            let answer = served.ask("/v1/messages", &body(&format!("t{task}"))).await;
            (task, answer)
        });
    }
    for (task, answer) in asking.join_all().await {
        assert!(answer.contains(&format!("answer-{task}.")), "{answer}");
    }
}

#[tokio::test]
async fn failures_cuts_and_hangs_happen_as_scripted() {
    let mut served = scripted(
        "replies:
  - {when: {task: limited}, fail: {status: 429, retry_after: 1500ms}}
  - {when: {task: cut}, say: this is never finished, cut_after: 4}
  - {when: {task: silent}, hang_after: 0}
  - {when: {task: stuck}, say: this gets stuck, hang_after: 3}
",
    )
    .await;
    let limited = served.ask("/v1/messages", &body("limited")).await;
    assert_eq!(status(&limited), 429);
    assert!(limited.contains("retry-after: 2\r\n"), "{limited}");
    assert!(matches!(&served.told()[..], [Fact::ProviderLimited { until: Some(_), .. }, _]));

    let cut = served.ask("/v1/messages", &body("cut")).await;
    assert_eq!(cut.matches("event: ").count(), 4, "{cut}");
    assert!(!cut.contains("message_stop"));
    assert!(!cut.ends_with("0\r\n\r\n"), "the cut shows on the wire");

    assert_eq!(status(&served.ask("/v1/messages", &body("silent")).await), 504);
    let stuck = served.ask("/v1/messages", &body("stuck")).await;
    assert_eq!(stuck.matches("event: ").count(), 3, "{stuck}");

    let unknown = served.ask("/v1/messages", &body("other")).await;
    assert_eq!(status(&unknown), 400);
    assert!(unknown.contains("task is `other`, not `limited`"), "{unknown}");
}

#[tokio::test]
async fn hanging_up_on_a_model_that_hangs_is_possible() {
    let mut served = scripted("replies: [{say: this gets stuck, hang_after: 3}]").await;
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", &body("x")).as_bytes()).await.unwrap();
    read_until(&mut agent, "content_block_start").await;
    drop(agent);
    served.until(|fact| matches!(fact, Fact::Usage { .. })).await;
}
