//! A session: does what the core decides, and tells the core what happened.
//!
//! One loop. It asks the core what to do, records each intent, sets it in
//! motion, and waits for what comes of anything: facts, which are recorded in
//! the order they arrive. Everything that takes time happens in tasks beside
//! it, so that the loop is always ready to record and to stop.

mod agents;
mod archive;
mod beginnings;
pub mod bench;
mod brief;
mod checking;
mod conclude;
mod desk;
mod errand;
pub mod hooks;
mod merging;
mod occurrences;
pub mod offer;
mod post;
mod prepare;
mod recording;
mod records;
mod resume;
pub mod reverting;
mod review;
mod silence;
pub mod site;
mod stopping;
pub mod strays;
pub mod tidy;
mod views;
mod watch;
pub mod weaker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use blueflame_core::decide::{Action, decide, was_decided};
use blueflame_core::event::{End, Event, StartFault};
use blueflame_core::gate::Gate;
use blueflame_core::ids::AgentId;
use blueflame_core::state::State;
use jiff::Timestamp;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::MissedTickBehavior;

use self::brief::Brief;
use self::desk::Desk;
pub use self::errand::Publishing;
use self::post::{Occurrence, Post};
use self::prepare::Job;
use self::recording::Taken;
pub use self::records::{first_event, note, reopen, unfinished};
use self::site::Site;
use self::views::Views;
pub use self::watch::{Entry, Watch};
use crate::attempt::messages::Command;
use crate::failure::{Failure, Kind};
use crate::free_memory;
use crate::journal::Writer;
use crate::memory::Warned;
use crate::people::{Respondent, Unanswered};
use crate::projections::{ProjectionError, Projections};
use crate::repo_lock::RepoLock;

/// How long an attempt process may take to be gone that was killed or is on its way out.
const KILL_PATIENCE: Duration = Duration::from_secs(2);

/// How often free memory is looked at.
const MEMORY_EVERY: Duration = Duration::from_secs(5);

/// How often the picture at the terminal is painted anew.
const PAINT_EVERY: Duration = Duration::from_millis(250);

/// How much of what has arrived is dealt with before the next decision.
const AT_ONCE: usize = 64;

/// A session that runs.
#[derive(Debug)]
pub struct Session {
    site: Arc<Site>,
    /// Held as long as anything is written.
    lock: Option<RepoLock>,
    journal: Writer,
    state: State,
    /// What the state has taken and the journal has not yet.
    unwritten: Vec<Taken>,
    post: Post,
    inbox: UnboundedReceiver<Occurrence>,
    agents: BTreeMap<AgentId, UnboundedSender<Command>>,
    desk: Desk,
    watch: Watch,
    views: Views,
    /// Tells commands of ours to end.
    stop: tokio::sync::watch::Sender<bool>,
    waiting_until: Option<Timestamp>,
    unanswered: Option<Unanswered>,
    /// Agents whose work is done and could not be taken over, and why.
    not_taken: BTreeMap<AgentId, String>,
}

/// How a session was left.
#[derive(Debug)]
pub enum Left {
    Ended(End),
    /// It can be resumed.
    Suspended {
        unanswered: Option<Unanswered>,
    },
    /// The same, once the person has put something right.
    Obstructed {
        reason: String,
    },
}

impl Session {
    /// Goes on with a state that the journal has already.
    pub fn new(
        site: Arc<Site>,
        lock: RepoLock,
        journal: Writer,
        state: State,
        respondent: Respondent,
        watch: Watch,
    ) -> Session {
        let (post, inbox) = Post::office();
        let tasks_file = site.config.project.tasks_file.as_str();
        let views = Projections::new(&site.repository, &site.common, tasks_file);
        Session {
            desk: Desk::open(respondent, post.clone()),
            views: Views::new(views),
            site,
            lock: Some(lock),
            journal,
            state,
            unwritten: Vec::new(),
            post,
            inbox,
            agents: BTreeMap::new(),
            watch,
            stop: tokio::sync::watch::Sender::new(false),
            waiting_until: None,
            unanswered: None,
            not_taken: BTreeMap::new(),
        }
    }

