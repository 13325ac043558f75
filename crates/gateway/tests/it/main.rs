//! The gateway over real sockets, with an agent and a provider that do
//! whatever a test wants.

#![allow(clippy::unwrap_used, clippy::format_collect, clippy::format_push_string)]

mod budgets;
mod forwarding;
mod hardening;
mod recording;
mod scripted;
mod secrets;
mod wire;
