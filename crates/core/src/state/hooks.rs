//! The person's own commands: which are due, which one runs, what came of each.

use serde::Serialize;

use crate::hook::{Hook, HookResult, Occasion};

use super::{Refusal, State, ensure};

/// All hooks of a session, in the order of what they are run for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hooks {
    runs: Vec<HookRun>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookRun {
    pub occasion: Occasion,
    pub stands: HookStands,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HookStands {
    Due,
    Running,
    Ended(HookResult),
}

impl Hooks {
    pub fn runs(&self) -> &[HookRun] {
        &self.runs
    }

    pub fn is_any_running(&self) -> bool {
        self.runs.iter().any(|run| run.stands == HookStands::Running)
    }

    /// Whether nothing is due and nothing runs.
    pub fn is_idle(&self) -> bool {
        self.runs.iter().all(|run| matches!(run.stands, HookStands::Ended(_)))
    }

    /// The one to be run next: they are run one after the other.
    pub fn next(&self) -> Option<(u32, &Occasion)> {
        if self.is_any_running() {
            return None;
        }
        let place = self.runs.iter().position(|run| run.stands == HookStands::Due)?;
        Some((u32::try_from(place).ok()?, &self.runs[place].occasion))
    }

    /// The number of one that is about to be added.
    pub fn next_number(&self) -> u32 {
        u32::try_from(self.runs.len()).unwrap_or(u32::MAX)
    }

    /// How the hook before the validations of a cycle stands.
    pub fn before_validation(&self, cycle: u32) -> Option<&HookStands> {
        let wanted = Occasion::ValidationDue { cycle };
        self.runs.iter().find(|run| run.occasion == wanted).map(|run| &run.stands)
    }

    fn count(&self, hook: Hook) -> u32 {
        let count = self.runs.iter().filter(|run| run.occasion.hook() == hook).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

impl State {
    /// Notes an occasion, if there is a command for it. None is noted twice.
    pub(super) fn hook_due(&mut self, occasion: Occasion) {
        let known = self.hooks.runs.iter().any(|run| run.occasion == occasion);
        if self.rules.hooks.contains(&occasion.hook()) && !known {
            self.hooks.runs.push(HookRun { occasion, stands: HookStands::Due });
        }
    }

    pub(super) fn plan_was_approved(&mut self) {
        let plan = self.hooks.count(Hook::PostPlan) + 1;
        self.hook_due(Occasion::PlanApproved { plan });
    }

    pub(super) fn start_hook(&mut self, number: u32, occasion: &Occasion) -> Result<(), Refusal> {
        let hook = occasion.hook();
        ensure!(self.rules.hooks.contains(&hook), "there is no command for {}", hook.name());
        ensure!(!self.hooks.is_any_running(), "another hook is running");
        if let Occasion::ValidationDue { cycle } = occasion {
            ensure!(*cycle == self.cycle, "that is not the cycle it is");
            ensure!(self.hooks.before_validation(*cycle).is_none(), "it was run in this cycle");
            ensure!(self.hooks.is_idle(), "another hook is next");
            ensure!(number == self.hooks.next_number(), "its number is another one");
            let run = HookRun { occasion: occasion.clone(), stands: HookStands::Running };
            self.hooks.runs.push(run);
            return Ok(());
        }
        ensure!(self.hooks.next() == Some((number, occasion)), "another hook is next, or none");
        if let Some(run) = self.hooks.runs.get_mut(number as usize) {
            run.stands = HookStands::Running;
        }
        Ok(())
    }

    pub(super) fn finish_hook(&mut self, number: u32, result: &HookResult) -> Result<(), Refusal> {
        let run = self.hooks.runs.get_mut(number as usize);
        let Some(run) = run.filter(|run| run.stands == HookStands::Running) else {
            return Err("that hook is not running".into());
        };
        run.stands = HookStands::Ended(result.clone());
        Ok(())
    }

    /// Nobody saw the end of a hook that ran when its orchestrator went.
    pub(super) fn give_up_running_hooks(&mut self) {
        for run in &mut self.hooks.runs {
            if run.stands == HookStands::Running {
                run.stands = HookStands::Ended(HookResult::CutShort);
            }
        }
    }
}
