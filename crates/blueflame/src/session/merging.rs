//! The merge wave: folding, checking, landing and publishing, each in a task
//! beside the session.

use std::time::Duration;

use blueflame_core::event::{Event, LandResult, PublishResult, VerifyResult};
use blueflame_core::ids::{ChangesetId, Oid, TaskId};
use blueflame_core::outcome::Fold;
use blueflame_core::state::errands::Revert;
use blueflame_core::state::merging::{Changeset, ChangesetPhase};
use blueflame_core::state::task::Task;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::Session;
use super::bench::Bench;
use super::brief::{Spending, fold_of, tasks_of};
use super::post::{Post, Trouble};
use super::prepare::start_of;
use super::review;
use super::site::Site;
use crate::checks::acceptance;
use crate::landing::{
    FoldOrder, FoldTask, LandOrder, LandingError, MessageStyle, PublishOrder, Source, Work,
};

/// How long each command of `merge.verify` may take.
const VERIFY_TIMEOUT: Duration = Duration::from_secs(60 * 60);

pub fn fold(session: &Session, id: &ChangesetId) {
    let Some((changeset, tasks)) = parts_of(session, id) else { return };
    let spending = Spending::of(&session.state, &changeset);
    let (site, post) = session.parts();
    let id = id.clone();
    beside(post, move || {
        let order = fold_order(&site, &changeset, &tasks, &spending, site.tip()?.onto)?;
        let result = site.landing.fold(&order)?;
        Ok(Event::FoldFinished { changeset: id, result })
    });
}

pub fn verify(session: &Session, id: &ChangesetId) {
    let (fold, tasks) = match session.state.revert(id) {
        Some(revert) => (revert.fold().cloned(), Vec::new()),
        None => match parts_of(session, id) {
            Some((changeset, tasks)) => (fold_of(&changeset).cloned(), tasks),
            None => return,
        },
    };
    let Some(fold) = fold else { return };
    let (site, post) = session.parts();
    let (id, mut stop) = (id.clone(), session.stop.subscribe());
    tokio::spawn(async move {
        let result = verification(&site, &id, &fold, &tasks, &mut stop).await;
        // A check that was cut short has no result.
        match result {
            Ok(Some(result)) => {
                let commands = site.config.merge.verify.clone();
                post.fact(Event::VerifyFinished { changeset: id, result, commands });
            }
            Ok(None) => {}
            Err(trouble) => post.trouble(trouble),
        }
    });
}

pub fn land(session: &Session, id: &ChangesetId) {
    if let Some(revert) = session.state.revert(id) {
        return land_revert(session, revert.clone());
    }
    let Some((changeset, tasks)) = parts_of(session, id) else { return };
    let ChangesetPhase::Landing { fold } = changeset.phase.clone() else { return };
    let (site, post) = session.parts();
    let id = id.clone();
    beside(post, move || {
        let order = LandOrder {
            session: site.session.id().clone(),
            changeset: id.clone(),
            base_branch: site.config.project.base_branch.clone(),
            tip: site.tip()?,
            commit: fold.commit,
            approved: changeset.approved.unwrap_or_default(),
            work: Work::Tasks(sources(&site, &tasks)?),
        };
        let result = landed(&site, &order)?;
        Ok(Event::LandFinished { changeset: id, result })
    });
}

/// The undoing of a changeset lands as it was folded, checked and asked for.
fn land_revert(session: &Session, revert: Revert) {
    let Some(fold) = revert.fold().cloned() else { return };
    let (site, post) = session.parts();
    beside(post, move || {
        let (id, tip) = (site.session.id(), site.tip()?);
        let undo = site.landing.find_landed(&tip.onto, &revert.undoes, Some(id))?;
        let order = LandOrder {
            session: id.clone(),
            changeset: revert.changeset.clone(),
            base_branch: site.config.project.base_branch.clone(),
            tip,
            commit: fold.commit,
            approved: fold.patch,
            work: Work::Revert(undo),
        };
        let result = landed(&site, &order)?;
        Ok(Event::LandFinished { changeset: revert.changeset, result })
    });
}

