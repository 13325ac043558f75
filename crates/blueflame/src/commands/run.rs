//! `blueflame run`: a whole session, from a goal to landed changesets.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::stderr::eprintln;
use blueflame_core::config::Config;
use blueflame_core::event::{End, Event};
use blueflame_core::ids::{ExecutorName, Role, SessionId};
use blueflame_core::plan::{Plan, PlanContext};
use blueflame_core::rules::PerRole;
use blueflame_core::state::State;
use blueflame_gateway::upstream::BadUpstream;
use jiff::Timestamp;

use super::left::{self, Attended};
use crate::at_once;
use crate::cli::{Common, Run};
use crate::config_file::{self, Loaded};
use crate::diagnostics;
use crate::doctor::{self, Standing};
use crate::executor::{self, find};
use crate::failure::{Failure, Kind};
use crate::file_system::Remote;
use crate::history;
use crate::journal::{Header, Writer};
use crate::memory::Remembering;
use crate::narrate::{self, plain};
use crate::people::{Decisions, Respondent, Terminal};
use crate::projections::Projections;
use crate::prove::record::{self, Installed};
use crate::repo_lock::{Holder, RepoLock};
use crate::report::summary;
use crate::sandbox::{self, Boundary};
use crate::session::site::{Manner, Site};
use crate::session::{self, Entry, Left, Session, Watch, tidy};
use crate::store::{SessionDir, WritableStore};

pub fn run(arguments: &Run, common: &Common) -> Result<ExitCode, Failure> {
    let mut loaded = config_file::load(common.config.as_deref())?;
    if let Some(executor) = &arguments.executor {
        use_executor(&mut loaded.config, executor)?;
    }
    let goal = goal(arguments)?;
    let plan = arguments.plan.as_deref().map(|path| read_plan(path, &loaded.config)).transpose()?;
    if arguments.dry_run {
        return super::dry_run::show(&loaded, &goal, plan.as_ref(), arguments.json);
    }
    let store = loaded.store().for_writing(Remote::Refuse)?;
    let asking = Asking::new(
        arguments.decisions_file.as_deref(),
        arguments.yes,
        loaded.config.planning.interactive,
    );
    if let Some(id) = left::taken_up(&store, asking.attended())? {
        let directory = store.store().session(&id);
        return go_on(loaded, &store, directory, &asking, arguments.json);
    }
    start(loaded, &store, goal, plan, &asking, arguments.json)
}

/// Begins a session and runs it.
pub fn start(
    loaded: Loaded,
    store: &WritableStore,
    goal: String,
    plan: Option<Plan>,
    asking: &Asking,
    json: bool,
) -> Result<ExitCode, Failure> {
    let ready = check_prerequisites(&loaded)?;
    let proven = last_proof(store, &ready);
    let purpose = Purpose { goal, plan, proven };
    let watch = Watch::new(json);
    let remembering = Remembering::of(&loaded, store.store());
    let Begun { session, directory } =
        begin_session(loaded, store, purpose, asking, ready.boundary, watch)?;
    let remembering = remembering.after(session.warned());
    let id = directory.id();
    eprintln!("session {id} begins; `blueflame status` shows it from another terminal");
    let left = runtime()?.block_on(session.run());
    finish(id, &directory.journal(), left, &remembering)
}

/// What a session is for, and what is known before it begins.
#[derive(Debug)]
pub struct Purpose {
    pub goal: String,
    pub plan: Option<Plan>,
    /// What was proven of the boundaries.
    pub proven: Option<Event>,
}

/// A session whose journal has begun.
#[derive(Debug)]
pub struct Begun {
    pub session: Session,
    pub directory: SessionDir,
}

