//! The attempt process: from the spec to the sealed result.
//!
//! One loop waits for everything that can happen, and one function answers
//! each. The limits of the spec are held here, whoever else is alive.

use std::collections::{BTreeMap, BTreeSet};
use std::future;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use blueflame_core::ids::Oid;
use blueflame_core::outcome::BudgetScope;
use blueflame_core::policy::{Decision, Verdict};
use blueflame_gateway::facts::Fact;
use blueflame_gateway::gateway::{Gateway, Listener};
use blueflame_gateway::refusal::Refusal;
use jiff::Timestamp;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::process::Child;
use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::clock::Clock;
use super::conclude::{Cause, Exit, Limited};
use super::control::Control;
use super::directory::{Directory, DirectoryError, Registered, Running};
use super::endpoint::{Asked, Endpoint};
use super::frames::{From, Kept, Line, Lines};
use super::judge::Judge;
use super::messages::{Command, Report};
use super::pipes::{Chunk, Input, Unread};
use super::snapshot::{Camera, SnapshotError};
use super::spec::{Secrets, Spec};
use crate::executor::{Conversation, Launch, Ruling, Step};
use crate::process_tree;
use crate::sandbox::Doorway;
use crate::workspace::enter;

/// How long to wait for the rest of the output once the agent is gone: what it
/// left behind may hold the pipe for ever.
const DRAIN: Duration = Duration::from_secs(2);

/// How long an agent that has said its last word may take to leave; claude
/// needs up to five seconds to end what runs in its background.
const LEAVE: Duration = Duration::from_secs(15);

/// How long one round of killing takes at most.
const KILL_GRACE: Duration = Duration::from_millis(200);
const KILL_PATIENCE: Duration = Duration::from_millis(500);

/// Some programs wait for as long as a provider asks them to. A seat in the
/// session is not held for longer than this.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The end of the error stream that is kept for the result.
const COMPLAINT: usize = 2_000;

/// Said in place of a registration when another process has the attempt.
pub(super) const HELD: &str = "held";

/// Why an attempt could not even begin.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CannotBegin(String);

pub(super) fn cannot(error: impl std::fmt::Display) -> CannotBegin {
    CannotBegin(error.to_string())
}

/// Runs the attempt in a directory to its end.
pub fn run(root: &Path) -> Result<(), CannotBegin> {
    let directory = Directory::open(root);
    let running = directory.take_up().map_err(|error| {
        if let DirectoryError::Held { .. } = error {
            // Whoever started us can tell this from other failures.
            let _ = io::stdout().write_all(format!("{HELD}\n").as_bytes());
        }
        cannot(error)
    })?;
    if directory.result().map_err(cannot)?.is_some() {
        return Ok(());
    }
    let spec = directory.spec().map_err(cannot)?;
    let secrets = read_secrets().map_err(cannot)?;
    // We judge what the agent wants to do with its files: we have to see them too.
    enter::enter(&spec.workspace).map_err(cannot)?;
    // The agent has the same user: it must not read our memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(cannot)?;
    process_tree::adopt_orphans().map_err(cannot)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    runtime.block_on(async {
        let attempt = Attempt::prepare(directory, spec, &secrets, running)?;
        attempt.supervise().await
    })
}

fn read_secrets() -> io::Result<Secrets> {
    let mut text = Vec::new();
    io::stdin().take(1 << 20).read_to_end(&mut text)?;
    if text.is_empty() {
        let why = "nothing came over standard input: whoever started this is gone";
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
    }
    Ok(serde_json::from_slice(&text)?)
}

