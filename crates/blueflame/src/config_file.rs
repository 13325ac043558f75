//! Finding, reading and checking `blueflame.yaml`.
//!
//! The core checks what the file says; this adds what only a look at the
//! machine can tell: whether the repository and its base branch are there, and
//! whether the price of a model is known.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use blueflame_core::config::{self, Config, file::ConfigFile};
use blueflame_core::ids::{Oid, Role};
use blueflame_core::yaml::{Limits, Problem, Severity, Spanned, closest, one_of};
use blueflame_gateway::prices;

use crate::diagnostics;
use crate::failure::{Failure, Kind};
use crate::git::{Git, GitError, Roots};
use crate::store::Store;

/// The name that is looked for in the root of the repository.
pub const DEFAULT_NAME: &str = "blueflame.yaml";

/// A configuration that is good to work with.
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// The file in its newest form, with all defaults.
    pub file: ConfigFile,
    /// Where it was read from.
    pub path: PathBuf,
    /// The same, as shown to people.
    pub name: String,
    /// Identifies what the file says.
    pub fingerprint: String,
    /// The root of the repository to work on.
    pub repository: PathBuf,
    /// The git directory that all its checkouts share.
    pub common: PathBuf,
    /// Where its base branch is; `None` if that cannot be looked up.
    pub base: Option<Oid>,
    /// What was assumed for a file of an older version.
    pub notes: Vec<String>,
}

/// Loads the configuration: `given` on the command line, or the default file.
/// Problems and warnings are shown on the way; problems end in a failure.
pub fn load(given: Option<&Path>) -> Result<Loaded, Failure> {
    let (path, here) = match given {
        Some(path) => (path.to_owned(), None),
        None => default_path()?,
    };
    load_from(path, here, given.is_none())
}

/// Loads the default file; `None` if there is none.
pub fn load_if_any() -> Result<Option<Loaded>, Failure> {
    let (path, here) = default_path()?;
    if path.exists() { load_from(path, here, true).map(Some) } else { Ok(None) }
}

fn load_from(path: PathBuf, here: Option<Roots>, by_default: bool) -> Result<Loaded, Failure> {
    let name = shown_name(&path);
    let bytes = read(&path, &name, by_default)?;
    let mut reading = config::read(&bytes);
    let mut around = None;
    if let Some(file) = &reading.file {
        let directory = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        let (seen, found) = look_around(file, directory.unwrap_or(Path::new(".")), here);
        around = seen;
        let known: Vec<String> = reading.problems.iter().map(|p| p.path.clone()).collect();
        reading.problems.extend(found.into_iter().filter(|p| !known.contains(&p.path)));
        if let Some(config) = &reading.config {
            reading.problems.extend(unknown_prices(config, file));
        }
    }
    reading.problems.sort_by_key(|problem| problem.span.map_or(usize::MAX, |span| span.start));
    diagnostics::show(&reading.problems, &name, &bytes);
    let broken = reading.problems.iter().any(|problem| problem.severity == Severity::Error);
    match (reading.config, reading.file, around) {
        (Some(config), Some(file), Some(Around { roots, base })) if !broken => {
            let fingerprint = fingerprint(&bytes);
            let notes = reading.notes;
            let Roots { work_tree: repository, common } = roots;
            Ok(Loaded { config, file, path, name, fingerprint, repository, common, base, notes })
        }
        // The problems were shown already.
        _ => Err(Failure::new(Kind::Usage, "")),
    }
}

impl Loaded {
    /// What is kept of the sessions of the repository.
    pub fn store(&self) -> Store {
        Store::in_common_dir(&self.common)
    }
}

/// Identifies what a configuration file says.
pub fn fingerprint(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..16].to_owned()
}

/// The default file, and the repository that it is in, if it is in one.
fn default_path() -> Result<(PathBuf, Option<Roots>), Failure> {
    let current = std::env::current_dir().map_err(|error| {
        Failure::new(Kind::Usage, format!("the current directory cannot be found: {error}"))
    })?;
    let roots = Git::in_dir(&current).roots().ok();
    let directory = roots.as_ref().map_or(&current, |roots| &roots.work_tree);
    Ok((directory.join(DEFAULT_NAME), roots))
}

/// The path from here, if the file is below the current directory.
fn shown_name(path: &Path) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(current).unwrap_or(path).display().to_string()
}

