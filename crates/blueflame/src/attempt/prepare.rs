//! Before the agent runs: everything it needs is made ready, and then it is
//! started.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use blueflame_core::money::Spend;
use blueflame_core::policy::Policy;
use blueflame_gateway::allowance::Allowance;
use blueflame_gateway::credential::{Credential, Token};
use blueflame_gateway::gateway::{Gateway, Listener, Settings};
use blueflame_gateway::models::Models;
use blueflame_gateway::prices::Prices;
use blueflame_gateway::recording::Recording;
use blueflame_gateway::upstream::{Surroundings, Upstream};
use jiff::Timestamp;
use tokio::process::Child;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::clock::Clock;
use super::control::Control;
use super::directory::{Directory, MARK, Running};
use super::endpoint::Endpoint;
use super::frames::{Kept, Lines};
use super::judge::Judge;
use super::link::control_socket;
use super::pipes::{self, Chunk};
use super::run::{Attempt, CannotBegin, cannot};
use super::snapshot::Camera;
use super::spec::{Secrets, Spec};
use crate::executor::{self, Executor, Ground, HookAddress, find};
use crate::sandbox::{self, Doorway, Occupant, Tier};

/// What is kept of an agent's output on the disk.
const MOST_OUTPUT: u64 = 256 << 20;

impl Attempt {
    pub(super) fn prepare(
        directory: Directory,
        mut spec: Spec,
        secrets: &Secrets,
        running: Running,
    ) -> Result<Attempt, CannotBegin> {
        let sockets = directory.sockets().map_err(cannot)?;
        let executor = executor::choose(spec.executor.as_str(), spec.custom.as_ref())
            .ok_or_else(|| cannot(format!("there is no executor `{}`", spec.executor)))?;
        let executor = &*executor;
        let credential = secrets.credential.as_deref();
        if let Some(why) = executor::fitness::unfit(executor, &spec.model.gateway, credential) {
            return Err(cannot(why));
        }
        let warnings = forgo_tools(&mut spec, executor);
        let policy = Policy::new(spec.policy.clone()).map_err(cannot)?;
        let audit = append_to(&directory.audit_file()).map_err(cannot)?;
        let judge =
            Judge::new(policy, &spec.workspace, spec.agent.clone(), audit).map_err(cannot)?;

        let token = Token::generate().map_err(cannot)?;
        let conversation = executor.converse(&spec.order);
        let mut settings = settings(&directory, &spec, credential).map_err(cannot)?;
        settings.calls = conversation.calls();
        let gateway_place = directory.gateway_place().map_err(cannot)?;
        let gateway_socket = gateway_place.join("gateway");
        let _ = fs::remove_file(&gateway_socket);
        let listener = Listener::unix(&gateway_socket).map_err(cannot)?;
        let limits = &spec.limits;
        let allowance = Allowance::new(limits.cap, limits.grant, Spend::default());

        let hook_socket = gateway_place.join("hook");
        let proof = Token::generate().map_err(cannot)?;
        let (endpoint, hooks) = match executor.hook() {
            Some(dialect) => {
                let proof = proof.reveal().to_owned();
                let (endpoint, asked) =
                    Endpoint::listen(&hook_socket, dialect, proof).map_err(cannot)?;
                (Some(endpoint), Some(asked))
            }
            None => (None, None),
        };
        let doorway = executor.needs_port().then(|| Doorway::prepare(spec.sandbox.tier));
        let doorway = doorway.transpose().map_err(cannot)?;
        let door = doorway.as_ref().map(Doorway::door).transpose().map_err(cannot)?;

        directory.make_room().map_err(cannot)?;
        let (home, tmp) = (directory.home(), directory.tmp());
        let blueflame = std::env::current_exe().map_err(cannot)?;
        let ground = Ground {
            program: &spec.program,
            home: &home,
            tmp: &tmp,
            files: directory.root(),
            workspace: &spec.workspace,
            gateway: &gateway_socket,
            port: door.map(|door| door.port),
            hook: executor.hook().map(|_| HookAddress {
                blueflame: &blueflame,
                socket: &hook_socket,
                answerer: match spec.sandbox.tier {
                    Tier::Namespaces => 0,
                    Tier::Landlock | Tier::Off => std::process::id(),
                },
                proof: proof.reveal(),
            }),
            token: token.reveal(),
            login: credential.filter(|_| spec.model.gateway.passthrough_auth),
        };
        let launch = executor.launch(&spec.order, &ground);
        let (gateway, facts) = Gateway::start(listener, token.clone(), allowance, settings);

        let camera = Camera::of(&directory, &spec);
        let now = Instant::now();
        let output = append_to(&directory.output_file()).map_err(cannot)?;
        let (control, commands) =
            Control::listen(&control_socket(&sockets), limits.heartbeat).map_err(cannot)?;
        Ok(Attempt {
            terminate: signal(SignalKind::terminate()).map_err(cannot)?,
            interrupt: signal(SignalKind::interrupt()).map_err(cannot)?,
            hang_up: signal(SignalKind::hangup()).map_err(cannot)?,
            started: Timestamp::now(),
            begun: now,
            clock: Clock::new(limits.wall, limits.idle, now),
            kept: Some(Kept::new(output, MOST_OUTPUT)),
            directory,
            spec,
            running,
            sockets,
            gateway_place,
            control,
            commands,
            gateway,
            facts,
            judge,
            conversation,
            _endpoint: endpoint,
            hooks,
            open_hooks: BTreeMap::new(),
            doorway,
            opening: None,
            launch,
            lines: Lines::default(),
            complaint: Vec::new(),
            input: None,
            cause: None,
            late: false,
            over: false,
            kill_at: None,
            limited: None,
            provider_failed: None,
            open_questions: BTreeSet::new(),
            tickets: 0,
            camera,
            next_snapshot: None,
            developing: None,
            warnings,
        })
    }

