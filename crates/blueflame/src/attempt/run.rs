//! The attempt process: from the spec to the sealed result.
//!
//! One loop waits for everything that can happen, and one function answers
//! each. The limits of the spec are held here, whoever else is alive.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::future;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use blueflame_core::ids::Oid;
use blueflame_core::money::Spend;
use blueflame_core::outcome::BudgetScope;
use blueflame_core::policy::{Decision, Policy};
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::{Credential, Token};
use blueflame_gateway::facts::Fact;
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::prices::Prices;
use blueflame_gateway::recording::Recording;
use blueflame_gateway::refusal::Refusal;
use blueflame_gateway::upstream::{Surroundings, Upstream};
use jiff::Timestamp;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::conclude::{Cause, Exit, Known, Limited, conclude};
use super::control::Control;
use super::directory::{Directory, Registered, Running};
use super::frames::{From, Kept, Line, Lines};
use super::judge::Judge;
use super::link::control_socket;
use super::messages::{Command, Report};
use super::pipes::{self, Chunk};
use super::sealed::Sealed;
use super::snapshot::{Camera, SnapshotError};
use super::spec::{FORMAT, Secrets, Spec};
use crate::executor::{self, Conversation, Ground, Launch, Step};
use crate::process_tree;

/// What is kept of an agent's output on the disk.
const MOST_OUTPUT: u64 = 256 << 20;

/// How long to wait for the rest of the output once the agent is gone: what it
/// left behind may hold the pipe for ever.
const DRAIN: Duration = Duration::from_secs(2);

/// How long an agent that has said its last word may take to leave; claude
/// needs up to five seconds to end what runs in its background.
const LEAVE: Duration = Duration::from_secs(15);

/// The end of the error stream that is kept for the result.
const COMPLAINT: usize = 2_000;

/// Why an attempt could not even begin.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CannotBegin(String);

fn cannot(error: impl std::fmt::Display) -> CannotBegin {
    CannotBegin(error.to_string())
}

/// Runs the attempt in a directory to its end.
pub fn run(root: &Path) -> Result<(), CannotBegin> {
    let directory = Directory::open(root);
    let running = directory.take_up().map_err(cannot)?;
    if directory.result().map_err(cannot)?.is_some() {
        return Ok(());
    }
    let spec = directory.spec().map_err(cannot)?;
    let secrets = read_secrets().map_err(cannot)?;
    // The agent has the same user: it must not read our memory.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(cannot)?;
    process_tree::adopt_orphans().map_err(cannot)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(cannot)?;
    runtime.block_on(async {
        let attempt = Attempt::prepare(directory, spec, &secrets, running).await?;
        attempt.supervise().await
    })
}

fn read_secrets() -> io::Result<Secrets> {
    let mut text = Vec::new();
    io::stdin().take(1 << 20).read_to_end(&mut text)?;
    if text.is_empty() { Ok(Secrets::default()) } else { Ok(serde_json::from_slice(&text)?) }
}

struct Attempt {
    directory: Directory,
    spec: Spec,
    _running: Running,
    sockets: PathBuf,
    started: Timestamp,
    begun: Instant,
    control: Control,
    commands: mpsc::Receiver<Command>,
    gateway: Gateway,
    facts: mpsc::UnboundedReceiver<Fact>,
    judge: Judge,
    conversation: Box<dyn Conversation>,
    launch: Launch,
    kept: Option<Kept>,
    lines: Lines,
    complaint: Vec<u8>,
    /// The agent's input; `None` once it is closed.
    input: Option<mpsc::UnboundedSender<String>>,
    clock: Clock,
    cause: Option<Cause>,
    /// When patience with an agent that should leave ends.
    kill_at: Option<Instant>,
    limited: Option<Limited>,
    open_questions: u32,
    grant_wanted: bool,
    camera: Option<Camera>,
    next_snapshot: Option<Instant>,
    /// A snapshot that is being taken.
    developing: Option<JoinHandle<Developed>>,
    warnings: Vec<String>,
}

/// A snapshot that was taken, or was not, and the camera that took it.
type Developed = (Camera, Result<Option<Oid>, SnapshotError>);