fn landed(site: &Site, order: &LandOrder) -> Result<LandResult, LandingError> {
    match site.landing.land(order) {
        Ok(result) => Ok(result),
        // It was folded onto something that is not there any more.
        Err(LandingError::NotOnTop { .. } | LandingError::WouldLose { .. }) => {
            Ok(LandResult::BaseMoved)
        }
        Err(error) => Err(error),
    }
}

/// Checks the base and the landed work together, for a person who asked.
pub fn verify_joint(session: &Session, commit: &Oid) {
    let (site, post) = session.parts();
    let (commit, mut stop) = (commit.clone(), session.stop.subscribe());
    tokio::spawn(async move {
        match twice(&site, &commit, &mut stop).await {
            Ok(Some(result)) => post.fact(Event::JointVerifyFinished { commit, result }),
            Ok(None) => {}
            Err(trouble) => post.trouble(trouble),
        }
    });
}

pub fn publish(session: &Session, commit: &Oid) {
    let (site, post) = session.parts();
    let commit = commit.clone();
    beside(post, move || {
        let base_branch = site.config.project.base_branch.clone();
        let published = site.tip().and_then(|tip| {
            // Only what a person asked for is not landed yet: the base and what
            // landed as one, checked since.
            if tip.onto == commit {
                site.landing.adopt(site.session.id(), &tip)?;
            }
            site.landing.publish(&PublishOrder {
                session: site.session.id().clone(),
                base_branch: base_branch.clone(),
                expected: tip.base,
                commit: commit.clone(),
            })
        });
        let result = match published {
            Ok(publication) => publication.result(&base_branch),
            // The person did something with the branch that only they can sort out.
            Err(error) if error.is_for_the_person() => {
                PublishResult::Waiting { reason: error.to_string() }
            }
            // It moved once more while the two were checked together.
            Err(LandingError::NotLanded { .. }) => PublishResult::Waiting {
                reason: format!("`{base_branch}` moved meanwhile; `blueflame publish` tries again"),
            },
            Err(error) => return Err(error.into()),
        };
        Ok(Event::PublishFinished { commit, result })
    });
}

/// The order to fold a changeset as it stands.
pub fn fold_order(
    site: &Site,
    changeset: &Changeset,
    tasks: &[Task],
    spending: &Spending,
    onto: Oid,
) -> Result<FoldOrder, String> {
    let style = MessageStyle {
        pattern: site.config.validation.commit_format.as_ref().map(|it| it.pattern.clone()),
    };
    let tasks = tasks.iter().zip(sources(site, tasks)?).map(|(task, source)| FoldTask {
        source,
        title: task.spec.title.clone(),
        agent: task.last_worker.as_ref().map(|(agent, _)| agent.clone()),
        cost: spending.on(&task.spec.id).cost.to_string(),
        validation: if review::passed_by_hand(task) { "passed by hand" } else { "passed" }.into(),
    });
    Ok(FoldOrder {
        session: site.session.id().clone(),
        changeset: changeset.planned.id.clone(),
        onto,
        tasks: tasks.collect(),
        author: site.author.clone(),
        when: Timestamp::now(),
        style,
        merger: None,
    })
}

fn sources(site: &Site, tasks: &[Task]) -> Result<Vec<Source>, String> {
    tasks
        .iter()
        .map(|task| {
            let commit = task.phase.commit().cloned();
            let commit =
                commit.ok_or_else(|| format!("`{}` has no finished work", task.spec.id))?;
            let (task, start) = (task.spec.id.clone(), start_of(site, task)?);
            Ok(Source { task, start, commit })
        })
        .collect()
}

fn parts_of(session: &Session, id: &ChangesetId) -> Option<(Changeset, Vec<Task>)> {
    let changeset = session.state.merging.get(id)?;
    Some((changeset.clone(), tasks_of(&session.state, changeset)))
}

