//! Getting an agent ready: its workspace, its prompt, its spec.

use std::fmt::Display;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use blueflame_core::event::{StartFault, Work};
use blueflame_core::ids::{AccountName, AgentId, ExecutorName, Oid, Role};
use blueflame_core::lock_path::LockPath;
use blueflame_core::money::Budget;
use blueflame_core::policy::{PolicyRules, SkillRule};
use blueflame_core::state::merging::ChangesetPhase;
use blueflame_core::state::task::Task;

use super::brief::Brief;
use super::checking;
use super::merging;
use super::offer;
use super::site::Site;
use crate::attempt::directory::Directory;
use crate::attempt::snapshot;
use crate::attempt::spec::{FORMAT, Limits, Model, Snapshots, Spec};
use crate::checks::command::CommandResult;
use crate::executor::{self, Order};
use crate::landing::LandingError;
use crate::prompts::{
    self, Conflict, Fence, Manner, MergerBrief, MergingTask, NOTE_FILES, PlannerBrief, Prompt,
    RepositoryNotes, Start, ValidatorBrief, WorkerBrief,
};
use crate::skills::{self, Offered, Skill};
use crate::workspace::{
    self, Created, Layers, Restore, StartPoint, Workspace, WorkspaceError, WorkspaceName,
};

/// An agent that is to be started.
#[derive(Clone, Debug)]
pub struct Job {
    pub agent: AgentId,
    pub work: Work,
    pub executor: ExecutorName,
    pub account: AccountName,
    pub cap: Budget,
    pub grant: Budget,
    pub brief: Brief,
}

/// Everything is in place: the workspace on the disk, and the spec to write.
#[derive(Debug)]
pub struct Ready {
    pub workspace: Workspace,
    pub spec: Spec,
    /// What is copied for it.
    pub skills: Vec<Arc<Skill>>,
    /// How large the prompt is, in a line.
    pub sizes: String,
    pub warnings: Vec<String>,
}

/// Why an agent could not be started.
#[derive(Debug)]
pub struct NotStarted {
    pub reason: String,
    pub fault: Fault,
}

/// What it was up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This agent, or what it was to work on: the core decides what follows.
    Own(StartFault),
    /// The disk, the repository or the machine. Nobody could be started, however
    /// often it is tried, until the person has cleared the way.
    Surroundings,
}

/// Whatever is not the fault of the agent's program is wrong around it.
impl From<String> for NotStarted {
    fn from(reason: String) -> Self {
        NotStarted { reason, fault: Fault::Own(StartFault::Place) }
    }
}

impl From<LandingError> for NotStarted {
    fn from(error: LandingError) -> Self {
        if error.is_of_git() || error.is_for_the_person() {
            surroundings(&error)
        } else {
            error.to_string().into()
        }
    }
}

impl From<WorkspaceError> for NotStarted {
    fn from(error: WorkspaceError) -> Self {
        if error.is_of_the_work() { error.to_string().into() } else { surroundings(&error) }
    }
}

pub fn surroundings(error: &impl Display) -> NotStarted {
    NotStarted { reason: error.to_string(), fault: Fault::Surroundings }
}

/// How often a workspace is begun before that is left to the person, and the pause
/// between.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Unfinished work is saved this often.
const SNAPSHOT_EVERY: Duration = Duration::from_secs(60);

/// How long an agent that is asked to stop may take.
pub const GRACE: Duration = Duration::from_secs(10);

/// No sensible run needs more answers that call tools.
const MOST_TURNS: u32 = 250;