/// One agent run, from its preparation to its seal.
pub(super) struct Attempt {
    pub(super) directory: Directory,
    pub(super) spec: Spec,
    pub(super) running: Running,
    pub(super) sockets: PathBuf,
    pub(super) gateway_place: PathBuf,
    pub(super) started: Timestamp,
    pub(super) begun: Instant,
    pub(super) control: Control,
    pub(super) commands: mpsc::Receiver<Command>,
    /// Heard from the first moment on that anyone knows of us.
    pub(super) terminate: Signal,
    pub(super) interrupt: Signal,
    pub(super) hang_up: Signal,
    pub(super) gateway: Gateway,
    pub(super) facts: mpsc::UnboundedReceiver<Fact>,
    pub(super) judge: Judge,
    pub(super) conversation: Box<dyn Conversation>,
    /// Where hooks ask, for programs that have them; it is there while this is
    /// held.
    pub(super) _endpoint: Option<Endpoint>,
    pub(super) hooks: Option<mpsc::Receiver<Asked>>,
    /// The hooks that wait, by ticket.
    pub(super) open_hooks: BTreeMap<String, oneshot::Sender<Ruling>>,
    /// The port for programs that need one, until the program is started.
    pub(super) doorway: Option<Doorway>,
    /// Until the sandbox hands the port out.
    pub(super) opening: Option<JoinHandle<io::Result<TcpListener>>>,
    pub(super) launch: Launch,
    pub(super) kept: Option<Kept>,
    pub(super) lines: Lines,
    pub(super) complaint: Vec<u8>,
    /// The agent's input; `None` once it is closed.
    pub(super) input: Option<Input>,
    pub(super) clock: Clock,
    pub(super) cause: Option<Cause>,
    /// Whether the cause came after the program's last word.
    pub(super) late: bool,
    /// Whether the program has said its last word.
    pub(super) over: bool,
    /// When patience with an agent that should leave ends.
    pub(super) kill_at: Option<Instant>,
    pub(super) limited: Option<Limited>,
    /// The status of the provider's last answer, if that was an error.
    pub(super) provider_failed: Option<u16>,
    /// The tickets of questions that nobody has answered.
    pub(super) open_questions: BTreeSet<String>,
    /// Tickets given to hooks so far.
    pub(super) tickets: u64,
    pub(super) camera: Option<Camera>,
    pub(super) next_snapshot: Option<Instant>,
    /// A snapshot that is being taken.
    pub(super) developing: Option<JoinHandle<Developed>>,
    pub(super) warnings: Vec<String>,
}

/// A snapshot that was taken, or was not, and the camera that took it.
type Developed = (Camera, Result<Option<Oid>, SnapshotError>);

impl Attempt {
    /// Tells the orchestrator where to find us; from here on, whatever happens
    /// ends in a sealed result.
    fn register(&self) -> Result<(), CannotBegin> {
        let process = process_tree::identify(std::process::id())
            .ok_or_else(|| CannotBegin("this process is not in /proc".to_owned()))?;
        let registered = Registered { process, sockets: self.sockets.clone() };
        self.directory.register(&registered).map_err(cannot)?;
        let mut line = serde_json::to_vec(&registered).map_err(cannot)?;
        line.push(b'\n');
        // An orchestrator that is gone meanwhile finds us by the file.
        let _ = io::stdout().write_all(&line).and_then(|()| io::stdout().flush());
        Ok(())
    }

    async fn supervise(mut self) -> Result<(), CannotBegin> {
        self.register()?;
        self.keep_reports();
        self.set_next_snapshot();
        let exit = match self.start_agent() {
            Ok((child, chunks)) => self.attend(child, chunks).await,
            Err(error) => {
                let program = self.launch.program.display();
                self.complaint = format!("`{program}`: {error}").into_bytes();
                Exit::Never
            }
        };
        Box::pin(self.seal(exit)).await
    }

    /// The loop: until the agent is gone and its output is read.
    async fn attend(&mut self, mut child: Child, mut chunks: mpsc::Receiver<Chunk>) -> Exit {
        let main = child.id();
        let mut exit = None;
        let mut drained_at = None;
        let mut silent = false;
        loop {
            if let Some(exit) = exit
                && (silent || drained_at.is_some_and(|at| at <= Instant::now()))
            {
                return exit;
            }
            let until = [self.clock.next(), self.kill_at, self.next_snapshot, drained_at]
                .into_iter()
                .flatten()
                .min();
            tokio::select! {
                chunk = chunks.recv(), if !silent => match chunk {
                    Some(chunk) => self.output(&chunk),
                    // It may have closed its streams and run on.
                    None => silent = true,
                },
                status = child.wait(), if exit.is_none() => {
                    exit = Some(exit_of(&status));
                    drained_at = Some(Instant::now() + DRAIN);
                }
                Some(fact) = self.facts.recv() => self.fact(fact),
                Some(command) = self.commands.recv() => self.command(command),
                Some(asked) = next(&mut self.hooks) => self.hook(asked),
                opened = finished(&mut self.opening) => self.opened(opened),
                taken = finished(&mut self.developing) => self.developed(taken),
                _ = self.terminate.recv() => self.stop(Cause::Asked),
                _ = self.interrupt.recv() => self.stop(Cause::Asked),
                // The terminal of the person is gone; the work goes on.
                _ = self.hang_up.recv() => {}
                () = sleep_until(until) => self.time(main).await,
            }
        }
    }