/// Begins a session, ready to run.
pub fn begin_session(
    loaded: Loaded,
    store: &WritableStore,
    purpose: Purpose,
    asking: &Asking,
    boundary: Boundary,
    watch: Watch,
) -> Result<Begun, Failure> {
    let prepared = asking.prepared()?;
    let now = free_moment(store)?;
    let (lock, directory) = begin(store, now)?;
    left::stop_strays(store.store(), directory.id())?;
    let site = Arc::new(Site::new(loaded, directory.clone(), now, asking.manner(boundary))?);
    left::mention_workspaces(&site);
    mention_what_is_missing(&site);
    let first = session::first_event(&site, purpose.goal, purpose.plan);
    let mut state =
        State::begin(now, &first).map_err(|illegal| Failure::new(Kind::Usage, illegal))?;
    let header = Header::new(site.session.id().clone());
    let beginning: Vec<&Event> = std::iter::once(&first).chain(&purpose.proven).collect();
    for event in &beginning[1..] {
        state.apply(now, event).map_err(|illegal| Failure::new(Kind::Internal, illegal))?;
    }
    let journal = Writer::create(&site.session.journal(), &header, now, &beginning)
        .map_err(|error| Failure::new(Kind::Internal, error))?;
    for (event, back) in beginning.iter().zip((0..beginning.len() as u64).rev()) {
        let seq = journal.last() - back;
        watch.data(Entry { seq, at: now, epoch: journal.epoch() }, event);
    }
    let respondent = asking.respondent(prepared, &site.session)?;
    let session = Session::new(site, lock, journal, state, respondent, watch);
    Ok(Begun { session, directory })
}

/// Agents work without a skill or a memory that is not there, and the person
/// should know.
fn mention_what_is_missing(site: &Site) {
    mention(&site.skills.complaints(&site.config.skills));
    mention(site.recall.warnings());
}

fn mention(warnings: &[String]) {
    for warning in warnings {
        eprintln!("warning: {}", plain(warning));
    }
}

/// What is known of the boundaries, for the journal.
fn last_proof(store: &WritableStore, ready: &Ready) -> Option<Event> {
    match record::last(store.store()) {
        Ok(proof) => {
            let now = record::circumstances(&ready.installed, ready.boundary);
            proof.map(|proof| record::event(proof, &now))
        }
        Err(error) => {
            eprintln!("warning: {error}");
            None
        }
    }
}

/// Goes on with a session that was left, with the executors it began with.
pub fn go_on(
    mut loaded: Loaded,
    store: &WritableStore,
    directory: SessionDir,
    asking: &Asking,
    json: bool,
) -> Result<ExitCode, Failure> {
    let id = directory.id().clone();
    let journal_file = directory.journal();
    let rules = history::fold(&journal_file, None, |_| {})?.state.rules;
    loaded.config.executors.chains = rules.executors;
    let boundary = check_prerequisites(&loaded)?.boundary;
    let remembering = Remembering::of(&loaded, store.store());
    let prepared = asking.prepared()?;
    let now = Timestamp::now();
    let lock = RepoLock::take(store, &Holder::this_process(id.clone(), now))?;
    left::stop_strays(store.store(), &id)?;
    let (journal, state, repaired) = session::reopen(&directory)?;
    let site = Arc::new(Site::new(loaded, directory, state.started_at, asking.manner(boundary))?);
    let remembering = remembering.after(site.recall.warned());
    if let Some(end) = state.ended() {
        eprintln!("session {id} has ended: {}", narrate::ending(end));
        // Whoever ended it may have died before tidying up.
        tidy::after_session(&site, &state);
        if store.store().sessions()?.first() == Some(&id) {
            let tasks_file = site.config.project.tasks_file.as_str();
            let views = Projections::new(&site.repository, &site.common, tasks_file);
            if let Err(error) = views.write(&state) {
                eprintln!("warning: the views could not be written: {error}");
            }
        }
        lock.release()?;
        mention(site.recall.warnings());
        remembering.remember();
        return Ok(ExitCode::SUCCESS);
    }
    mention_what_is_missing(&site);
    eprintln!("session {id} goes on");
    let respondent = asking.respondent(prepared, &site.session)?;
    let mut session = Session::new(site, lock, journal, state, respondent, Watch::new(json));
    let left = runtime()?.block_on(async {
        session.take_over(repaired).await?;
        session.run().await
    });
    finish(&id, &journal_file, left, &remembering)
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Kind::Internal, error))
}

/// The summary, and the exit code for how a session was left.
fn finish(
    id: &SessionId,
    journal: &Path,
    left: Result<Left, Failure>,
    remembering: &Remembering,
) -> Result<ExitCode, Failure> {
    let left = left?;
    remembering.remember();
    match summary::page(journal) {
        Ok(page) => eprintln!("{page}"),
        Err(error) => eprintln!("warning: there is no summary: {error}"),
    }
    let on = format!("`blueflame resume {id}` goes on");
    let quiet = |kind| Err(Failure::new(kind, ""));
    match left {
        Left::Ended(End::Complete | End::NothingToDo) => Ok(ExitCode::SUCCESS),
        Left::Ended(End::Incomplete | End::CycleLimit | End::PlanningFailed) => {
            quiet(Kind::Incomplete)
        }
        Left::Ended(End::PlanDeclined | End::PlanRejectedTooOften | End::Stopped) => {
            quiet(Kind::Declined)
        }
        Left::Ended(End::Budget) => quiet(Kind::Budget),
        Left::Suspended { unanswered: None } => {
            Err(Failure::new(Kind::Interrupted, "stopped; nothing is lost").hint(on))
        }
        Left::Suspended { unanswered: Some(why) } => Err(Failure::from(why).hint(on)),
        Left::Obstructed { reason } => {
            Err(Failure::new(Kind::Missing, reason).hint(format!("once that is put right, {on}")))
        }
    }
}