    /// Runs until the session ends or is left.
    pub async fn run(mut self) -> Result<Left, Failure> {
        let mut interrupts = signal(SignalKind::interrupt()).map_err(internal)?;
        let mut terminations = signal(SignalKind::terminate()).map_err(internal)?;
        let mut hang_ups = signal(SignalKind::hangup()).map_err(internal)?;
        let mut memory = every(MEMORY_EVERY);
        let mut paint = every(PAINT_EVERY);
        let mut show = every(views::EVERY);
        let mut stops = 0;
        let mut arrived = Vec::new();
        self.tell_of_submodules();
        loop {
            self.act()?;
            if let Some(end) = self.state.ended() {
                tidy::after_session(&self.site, &self.state);
                self.leave()?;
                return Ok(Left::Ended(end));
            }
            if self.state.suspended {
                self.leave()?;
                return Ok(match self.state.obstacle.take() {
                    Some(reason) => Left::Obstructed { reason },
                    None => Left::Suspended { unanswered: self.unanswered },
                });
            }
            if let Some(reason) = self.waits_in_vain() {
                self.leave()?;
                return Ok(Left::Obstructed { reason });
            }
            tokio::select! {
                _ = self.inbox.recv_many(&mut arrived, AT_ONCE) => {
                    self.happened(arrived.drain(..))?;
                }
                _ = memory.tick(), if self.state.rules.memory_per_agent_mb.is_some() => {
                    self.look_at_memory()?;
                }
                _ = paint.tick(), if self.watch.paints() => self.watch.tick(&self.state),
                _ = show.tick(), if self.views.are_outdated() => {
                    self.write_views(Views::bring_up);
                }
                _ = interrupts.recv() => {
                    if !self.desk.is_lent() {
                        stops += 1;
                        self.stop(stops)?;
                    }
                }
                _ = terminations.recv() => { stops += 1; self.stop(stops)?; }
                _ = hang_ups.recv() => { stops += 1; self.stop(stops)?; }
            }
        }
    }

    /// Neither agents nor checks see what is in submodules, and builds fail in
    /// ways that do not say so.
    fn tell_of_submodules(&mut self) {
        // A base that cannot be read is told of by whoever needs it.
        let Ok(tip) = self.site.tip() else { return };
        let found = self.site.workspaces.submodules(&tip.onto).unwrap_or_default();
        if !found.is_empty() {
            self.watch.warn(&format!(
                "submodules are empty for agents and checks: {}; if builds need them, \
                 `worktree.prepare` has to bring them",
                found.join(", ")
            ));
        }
    }

    /// Does everything that is to be done now. What is decided at once is recorded
    /// at once, and nothing of it is begun before that.
    fn act(&mut self) -> Result<(), Failure> {
        loop {
            let facts = self.unwritten.len();
            let decided = self.decide();
            if decided.is_err() {
                // Nobody will do it. What happened is written all the same.
                self.unwritten.truncate(facts);
            }
            let written = self.write()?;
            let decided = decided?;
            if decided.is_empty() {
                return Ok(());
            }
            for (action, intent) in decided.into_iter().zip(&written[facts..]) {
                self.perform(action, &intent.event);
            }
        }
    }

    /// What is to be done now and recorded before: the state has taken the intents.
    fn decide(&mut self) -> Result<Vec<Action>, Failure> {
        let actions = decide(&self.state);
        if actions.is_empty() {
            return Ok(actions);
        }
        let fingerprint = self.site.current_fingerprint();
        let mut decided = Vec::new();
        for action in actions {
            let Some(intent) = action.intent(random_number()?, &fingerprint) else {
                self.perform_silently(&action);
                continue;
            };
            if !was_decided(&self.state, &intent) {
                return Err(Failure::new(
                    Kind::Internal,
                    format!("a decision would not be taken again: {intent:?}"),
                ));
            }
            self.take(intent)?;
            decided.push(action);
        }
        Ok(decided)
    }

    fn write_views(&mut self, how: impl FnOnce(&mut Views, &State) -> Result<(), ProjectionError>) {
        if let Err(error) = how(&mut self.views, &self.state) {
            self.watch.warn(&format!("the views could not be written: {error}"));
        }
    }

