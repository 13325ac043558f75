//! Hooks, by the events alone: none twice, none forgotten, and validation waits.

use std::collections::BTreeSet;

use blueflame_core::event::LandResult;
use blueflame_core::hook::{Hook, Occasion};
use blueflame_core::rules::Rules;

use super::{Finding, must};

#[derive(Debug)]
pub(super) struct Hooks {
    configured: BTreeSet<Hook>,
    /// What was run, in words that tell one occasion from another.
    seen: BTreeSet<String>,
    running: Option<Hook>,
    /// Cycles whose hook before validation is over, one way or another.
    cleared: BTreeSet<u32>,
    waits: Option<u32>,
    plans: usize,
    landed: usize,
}

impl Hooks {
    pub(super) fn new(rules: &Rules) -> Self {
        Hooks {
            configured: rules.hooks.iter().copied().collect(),
            seen: BTreeSet::new(),
            running: None,
            cleared: BTreeSet::new(),
            waits: None,
            plans: 0,
            landed: 0,
        }
    }

    pub(super) fn started(&mut self, occasion: &Occasion) -> Result<(), Finding> {
        let hook = occasion.hook();
        must!(self.configured.contains(&hook), "a hook without a command was run");
        must!(self.running.is_none(), "two hooks at once");
        must!(self.seen.insert(format!("{occasion:?}")), "{occasion:?} was run twice");
        self.running = Some(hook);
        self.waits = match occasion {
            Occasion::ValidationDue { cycle } => Some(*cycle),
            _ => None,
        };
        Ok(())
    }

    pub(super) fn finished(&mut self) -> Result<(), Finding> {
        must!(self.running.take().is_some(), "the end of no hook");
        self.cleared.extend(self.waits.take());
        Ok(())
    }

    /// Whatever ran went with it, and is not run again.
    pub(super) fn orchestrator_went(&mut self) {
        self.running = None;
        self.cleared.extend(self.waits.take());
    }

    pub(super) fn plan_approved(&mut self) {
        self.plans += 1;
    }

    pub(super) fn landed(&mut self, result: &LandResult) {
        self.landed += usize::from(*result == LandResult::Landed);
    }

    pub(super) fn validating(&self, cycle: u32) -> Result<(), Finding> {
        let free = !self.configured.contains(&Hook::PreValidation) || self.cleared.contains(&cycle);
        must!(free, "validation did not wait for its hook");
        Ok(())
    }

    pub(super) fn left(&self) -> Result<(), Finding> {
        must!(self.running.is_none(), "left while a hook was running");
        Ok(())
    }

    pub(super) fn ended(&self) -> Result<(), Finding> {
        self.left()?;
        let run = |kind: &str| self.seen.iter().filter(|it| it.starts_with(kind)).count();
        if self.configured.contains(&Hook::PostPlan) {
            must!(run("PlanApproved") == self.plans, "a plan without its hook");
        }
        if self.configured.contains(&Hook::PostMerge) {
            must!(run("Landed") == self.landed, "a landing without its hook");
        }
        Ok(())
    }
}