/// Who answers, and whether a planner may ask.
#[derive(Debug)]
pub struct Asking {
    decisions: Option<PathBuf>,
    yes: bool,
    interactive: bool,
}

impl Asking {
    pub fn new(decisions: Option<&Path>, yes: bool, interactive: bool) -> Self {
        let unattended = decisions.is_some() || yes || !std::io::stdin().is_terminal();
        if interactive && unattended {
            eprintln!("note: nobody is there for a planner's questions, so it plans alone");
        }
        Asking {
            decisions: decisions.map(Path::to_owned),
            yes,
            interactive: interactive && !unattended,
        }
    }

    fn attended(&self) -> Attended {
        if self.decisions.is_some() || self.yes { Attended::No } else { Attended::Yes }
    }

    fn manner(&self, boundary: Boundary) -> Manner {
        Manner { interactive: self.interactive, boundary }
    }

    /// The prepared answers; read before anything begins, so that nothing does if
    /// they are no good.
    fn prepared(&self) -> Result<Option<Decisions>, Failure> {
        self.decisions.as_deref().map(read_decisions).transpose()
    }

    /// Whoever answers in this session, from where it has got to.
    fn respondent(
        &self,
        mut prepared: Option<Decisions>,
        session: &SessionDir,
    ) -> Result<Respondent, Failure> {
        if let Some(decisions) = &mut prepared {
            decisions.open_in(session)?;
        }
        Ok(Respondent::new(prepared, self.yes, Terminal::of_process()))
    }
}

fn read_decisions(path: &Path) -> Result<Decisions, Failure> {
    let bytes = read_file(path, "decisions file")?;
    Decisions::read(&bytes, path).map_err(|problems| {
        diagnostics::show(&problems, &path.display().to_string(), &bytes);
        Failure::new(Kind::Usage, "")
    })
}

fn read_plan(path: &Path, config: &Config) -> Result<Plan, Failure> {
    let bytes = read_file(path, "plan")?;
    let name = path.display().to_string();
    match Plan::read(&bytes, &PlanContext::of(config)) {
        Ok((plan, warnings)) => {
            diagnostics::show(&warnings, &name, &bytes);
            Ok(plan)
        }
        Err(problems) => {
            diagnostics::show(&problems, &name, &bytes);
            Err(Failure::new(Kind::Usage, ""))
        }
    }
}

fn read_file(path: &Path, what: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        Failure::new(
            Kind::Usage,
            format!("the {what} `{}` cannot be read: {error}", path.display()),
        )
    })
}

fn goal(arguments: &Run) -> Result<String, Failure> {
    let text = match (&arguments.task, &arguments.task_file, &arguments.plan) {
        (Some(text), _, _) => text.clone(),
        (None, Some(path), _) => {
            String::from_utf8_lossy(&read_file(path, "task file")?).into_owned()
        }
        (None, None, Some(plan)) => format!("the plan in {}", plan.display()),
        (None, None, None) => {
            return Err(Failure::new(Kind::Usage, "what is to be done?")
                .hint("say it with --task \"...\", or bring a plan with --plan FILE"));
        }
    };
    if text.trim().is_empty() {
        return Err(Failure::new(Kind::Usage, "the task is empty"));
    }
    Ok(text.trim().to_owned())
}

/// Every role is run by this executor, and by no other.
pub fn use_executor(config: &mut Config, name: &str) -> Result<(), Failure> {
    let own = &config.executors;
    let known = |name: &ExecutorName| executor::configured(name, own).is_some();
    let name = ExecutorName::new(name).ok().filter(known).ok_or_else(|| {
        let ours = executor::ALL.iter().map(|it| it.name());
        let names: Vec<&str> = ours.chain(own.custom.keys().map(ExecutorName::as_str)).collect();
        Failure::new(Kind::Usage, format!("there is no executor `{name}`"))
            .hint(format!("there are: {}", names.join(", ")))
    })?;
    let chain = vec![name];
    config.executors.chains = PerRole {
        planner: chain.clone(),
        worker: chain.clone(),
        validator: chain.clone(),
        merger: chain,
    };
    Ok(())
}

