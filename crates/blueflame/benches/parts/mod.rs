//! What several benchmarks need.

#![allow(dead_code, reason = "each benchmark uses some of it")]

pub mod bare;
pub mod figures;
pub mod gateway;
pub mod hooks;
pub mod model;
pub mod overload;
pub mod processor;
pub mod programs;
pub mod project;
pub mod session;
pub mod stand_in;
pub mod tasks;
