//! Where a session works and what it works with: everything that stays the
//! same from its start to its end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use blueflame_core::config::{self, Config};
use blueflame_core::event::Work;
use blueflame_core::ids::{AccountName, AgentId, ExecutorName, Role, TaskId};
use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::{Policy, PolicyError, PolicyRules, Scope};
use blueflame_core::state::task::Task;
use jiff::Timestamp;

use super::beginnings::Beginnings;
use crate::attempt::directory::Directory;
use crate::attempt::spec::Author;
use crate::config_file::{self, Loaded};
use crate::executor::{self, find};
use crate::failure::{Failure, Kind};
use crate::landing::{Landing, LandingError, Tip};
use crate::memory::Recall;
use crate::prompts::Project;
use crate::sandbox::{self, Boundary, Terms};
use crate::skills::{self, Person, Skills};
use crate::store::{SessionDir, Store};
use crate::workspace::{Making, WorkspaceName, Workspaces};

#[derive(Debug)]
pub struct Site {
    pub config: Config,
    /// Identifies the configuration, to notice when it changes.
    pub fingerprint: String,
    /// The file, to look at again.
    pub config_path: PathBuf,
    /// The person's checkout.
    pub repository: PathBuf,
    /// The git directory that all checkouts share.
    pub common: PathBuf,
    pub session: SessionDir,
    /// When the session began: the date of commits that join what landed with a
    /// base that moved, which must come out the same each time.
    pub began: Timestamp,
    pub workspaces: Workspaces,
    pub landing: Landing,
    /// Whose name is on the commits.
    pub author: Author,
    /// This program.
    pub blueflame: PathBuf,
    pub path: String,
    /// What confines agents and commands.
    pub sandbox: Terms,
    /// The keys that were there when the session began, by variable.
    credentials: BTreeMap<String, String>,
    /// What agents can be taught.
    pub skills: Skills,
    /// What its agents are told of earlier sessions.
    pub recall: Recall,
    /// Whether there is a person to ask while a planner works.
    pub interactive: bool,
    recordings: Vec<PathBuf>,
    programs: BTreeMap<ExecutorName, Result<PathBuf, String>>,
    project_name: String,
    /// What workers are judged by, made ready once.
    worker_policy: OnceLock<Policy>,
    pub beginnings: Beginnings,
}

/// What the command line adds to the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    pub interactive: bool,
    /// The boundary that was found to hold.
    pub boundary: Boundary,
}

impl Site {
    pub fn new(
        loaded: Loaded,
        session: SessionDir,
        began: Timestamp,
        manner: Manner,
    ) -> Result<Site, Failure> {
        let Loaded { config, file, path, repository, common, fingerprint, .. } = loaded;
        let missing = |error: &dyn std::fmt::Display| Failure::new(Kind::Missing, error);
        let workspaces = Workspaces::new(
            &common,
            &repository,
            &config.project.worktree_dir,
            session.id().clone(),
        )
        .map_err(|error| missing(&error))?;
        let blueflame = std::env::current_exe().map_err(|error| missing(&error))?;
        let trees = repository.join(config.project.worktree_dir.as_str());
        let tier = manner.boundary.tier;
        let chosen = Making::choose(&config.worktree, tier, &blueflame, &trees, &common);
        let landing = Landing::over(workspaces.objects().clone());
        let author = landing.identity().map_err(|error| missing(&error))?;
        let workspaces = workspaces.made_by(chosen.making).committing_as(author.clone());
        std::fs::create_dir_all(session.attempts()).map_err(|error| missing(&error))?;
        // One that is empty is none: a missing secret often looks like that.
        let held = |name: &str| {
            let key = std::env::var(name).ok().filter(|key| !key.trim().is_empty())?;
            Some((name.to_owned(), key))
        };
        let credentials = config.gateway.credential_variables().filter_map(held).collect();
        let recordings = recordings(&common, &config)?;
        let project_name = config.project.name.clone().unwrap_or_else(|| {
            repository.file_name().unwrap_or_default().to_string_lossy().into_owned()
        });
        let programs = programs(&config);
        let recall =
            Recall::of(&Store::in_common_dir(&common), config.memory.as_ref(), Some(session.id()));
        let estimates = recall.estimates(&config, &file);
        let path_variable = std::env::var("PATH").unwrap_or_default();
        let sandbox = sandbox::terms(&config.sandbox, manner.boundary, &path_variable);
        let skills = skills::look(&config, &repository, &Person::here(), manner.interactive);
        Ok(Site {
            skills,
            began,
            fingerprint,
            config_path: path,
            common,
            workspaces,
            landing,
            author,
            blueflame,
            path: path_variable,
            sandbox,
            credentials,
            recall,
            interactive: manner.interactive,
            recordings,
            programs,
            project_name,
            worker_policy: OnceLock::new(),
            beginnings: Beginnings::default(),
            config: Config { estimates, ..config },
            repository,
            session,
        })
    }

