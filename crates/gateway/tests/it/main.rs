//! The gateway over real sockets, with an agent and a provider that do
//! whatever a test wants.

#![expect(
    clippy::unwrap_used,
    clippy::format_collect,
    clippy::format_push_string,
    reason = "all of this is test code, also outside of test functions"
)]

mod budgets;
mod documents;
mod forwarding;
mod hardening;
mod recording;
mod scripted;
mod secrets;
mod tls;
mod wire;
