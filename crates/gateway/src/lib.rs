//! What stands between an agent and its model.
//!
//! One [`Gateway`](gateway::Gateway) for each agent run: it forwards requests,
//! counts what they use while the answers stream, and refuses those that
//! would pass a budget. The [scripted model](script) can stand in for a real
//! one. Nothing here knows of waves or git.

pub mod dialect;
pub mod meter;
pub mod prices;
pub mod refusal;
pub mod script;
pub mod sse;
