//! The model: one streamed request at a time, tried again where that helps.

mod answer;
mod client;
mod failure;
mod retry;

pub(super) use answer::{Answer, Block, Partial};
pub(super) use client::{Client, Endpoint, Patience, Token};
pub(super) use failure::{Failure, FailureKind};
pub(super) use retry::{MOST_RETRIES, Next, Tries};