    /// The key of an account.
    pub fn credential(&self, account: &AccountName) -> Option<String> {
        let gateway = self.config.gateway.with_account(account);
        self.credentials.get(&gateway.credential_env).cloned()
    }

    /// The program of an executor, or why it cannot be used.
    pub fn program(&self, executor: &ExecutorName) -> Result<PathBuf, String> {
        self.programs
            .get(executor)
            .cloned()
            .unwrap_or_else(|| Err(format!("there is no executor `{executor}`")))
    }

    /// What the work of somebody who has these files is judged by.
    pub fn policy_for_work(&self, locks: &[LockPath]) -> Result<Policy, PolicyError> {
        let policy = if let Some(policy) = self.worker_policy.get() {
            policy
        } else {
            let policy = Policy::new(PolicyRules::of(&self.config, Role::Worker, &[]))?;
            self.worker_policy.get_or_init(|| policy)
        };
        Ok(policy.with_scope(Scope::of(&self.config, locks)))
    }

    /// The directory of one agent run. It follows from what is in the journal.
    pub fn attempt(&self, work: &Work, agent: &AgentId) -> Directory {
        let name = match work {
            // Its number is used once.
            Work::Develop { .. } => WorkspaceName::of(work).to_string(),
            Work::Plan | Work::Validate { .. } | Work::Resolve { .. } => {
                format!("{}.{agent}", WorkspaceName::of(work))
            }
        };
        Directory::open(&self.session.attempts().join(name))
    }

    /// The directory of the last attempt at a task.
    pub fn last_attempt(&self, task: &Task) -> Directory {
        self.attempt_at(&task.spec.id, task.attempts)
    }

    /// The directory of one attempt at a task.
    pub fn attempt_at(&self, task: &TaskId, attempt: u32) -> Directory {
        let work = Work::Develop { task: task.clone(), attempt };
        Directory::open(&self.session.attempts().join(WorkspaceName::of(&work).as_str()))
    }

    /// Where links to the clean checkouts of checks are.
    pub fn checkouts(&self) -> PathBuf {
        self.session.checkouts()
    }

    pub fn recordings(&self) -> &[PathBuf] {
        &self.recordings
    }

    pub fn project(&self) -> Project<'_> {
        Project {
            name: &self.project_name,
            base_branch: &self.config.project.base_branch,
            session: self.session.id(),
        }
    }

    /// What the next work starts from and is folded onto.
    pub fn tip(&self) -> Result<Tip, LandingError> {
        let branch = &self.config.project.base_branch;
        self.landing.integration_tip(self.session.id(), branch, &self.author, self.began)
    }

    /// What the configuration file says by now.
    pub fn current_fingerprint(&self) -> String {
        match std::fs::read(&self.config_path) {
            Ok(bytes) => config_file::fingerprint(&bytes),
            Err(_) => "gone".to_owned(),
        }
    }

    /// Where relative paths of the configuration start.
    pub fn config_directory(&self) -> PathBuf {
        let parent = self.config_path.parent().filter(|it| !it.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        parent.canonicalize().unwrap_or_else(|_| parent.to_owned())
    }
}

/// Where the programs of all executors are that the configuration may use.
fn programs(config: &Config) -> BTreeMap<ExecutorName, Result<PathBuf, String>> {
    let chains = &config.executors.chains;
    let named = [&chains.planner, &chains.worker, &chains.validator, &chains.merger];
    let known = executor::ALL.into_iter().filter_map(|it| ExecutorName::new(it.name()).ok());
    let own = config.executors.custom.keys().cloned();
    let all = named.into_iter().flatten().cloned().chain(known).chain(own);
    all.map(|name| {
        let found = match executor::configured(&name, &config.executors) {
            None => Err(format!("there is no executor `{name}`")),
            Some(executor) => find::program(&*executor)
                .ok_or_else(|| format!("`{}` is not installed, or not in PATH", executor.name())),
        };
        (name, found)
    })
    .collect()
}

/// The traffic to answer from, if the configuration says so.
fn recordings(common: &Path, config: &Config) -> Result<Vec<PathBuf>, Failure> {
    let config::Upstream::Replay(session) = &config.gateway.upstream else {
        return Ok(Vec::new());
    };
    let recorded = Store::in_common_dir(common).session(session).attempts();
    let entries = std::fs::read_dir(&recorded).map_err(|error| {
        Failure::new(Kind::Missing, format!("`{session}` has no recorded traffic: {error}"))
    })?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| Directory::open(&entry.path()).recording_file())
        .filter(|file| file.is_file())
        .collect();
    if files.is_empty() {
        let why = format!("`{session}` has no recorded traffic");
        return Err(Failure::new(Kind::Missing, why)
            .hint("traffic is kept by sessions that run with `gateway.record: true`"));
    }
    files.sort();
    Ok(files)
}
