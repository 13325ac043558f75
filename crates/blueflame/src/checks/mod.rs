//! Checks: what the orchestrator finds out about finished work by itself.
//!
//! The project's own commands are run ([`command`], by a [`runner`]) on a
//! [`checkout`] that holds nothing but the commit ([`acceptance`]). Nothing is
//! decided here.

pub mod acceptance;
pub mod checkout;
pub mod command;
pub mod runner;