    fn output(&mut self, chunk: &Chunk) {
        self.clock.sign_of_life();
        let ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(kept) = &mut self.kept
            && let Err(error) = kept.add(ms, chunk.from, &chunk.bytes)
        {
            self.kept = None;
            self.warn(format!("the agent's output is no longer kept: {error}"));
        }
        match chunk.from {
            From::Out => {
                for line in self.lines.push(&chunk.bytes) {
                    self.line(&line);
                }
            }
            From::Err => {
                self.complaint.extend_from_slice(&chunk.bytes);
                let excess = self.complaint.len().saturating_sub(COMPLAINT);
                self.complaint.drain(..excess);
            }
        }
    }

    pub(super) fn line(&mut self, line: &Line) {
        let steps = match line {
            Line::Whole(line) => self.conversation.heard(line),
            Line::TooLong(bytes) => self.conversation.missed(*bytes),
        };
        self.perform(steps);
    }

    pub(super) fn perform(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Send(line) => {
                    if self.input.as_ref().is_some_and(|input| input.send(line) == Err(Unread)) {
                        let why = "it does not read what it is told".to_owned();
                        self.stop(Cause::Internal(why));
                        self.kill_by(Instant::now());
                    }
                }
                Step::CloseInput => self.input = None,
                Step::Judge { ticket, call } => {
                    let tool = call.tool.clone();
                    let judged = self.judge.judge(call);
                    self.told(&ticket, tool, judged);
                }
                Step::Object { ticket, call, why } => {
                    let tool = call.tool.clone();
                    let judged = self.judge.object(call, &why);
                    self.told(&ticket, tool, judged);
                }
                Step::Rule { ticket, ruling } => {
                    if let Some(reply) = self.open_hooks.remove(&ticket) {
                        // One that hung up takes no call as allowed.
                        let _ = reply.send(ruling);
                    }
                }
                Step::Ask { ticket, questions } => {
                    self.open_questions.insert(ticket.clone());
                    self.waits();
                    self.report(Report::Questions { ticket, questions });
                }
                Step::Withdraw { ticket } => {
                    self.open_questions.remove(&ticket);
                    self.waits();
                    self.report(Report::QuestionsWithdrawn { ticket });
                }
                Step::Show(sight) => self.report(Report::Seen(sight)),
                Step::Over => {
                    self.over = true;
                    self.input = None;
                    // Nothing new starts, neither a turn of the model nor a
                    // call, and how long it has run no longer matters.
                    let why = "the program has said its last word";
                    self.gateway.allowance().stop(why);
                    self.judge.stop(why);
                    self.clock.turn_off();
                    self.kill_by(Instant::now() + LEAVE);
                }
                Step::Breach { why } => {
                    self.stop(Cause::Breach(why));
                    self.kill_by(Instant::now());
                }
            }
        }
    }

    /// Tells everyone about a verdict.
    fn told(&mut self, ticket: &str, tool: String, (verdict, ruling): (Verdict, Ruling)) {
        let steps = self.conversation.judged(ticket, &ruling);
        self.perform(steps);
        self.report(Report::Judged {
            tool,
            target: verdict.target,
            allowed: verdict.decision == Decision::Allow,
            rule: verdict.rule,
        });
    }

    fn hook(&mut self, asked: Asked) {
        self.clock.sign_of_life();
        self.tickets += 1;
        let ticket = format!("hook-{}", self.tickets);
        self.open_hooks.insert(ticket.clone(), asked.reply);
        let steps = self.conversation.hooked(&ticket, &asked.event);
        self.perform(steps);
    }

    /// The port of the gateway is there.
    fn opened(&mut self, opened: io::Result<TcpListener>) {
        self.opening = None;
        let listener = opened.and_then(|listener| {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        });
        match listener {
            Ok(listener) => self.gateway.also_at(Listener::Tcp(listener)),
            Err(error) => self.warn(format!("the agent has no way to its gateway: {error}")),
        }
    }

    pub(super) fn fact(&mut self, fact: Fact) {
        self.clock.sign_of_life();
        self.waits();
        match fact {
            Fact::Usage { spend } => {
                self.provider_failed = None;
                self.report(Report::Usage { spend });
            }
            Fact::ProviderFailed { status } => self.provider_failed = Some(status),
            Fact::GrantWanted { .. } => self.report(Report::GrantWanted),
            // By now somebody else may wait.
            Fact::GrantNotWanted if self.gateway.allowance().grant_waiters() > 0 => {}
            Fact::GrantNotWanted => self.report(Report::GrantNotWanted),
            Fact::ProviderLimited { status, until } => {
                self.limited = Some(Limited { until });
                self.report(Report::ProviderLimited { status, until });
                if until.is_some_and(|until| until > Timestamp::now() + LONGEST_PAUSE) {
                    self.stop(Cause::Limited);
                }
            }
            Fact::Refused { why: Refusal::Budget { .. } } => {
                self.stop(Cause::Budget(BudgetScope::Agent));
            }
            Fact::Refused { why: Refusal::NoGrant { .. } } => {
                self.stop(Cause::Budget(BudgetScope::Session));
            }
            Fact::Refused { why: Refusal::Stopped { .. } } => {}
            Fact::Refused { why: why @ Refusal::Unarmed } => {
                let (name, program) = (&self.spec.executor, self.spec.program.display());
                self.stop(Cause::Internal(format!(
                    "{why}, so none of its requests was answered. See that `{program}` is a \
                     version that was tested (`blueflame doctor`), or use another executor \
                     than `{name}`; docs/executors.md says more"
                )));
            }
            Fact::Refused { why: why @ Refusal::Unjudged { .. } } => {
                self.stop(Cause::Breach(why.to_string()));
                self.kill_by(Instant::now());
            }
            Fact::Refused { why: Refusal::Turns { .. } } => self.stop(Cause::Turns),
            Fact::Refused { why } => self.warn(format!("a request was refused: {why}")),
            Fact::Loop { why } => self.stop(Cause::Loop(why.to_string())),
            Fact::UpstreamFailed { why } => self.warn(format!("the provider: {why}")),
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Grant { grant } => {
                self.gateway.allowance().set_grant(grant);
            }
            Command::Stop => self.stop(Cause::Asked),
            Command::Answer { ticket, answers } => {
                let steps = self.conversation.answered(&ticket, &answers);
                // An answer to nothing, or a second one, changes nothing.
                if !steps.is_empty() {
                    self.open_questions.remove(&ticket);
                    self.control.question_answered(&ticket);
                    self.waits();
                }
                self.perform(steps);
            }
        }
    }

    fn waits(&mut self) {
        let for_grant = self.gateway.allowance().grant_waiters() > 0;
        self.clock.set_waiting(for_grant || !self.open_questions.is_empty());
    }

    /// Whatever is due.
    async fn time(&mut self, main: Option<u32>) {
        let now = Instant::now();
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            // Briefly, because nothing else is attended to meanwhile; what is
            // left then is ended in the next round.
            let ended = process_tree::end_descendants(KILL_GRACE, KILL_PATIENCE, main).await;
            if ended.is_err() {
                self.kill_at = Some(now + 2 * KILL_PATIENCE);
            }
        }
        let at_work = self.gateway.allowance().is_busy() || self.conversation.is_at_work();
        if self.clock.exceeded(now).is_some() && at_work {
            // A model that thinks for long is alive, and so is a command that
            // is silent for long. The gateway has a limit for the one; the wall
            // clock is the limit for the other.
            self.clock.sign_of_life();
        }
        if self.cause.is_none()
            && let Some(cause) = self.clock.exceeded(now)
        {
            // The outcome alone does not say which limit it was.
            self.warn(format!("stopped, because {}", stopped_because(&cause)));
            self.stop(cause);
        }
        if self.next_snapshot.is_some_and(|at| at <= now)
            && let Some(mut camera) = self.camera.clone()
        {
            self.next_snapshot = None;
            self.developing = Some(tokio::spawn(async move {
                let taken = camera.take().await;
                (camera, taken)
            }));
        }
    }

    fn developed(&mut self, (mut camera, taken): Developed) {
        self.developing = None;
        for remark in camera.remarks() {
            self.warn(remark);
        }
        self.camera = Some(camera);
        match taken {
            Ok(Some(commit)) => self.report(Report::Snapshot { commit }),
            Ok(None) => {}
            Err(error) => self.warn(format!("no snapshot was taken: {error}")),
        }
        self.set_next_snapshot();
    }

    fn set_next_snapshot(&mut self) {
        let every = self.spec.snapshots.as_ref().map(|spec| spec.every);
        self.next_snapshot = every.map(|every| Instant::now() + every);
    }

    /// A snapshot that is being taken is given up.
    pub(super) async fn stop_developing(&mut self) {
        if let Some(developing) = self.developing.take() {
            developing.abort();
            let _ = developing.await;
        }
    }

    /// The state of the work as the agent left it.
    pub(super) async fn last_snapshot(&mut self) {
        if let Some(mut camera) = self.camera.take() {
            let taken = camera.take().await;
            self.developed((camera, taken));
        }
    }

    /// Makes the agent stop: it is asked, and after its grace it is killed. The
    /// first cause is the one that counts, unless a breach follows.
    fn stop(&mut self, cause: Cause) {
        if self.cause.is_some() {
            if matches!(cause, Cause::Breach(_)) {
                self.cause = Some(cause);
            }
            return;
        }
        let why = stopped_because(&cause);
        self.judge.stop(&why);
        self.gateway.allowance().stop(why);
        self.cause = Some(cause);
        self.late = self.over;
        let steps = self.conversation.interrupt();
        self.perform(steps);
        self.kill_by(Instant::now() + self.spec.limits.grace);
    }

    fn kill_by(&mut self, at: Instant) {
        self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
    }

    pub(super) fn report(&mut self, report: Report) {
        if let Err(error) = self.control.report(report) {
            self.report_failed(&error);
        }
    }

    pub(super) fn report_failed(&mut self, error: &io::Error) {
        // The same for each one that follows: once is enough.
        let text = format!("reports are no longer kept: {error}");
        if !self.warnings.contains(&text) {
            self.warnings.push(text.clone());
            // Without them nobody knows what it spends.
            self.stop(Cause::Internal(text));
        }
    }

    pub(super) fn warn(&mut self, text: String) {
        const MOST: usize = 50;
        if self.warnings.len() < MOST && !self.warnings.contains(&text) {
            self.warnings.push(text.clone());
            self.report(Report::Warning { text });
        }
    }
}

