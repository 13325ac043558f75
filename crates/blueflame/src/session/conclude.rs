//! What an agent run came to: what the attempt process sealed, and what is found
//! in the workspace.

use std::fmt::Display;
use std::thread;
use std::time::Duration;

use blueflame_core::answer::{self, MergerReport};
use blueflame_core::ids::Oid;
use blueflame_core::inspection;
use blueflame_core::outcome::{Killer, Outcome, Product};
use blueflame_core::plan::{Plan, PlanContext};
use blueflame_core::policy::{Policy, judge_planned};
use blueflame_core::state::merging::Changeset;
use blueflame_core::state::task::{Phase, Task};
use serde_json::Value;
use tokio::runtime::Handle;

use super::agents::Run;
use super::brief::{Brief, Spending};
use super::merging;
use super::prepare::workspace_of;
use super::site::Site;
use crate::attempt::last_snapshot;
use crate::attempt::sealed::{Ending, Sealed};
use crate::attempt::snapshot::newest;
use crate::attempt::spec::Author;
use crate::checks::facts;
use crate::ground::RealGround;
use crate::landing::{FoldOrder, LandingError, Merger};
use crate::workspace::{Harvest, Workspace};

/// How often work is taken over before that is given up for now, and the pause
/// between.
const HARVESTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Why there is no outcome to tell.
#[derive(Debug)]
enum Unknown {
    /// It left something that nobody can make sense of.
    Senseless(String),
    /// We could not take over what it left. It is all still there.
    NotTaken(String),
}

impl From<String> for Unknown {
    fn from(detail: String) -> Self {
        Unknown::Senseless(detail)
    }
}

impl From<LandingError> for Unknown {
    fn from(error: LandingError) -> Self {
        if error.is_for_the_person() || error.is_of_git() {
            Unknown::not_taken(&error)
        } else {
            Unknown::Senseless(error.to_string())
        }
    }
}

impl Unknown {
    fn not_taken(why: &dyn Display) -> Self {
        Unknown::NotTaken(format!("finished work could not be taken over: {why}"))
    }
}

/// What a run came to, and what is saved of it.
#[derive(Debug)]
pub struct Concluded {
    pub outcome: Outcome,
    /// Unfinished work. What is finished is in commits.
    pub snapshot: Option<Oid>,
    /// What could not be saved.
    pub remarks: Vec<String>,
}

/// The outcome of a run. Looking at what a worker left takes a while. The error
/// says what keeps us from taking it over; it can be tried again.
pub fn conclude(site: &Site, run: &Run, sealed: Sealed) -> Result<Concluded, String> {
    let (unsaved, mut snapshot) = (sealed.unsaved, sealed.snapshot.clone());
    let outcome = outcome(site, run, sealed)?;
    let mut remarks = Vec::new();
    if let Outcome::Finished { .. } = outcome {
        snapshot = None;
    } else if unsaved && !workspace_is_gone(site, run) {
        let attempt = site.attempt(&run.work, &run.agent);
        match last_snapshot::save(&site.blueflame, &attempt) {
            Ok(saved) => (snapshot, remarks) = (saved.snapshot, saved.remarks),
            Err(error) => {
                // It may have come as far as that.
                snapshot = newest(&attempt.snapshots()).or(snapshot);
                remarks.push(format!("unfinished work is not saved: {error}"));
            }
        }
    }
    Ok(Concluded { outcome, snapshot, remarks })
}

fn outcome(site: &Site, run: &Run, sealed: Sealed) -> Result<Outcome, String> {
    if is_a_break(&sealed.ending) && workspace_is_gone(site, run) {
        return Ok(Outcome::Killed { by: Killer::Other });
    }
    let output = match sealed.ending {
        Ending::Failed(outcome) => return Ok(outcome),
        Ending::Stopped { output, .. } => output.unwrap_or_default(),
    };
    let outcome = match &run.brief {
        Brief::Plan { tasks, .. } => plan(site, run, tasks, &output),
        Brief::Develop { .. } => development(site, run),
        Brief::Validate { .. } => Ok(verdict(&output)),
        Brief::Resolve { changeset, tasks, spending } => {
            let mut spending = spending.clone();
            spending.mergers = spending.mergers.plus(sealed.spend);
            resolution(site, run, changeset, tasks, &spending, &output)
        }
    };
    match outcome {
        Ok(outcome) => Ok(outcome),
        Err(Unknown::Senseless(detail)) => Ok(Outcome::Crashed { detail }),
        Err(Unknown::NotTaken(why)) => Err(why),
    }
}

/// Whether the place where the run was told to work has vanished: somebody removed
/// the workspace, or moved the whole repository. A sandbox keeps an agent from
/// either, so it is not the agent that is to blame; without one, it may only do so
/// as often as runs may be killed from outside.
pub fn workspace_is_gone(site: &Site, run: &Run) -> bool {
    if !matches!(run.brief, Brief::Develop { .. } | Brief::Resolve { .. }) {
        return false;
    }
    let Ok(began) = site.beginnings.of(&site.attempt(&run.work, &run.agent)) else { return false };
    let now = workspace_of(site, &run.work, &began.start).path;
    began.workspace != now || matches!(now.try_exists(), Ok(false))
}

/// Whether the run ended as one does that has lost the ground under its feet.
fn is_a_break(ending: &Ending) -> bool {
    matches!(ending, Ending::Stopped { .. } | Ending::Failed(Outcome::Crashed { .. }))
}

