//! Checks with real processes and real repositories.

#![expect(clippy::unwrap_used, reason = "all of this is test code, also outside of test functions")]

mod checkout;
mod commands;
mod inspection;
