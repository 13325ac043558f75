//! One look for each thing.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use blueflame_core::config::Config;
use blueflame_core::ids::{AccountName, Role};
use blueflame_gateway::credential::Credential;
use blueflame_gateway::upstream::{BadUpstream, Surroundings, Upstream};
use jiff::Timestamp;

use super::executors::{self, Looked};
use super::{Finding, machine};
use crate::amounts;
use crate::at_once;
use crate::config_file::Loaded;
use crate::executor::{Version, find};
use crate::failure::Failure;
use crate::file_system::FileSystem;
use crate::git::objects::Objects;
use crate::git::{Git, GitError};
use crate::landing::Landing;
use crate::memory::Keeper;
use crate::memory::mirror::{self, Pending, Unusable};
use crate::narrate;
use crate::people::sheet::count;
use crate::prove::record;
use crate::sandbox::{self, Boundary};
use crate::skills::{self, Person};
use crate::workspace::Making;

/// Merges and diffs are made with what came up to this version.
const OLDEST_GIT: Version = Version(2, 41, 0);

/// Below this a session may well stop for want of room.
const LITTLE_DISK: u64 = 2 << 30;

/// What is examined.
#[derive(Debug)]
pub struct Place<'p> {
    pub directory: PathBuf,
    /// `None` if there is none that can be used.
    pub loaded: Option<&'p Loaded>,
}

/// Looks at everything, in the order in which a person would put it right.
pub fn examine(place: &Place<'_>, looked: &[Looked]) -> Vec<Finding> {
    let Some(loaded) = place.loaded else {
        let mut findings = of_the_ground(place);
        findings.push(Finding::missing(
            "configuration",
            "there is none that can be used",
            "`blueflame init` writes one; `blueflame config check` says what is wrong with one",
        ));
        return findings;
    };
    // The trial takes longest; everything else is looked at beside it.
    let trial = || sandbox::choose(&loaded.config.sandbox);
    let (boundary, (mut findings, rest)) = at_once::both(trial, || {
        let mut findings = of_the_ground(place);
        findings.push(Finding::good("configuration", loaded.name.clone()));
        findings.extend(executors::findings(&loaded.config, looked));
        findings.extend(models(loaded));
        let mut rest = vec![skills(loaded), memory(loaded)];
        rest.extend(free_memory(&loaded.config));
        (findings, rest)
    });
    findings.push(sandbox(&boundary));
    // Without a sandbox there can be no session anyway.
    if let Ok(boundary) = boundary {
        findings.extend(workspaces(loaded, boundary));
        findings.push(proof(loaded, boundary));
    }
    findings.extend(rest);
    findings
}

/// What everything else stands on.
fn of_the_ground(place: &Place<'_>) -> Vec<Finding> {
    let mut findings = vec![git()];
    findings.extend(machine());
    match place.loaded {
        Some(Loaded { repository, common, base: Some(_), .. }) => {
            findings.push(Finding::good("repository", repository.display().to_string()));
            findings.extend(in_repository(common));
        }
        Some(Loaded { repository, .. }) => findings.extend(repository_at(repository)),
        None => findings.extend(repository_at(&place.directory)),
    }
    findings
}

pub fn git() -> Finding {
    let newer = "install git 2.41 or newer: `apt install git`, `brew install git`";
    match Git::version() {
        Ok(said) => match Version::find(&said) {
            Some(version) if version >= OLDEST_GIT => Finding::good("git", version.to_string()),
            Some(version) => Finding::missing("git", format!("{version} is too old"), newer),
            None => Finding::warning("git", format!("does not say its version: `{said}`"), None),
        },
        Err(error) => Finding::missing("git", error.to_string(), newer),
    }
}

fn repository_at(directory: &Path) -> Vec<Finding> {
    let git = Git::in_dir(directory);
    let common = match git.common_dir() {
        Ok(common) => common,
        Err(GitError::NotInstalled) => return Vec::new(),
        Err(error) => {
            let fix = "go to your project, or make it one: `git init`";
            return vec![Finding::missing("repository", error.to_string(), fix)];
        }
    };
    let mut findings = vec![match git.has_commit() {
        Ok(true) => Finding::good("repository", directory.display().to_string()),
        _ => Finding::missing(
            "repository",
            "it has no commit to start from",
            "git commit --allow-empty -m \"chore: begin\"",
        ),
    }];
    findings.extend(in_repository(&common));
    findings
}

