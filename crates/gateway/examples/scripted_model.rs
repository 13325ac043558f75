//! Serves a script as a model on a loopback port, for trying things out by
//! hand:
//!
//! `cargo run -p blueflame-gateway --example scripted_model -- SCRIPT [PORT]`
//!
//! Prints the address and the token, and then each fact. With `BUDGET` in the
//! environment the agent may use that many tokens.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use std::process::ExitCode;

use blueflame_core::money::{Budget, Spend};
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::Token;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::script::Script;
use blueflame_gateway::upstream::Upstream;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which script?")?;
    let port: u16 = arguments.next().map_or(Ok(0), |port| port.parse())?;
    let script = match Script::read(&std::fs::read(&path)?) {
        Ok((script, _)) => script,
        Err(problems) => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(lines.join("\n").into());
        }
    };
    let budget = std::env::var("BUDGET").ok().and_then(|tokens| tokens.parse().ok());
    let cap = budget.map_or(Budget::Unlimited, Budget::Tokens);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let address = listener.local_addr()?;
    let token = Token::generate()?;
    println!("http://{address} {}", token.reveal());
    let (gateway, mut facts) = Gateway::start(
        Listener::Tcp(listener),
        token,
        Allowance::new(cap, Budget::Unlimited, Spend::default()),
        Settings::new(Upstream::Script(script.into())),
    );
    while let Some(fact) = facts.recv().await {
        eprintln!("{fact:?}");
    }
    gateway.close().await;
    Ok(())
}
