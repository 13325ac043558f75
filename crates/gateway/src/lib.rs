//! What stands between an agent and its model.
//!
//! One [`Gateway`](gateway::Gateway) for each agent run: it forwards requests,
//! counts what they use while the answers stream, and refuses those that
//! would pass a budget. The [scripted model](script) can stand in for a real
//! one. Nothing here knows of waves or git.

pub mod allowance;
pub mod calls;
pub mod credential;
pub mod dialect;
mod errands;
pub mod facts;
mod fields;
mod flow;
mod forward;
pub mod gateway;
mod headers;
pub mod loops;
pub mod meter;
pub mod models;
pub mod prices;
mod provider_limit;
pub mod recording;
pub mod refusal;
mod request;
mod room;
pub mod script;
pub mod sse;
pub mod upstream;