/// How long the agent has had, not counting the time it waits for people.
struct Clock {
    wall: Duration,
    idle: Duration,
    wall_end: Instant,
    last_sign: Instant,
    waiting_since: Option<Instant>,
}

impl Clock {
    fn new(wall: Duration, idle: Duration, now: Instant) -> Self {
        Clock { wall, idle, wall_end: now + wall, last_sign: now, waiting_since: None }
    }

    fn sign_of_life(&mut self) {
        self.last_sign = Instant::now();
    }

    /// Whether the agent waits for somebody else.
    fn set_waiting(&mut self, waiting: bool) {
        match (waiting, self.waiting_since) {
            (true, None) => self.waiting_since = Some(Instant::now()),
            (false, Some(since)) => {
                self.wall_end += since.elapsed();
                self.last_sign = Instant::now();
                self.waiting_since = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    fn next(&self) -> Option<Instant> {
        match self.waiting_since {
            Some(_) => None,
            None => Some(self.wall_end.min(self.last_sign + self.idle)),
        }
    }

    fn exceeded(&self, now: Instant) -> Option<Cause> {
        if self.waiting_since.is_some() {
            None
        } else if now >= self.wall_end {
            Some(Cause::Wall(self.wall))
        } else if now >= self.last_sign + self.idle {
            Some(Cause::Idle(self.idle))
        } else {
            None
        }
    }
}

impl Attempt {
    async fn prepare(
        directory: Directory,
        spec: Spec,
        secrets: &Secrets,
        running: Running,
    ) -> Result<Attempt, CannotBegin> {
        let sockets = directory.sockets().map_err(cannot)?;
        let executor = executor::named(spec.executor.as_str())
            .ok_or_else(|| CannotBegin(format!("there is no executor `{}`", spec.executor)))?;
        let policy = Policy::new(spec.policy.clone()).map_err(cannot)?;
        let audit = append_to(&directory.audit_file()).map_err(cannot)?;
        let judge =
            Judge::new(policy, &spec.workspace, spec.agent.clone(), audit).map_err(cannot)?;

        let credential = secrets.credential.as_deref();
        let token = Token::generate().map_err(cannot)?;
        let settings = settings(&directory, &spec, credential).map_err(cannot)?;
        let gateway_socket = sockets.join("gateway");
        let _ = fs::remove_file(&gateway_socket);
        let listener = Listener::unix(&gateway_socket).map_err(cannot)?;
        let limits = &spec.limits;
        let allowance = Allowance::new(limits.cap, limits.grant, Spend::default());

        let (home, tmp) = (directory.home(), directory.tmp());
        let ground = Ground {
            program: &spec.program,
            home: &home,
            tmp: &tmp,
            files: directory.root(),
            gateway: &gateway_socket,
            token: token.reveal(),
            login: credential.filter(|_| spec.model.gateway.passthrough_auth),
        };
        let launch = executor.launch(&spec.order, &ground);
        let conversation = executor.converse(&spec.order);
        let (gateway, facts) = Gateway::start(listener, token.clone(), allowance, settings);

        let mut warnings = Vec::new();
        let camera = match &spec.snapshots {
            None => None,
            Some(snapshots) => {
                let (workspace, author) = (spec.workspace.clone(), spec.author.clone());
                match Camera::new(directory.snapshots(), workspace, author, snapshots).await {
                    Ok(camera) => Some(camera),
                    Err(error) => {
                        warnings.push(format!("no snapshots are taken: {error}"));
                        None
                    }
                }
            }
        };
        let now = Instant::now();
        let next_snapshot =
            spec.snapshots.as_ref().filter(|_| camera.is_some()).map(|spec| now + spec.every);

        let output = append_to(&directory.output_file()).map_err(cannot)?;
        let reports = append_to(&directory.reports_file()).map_err(cannot)?;
        let (control, commands) =
            Control::listen(&control_socket(&sockets), reports).map_err(cannot)?;
        Ok(Attempt {
            started: Timestamp::now(),
            begun: now,
            clock: Clock::new(limits.wall, limits.idle, now),
            kept: Some(Kept::new(output, MOST_OUTPUT)),
            directory,
            spec,
            _running: running,
            sockets,
            control,
            commands,
            gateway,
            facts,
            judge,
            conversation,
            launch,
            lines: Lines::default(),
            complaint: Vec::new(),
            input: None,
            cause: None,
            kill_at: None,
            limited: None,
            open_questions: 0,
            grant_wanted: false,
            camera,
            next_snapshot,
            developing: None,
            warnings,
        })
    }

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
        let exit = match self.start_agent() {
            Ok((child, chunks)) => self.attend(child, chunks).await,
            Err(error) => {
                let program = self.launch.program.display();
                self.complaint = format!("`{program}`: {error}").into_bytes();
                Exit::Never
            }
        };
        self.seal(exit).await
    }

    fn start_agent(&mut self) -> io::Result<(Child, mpsc::Receiver<Chunk>)> {
        for (path, text) in &self.launch.files {
            fs::write(path, text)?;
        }
        // Its own program first: it makes sure that the agent dies with us.
        // The sandbox will be put up there too.
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        command
            .arg("__launch")
            .arg(std::process::id().to_string())
            .arg(&self.launch.program)
            .args(&self.launch.arguments)
            .env_clear()
            .envs(self.environment())
            .envs(&self.launch.environment)
            .current_dir(&self.spec.workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (input, chunks) = pipes::connect(&mut child);
        self.input = input;
        let steps = self.conversation.open();
        self.perform(steps);
        Ok((child, chunks))
    }

    /// What every agent finds in its environment.
    fn environment(&self) -> BTreeMap<&'static str, std::ffi::OsString> {
        let author = &self.spec.author;
        [
            ("PATH", self.spec.path.clone().into()),
            ("HOME", self.directory.home().into()),
            ("TMPDIR", self.directory.tmp().into()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            ("GIT_AUTHOR_NAME", author.name.clone().into()),
            ("GIT_AUTHOR_EMAIL", author.email.clone().into()),
            ("GIT_COMMITTER_NAME", author.name.clone().into()),
            ("GIT_COMMITTER_EMAIL", author.email.clone().into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("BLUEFLAME_ATTEMPT", self.spec.agent.as_str().into()),
        ]
        .into()
    }

    /// The loop: until the agent is gone and its output is read.
    async fn attend(&mut self, mut child: Child, mut chunks: mpsc::Receiver<Chunk>) -> Exit {
        let main = child.id();
        let mut exit = None;
        let mut drained_at = None;
        let mut silent = false;
        let mut terminate = signal(SignalKind::terminate()).ok();
        let mut hang_up = signal(SignalKind::hangup()).ok();
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
                    exit = Some(exit_of(status));
                    drained_at = Some(Instant::now() + DRAIN);
                }
                Some(fact) = self.facts.recv() => self.fact(fact),
                Some(command) = self.commands.recv() => self.command(command),
                taken = developed(&mut self.developing) => self.developed(taken),
                () = heard(&mut terminate) => self.stop(Cause::Asked),
                // The terminal of the person is gone; the work goes on.
                () = heard(&mut hang_up) => {}
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

    fn line(&mut self, line: &Line) {
        let steps = match line {
            Line::Whole(line) => self.conversation.heard(line),
            Line::TooLong(bytes) => self.conversation.missed(*bytes),
        };
        self.perform(steps);
    }

    fn perform(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Send(line) => {
                    if let Some(input) = &self.input {
                        let _ = input.send(line);
                    }
                }
                Step::Judge { ticket, call } => {
                    let tool = call.tool.clone();
                    let (verdict, ruling) = self.judge.judge(call);
                    let steps = self.conversation.judged(&ticket, &ruling);
                    self.perform(steps);
                    self.report(Report::Judged {
                        tool,
                        target: verdict.target,
                        allowed: verdict.decision == Decision::Allow,
                        rule: verdict.rule,
                    });
                }
                Step::Ask { ticket, questions } => {
                    self.open_questions += 1;
                    self.waits();
                    self.report(Report::Questions { ticket, questions });
                }
                Step::Show(sight) => self.report(Report::Seen(sight)),
                Step::Over => {
                    self.input = None;
                    self.kill_by(Instant::now() + LEAVE);
                }
                Step::Breach { why } => {
                    self.stop(Cause::Breach(why));
                    self.kill_by(Instant::now());
                }
            }
        }
    }

    fn fact(&mut self, fact: Fact) {
        self.clock.sign_of_life();
        match fact {
            Fact::Usage { spend } => self.report(Report::Usage { spend }),
            Fact::GrantWanted { .. } => {
                self.grant_wanted = true;
                self.waits();
                self.report(Report::GrantWanted);
            }
            Fact::ProviderLimited { status, until } => {
                self.limited = Some(Limited { until });
                self.report(Report::ProviderLimited { status, until });
            }
            Fact::Refused { why: Refusal::Budget { .. } } => {
                self.stop(Cause::Budget(BudgetScope::Agent));
            }
            Fact::Refused { why: Refusal::NoGrant { .. } } => {
                self.grant_wanted = false;
                self.waits();
                self.stop(Cause::Budget(BudgetScope::Session));
            }
            Fact::Refused { why: Refusal::Stopped { .. } } => {}
            Fact::Refused { why } => self.warn(format!("a request was refused: {why}")),
            Fact::Loop { why } => self.stop(Cause::Loop(why.to_string())),
            Fact::UpstreamFailed { why } => self.warn(format!("the provider: {why}")),
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Grant { grant } => {
                self.gateway.allowance().set_grant(grant);
                self.grant_wanted = false;
                self.control.grant_arrived();
                self.waits();
            }
            Command::Stop => self.stop(Cause::Asked),
            Command::Answer { ticket, answers } => {
                let steps = self.conversation.answered(&ticket, &answers);
                // An answer to nothing, or a second one, changes nothing.
                if !steps.is_empty() {
                    self.open_questions = self.open_questions.saturating_sub(1);
                    self.control.question_answered(&ticket);
                    self.waits();
                }
                self.perform(steps);
            }
        }
    }

    fn waits(&mut self) {
        self.clock.set_waiting(self.open_questions > 0 || self.grant_wanted);
    }

    /// Whatever is due.
    async fn time(&mut self, main: Option<u32>) {
        let now = Instant::now();
        if self.kill_at.is_some_and(|at| at <= now) {
            self.kill_at = None;
            process_tree::end_descendants(Duration::from_millis(200), main).await;
        }
        if self.clock.exceeded(now).is_some() && self.gateway.allowance().is_busy() {
            // A model that thinks for long is alive; the gateway has a limit
            // for one that is not.
            self.clock.sign_of_life();
        }
        if self.cause.is_none()
            && let Some(cause) = self.clock.exceeded(now)
        {
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

    fn developed(&mut self, (camera, taken): Developed) {
        self.developing = None;
        self.camera = Some(camera);
        match taken {
            Ok(Some(commit)) => self.report(Report::Snapshot { commit }),
            Ok(None) => {}
            Err(error) => self.warn(format!("no snapshot was taken: {error}")),
        }
        let every = self.spec.snapshots.as_ref().map(|spec| spec.every);
        self.next_snapshot = every.map(|every| Instant::now() + every);
    }

    /// The state of the work as the agent left it.
    async fn last_snapshot(&mut self) {
        if let Some(developing) = self.developing.take() {
            developing.abort();
            let _ = developing.await;
        }
        if let Some(mut camera) = self.camera.take() {
            let taken = camera.take().await;
            self.developed((camera, taken));
        }
    }

    /// Makes the agent stop: it is asked, and after its grace it is killed. The
    /// first cause is the one that counts.
    fn stop(&mut self, cause: Cause) {
        if self.cause.is_some() {
            return;
        }
        self.gateway.allowance().stop(stopped_because(&cause));
        self.cause = Some(cause);
        let steps = self.conversation.interrupt();
        self.perform(steps);
        self.kill_by(Instant::now() + self.spec.limits.grace);
    }

    fn kill_by(&mut self, at: Instant) {
        self.kill_at = Some(self.kill_at.map_or(at, |earlier| earlier.min(at)));
    }

    fn report(&mut self, report: Report) {
        if let Err(error) = self.control.report(report) {
            // The same for each one that follows: once is enough.
            let text = format!("reports are no longer kept: {error}");
            if !self.warnings.contains(&text) {
                self.warnings.push(text);
            }
        }
    }

    fn warn(&mut self, text: String) {
        const MOST: usize = 50;
        if self.warnings.len() < MOST {
            self.warnings.push(text.clone());
            self.report(Report::Warning { text });
        }
    }

    /// Ends what is left, takes the last snapshot, and writes the result.
    async fn seal(mut self, exit: Exit) -> Result<(), CannotBegin> {
        process_tree::end_descendants(Duration::from_millis(500), None).await;
        if let Some(line) = self.lines.end() {
            self.line(&line);
        }
        self.last_snapshot().await;
        let spend = {
            let Attempt { gateway, facts, .. } = &mut self;
            let spent = gateway.shut().await;
            facts.close();
            spent
        };
        while let Ok(fact) = self.facts.try_recv() {
            self.fact(fact);
        }
        if let Some(kept) = self.kept.take() {
            let dropped = kept.dropped();
            if dropped > 0 {
                self.warn(format!("{dropped} bytes of output were not kept"));
            }
            if let Err(error) = kept.close() {
                self.warn(format!("the agent's output could not be kept: {error}"));
            }
        }
        let account = self.conversation.account();
        let own_usage = account.usage;
        let known = Known {
            cause: self.cause.take(),
            limited: self.limited,
            account,
            exit,
            output_wanted: self.spec.order.output_schema.is_some(),
            complaint: String::from_utf8_lossy(&self.complaint).trim().to_owned(),
        };
        let ended = Timestamp::now();
        let sealed = Sealed {
            format: FORMAT,
            agent: self.spec.agent.clone(),
            started: self.started,
            ended,
            ending: conclude(&known, ended),
            spend,
            own_usage,
            calls: self.judge.calls,
            denied: self.judge.denied,
            exit: exit.to_string(),
            snapshot: self.camera.as_ref().and_then(Camera::last).cloned(),
            warnings: std::mem::take(&mut self.warnings),
        };
        self.directory.seal(&sealed).map_err(cannot)?;
        self.report(Report::Usage { spend });
        self.report(Report::Ended);
        let _ = self.control.flush();
        // Listeners are told by the tasks of this runtime.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let _ = fs::remove_dir_all(&self.sockets);
        Ok(())
    }
}

fn settings(
    directory: &Directory,
    spec: &Spec,
    credential: Option<&str>,
) -> Result<Settings, CannotBegin> {
    let model = &spec.model;
    let surroundings = Surroundings {
        directory: &model.directory,
        key: credential.map(Credential::new).transpose().map_err(cannot)?,
        recordings: model.recordings.clone(),
    };
    let upstream = Upstream::configured(&model.gateway, &surroundings).map_err(cannot)?;
    let mut settings = Settings::new(upstream);
    settings.prices = Prices::configured(&model.gateway);
    settings.grant_wait = spec.limits.grant_wait;
    if model.gateway.record {
        settings.recording = Some(Recording::open(&directory.recording_file()).map_err(cannot)?);
    }
    Ok(settings)
}

fn stopped_because(cause: &Cause) -> String {
    match cause {
        Cause::Wall(limit) => format!("it has run for {} s", limit.as_secs()),
        Cause::Idle(limit) => format!("it gave no sign of life for {} s", limit.as_secs()),
        Cause::Asked => "the session stops".to_owned(),
        Cause::Breach(why) | Cause::Loop(why) | Cause::Internal(why) => why.clone(),
        Cause::Budget(BudgetScope::Agent) => "its budget is spent".to_owned(),
        Cause::Budget(BudgetScope::Session) => "the session's budget is spent".to_owned(),
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().create(true).append(true).mode(0o600).open(path)
}

fn exit_of(status: io::Result<ExitStatus>) -> Exit {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Never,
        },
        Err(_) => Exit::Never,
    }
}

async fn heard(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => future::pending().await,
    }
}

async fn developed(developing: &mut Option<JoinHandle<Developed>>) -> Developed {
    let Some(task) = developing else { return future::pending().await };
    match task.await {
        Ok(developed) => developed,
        // It does not panic, and whoever ends it does not wait for it.
        Err(_) => future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => future::pending().await,
    }
}