/// Prepares a job. It takes as long as a checkout does.
pub fn prepare(site: &Arc<Site>, job: &Job) -> Result<Ready, NotStarted> {
    let unusable = |reason| NotStarted { reason, fault: Fault::Own(StartFault::Program) };
    let program = site.program(&job.executor).map_err(unusable)?;
    let executor = executor::configured(&job.executor, &site.config.executors)
        .ok_or_else(|| unusable(format!("there is no executor `{}`", job.executor)))?;
    let (gateway, key) =
        (site.config.gateway.with_account(&job.account), site.credential(&job.account));
    if let Some(why) = executor::fitness::unfit(&*executor, &gateway, key.as_deref()) {
        return Err(unusable(why));
    }
    let (start, restore) = origin(site, job)?;
    let unfinished = restore.is_some();
    let order = workspace::Order {
        name: WorkspaceName::of(&job.work),
        branch: workspace::branch(site.session.id(), &job.work),
        start: start.clone(),
        restore,
        // What a planner says is checked against the files that it saw.
        in_one_place: job.work == Work::Plan,
        fittings: site.config.worktree.clone(),
    };
    // Left by one that was never recorded as begun, or that another follows.
    let there = site.workspaces.of(&order);
    if fs::symlink_metadata(&there.path).is_ok() {
        site.workspaces.remove(&there)?;
    }
    let created = create(site, &order)?;
    let workspace = created.workspace;

    let role = job.work.role();
    let may_ask = role == Role::Planner && site.interactive && executor.abilities().asks;
    let prompt = prompt(site, job, &workspace, unfinished, may_ask)?;
    let mut warnings: Vec<String> = Vec::new();
    if !created.conflicts.is_empty() {
        warnings.push(format!(
            "unfinished work of `{}` does not fit on its new start in {}",
            workspace.name,
            created.conflicts.join(", ")
        ));
    }
    for left in &created.left_out {
        warnings.push(format!("`{}` is not in the workspace of `{}`", left.path, workspace.name));
    }
    let directory = site.attempt(&job.work, &job.agent);
    let mut policy = PolicyRules::of(&site.config, role, &scope(job));
    policy.temporary = vec![directory.tmp().to_string_lossy().into_owned()];
    let skills = site.skills.of(role);
    policy.skills = skill_rule(&skills, &directory);
    let spec = Spec {
        format: FORMAT,
        session: site.session.id().clone(),
        agent: job.agent.clone(),
        work: job.work.clone(),
        executor: job.executor.clone(),
        custom: site.config.executors.custom.get(&job.executor).cloned(),
        program,
        path: site.path.clone(),
        author: site.author.clone(),
        order: Order {
            model: model(site, job),
            system: prompt.system,
            prompt: prompt.user,
            tools: offer::tools(&site.config, role),
            output_schema: offer::schema(role),
            max_turns: Some(MOST_TURNS),
            budget: job.cap,
            may_ask,
            skills: skills.iter().map(|skill| Offered::from(&**skill)).collect(),
        },
        policy,
        sandbox: site.sandbox.clone(),
        limits: Limits {
            wall: site.config.limits.agent_timeout,
            idle: site.config.limits.idle_timeout,
            grace: GRACE,
            cap: job.cap,
            grant: job.grant,
            grant_wait: Duration::from_secs(24 * 3600),
            heartbeat: Some(site.config.limits.heartbeat_interval),
        },
        model: Model {
            gateway: site.config.gateway.with_account(&job.account),
            directory: site.config_directory(),
            recordings: site.recordings().to_vec(),
        },
        snapshots: (role == Role::Worker).then(|| Snapshots {
            every: SNAPSHOT_EVERY,
            objects: site.common.join("objects"),
            exclude: workspace.hidden.clone(),
        }),
        workspace: workspace.path.clone(),
        start,
    };
    Ok(Ready { workspace, spec, skills, sizes: prompt.sizes.to_string(), warnings })
}

/// What the policy has to know about the skills of an agent.
fn skill_rule(skills: &[Arc<Skill>], directory: &Directory) -> Option<SkillRule> {
    let folder = directory.skill_set().join(skills::FOLDER).to_string_lossy().into_owned();
    let names = skills.iter().map(|skill| skill.name.clone()).collect();
    (!skills.is_empty()).then_some(SkillRule { folder, names })
}

