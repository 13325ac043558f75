//! The provider's key is seen by the provider and by nobody else.

use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::gateway::Settings;
use blueflame_gateway::recording::Recording;
use blueflame_gateway::upstream::{Timeouts, Trust, Upstream, Web};

use crate::wire::*;

#[tokio::test]
async fn the_key_goes_to_the_provider_and_the_token_does_not() {
    let provider = Provider::saying(format!("{STREAM}{}", message(1, 1, "x"))).await;
    let served = serve_provider(&provider).await;
    for (path, login) in [
        ("/v1/messages", format!("x-api-key: {KEY}")),
        ("/v1/responses", format!("authorization: bearer {KEY}")),
        ("/v1/chat/completions", format!("authorization: bearer {KEY}")),
    ] {
        let with_both = served
            .post(path, MESSAGES)
            .replace("host: ", &format!("authorization: Bearer {}\r\nhost: ", served.token));
        served.exchange(with_both).await;
        let head = provider.requests().last().unwrap().head.clone();
        assert!(head.contains(&login), "{head}");
        assert_eq!(head.matches(KEY).count(), 1, "{head}");
        assert!(!head.contains(&served.token), "{head}");
    }
}

#[tokio::test]
async fn the_key_turns_up_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("traffic.jsonl");
    let mut traces = String::new();
    // Good answers, errors, broken ones, unreachable ones, and a provider that
    // puts the key itself into its answer.
    for answer in [
        format!("{STREAM}{}", message(1, 1, "x")),
        answer("401 Unauthorized", "", "{\"error\":\"bad key\"}"),
        "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nshort".to_owned(),
        "nonsense".to_owned(),
        String::new(),
    ] {
        let provider = Provider::saying(answer).await;
        let settings = Settings {
            recording: Some(Recording::open(&path).unwrap()),
            ..Settings::new(provider.upstream())
        };
        traces += &format!("{settings:?}");
        let mut served = serve(settings, Allowance::unlimited()).await;
        traces += &served.ask_messages().await;
        traces += &served.ask("/v1/nowhere", "{}").await;
        let told = served.told();
        traces += &format!("{:?} {told:?}", served.gateway);
    }
    traces += &std::fs::read_to_string(&path).unwrap();
    assert!(!traces.contains(KEY), "{traces}");
    assert!(traces.contains("Credential(..)"), "the search looked at something");

    let echo = Provider::saying(answer("400 Bad", "", &format!("{{\"key\":\"{KEY}\"}}"))).await;
    let settings = Settings {
        recording: Some(Recording::open(&path).unwrap()),
        ..Settings::new(echo.upstream())
    };
    let served = serve(settings, Allowance::unlimited()).await;
    let token = served.token.clone();
    served.ask("/v1/messages", &MESSAGES.replace("hi", &token)).await;
    served.gateway.close().await;
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert!(recorded.contains("[credential]") && recorded.contains("[token]"));
    assert!(!recorded.contains(KEY) && !recorded.contains(&token));
}

#[tokio::test]
async fn the_agents_own_login_is_passed_on_where_that_is_wanted() {
    let provider = Provider::saying(format!("{STREAM}{}", message(1, 1, "x"))).await;
    let web = Web::passing_login(&provider.address, Trust::default(), Timeouts::default().connect)
        .unwrap();
    let served = serve(Settings::new(Upstream::Web(web)), Allowance::unlimited()).await;
    let request = served
        .post("/v1/messages", MESSAGES)
        .replace(&format!("x-api-key: {}", served.token), "authorization: Bearer my-own");
    assert_eq!(status(&served.exchange(request).await), 200);
    let head = &provider.requests()[0].head;
    assert!(head.contains("authorization: bearer my-own"), "{head}");
    assert!(!head.contains("x-api-key"), "{head}");
}