/// Runs something that takes a while, and posts what comes of it.
fn beside(post: Post, work: impl FnOnce() -> Result<Event, Trouble> + Send + 'static) {
    tokio::spawn(async move {
        let done = spawn_blocking(work).await;
        match done.unwrap_or_else(|error| Err(Trouble::Ours(error.to_string()))) {
            Ok(event) => post.fact(event),
            Err(trouble) => post.trouble(trouble),
        }
    });
}

/// Checks exactly the folded tree; a red result is tried once more and then
/// traced to the first task with which it is red. `None` if it was cut short.
async fn verification(
    site: &Site,
    id: &ChangesetId,
    fold: &Fold,
    tasks: &[Task],
    stop: &mut watch::Receiver<bool>,
) -> Result<Option<VerifyResult>, Trouble> {
    match twice(site, &fold.commit, stop).await? {
        Some(VerifyResult::Failed { evidence, .. }) => {
            let culprit = culprit(site, id, fold, tasks, stop).await?;
            // Whose doing it is, is a part of the result.
            let cut = *stop.borrow();
            Ok((!cut).then_some(VerifyResult::Failed { culprit, evidence }))
        }
        result => Ok(result),
    }
}

/// Checks a tree, and once more if it is red. `None` if it was cut short.
async fn twice(
    site: &Site,
    commit: &Oid,
    stop: &mut watch::Receiver<bool>,
) -> Result<Option<VerifyResult>, Trouble> {
    if site.config.merge.verify.is_empty() {
        return Ok(Some(VerifyResult::NotConfigured));
    }
    for passed in [VerifyResult::Passed, VerifyResult::PassedOnRerun] {
        match check(site, commit, stop).await? {
            Check::Green => return Ok(Some(passed)),
            Check::Cut => return Ok(None),
            Check::Red(evidence) if passed == VerifyResult::PassedOnRerun => {
                return Ok(Some(VerifyResult::Failed { culprit: None, evidence }));
            }
            Check::Red(_) => {}
        }
    }
    Ok(None)
}

/// What the check said about one tree.
enum Check {
    Green,
    Red(String),
    /// The session stops.
    Cut,
}

async fn check(
    site: &Site,
    commit: &Oid,
    stop: &mut watch::Receiver<bool>,
) -> Result<Check, Trouble> {
    let bench = Bench::of(site, commit, stop).await?;
    let results = bench.run(&site.config.merge.verify, VERIFY_TIMEOUT, stop).await?;
    if *stop.borrow() {
        return Ok(Check::Cut);
    }
    let failures = acceptance::failures(&results);
    Ok(if failures.is_empty() { Check::Green } else { Check::Red(failures.join("\n")) })
}

/// The first task with which the check is red, found by halving. The commits of
/// a fold are one for each task; a resolved conflict is a single one, and tells
/// nothing.
async fn culprit(
    site: &Site,
    id: &ChangesetId,
    fold: &Fold,
    tasks: &[Task],
    stop: &mut watch::Receiver<bool>,
) -> Result<Option<TaskId>, Trouble> {
    let [first, rest @ ..] = tasks else { return Ok(None) };
    if rest.is_empty() {
        return Ok(Some(first.spec.id.clone()));
    }
    let row = site
        .landing
        .folded_row(site.session.id(), id, &fold.commit, tasks.len())
        .map_err(|error| error.to_string())?;
    let commits = row.commits;
    if commits.len() != tasks.len() {
        return Ok(None);
    }
    // Everything before `low` is green, everything from `high` on is red.
    let (mut low, mut high) = (0, commits.len() - 1);
    while low < high {
        let middle = usize::midpoint(low, high);
        match check(site, &commits[middle], stop).await? {
            Check::Green => low = middle + 1,
            Check::Red(_) => high = middle,
            Check::Cut => return Ok(None),
        }
    }
    Ok(Some(tasks[low].spec.id.clone()))
}