fn in_repository(common: &Path) -> Vec<Finding> {
    let mut findings = Vec::from_iter(file_system(common));
    findings.push(disk(common));
    findings.push(identity(common));
    findings
}

fn file_system(common: &Path) -> Option<Finding> {
    match FileSystem::of(common) {
        Ok(FileSystem::Remote(name)) => Some(Finding::missing(
            "file system",
            format!("the repository is on {name}, where locks and flushes cannot be trusted"),
            "clone it to a local disk",
        )),
        Ok(FileSystem::Local) | Err(_) => None,
    }
}

fn disk(directory: &Path) -> Finding {
    match rustix::fs::statvfs(directory) {
        Ok(disk) => {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let says = format!("{:.1} GB free", gigabytes(free));
            if free < LITTLE_DISK {
                let fix = "each agent has a copy of the work tree; `blueflame cleanup` makes room";
                Finding::warning("disk", says, Some(fix))
            } else {
                Finding::good("disk", says)
            }
        }
        Err(error) => Finding::warning("disk", format!("cannot be asked: {error}"), None),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

fn identity(common: &Path) -> Finding {
    match Landing::over(Objects::of(common)).person() {
        Ok(Some(author)) => {
            Finding::good("identity", format!("{} <{}>", author.name, author.email))
        }
        Ok(None) => Finding::warning(
            "identity",
            "git does not know you: commits will be by Blue Flame",
            Some("git config --global user.name \"...\"; git config --global user.email ..."),
        ),
        Err(error) => Finding::warning("identity", error.to_string(), None),
    }
}

/// One for each account that somebody uses.
fn models(loaded: &Loaded) -> impl Iterator<Item = Finding> {
    accounts_in_use(&loaded.config).into_iter().map(|account| model(loaded, account))
}

/// The accounts of the executors that roles may have.
fn accounts_in_use(config: &Config) -> BTreeSet<&AccountName> {
    let chains = Role::ALL.into_iter().flat_map(|role| config.executors.chains.of(role));
    chains.map(|executor| config.executors.account_of(executor)).collect()
}

fn model(loaded: &Loaded, account: &AccountName) -> Finding {
    let written = &loaded.file.gateway;
    let says = match written.accounts.get(account.as_str()) {
        None => written.upstream.value.clone(),
        Some(own) => format!("account `{account}`: {}", own.upstream.value),
    };
    let upstream = upstream(loaded, account);
    let gateway = loaded.config.gateway.with_account(account);
    match upstream {
        Ok(()) if matches!(gateway.upstream, blueflame_core::config::Upstream::Script(_)) => {
            Finding::good("model", format!("{says}: scripted answers, nothing is spent"))
        }
        Ok(()) => Finding::good("model", says),
        Err(error) => {
            let fix = match &error {
                BadUpstream::NoKey { variable, .. } => format!(
                    "export {variable}=..., or use your login with `gateway.passthrough_auth: \
                     true`"
                ),
                _ => "correct `gateway` in the configuration".to_owned(),
            };
            Finding::missing("model", error.to_string(), &fix)
        }
    }
}

/// Whether requests could be sent, as far as that can be told without sending
/// one.
pub fn upstream(loaded: &Loaded, account: &AccountName) -> Result<(), BadUpstream> {
    let config = &loaded.config.gateway.with_account(account);
    if matches!(config.upstream, blueflame_core::config::Upstream::Replay(_)) {
        // Where its traffic is, only the store of a session can tell.
        return Ok(());
    }
    let key = std::env::var(&config.credential_env).ok();
    let key = key.map(Credential::new).transpose().map_err(|source| BadUpstream::BadKey {
        variable: config.credential_env.clone(),
        source,
    })?;
    let directory = loaded.path.parent().unwrap_or(Path::new("."));
    let surroundings = Surroundings { directory, key, recordings: Vec::new() };
    Upstream::configured(config, &surroundings).map(|_| ())
}

/// What came of trying the sandbox out, as every session does before it begins.
fn sandbox(chosen: &Result<Boundary, Failure>) -> Finding {
    match chosen {
        Ok(boundary) => {
            let weak: Vec<&str> = boundary.weaknesses().collect();
            if weak.is_empty() {
                let says = format!("{}: tried, and holds", boundary.tier.name());
                Finding::good("sandbox", says)
            } else {
                Finding::warning("sandbox", weak.join("; "), None)
            }
        }
        Err(failure) => Finding::missing(
            "sandbox",
            failure.message(),
            "`blueflame run` says what may be switched off; docs/sandbox.md has the ways out",
        ),
    }
}

/// How working copies are made here.
fn workspaces(loaded: &Loaded, boundary: Boundary) -> Option<Finding> {
    let blueflame = std::env::current_exe().ok()?;
    let (worktree, tier) = (&loaded.config.worktree, boundary.tier);
    let trees = loaded.repository.join(loaded.config.project.worktree_dir.as_str());
    let chosen = Making::choose(worktree, tier, &blueflame, &trees, &loaded.common);
    Some(Finding::good("workspaces", chosen.to_string()))
}

/// What the last `doctor --prove` is worth now.
fn proof(loaded: &Loaded, boundary: Boundary) -> Finding {
    let fix = Some("blueflame doctor --prove");
    match record::last(&loaded.store()) {
        Err(error) => Finding::warning("proof", error.to_string(), fix),
        Ok(None) => Finding::warning("proof", "nobody has tried what holds here", fix),
        Ok(Some(proof)) => {
            let now =
                record::circumstances(&record::installed(&loaded.config, find::look_up), boundary);
            let outdated = proof.outdated_by(&now);
            let age = amounts::time(amounts::between(proof.at, Timestamp::now()));
            let says = format!("{age} ago {}", narrate::proven(&proof, &outdated));
            if proof.is_whole() && outdated.is_empty() {
                Finding::good("proof", says)
            } else {
                Finding::warning("proof", says, fix)
            }
        }
    }
}

/// What agents can be taught, who gets it, and what nobody gets.
fn skills(loaded: &Loaded) -> Finding {
    let config = &loaded.config;
    let interactive = config.planning.interactive;
    let found = skills::look(config, &loaded.repository, &Person::here(), interactive);
    let (says, complaints) = (found.page(), found.complaints(&config.skills));
    if complaints.is_empty() {
        Finding::good("skills", says)
    } else {
        let fix = Some("correct the names in the configuration, or see docs/skills.md");
        Finding::warning("skills", format!("{says}\n{}", complaints.join("\n")), fix)
    }
}

/// Where notes are kept, how many there are, and whether `bd` gets a copy.
fn memory(loaded: &Loaded) -> Finding {
    let keeper = Keeper::of(&loaded.store());
    let notebook = match keeper.look() {
        Ok(notebook) => notebook,
        Err(error) => return Finding::warning("memory", error.to_string(), None),
    };
    let says = if notebook.is_empty() {
        "no notes yet".to_owned()
    } else {
        let notes = count(notebook.len(), "note");
        let sessions = count(notebook.sessions().len(), "session");
        format!("{notes} of {sessions} in `{}`", keeper.file().display())
    };
    let Some(config) = &loaded.config.memory else {
        let says = format!("off, by `beads.enabled`: nothing new is remembered; {says}");
        return Finding::good("memory", says);
    };
    if !config.mirror {
        return Finding::good("memory", format!("{says}; no copy for `bd`"));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let place = mirror::Place::of(&loaded.repository);
    let pending = Pending::read(keeper.root());
    match (mirror::is_agreed(&place, &path), pending) {
        (Ok(()), None) => Finding::good("memory", format!("{says}; `bd` gets a copy")),
        (Ok(()), Some(Pending { since, why })) => {
            let says = format!("{says}; `bd` is behind since {since}: {why}");
            Finding::warning("memory", says, Some("nothing has to be done: it is tried again"))
        }
        (Err(why), _) => {
            let fix = match why {
                Unusable::NotInstalled => "install `bd`, or turn `beads.mirror` off",
                Unusable::HalfMade(_) => "`bd init` makes one; or remove the directory",
                _ => "blueflame memory init --beads",
            };
            Finding::warning("memory", format!("{says}; no copy: {why}"), Some(fix))
        }
    }
}

fn free_memory(config: &Config) -> Option<Finding> {
    let each = config.concurrency.memory_per_agent_mb?;
    let workers = config.concurrency.workers;
    Some(match crate::free_memory::free_mb() {
        None => Finding::warning("free memory", "how much is free cannot be told", None),
        Some(free) => {
            let says = format!("{free} MB free, {each} MB for each agent");
            let fit = free / each.max(1);
            if fit < u64::from(workers) {
                let fix = "nothing has to be done: fewer agents will run at a time";
                let says = format!("{says}: room for {fit} of {workers} workers");
                Finding::warning("free memory", says, Some(fix))
            } else {
                Finding::good("free memory", says)
            }
        }
    })
}
