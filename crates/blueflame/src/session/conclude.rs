//! What an agent run came to: what the attempt process sealed, and what is found
//! in the workspace.

use blueflame_core::answer::{self, MergerReport};
use blueflame_core::outcome::{Outcome, Product};
use blueflame_core::plan::{Plan, PlanContext};
use blueflame_core::state::merging::Changeset;
use blueflame_core::state::task::{Phase, Task};
use serde_json::Value;

use super::agents::Run;
use super::brief::{Brief, Spending};
use super::merging;
use super::prepare::workspace_of;
use super::site::Site;
use super::tidy;
use crate::attempt::sealed::{Ending, Sealed};
use crate::landing::{FoldOrder, Merger};
use crate::workspace::Workspace;

/// The outcome of a run. Looking at what a worker left takes a while.
pub fn outcome(site: &Site, run: &Run, sealed: Sealed) -> Outcome {
    let outcome = look(site, run, sealed);
    tidy::after_reading(site, &run.work);
    outcome
}

fn look(site: &Site, run: &Run, sealed: Sealed) -> Outcome {
    let output = match sealed.ending {
        Ending::Failed(outcome) => return outcome,
        Ending::Stopped { output, .. } => output.unwrap_or_default(),
    };
    let outcome = match &run.brief {
        Brief::Plan { tasks, .. } => Ok(plan(site, tasks, &output)),
        Brief::Develop { .. } => development(site, run),
        Brief::Validate { .. } => Ok(verdict(&output)),
        Brief::Resolve { changeset, tasks, spending } => {
            let mut spending = spending.clone();
            spending.mergers = spending.mergers.plus(sealed.spend);
            resolution(site, run, changeset, tasks, &spending, &output)
        }
    };
    outcome.unwrap_or_else(|detail| Outcome::Crashed { detail })
}

fn malformed(problems: Vec<String>) -> Outcome {
    Outcome::Malformed { problems }
}

fn plan(site: &Site, tasks: &[Task], output: &Value) -> Outcome {
    let landed = tasks.iter().filter(|task| matches!(task.phase, Phase::Merged { .. }));
    let landed = landed.map(|task| task.spec.id.clone()).collect();
    let context = PlanContext::of(&site.config).after(landed);
    match Plan::read(output.to_string().as_bytes(), &context) {
        Ok((plan, _)) => Outcome::Finished { product: Product::Plan(plan) },
        Err(problems) => malformed(problems.iter().map(ToString::to_string).collect()),
    }
}

fn development(site: &Site, run: &Run) -> Result<Outcome, String> {
    let workspace = workspace(site, run)?;
    Ok(match site.workspaces.harvest(&workspace) {
        Ok(harvest) => harvest.left_behind().outcome(),
        Err(refused) => Outcome::Violated { violations: vec![refused.to_string()] },
    })
}

fn verdict(output: &Value) -> Outcome {
    match answer::read_verdict(output) {
        Ok(verdict) => Outcome::Finished { product: Product::Verdict(verdict) },
        Err(problems) => malformed(problems),
    }
}

fn resolution(
    site: &Site,
    run: &Run,
    changeset: &Changeset,
    tasks: &[Task],
    spending: &Spending,
    output: &Value,
) -> Result<Outcome, String> {
    match answer::read_merger_report(output) {
        Ok(MergerReport::Resolved { .. }) => {}
        Ok(MergerReport::Unresolved { report }) => {
            return Ok(Outcome::Finished { product: Product::Unresolvable { report } });
        }
        Err(problems) => return Ok(malformed(problems)),
    }
    let workspace = workspace(site, run)?;
    let harvest = match site.workspaces.harvest(&workspace) {
        Ok(harvest) => harvest,
        Err(refused) => return Ok(Outcome::Violated { violations: vec![refused.to_string()] }),
    };
    let left = harvest.left_behind().outcome();
    if !matches!(left, Outcome::Finished { .. }) {
        return Ok(left);
    }
    // The base may have moved since. What the merger brought together is what was
    // there when it started; put onto anything newer, it would take that back.
    let onto = site.landing.beneath(&workspace.start).map_err(|error| error.to_string())?;
    let merger = Merger { agent: run.agent.clone(), cost: spending.mergers.cost.to_string() };
    let order = merging::fold_order(site, changeset, tasks, spending, onto)?;
    let order = FoldOrder { merger: Some(merger), ..order };
    let fold =
        site.landing.fold_resolution(&order, &harvest.head).map_err(|error| error.to_string())?;
    Ok(Outcome::Finished { product: Product::Resolution(fold) })
}

/// Where the run took place, as its spec says.
fn workspace(site: &Site, run: &Run) -> Result<Workspace, String> {
    let spec = site.attempt(&run.work, &run.agent).spec().map_err(|error| error.to_string())?;
    Ok(workspace_of(site, &run.work, &spec.start))
}