/// Refuses if something is not there that a session needs. Says nothing else.
pub fn missing(loaded: &Loaded) -> Result<(), Failure> {
    for finding in std::iter::once(doctor::git()).chain(doctor::machine()) {
        if finding.standing == Standing::Missing {
            let says = format!("{}: {}", finding.subject, finding.says);
            let failure = Failure::new(Kind::Missing, says);
            return Err(finding.fix.iter().fold(failure, Failure::hint));
        }
    }
    let chains = &loaded.config.executors.chains;
    for chain in [&chains.planner, &chains.worker, &chains.validator, &chains.merger] {
        let mut reasons = Vec::new();
        let usable =
            chain.iter().any(|name| match executor::configured(name, &loaded.config.executors) {
                None => {
                    reasons.push(format!("there is no executor `{name}`"));
                    false
                }
                Some(executor) => match find::program(&*executor) {
                    None => {
                        reasons.push(format!("`{name}` is not installed, or not in PATH"));
                        false
                    }
                    Some(_) => true,
                },
            });
        if !usable {
            return Err(Failure::new(Kind::Missing, reasons.join("; ")).hint(
                "choose another with --executor, or under `executors` in the configuration",
            ));
        }
    }
    check_upstream(loaded)
}

/// What a session can begin with.
struct Ready {
    boundary: Boundary,
    installed: Vec<Installed>,
}

/// What has to be there before anything starts.
fn check_prerequisites(loaded: &Loaded) -> Result<Ready, Failure> {
    doctor::take_open_files();
    missing(loaded)?;
    // Both may have to wait for other programs.
    let (installed, boundary) = at_once::both(
        || record::installed(&loaded.config, find::look_up),
        || sandbox::choose(&loaded.config.sandbox),
    );
    for Installed { found, .. } in &installed {
        if let find::Found::Usable { warning: Some(warning), .. } = found {
            eprintln!("warning: {warning}");
        }
    }
    let boundary = boundary?;
    for weakness in boundary.weaknesses() {
        eprintln!("warning: {weakness}");
    }
    Ok(Ready { boundary, installed })
}

/// Each role needs an executor whose account could be used.
fn check_upstream(loaded: &Loaded) -> Result<(), Failure> {
    let executors = &loaded.config.executors;
    for role in Role::ALL {
        let mut accounts = executors.chains.of(role).iter().map(|name| executors.account_of(name));
        let Some(first) = accounts.next() else { continue };
        if let Err(error) = doctor::upstream(loaded, first)
            && !accounts.any(|other| doctor::upstream(loaded, other).is_ok())
        {
            return Err(no_upstream(error));
        }
    }
    Ok(())
}

fn no_upstream(error: BadUpstream) -> Failure {
    match error {
        BadUpstream::Script { path, text, problems } => {
            diagnostics::show(&problems, &path.display().to_string(), &text);
            Failure::new(Kind::Usage, "")
        }
        BadUpstream::NoKey { ref variable, .. } => {
            let hint = format!("put your key into {variable}");
            Failure::new(Kind::Missing, error)
                .hint(hint)
                .hint("or try it without: `blueflame demo`")
        }
        error => Failure::new(Kind::Missing, error),
    }
}

/// Sessions are named after the second in which they begin: a moment whose name
/// is not taken.
fn free_moment(store: &WritableStore) -> Result<Timestamp, Failure> {
    loop {
        let now = Timestamp::now();
        if !store.store().session(&named_after(now)?).journal().exists() {
            return Ok(now);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn named_after(moment: Timestamp) -> Result<SessionId, Failure> {
    let name = moment.strftime("ses-%Y%m%d-%H%M%S").to_string();
    SessionId::new(name).map_err(|error| Failure::new(Kind::Internal, error))
}

/// A new session: its name, its directory, and the lock.
fn begin(store: &WritableStore, now: Timestamp) -> Result<(RepoLock, SessionDir), Failure> {
    let id = named_after(now)?;
    let lock = RepoLock::take(store, &Holder::this_process(id.clone(), now))?;
    let directory = store.begin(&id)?;
    Ok((lock, directory))
}