/// Makes the workspace. What may pass by itself, such as a git that was killed, is
/// tried again.
fn create(site: &Site, order: &workspace::Order) -> Result<Created, WorkspaceError> {
    for _ in 1..TRIES {
        match site.workspaces.create(order) {
            Err(WorkspaceError::Git(_) | WorkspaceError::Io { .. }) => thread::sleep(PAUSE),
            done => return done,
        }
    }
    site.workspaces.create(order)
}

/// The workspace of a job that was prepared earlier, perhaps by another process.
pub fn workspace_of(site: &Site, work: &Work, start: &Oid) -> Workspace {
    site.workspaces.of(&workspace::Order {
        name: WorkspaceName::of(work),
        branch: workspace::branch(site.session.id(), work),
        start: start.clone(),
        restore: None,
        in_one_place: false,
        fittings: site.config.worktree.clone(),
    })
}

/// What the work starts from, and what is put on top of it.
fn origin(site: &Site, job: &Job) -> Result<(Oid, Option<Restore>), NotStarted> {
    match &job.brief {
        Brief::Plan { .. } => Ok((site.tip()?.onto, None)),
        Brief::Validate { commit, .. } => Ok((commit.clone(), None)),
        Brief::Develop { task, needs } => {
            let point = site.workspaces.starting_point(&site.tip()?.onto, needs);
            match point.map_err(WorkspaceError::from)? {
                StartPoint::Ready(start) => Ok((start, restore(site, task))),
                StartPoint::Conflict { dependency, files } => Err(NotStarted::from(format!(
                    "what it builds on does not fit together: `{dependency}` conflicts in {}",
                    files.join(", ")
                ))),
            }
        }
        Brief::Resolve { changeset, tasks, spending } => {
            let order = merging::fold_order(site, changeset, tasks, spending, site.tip()?.onto)?;
            Ok((site.landing.conflicted(&order)?.start, None))
        }
    }
}

/// Unfinished work of the last attempt that left some.
fn restore(site: &Site, task: &Task) -> Option<Restore> {
    let commit = task.snapshot.as_ref()?;
    (1..task.attempts).rev().find_map(|attempt| {
        let git_dir = site.attempt_at(&task.spec.id, attempt).snapshots();
        let is_there = snapshot::newest(&git_dir).as_ref() == Some(commit);
        is_there.then(|| Restore { git_dir, commit: commit.clone() })
    })
}

/// What the repository tells agents, as they find it in their workspace.
fn notes(workspace: &Workspace) -> io::Result<RepositoryNotes> {
    match Layers::of(&workspace.path) {
        Some(layers) => {
            let copy = layers.copy_of(&NOTE_FILES)?;
            Ok(copy.map(|copy| RepositoryNotes::read(copy.path())).unwrap_or_default())
        }
        None => Ok(RepositoryNotes::read(&workspace.path)),
    }
}

