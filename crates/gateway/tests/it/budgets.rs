//! No agent spends more than it may, and none asks without end.

use std::sync::Arc;
use std::time::Duration;

use blueflame_core::money::{Budget, Spend, Usd};
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::facts::Fact;
use blueflame_gateway::gateway::Settings;
use blueflame_gateway::loops::LoopLimits;
use blueflame_gateway::refusal::Refusal;
use tokio::io::AsyncWriteExt;

use crate::wire::*;

/// Each request costs 100 tokens.
async fn provider() -> Provider {
    Provider::saying(format!("{STREAM}{}", message(60, 40, "x"))).await
}

#[tokio::test]
async fn a_budget_stops_within_the_request_that_crosses_it() {
    for (path, refused_with) in
        [("/v1/messages", 400), ("/v1/responses", 400), ("/v1/chat/completions", 402)]
    {
        // 60 tokens in, 40 out, at the rates of sonnet: 780 micro-dollars.
        for cap in [Budget::Tokens(250), Budget::Usd(Usd::from_micros(2_000))] {
            let provider = provider().await;
            let allowance = Allowance::new(cap, Budget::Unlimited, Spend::default());
            let mut served = serve(Settings::new(provider.upstream()), allowance).await;
            let mut statuses = Vec::new();
            for _ in 0..5 {
                // Only Messages has figures in this stream; ask in its words
                // and then look at how each dialect is refused.
                statuses.push(status(&served.ask_messages().await));
            }
            assert_eq!(statuses, [200, 200, 200, 400, 400]);
            assert_eq!(provider.requests().len(), 3, "the provider saw no more");
            let refused = served.ask(path, MESSAGES).await;
            assert_eq!(status(&refused), refused_with);
            assert!(refused.contains("x-should-retry: false"), "{refused}");
            assert!(refused.contains("x-blueflame-refused: budget"), "{refused}");
            assert!(
                served
                    .told()
                    .iter()
                    .any(|fact| matches!(fact, Fact::Refused { why: Refusal::Budget { .. } }))
            );
            assert_eq!(served.gateway.close().await.usage.total(), 300);
        }
    }
}

#[tokio::test]
async fn requests_side_by_side_pass_a_budget_by_one_request_at_most() {
    // Each costs 60 tokens, and could cost 87 by its size and its limit.
    let provider = Provider::saying(format!("{STREAM}{}", message(20, 40, "x"))).await;
    let allowance = Allowance::new(Budget::Tokens(450), Budget::Unlimited, Spend::default());
    let served = Arc::new(serve(Settings::new(provider.upstream()), allowance).await);
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let served = Arc::clone(&served);
        asking.spawn(async move { status(&served.ask_messages().await) });
    }
    let statuses = asking.join_all().await;
    let passed = statuses.iter().filter(|status| **status == 200).count();
    assert_eq!(passed, 8, "{statuses:?}");
    assert_eq!(served.gateway.spent().usage.total(), 480, "30 more than 450: half a request");
    assert_eq!(provider.requests().len(), 8);
}

#[tokio::test]
async fn a_request_waits_for_its_grant_and_goes_when_it_comes() {
    let provider = provider().await;
    let allowance = Allowance::new(Budget::Unlimited, Budget::Tokens(100), Spend::default());
    let mut served = serve(Settings::new(provider.upstream()), Arc::clone(&allowance)).await;
    assert_eq!(status(&served.ask_messages().await), 200);
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
    let told = served.until(|fact| matches!(fact, Fact::GrantWanted { .. })).await;
    assert!(matches!(told.last(), Some(Fact::GrantWanted { spend }) if spend.usage.total() == 100));
    assert_eq!(provider.requests().len(), 1, "nothing passes while it waits");
    allowance.set_grant(Budget::Tokens(200));
    read_until(&mut agent, "message_stop").await;
    assert_eq!(provider.requests().len(), 2);
}

#[tokio::test]
async fn a_waiting_request_ends_when_the_agent_is_stopped_or_nothing_comes() {
    let provider = provider().await;
    let allowance = Allowance::new(Budget::Unlimited, Budget::Tokens(0), Spend::default());
    let mut served = serve(Settings::new(provider.upstream()), Arc::clone(&allowance)).await;
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
    served.until(|fact| matches!(fact, Fact::GrantWanted { .. })).await;
    allowance.stop("the person said so");
    let answer = read_until(&mut agent, "the person said so").await;
    assert_eq!(status(&answer), 400);

    let allowance = Allowance::new(Budget::Unlimited, Budget::Tokens(0), Spend::default());
    let settings =
        Settings { grant_wait: Duration::from_millis(30), ..Settings::new(provider.upstream()) };
    let served = serve(settings, allowance).await;
    let answer = served.ask_messages().await;
    assert!(answer.contains("x-blueflame-refused: no_grant"), "{answer}");
    assert_eq!(provider.requests().len(), 0);
}