    /// From here on, what is reported is kept. The file is only made now: one
    /// without a registered process would be a riddle.
    pub(super) fn keep_reports(&mut self) {
        match append_to(&self.directory.reports_file()) {
            Ok(file) => self.control.keep_in(file),
            Err(error) => self.report_failed(&error),
        }
    }

    pub(super) fn start_agent(&mut self) -> io::Result<(Child, mpsc::Receiver<Chunk>)> {
        for (path, text) in &self.launch.files {
            if let Some(place) = path.parent() {
                fs::create_dir_all(place)?;
            }
            fs::write(path, text)?;
        }
        let blueflame = std::env::current_exe()?;
        let (home, tmp) = (self.directory.home(), self.directory.tmp());
        let occupant = Occupant {
            ground: &self.spec.workspace,
            reach: self.spec.policy.reach(),
            home: &home,
            tmp: &tmp,
            programs: vec![&self.launch.program, &blueflame],
            files: self.launch.seen().collect(),
            gateway: Some(&self.gateway_place),
        };
        let mut plan = sandbox::draw(&self.spec.sandbox, &occupant).map_err(io::Error::other)?;
        let doorway = self.doorway.take();
        plan.door = doorway.as_ref().map(Doorway::door).transpose()?;
        // Our own program first: it puts the sandbox up, and makes sure that the
        // agent dies with us.
        let mut command = tokio::process::Command::new(&blueflame);
        command
            .arg("__launch")
            .arg(std::process::id().to_string())
            .arg(&self.launch.program)
            .args(&self.launch.arguments)
            .env_clear()
            .envs(self.environment())
            .envs(&self.spec.sandbox.variables)
            .envs(&self.launch.environment)
            .env(sandbox::PLAN, serde_json::to_string(&plan)?)
            .current_dir(&self.spec.workspace);
        let ends = pipes::lay(&mut command)?;
        if let Some(doorway) = &doorway {
            doorway.let_inherit()?;
        }
        let child = command.spawn()?;
        self.opening = doorway.map(|doorway| tokio::task::spawn_blocking(|| doorway.open()));
        let (input, chunks) = pipes::connect(ends);
        self.input = Some(input);
        let steps = self.conversation.open();
        self.perform(steps);
        Ok((child, chunks))
    }

    /// What every agent finds in its environment.
    fn environment(&self) -> BTreeMap<&'static str, OsString> {
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
            (MARK, self.directory.mark().into()),
        ]
        .into()
    }
}

/// Takes out the tools that cannot be had for want of a program, and says so.
fn forgo_tools(spec: &mut Spec, executor: &dyn Executor) -> Vec<String> {
    let path = OsString::from(&spec.path);
    let mut warnings = Vec::new();
    for (program, tools) in find::missing_helpers(executor, &path) {
        spec.order.tools.retain(|tool| !tools.contains(&tool.as_str()));
        let tools = tools.join(" and ");
        warnings.push(format!("`{program}` is not in PATH, so there are no {tools} tools"));
    }
    warnings
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
    settings.models = Models::Ordered(spec.order.model.clone());
    settings.grant_wait = spec.limits.grant_wait;
    if model.gateway.record {
        settings.recording = Some(Recording::open(&directory.recording_file()).map_err(cannot)?);
    }
    Ok(settings)
}

fn append_to(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).mode(0o600).open(path)
}
