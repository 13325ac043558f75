//! The part of Blue Flame that decides.
//!
//! Everything in here is a plain function of its inputs: no files, processes,
//! clock, environment or network (`clippy.toml` beside this crate makes that an
//! error). The shell performs what [`decide`](decide::decide) asks for and
//! reports what happened as events, which [`State`](state::State) folds.

pub mod answer;
pub mod config;
pub mod decide;
pub mod event;
pub mod forecast;
pub mod gate;
pub mod graph;
pub mod hook;
pub mod ids;
pub mod inspection;
pub mod lock_path;
pub mod memory;
pub mod money;
pub mod outcome;
pub mod path_pattern;
pub mod path_rules;
pub mod plan;
pub mod policy;
pub mod projection;
pub mod proof;
pub mod rules;
pub mod skill;
pub mod state;
pub mod visible;
pub mod yaml;
