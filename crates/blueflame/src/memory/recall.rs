//! What a session tells its agents of earlier ones. It is looked up once, when a
//! session begins or goes on, so that all its agents are told the same.

use blueflame_core::config::{Config, ConfigFile, Memory};
use blueflame_core::forecast::Estimates;
use blueflame_core::ids::SessionId;
use blueflame_core::lock_path::LockPath;
use blueflame_core::memory::context::{self, Context, Reader};
use blueflame_core::memory::{Notebook, learned};

use super::keeper::{Keeper, Terms};
use super::warned::Warned;
use crate::store::Store;

/// A worker has one task and needs less than a planner.
const WORKERS_SHARE: usize = 4;

#[derive(Clone, Debug, Default)]
pub struct Recall {
    notebook: Notebook,
    tokens: usize,
    warnings: Vec<String>,
    warned: Warned,
}

impl Recall {
    /// What there is to know, but for what a session itself has left. Nothing that
    /// fails here keeps it from beginning.
    pub fn of(store: &Store, config: Option<&Memory>, session: Option<&SessionId>) -> Recall {
        let Some(config) = config else { return Recall::default() };
        let tokens = config.context_tokens;
        match Keeper::of(store).catch_up(&Terms::of(config)) {
            Ok(caught_up) => {
                let mut notebook = caught_up.notebook;
                // Its own history reaches its agents by shorter ways.
                notebook.retain(|note| Some(&note.session) != session);
                Recall { notebook, tokens, ..Recall::warning(caught_up.warnings) }
            }
            Err(error) => {
                let why = format!("nothing is remembered of earlier sessions: {error}");
                Recall::warning(vec![why])
            }
        }
    }

    fn warning(warnings: Vec<String>) -> Recall {
        let warned = Warned::default();
        Recall { warnings: warned.news(warnings), warned, ..Recall::default() }
    }

    /// The same without bringing anything up to date, for those who only look.
    pub fn as_it_is(store: &Store, config: Option<&Memory>) -> Recall {
        let Some(config) = config else { return Recall::default() };
        match Keeper::of(store).look() {
            Ok(notebook) => Recall { notebook, tokens: config.context_tokens, ..Recall::default() },
            Err(error) => Recall::warning(vec![error.to_string()]),
        }
    }

    /// What agent runs will probably take and cost, by what they took and cost.
    pub fn estimates(&self, config: &Config, file: &ConfigFile) -> Estimates {
        let by_hand = file.forecast.by_hand();
        learned::learn(&self.notebook, &config.estimates, &config.executors.chains, &by_hand)
    }

    /// What the person should hear before anything else happens.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What need not be told again later.
    pub fn warned(&self) -> &Warned {
        &self.warned
    }

    pub fn for_planner(&self, goal: &str) -> Option<Context> {
        context::context(&self.notebook, Reader::Planner { goal }, self.tokens)
    }

    pub fn for_worker(&self, paths: &[LockPath]) -> Option<Context> {
        context::context(&self.notebook, Reader::Worker { paths }, self.tokens / WORKERS_SHARE)
    }
}
