//! Checks: what the orchestrator finds out about finished work by itself.
//!
//! The project's own commands are run ([`command`], by a [`runner`]) on a
//! [`checkout`] that holds nothing but the commit ([`acceptance`]), and the
//! change itself is looked over: [`facts`] reads it from git, and
//! [`blueflame_core::inspection`] judges it. Nothing is decided here.

pub mod acceptance;
pub mod checkout;
pub mod command;
pub mod diagnostics;
pub mod facts;
mod patch;
pub mod runner;