fn stopped_because(cause: &Cause) -> String {
    match cause {
        Cause::Wall(limit) => format!("it has run for {} s", limit.as_secs()),
        Cause::Idle(limit) => format!("it gave no sign of life for {} s", limit.as_secs()),
        Cause::Waited(limit) => format!("it has waited for {} s", limit.as_secs()),
        Cause::Asked => "the session stops".to_owned(),
        Cause::Limited => "the provider wants a long pause".to_owned(),
        Cause::Turns => "it has had all the turns that it may have".to_owned(),
        Cause::Breach(why) | Cause::Loop(why) | Cause::Internal(why) => why.clone(),
        Cause::Budget(BudgetScope::Agent) => "its budget is spent".to_owned(),
        Cause::Budget(BudgetScope::Session) => "the session's budget is spent".to_owned(),
    }
}

fn exit_of(status: &io::Result<ExitStatus>) -> Exit {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Never,
        },
        Err(_) => Exit::Never,
    }
}

/// What a task came to, once it is done.
async fn finished<T>(task: &mut Option<JoinHandle<T>>) -> T {
    let Some(running) = task else { return future::pending().await };
    match running.await {
        Ok(result) => result,
        // None of them panics, and whoever ends one does not wait for it.
        Err(_) => future::pending().await,
    }
}

async fn next(hooks: &mut Option<mpsc::Receiver<Asked>>) -> Option<Asked> {
    match hooks {
        Some(hooks) => hooks.recv().await,
        None => future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => future::pending().await,
    }
}
