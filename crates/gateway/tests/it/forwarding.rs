//! Answers pass as they come, and are counted however they end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use blueflame_core::money::Usage;
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::facts::Fact;
use blueflame_gateway::gateway::Settings;
use blueflame_gateway::upstream::{Timeouts, Trust, Upstream, Web};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use crate::wire::*;

#[tokio::test]
async fn the_first_piece_passes_before_the_second_is_sent() {
    let go_on = Arc::new(Notify::new());
    let gate = Arc::clone(&go_on);
    let provider = Provider::start(move |mut stream, _| {
        let gate = Arc::clone(&gate);
        async move {
            stream.write_all(STREAM.as_bytes()).await.unwrap();
            stream.write_all(b"data: {\"first\":1}\n\n").await.unwrap();
            gate.notified().await;
            stream.write_all(message(5, 6, "second").as_bytes()).await.unwrap();
        }
    })
    .await;
    let served = serve_provider(&provider).await;
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
    read_until(&mut agent, "{\"first\":1}").await;
    // Only now is the second piece sent: had the first been held, this test
    // would hang.
    go_on.notify_one();
    read_until(&mut agent, "message_stop").await;
}

#[tokio::test]
async fn every_dialect_is_passed_on_and_counted_exactly() {
    let chat = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"prompt_tokens_details\":{\"cached_tokens\":40},\"completion_tokens\":7}}\n\ndata: [DONE]\n\n";
    let responses = "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":100,\"input_tokens_details\":{\"cached_tokens\":40},\"output_tokens\":7}}}\n\n";
    for (path, body, input, cache_read) in [
        ("/v1/messages", message(60, 7, "x"), 60, 0),
        ("/v1/chat/completions", chat.to_owned(), 60, 40),
        ("/v1/responses", responses.to_owned(), 60, 40),
    ] {
        let provider = Provider::saying(format!("{STREAM}{body}")).await;
        let mut served = serve_provider(&provider).await;
        let answer =
            served.ask(path, r#"{"model":"claude-sonnet-5","stream":true,"messages":[]}"#).await;
        assert_eq!(status(&answer), 200);
        let told = served.told();
        let spend = served.gateway.close().await;
        let usage = Usage { input, output: 7, cache_read, cache_write: 0 };
        assert_eq!(spend.usage, usage, "{path}");
        assert!(spend.cost.micros() > 0);
        assert_eq!(told.last(), Some(&Fact::Usage { spend }), "{path}");
        let asked = &provider.requests()[0];
        assert!(asked.head.starts_with(&format!("post {path} ")), "{}", asked.head);
        assert_eq!(asked.body.contains("include_usage"), path.contains("chat"));
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_counted_too() {
    let body = r#"{"content":[],"usage":{"input_tokens":11,"output_tokens":22}}"#;
    let provider = Provider::saying(answer("200 OK", "", body)).await;
    let served = serve_provider(&provider).await;
    let answer = served.ask_messages().await;
    assert!(answer.ends_with(body), "{answer}");
    let usage = served.gateway.close().await.usage;
    assert_eq!((usage.input, usage.output), (11, 22));
}

#[tokio::test]
async fn someone_who_only_looks_whether_anyone_is_there_gets_a_sign() {
    let provider = Provider::saying("").await;
    let mut served = serve_provider(&provider).await;
    let answer = served.exchange("HEAD / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await;
    assert_eq!(status(&answer), 200);
    assert_eq!(served.told(), []);
    assert_eq!(provider.requests().len(), 0);
}

#[tokio::test]
async fn reported_totals_only_grow() {
    let provider = Provider::saying(format!("{STREAM}{}", message(9, 3, "x"))).await;
    let mut served = serve_provider(&provider).await;
    for _ in 0..5 {
        served.ask_messages().await;
    }
    let totals: Vec<u64> = served
        .told()
        .into_iter()
        .filter_map(|fact| match fact {
            Fact::Usage { spend } => Some(spend.usage.total()),
            _ => None,
        })
        .collect();
    assert!(totals.is_sorted(), "{totals:?}");
    assert_eq!(totals.last(), Some(&60));
}

#[tokio::test]
async fn a_stream_that_is_cut_is_counted_with_what_it_said() {
    let whole = message(1_000, 999, &"word ".repeat(60));
    let cut = &whole[..whole.find("message_delta").unwrap()];
    // Cut off cleanly, and in the middle of a chunk.
    let chunked =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    for bytes in [format!("{STREAM}{cut}"), format!("{chunked}{:x}\r\n{cut}", cut.len() + 50)] {
        let provider = Provider::saying(bytes).await;
        let mut served = serve_provider(&provider).await;
        served.ask_messages().await;
        let told = served.until(|fact| matches!(fact, Fact::UpstreamFailed { .. })).await;
        assert!(matches!(told.last(), Some(Fact::UpstreamFailed { .. })), "{told:?}");
        let usage = served.gateway.close().await.usage;
        assert_eq!(usage.input, 1_000);
        assert_eq!(usage.output, 100, "300 bytes of text went by");
    }
}

#[tokio::test]
async fn an_agent_that_hangs_up_ends_the_request_and_pays_for_it() {
    let hung_up = Arc::new(Notify::new());
    let gone = Arc::clone(&hung_up);
    let provider = Provider::start(move |mut stream, _| {
        let gone = Arc::clone(&gone);
        async move {
            let whole = message(500, 9, &"x".repeat(300));
            let cut = &whole[..whole.find("message_delta").unwrap()];
            let cut = &cut[..cut.rfind("data").unwrap()];
            stream.write_all(format!("{STREAM}{cut}").as_bytes()).await.unwrap();
            // Nothing more; wait for the gateway to let go.
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            gone.notify_one();
        }
    })
    .await;
    let mut served = serve_provider(&provider).await;
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
    read_until(&mut agent, "text_delta").await;
    drop(agent);
    hung_up.notified().await;
    let done = |fact: &Fact| matches!(fact, Fact::Usage { spend } if spend.usage.output >= 100);
    served.until(done).await;
    let usage = served.gateway.close().await.usage;
    assert_eq!((usage.input, usage.output), (500, 100));
}

#[tokio::test]
async fn an_agent_that_hangs_up_before_any_answer_pays_for_its_prompt() {
    let hung_up = Arc::new(Notify::new());
    let gone = Arc::clone(&hung_up);
    let provider = Provider::start(move |mut stream, _| {
        let gone = Arc::clone(&gone);
        async move {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            gone.notify_one();
        }
    })
    .await;
    let mut served = serve_provider(&provider).await;
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
    while provider.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(agent);
    hung_up.notified().await;
    served.until(|fact| matches!(fact, Fact::Usage { .. })).await;
    let usage = served.gateway.close().await.usage;
    assert_eq!(usage.input, (MESSAGES.len() as u64).div_ceil(3));
}

#[tokio::test]
async fn closing_counts_what_is_under_way() {
    let provider = Provider::start(|mut stream, _| async move {
        let whole = message(77, 9, "x");
        let start = &whole[..whole.find("data: {\"type\":\"content").unwrap()];
        stream.write_all(format!("{STREAM}{start}").as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    })
    .await;
    let served = serve_provider(&provider).await;
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
    read_until(&mut agent, "message_start").await;
    assert_eq!(served.gateway.close().await.usage.input, 77);
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_costs_nothing() {
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let web = Web::new(&address, None, Trust::default(), Duration::from_secs(5)).unwrap();
    let mut served = serve(Settings::new(Upstream::Web(web)), Allowance::unlimited()).await;
    let answer = served.ask_messages().await;
    assert_eq!(status(&answer), 502, "{answer}");
    assert!(matches!(&served.told()[..], [Fact::UpstreamFailed { .. }]));
    assert_eq!(served.gateway.close().await.usage.total(), 0);
}

#[tokio::test]
async fn a_provider_that_hangs_up_or_goes_silent_is_given_up() {
    // Hangs up without an answer: the prompt may have cost something.
    let provider = Provider::saying("").await;
    let served = serve_provider(&provider).await;
    assert_eq!(status(&served.ask_messages().await), 502);
    assert!(served.gateway.close().await.usage.input > 0);
    // Never answers, or stops in the middle.
    let timeouts = Timeouts {
        first_byte: Duration::from_millis(50),
        idle: Duration::from_millis(50),
        ..Timeouts::default()
    };
    for (said, expected) in [("", 504), (STREAM, 200)] {
        let provider = Provider::start(move |mut stream, _| async move {
            stream.write_all(said.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        })
        .await;
        let settings = Settings { timeouts, ..Settings::new(provider.upstream()) };
        let mut served = serve(settings, Allowance::unlimited()).await;
        let answer = served.ask_messages().await;
        assert_eq!(status(&answer), expected, "{answer}");
        served.until(|fact| matches!(fact, Fact::UpstreamFailed { .. })).await;
    }
}

#[tokio::test]
async fn limits_of_the_provider_are_told_with_their_end_and_passed_on() {
    let headers = "retry-after: 120\r\n";
    let provider = Provider::saying(answer("429 Too Many", headers, "{\"error\":1}")).await;
    let mut served = serve_provider(&provider).await;
    let before = jiff::Timestamp::now();
    let passed = served.ask_messages().await;
    assert_eq!(status(&passed), 429);
    assert!(passed.contains("retry-after: 120") && passed.ends_with("{\"error\":1}"));
    match &served.told()[..] {
        [
            Fact::ProviderLimited { status: 429, until: Some(until) },
            Fact::ProviderFailed { status: 429 },
        ] => {
            assert!(*until >= before + jiff::SignedDuration::from_secs(119));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(served.gateway.close().await.usage.total(), 0, "a refused request is free");
}

#[tokio::test]
async fn answers_that_cannot_be_counted_or_lead_elsewhere_are_not_passed_on() {
    for head in ["302 Found\r\nlocation: http://evil.example/", "200 OK\r\ncontent-encoding: gzip"]
    {
        let provider =
            Provider::saying(format!("HTTP/1.1 {head}\r\ncontent-length: 2\r\n\r\nok")).await;
        let served = serve_provider(&provider).await;
        let answer = served.ask_messages().await;
        assert_eq!(status(&answer), 502, "{head}");
        assert!(!answer.contains("evil"));
    }
}

#[tokio::test]
async fn counting_tokens_and_listing_models_are_free() {
    let provider = Provider::saying(answer("200 OK", "", "{\"input_tokens\":5}")).await;
    let served = serve_provider(&provider).await;
    let counted = served.ask("/v1/messages/count_tokens", "{}").await;
    assert_eq!(status(&counted), 200);
    let list = format!(
        "GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        served.token
    );
    assert_eq!(status(&served.exchange(list).await), 200);
    assert_eq!(served.gateway.close().await.usage.total(), 0);
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn an_agent_that_does_not_read_slows_the_provider_down() {
    let sent = Arc::new(Mutex::new(0_usize));
    let count = Arc::clone(&sent);
    let provider = Provider::start(move |mut stream, _| {
        let count = Arc::clone(&count);
        async move {
            stream.write_all(STREAM.as_bytes()).await.unwrap();
            let piece = vec![b'\n'; 1 << 20];
            while stream.write_all(&piece).await.is_ok() {
                *count.lock().unwrap() += piece.len();
            }
        }
    })
    .await;
    let served = serve_provider(&provider).await;
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
    read_until(&mut agent, "text/event-stream").await;
    // Long enough for gigabytes, if nothing held them back.
    let mut last = usize::MAX;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = *sent.lock().unwrap();
        if now == last {
            break;
        }
        last = now;
        assert!(now < 256 << 20, "{now} bytes were taken for an agent that reads nothing");
    }
}