fn prompt(
    site: &Site,
    job: &Job,
    workspace: &Workspace,
    unfinished: bool,
    may_ask: bool,
) -> Result<Prompt, NotStarted> {
    let fence = Fence::draw().map_err(|error| error.to_string())?;
    let conventions = &notes(workspace).map_err(|error| error.to_string())?;
    let (project, config) = (site.project(), &site.config);
    let recalled = match &job.brief {
        Brief::Plan { goal, .. } => site.recall.for_planner(goal),
        Brief::Develop { task, .. } => site.recall.for_worker(&task.spec.file_locks),
        Brief::Validate { .. } | Brief::Resolve { .. } => None,
    };
    let memory = recalled.as_ref().map(|context| context.text.as_str());
    let prompt = match (&job.brief, &job.work) {
        (Brief::Plan { goal, notes, tasks }, _) => prompts::planner(
            &PlannerBrief {
                project,
                config,
                manner: if may_ask { Manner::Interactive } else { Manner::OneShot },
                goal,
                notes,
                rejected: None,
                tasks,
                conventions,
                memory,
            },
            &fence,
        ),
        (Brief::Develop { task, .. }, Work::Develop { attempt, .. }) => prompts::worker(
            &WorkerBrief {
                project,
                config,
                task: &task.spec,
                attempt: *attempt,
                start: if unfinished { Start::Unfinished } else { Start::Clean },
                history: &task.history,
                conventions,
                memory,
            },
            &fence,
        ),
        (Brief::Validate { task, commit }, Work::Validate { attempt, .. }) => {
            let start = start_of(site, task)?;
            let diff = site.landing.diff(&start, commit)?;
            let results = checking::acceptance_results(site, task);
            let checks: Vec<_> = results.iter().filter_map(CommandResult::as_check).collect();
            let diagnosed = checking::diagnostics_results(site, task);
            let diagnostics: Vec<_> =
                diagnosed.iter().filter_map(CommandResult::as_check).collect();
            let audit = checking::audit_summary(site, task);
            prompts::validator(
                &ValidatorBrief {
                    project,
                    config,
                    task: &task.spec,
                    attempt: *attempt,
                    diff: &diff,
                    checks: &checks,
                    diagnostics: &diagnostics,
                    audit: audit.as_deref(),
                    conventions,
                    memory,
                },
                &fence,
            )
        }
        (Brief::Resolve { changeset, tasks, .. }, _) => {
            let branches: Vec<String> = tasks
                .iter()
                .map(|task| {
                    let attempt = task.attempts;
                    let work = Work::Develop { task: task.spec.id.clone(), attempt };
                    workspace::branch(site.session.id(), &work)
                })
                .collect();
            let tasks: Vec<MergingTask<'_>> = tasks
                .iter()
                .zip(&branches)
                .map(|(task, branch)| MergingTask { spec: &task.spec, branch })
                .collect();
            let files = conflicting(changeset);
            let contents: Vec<Option<String>> = files
                .iter()
                .map(|file| fs::read_to_string(workspace.file(Path::new(file))?).ok())
                .collect();
            let conflicts: Vec<Conflict<'_>> = files
                .iter()
                .zip(&contents)
                .map(|(file, content)| Conflict { file, content: content.as_deref() })
                .collect();
            prompts::merger(
                &MergerBrief {
                    project,
                    config,
                    changeset: &changeset.planned.id,
                    tasks: &tasks,
                    conflicts: &conflicts,
                    conventions,
                    memory,
                },
                &fence,
            )
        }
        _ => {
            let why = "the work and what is known of it do not belong together";
            return Err(why.to_owned().into());
        }
    };
    prompt.map_err(|error| error.to_string().into())
}

fn conflicting(changeset: &blueflame_core::state::merging::Changeset) -> &[String] {
    match &changeset.phase {
        ChangesetPhase::Conflicted { files } | ChangesetPhase::Resolving { files, .. } => files,
        _ => &[],
    }
}

/// What a task's last attempt started from, as its spec says.
pub fn start_of(site: &Site, task: &Task) -> Result<Oid, String> {
    let began = site.beginnings.of(&site.last_attempt(task)).map_err(|error| error.to_string())?;
    Ok(began.start.clone())
}

/// What the agent may write.
fn scope(job: &Job) -> Vec<LockPath> {
    match &job.brief {
        Brief::Develop { task, .. } => task.spec.file_locks.clone(),
        Brief::Resolve { changeset, tasks, .. } => {
            let conflicting = conflicting(changeset).iter().filter_map(|it| LockPath::new(it).ok());
            let locks = tasks.iter().flat_map(|task| task.spec.file_locks.iter().cloned());
            conflicting.chain(locks).collect()
        }
        Brief::Plan { .. } | Brief::Validate { .. } => Vec::new(),
    }
}

fn model(site: &Site, job: &Job) -> String {
    let named = match &job.brief {
        Brief::Develop { task, .. } => task.spec.model.clone(),
        Brief::Plan { .. } | Brief::Validate { .. } | Brief::Resolve { .. } => None,
    };
    let of_executor = || site.config.executors.models.get(&job.executor).cloned();
    let of_role = || site.config.models.of(job.work.role()).clone();
    named.or_else(of_executor).unwrap_or_else(of_role)
}