#[tokio::test]
async fn an_agent_that_asks_without_end_is_stopped() {
    let provider = provider().await;
    let loops = LoopLimits { requests: 10, ..LoopLimits::default() };
    let settings = Settings { loops, ..Settings::new(provider.upstream()) };
    let mut served = serve(settings, Allowance::unlimited()).await;
    for _ in 0..50 {
        served.ask_messages().await;
    }
    assert_eq!(provider.requests().len(), 10);
    let loops = |fact: &&Fact| matches!(fact, Fact::Loop { .. });
    assert_eq!(served.told().iter().filter(loops).count(), 1);
}

#[tokio::test]
async fn an_agent_that_repeats_what_fails_is_stopped() {
    let cut = format!("{STREAM}data: {{\"choices\":[]}}\n\n");
    for failing in [answer("400 Bad Request", "", "{}"), cut] {
        let provider = Provider::saying(failing).await;
        let loops = LoopLimits { failures_in_a_row: 8, ..LoopLimits::default() };
        let settings = Settings { loops, ..Settings::new(provider.upstream()) };
        let mut served = serve(settings, Allowance::unlimited()).await;
        for _ in 0..20 {
            served
                .ask("/v1/chat/completions", r#"{"model":"m","stream":true,"messages":[]}"#)
                .await;
        }
        assert_eq!(provider.requests().len(), 8);
        assert!(served.told().iter().any(|fact| matches!(fact, Fact::Loop { .. })));
    }
}

#[tokio::test]
async fn an_agent_that_hangs_up_waits_for_no_grant_any_more() {
    let provider = provider().await;
    let allowance = Allowance::new(Budget::Unlimited, Budget::Tokens(0), Spend::default());
    let mut served = serve(Settings::new(provider.upstream()), Arc::clone(&allowance)).await;
    // It is asked for again by whoever comes next.
    for _ in 0..2 {
        let mut agent = served.connect().await;
        agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
        served.until(|fact| matches!(fact, Fact::GrantWanted { .. })).await;
        assert_eq!(allowance.grant_waiters(), 1);
        drop(agent);
        served.until(|fact| *fact == Fact::GrantNotWanted).await;
        assert_eq!(allowance.grant_waiters(), 0);
    }
}

#[tokio::test]
async fn waiting_for_ones_own_requests_is_not_waiting_for_a_grant() {
    let provider = Provider::start(|mut stream, _| async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _ = stream.write_all(format!("{STREAM}{}", message(1, 1, "x")).as_bytes()).await;
    })
    .await;
    // Two could cost as much as there is; the third waits for them, and longer
    // than for a grant.
    let allowance = Allowance::new(Budget::Unlimited, Budget::Tokens(100), Spend::default());
    let settings =
        Settings { grant_wait: Duration::from_millis(50), ..Settings::new(provider.upstream()) };
    let served = serve(settings, allowance).await;
    let (a, b, c) =
        tokio::join!(served.ask_messages(), served.ask_messages(), served.ask_messages());
    assert_eq!([a, b, c].map(|answer| status(&answer)), [200; 3]);
}

#[tokio::test]
async fn only_waiting_for_the_provider_counts_as_busy() {
    let (go, _) = tokio::sync::broadcast::channel::<()>(1);
    let released = go.clone();
    let provider = Provider::start(move |mut stream, _| {
        let mut released = released.subscribe();
        async move {
            let _ = released.recv().await;
            let _ = stream.write_all(STREAM.as_bytes()).await;
            // More than anyone holds for an agent that does not take it.
            while stream.write_all(message(1, 1, &"x".repeat(50_000)).as_bytes()).await.is_ok() {}
        }
    })
    .await;
    let allowance = Allowance::unlimited();
    let served = serve(Settings::new(provider.upstream()), Arc::clone(&allowance)).await;
    let mut agent = served.connect().await;
    agent.write_all(served.post("/v1/messages", MESSAGES).as_bytes()).await.unwrap();
    let reached = async |busy: bool| {
        for _ in 0..500 {
            if allowance.is_busy() == busy {
                tokio::time::sleep(Duration::from_millis(20)).await;
                if allowance.is_busy() == busy {
                    return true;
                }
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    };
    assert!(reached(true).await, "the provider thinks");
    while go.send(()).is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(reached(false).await, "the agent does not take its answer");
    drop(agent);
}