fn read(path: &Path, name: &str, by_default: bool) -> Result<Vec<u8>, Failure> {
    let refused = |message: String| Failure::new(Kind::Usage, message);
    if path.is_dir() {
        return Err(refused(format!("the configuration is a directory: `{name}`"))
            .hint("name the file in it"));
    }
    let mut bytes = Vec::new();
    // One byte more than is read, so that a file that is too long is noticed.
    let most = u64::try_from(Limits::CONFIG.bytes).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(|error| {
        match error.kind() {
            io::ErrorKind::NotFound => {
                let failure = refused(format!("there is no configuration at `{name}`"));
                if by_default {
                    failure.hint("`blueflame init` writes one, or name one with --config")
                } else {
                    failure.hint("check the path behind --config")
                }
            }
            io::ErrorKind::PermissionDenied => {
                refused(format!("the configuration cannot be read, permission denied: `{name}`"))
                    .hint("check who may read the file")
            }
            _ => refused(format!("the configuration cannot be read: `{name}`: {error}")),
        }
    })?;
    Ok(bytes)
}

/// The repository as it was found.
struct Around {
    roots: Roots,
    base: Option<Oid>,
}

/// The repository, and what is wrong with it. Where the one is that the file is in may
/// be known.
fn look_around(
    file: &ConfigFile,
    directory: &Path,
    here: Option<Roots>,
) -> (Option<Around>, Vec<Problem>) {
    let repo = &file.project.repo;
    let dir = directory.join(&repo.value);
    let about_repo = |message: String, hint: &str| {
        vec![Problem::error("project.repo", message).at(repo.span, "").hint(hint)]
    };
    if !dir.is_dir() {
        let hint = "a relative path starts at the directory of the configuration";
        return (None, about_repo(format!("is not a directory, got `{}`", repo.value), hint));
    }
    let here = here.filter(|_| repo.value == ".");
    let roots = match here.map_or_else(|| Git::in_dir(&dir).roots(), Ok) {
        Ok(roots) => roots,
        Err(GitError::NotARepository { .. }) => {
            let message = format!("is not a git repository, got `{}`", repo.value);
            return (None, about_repo(message, "run `git init` there, or name another directory"));
        }
        Err(error) => {
            let message = format!("cannot be looked at: {error}");
            return (None, about_repo(message, "`git status` in that directory must work"));
        }
    };
    let (base, problem) = base(&Git::in_dir(&roots.common), &file.project.base_branch);
    (Some(Around { roots, base }), Vec::from_iter(problem))
}

/// Where the base branch is, or why that is not known.
fn base(git: &Git, branch: &Spanned<String>) -> (Option<Oid>, Option<Problem>) {
    let problem =
        |message: String| Problem::error("project.base_branch", message).at(branch.span, "");
    let missing = match git.branch(branch) {
        Ok(Some(commit)) => return (Some(commit), None),
        Ok(None) => {
            let branches = git.branches().unwrap_or_default();
            let known = || branches.iter().map(String::as_str);
            let hint = if branches.is_empty() {
                "the repository has no commit yet; make a first one".to_owned()
            } else if let Some(meant) = closest(branch, known()) {
                format!("did you mean `{meant}`?")
            } else {
                format!("the repository has {}", one_of(known().take(5)))
            };
            let message = format!("does not exist in the repository, got `{}`", branch.value);
            problem(message).hint(hint)
        }
        // That is no fault of the configuration; whoever needs the branch says so.
        Err(error) => {
            Problem::warning("project.base_branch", format!("cannot be looked up: {error}"))
                .at(branch.span, "")
        }
    };
    (None, Some(missing))
}

/// Models that are charged like the dearest one, where a budget is in dollars.
fn unknown_prices(config: &Config, file: &ConfigFile) -> Vec<Problem> {
    let models = &file.models;
    let of_roles = Role::ALL.into_iter().filter_map(|role| {
        let model = match role {
            Role::Planner => &models.planner,
            Role::Worker => &models.worker,
            Role::Validator => &models.validator,
            Role::Merger => &models.merger,
        };
        config.counts_dollars(role).then(|| (format!("models.{role}"), model))
    });
    let of_executors = file.executors.models.iter().filter_map(|(name, model)| {
        let has = |role: &Role| {
            let chain = config.executors.chains.of(*role);
            config.counts_dollars(*role) && chain.iter().any(|it| it.as_str() == name)
        };
        Role::ALL.iter().any(has).then(|| (format!("executors.models.{name}"), model))
    });
    let priced =
        |model: &str| prices::known(model).is_some() || config.gateway.prices.contains_key(model);
    let unpriced = of_roles.chain(of_executors).filter(|(_, model)| !priced(&model.value));
    let problem = |(path, model): (String, &Spanned<String>)| {
        let what =
            format!("has no known price, but its budget is in dollars, got `{}`", model.value);
        Problem::warning(path, what)
            .at(model.span, "charged like the dearest known model")
            .hint("set the budget in tokens if that stops the work too early")
    };
    unpriced.map(problem).collect()
}