fn malformed(problems: Vec<String>) -> Outcome {
    Outcome::Malformed { problems }
}

fn plan(site: &Site, run: &Run, tasks: &[Task], output: &Value) -> Result<Outcome, Unknown> {
    let landed = tasks.iter().filter(|task| matches!(task.phase, Phase::Merged { .. }));
    let landed = landed.map(|task| task.spec.id.clone()).collect();
    let context = PlanContext::of(&site.config).after(landed);
    let plan = match Plan::read(output.to_string().as_bytes(), &context) {
        Ok((plan, _)) => plan,
        Err(problems) => return Ok(malformed(problems.iter().map(ToString::to_string).collect())),
    };
    // We run its commands ourselves: they have to be ones that agents may run.
    let workspace = workplace(site, run)?;
    let ground = RealGround::new(&workspace.files()).map_err(|error| error.to_string())?;
    let denied = judge_planned(&plan, &site.config, &ground).map_err(|error| error.to_string())?;
    if !denied.is_empty() {
        return Ok(malformed(denied));
    }
    Ok(Outcome::Finished { product: Product::Plan(plan) })
}

fn development(site: &Site, run: &Run) -> Result<Outcome, Unknown> {
    let workspace = workplace(site, run)?;
    let harvest = match harvest(site, &workspace)? {
        Ok(harvest) => harvest,
        Err(violation) => return Ok(violation),
    };
    // Most leave nothing behind, and rules take a while to be made ready.
    if harvest.uncommitted.is_empty() {
        return Ok(harvest.left_behind(|_| false).outcome());
    }
    let policy = policy(site, run)?;
    Ok(harvest.left_behind(|path| policy.may_commit(path)).outcome())
}

/// Takes over what was committed, or says what is wrong with it. What goes wrong
/// with us is tried again, and is never held against the work.
fn harvest(site: &Site, workspace: &Workspace) -> Result<Result<Harvest, Outcome>, Unknown> {
    let mut tries = 1;
    loop {
        match site.workspaces.harvest(workspace) {
            Ok(harvest) => return Ok(Ok(harvest)),
            Err(error) if error.is_the_agents() => {
                let mut violations = error.violations();
                violations.push(site.workspaces.kept(workspace));
                return Ok(Err(Outcome::Violated { violations }));
            }
            Err(_) if tries < HARVESTS => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            Err(error) => {
                return Err(Unknown::NotTaken(format!(
                    "the work in `{}` is done, and could not be taken over: {error}",
                    workspace.path.display()
                )));
            }
        }
    }
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
) -> Result<Outcome, Unknown> {
    match answer::read_merger_report(output) {
        Ok(MergerReport::Resolved { .. }) => {}
        Ok(MergerReport::Unresolved { report }) => {
            return Ok(Outcome::Finished { product: Product::Unresolvable { report } });
        }
        Err(problems) => return Ok(malformed(problems)),
    }
    let (workspace, policy) = (workplace(site, run)?, policy(site, run)?);
    let harvest = match harvest(site, &workspace)? {
        Ok(harvest) => harvest,
        Err(violation) => return Ok(violation),
    };
    let left = harvest.left_behind(|path| policy.may_commit(path)).outcome();
    if !matches!(left, Outcome::Finished { .. }) {
        return Ok(left);
    }
    let mut violations = violations(site, &workspace, &policy, &harvest.head)?;
    if !violations.is_empty() {
        violations.push(site.workspaces.kept(&workspace));
        return Ok(Outcome::Violated { violations });
    }
    // The base may have moved since. What the merger brought together is what was
    // there when it started; put onto anything newer, it would take that back.
    let onto = site.landing.beneath(&workspace.start)?;
    let merger = Merger { agent: run.agent.clone(), cost: spending.mergers.cost.to_string() };
    let order = merging::fold_order(site, changeset, tasks, spending, onto)?;
    let order = FoldOrder { merger: Some(merger), ..order };
    let fold = site.landing.fold_resolution(&order, &harvest.head)?;
    Ok(Outcome::Finished { product: Product::Resolution(fold) })
}

/// What is wrong with the files as a merger left them. It is called from a
/// thread that may wait.
fn violations(
    site: &Site,
    workspace: &Workspace,
    policy: &Policy,
    head: &Oid,
) -> Result<Vec<String>, Unknown> {
    let Author { name, email } = &workspace.author;
    let now = jiff::Timestamp::now().as_second();
    let author = format!("{name} <{email}>");
    let gathering = facts::gather(site.workspaces.objects(), &workspace.start, head, &author, now);
    let work = Handle::current().block_on(gathering).map_err(|error| Unknown::not_taken(&error))?;
    Ok(inspection::inspect_files(policy, &work).violations())
}

/// Where the run took place, as its spec says.
fn workplace(site: &Site, run: &Run) -> Result<Workspace, String> {
    let began = site.beginnings.of(&site.attempt(&run.work, &run.agent));
    let began = began.map_err(|error| error.to_string())?;
    let workspace = workspace_of(site, &run.work, &began.start);
    // The person's name may have changed since.
    Ok(Workspace { author: began.author.clone(), ..workspace })
}

/// What the run was held to, as its spec says.
fn policy(site: &Site, run: &Run) -> Result<Policy, String> {
    let spec = site.attempt(&run.work, &run.agent).spec().map_err(|error| error.to_string())?;
    Policy::new(spec.policy).map_err(|error| error.to_string())
}