    fn perform(&mut self, action: Action, intent: &Event) {
        match (action, intent) {
            (
                Action::Spawn { work, executor, cap, grant, .. },
                Event::AgentClaimed { agent, .. },
            ) => {
                let agent = agent.clone();
                if let Some(brief) = Brief::of(&self.state, &work) {
                    let account = self.state.rules.account_of(&executor).clone();
                    self.spawn(Job { agent, work, executor, account, cap, grant, brief });
                } else {
                    let reason = "nothing is known of its work".to_owned();
                    let fault = StartFault::Place;
                    self.post.fact(Event::AgentStartFailed { agent, reason, fault });
                }
            }
            (Action::Grant { agent, grant }, _) => {
                self.tell(&agent, Command::Grant { grant });
            }
            (Action::StopAgent { agent }, _) => self.tell(&agent, Command::Stop),
            (Action::Inspect { task }, _) => checking::inspect(self, &task),
            (Action::Accept { task }, _) => checking::accept(self, &task),
            (Action::Fold { changeset, .. }, _) => merging::fold(self, &changeset),
            (Action::Verify { changeset }, _) => merging::verify(self, &changeset),
            (Action::Land { changeset }, _) => merging::land(self, &changeset),
            (Action::VerifyJoint { commit }, _) => merging::verify_joint(self, &commit),
            (Action::Publish { commit }, _) => merging::publish(self, &commit),
            (Action::RunHook { number, occasion }, _) => hooks::run(self, number, &occasion),
            (Action::Ask { gate }, _) => self.ask(&gate),
            (Action::Withdraw { .. }, _) => self.desk.withdraw(),
            (Action::StartCycle { .. }, Event::CycleStarted { cycle: 2.., .. }) => {
                archive::after_cycle(self);
            }
            _ => {}
        }
    }

    /// Waiting leaves no trace in the journal.
    fn perform_silently(&mut self, action: &Action) {
        if let Action::WaitUntil { at } = action
            && self.waiting_until != Some(*at)
        {
            self.waiting_until = Some(*at);
            let (post, at) = (self.post.clone(), *at);
            tokio::spawn(async move {
                // Clocks are set: what is too early for the journal is waited for.
                while let Ok(wait) = Duration::try_from(at.duration_since(Timestamp::now()))
                    && !wait.is_zero()
                {
                    tokio::time::sleep(wait).await;
                }
                post.fact(Event::PauseEnded);
            });
        }
    }

    fn spawn(&mut self, job: Job) {
        let (commands, receiver) = mpsc::unbounded_channel();
        self.agents.insert(job.agent.clone(), commands);
        self.watch.started(&job.agent, &job.work);
        tokio::spawn(agents::run(
            Arc::clone(&self.site),
            job,
            self.post.clone(),
            receiver,
            self.stop.subscribe(),
        ));
    }

    /// Follows an agent that another orchestrator started.
    fn adopt(&mut self, run: agents::Run, registered: crate::attempt::directory::Registered) {
        let (commands, receiver) = mpsc::unbounded_channel();
        self.agents.insert(run.agent.clone(), commands);
        self.watch.started(&run.agent, &run.work);
        let (site, post) = (Arc::clone(&self.site), self.post.clone());
        tokio::spawn(agents::follow(site, run, registered, post, receiver));
    }

    fn tell(&self, agent: &AgentId, command: Command) {
        if let Some(commands) = self.agents.get(agent) {
            let _ = commands.send(command);
        }
    }

    fn ask(&mut self, gate: &Gate) {
        self.watch.pause();
        self.desk.ask(gate.clone(), self.state.clone(), Arc::clone(&self.site));
    }

    fn look_at_memory(&mut self) -> Result<(), Failure> {
        let Some(free_mb) = free_memory::free_mb() else { return Ok(()) };
        // Only what changes anything is worth a line in the journal.
        let mut then = self.state.clone();
        let event = Event::MemorySampled { free_mb };
        if then.apply(self.state.last_at, &event).is_ok()
            && then.memory_holds != self.state.memory_holds
        {
            self.record(event)?;
        }
        Ok(())
    }

    /// Work that other parts of the session set in motion.
    /// What the person was told of what is remembered.
    pub(crate) fn warned(&self) -> &Warned {
        self.site.recall.warned()
    }

    fn parts(&self) -> (Arc<Site>, Post) {
        (Arc::clone(&self.site), self.post.clone())
    }
}

fn internal(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Internal, error)
}

fn random_number() -> Result<u32, Failure> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(internal)?;
    Ok(u32::from_ne_bytes(bytes))
}

/// Turns that are not made up for when nobody waited for them.
fn every(time: Duration) -> tokio::time::Interval {
    let mut turns = tokio::time::interval(time);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    turns
}
