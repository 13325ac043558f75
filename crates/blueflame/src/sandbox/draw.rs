//! Drawing up a plan: a look at the machine and at a workspace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use blueflame_core::lock_path::LockPath;
use blueflame_core::policy::Reach;

use super::plan::{Plan, Terms, Tier, View};

/// What every program may look at, where there is such a thing.
const SYSTEM: [&str; 9] =
    ["/usr", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// The same in `/etc`, where secrets are too: what compilers, interpreters and
/// libraries read. Accounts are not among them, the sandbox has its own.
const SETTINGS: [&str; 39] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "fonts",
    "gai.conf",
    "gitattributes",
    "host.conf",
    "hosts",
    "inputrc",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "maven/logging",
    "maven/m2.conf",
    "mime.types",
    "networks",
    "nsswitch.conf",
    "os-release",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "python3",
    "rpc",
    "services",
    "shells",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
    "xml",
];

/// The same for directories that have a version in their names: `java-17-openjdk`.
const VERSIONED: [&str; 2] = ["java-", "python3."];

/// The size of what lives in memory, in MiB.
const TMP_MB: u32 = 512;

/// Who is to live in a sandbox.
#[derive(Clone, Debug)]
pub struct Occupant<'a> {
    /// The directory it works in, with a git directory of its own.
    pub ground: &'a Path,
    pub reach: Reach,
    pub home: &'a Path,
    pub tmp: &'a Path,
    /// The programs that it is, or is known to start; absolute.
    pub programs: Vec<&'a Path>,
    /// Files it is given, to read.
    pub files: Vec<&'a Path>,
    /// Where its gateway listens.
    pub gateway: Option<&'a Path>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum DrawError {
    #[error("the sandbox cannot be laid out: `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("`{}` cannot be written in the sandbox: a link leads out of the workspace", path.display())]
    LeadsOut { path: PathBuf },
}

/// Draws the plan of a sandbox. What is missing in the workspace for build
/// output and new files to have a place is made.
pub fn draw(terms: &Terms, occupant: &Occupant<'_>) -> Result<Plan, DrawError> {
    let mut plan = Plan {
        tier: terms.tier,
        views: BTreeMap::new(),
        open: BTreeMap::new(),
        home: occupant.home.to_owned(),
        gateway: occupant.gateway.map(Path::to_owned),
        door: None,
        limits: terms.limits.clone(),
    };
    if terms.tier == Tier::Off {
        return Ok(plan);
    }
    plan.views.insert("/tmp".into(), View::Fresh(TMP_MB));
    system(&mut plan);
    for path in &terms.read {
        plan.see(path);
    }
    for program in &occupant.programs {
        installation(&mut plan, program);
    }
    for path in occupant.files.iter().copied().chain(occupant.gateway) {
        plan.see(path);
    }
    for path in [occupant.home, occupant.tmp] {
        plan.write(path);
    }
    for (name, path) in &terms.in_home {
        if path.exists() {
            plan.views.insert(occupant.home.join(name), View::Read(path.clone()));
        }
    }
    workspace(&mut plan, occupant)?;
    Ok(plan)
}

fn system(plan: &mut Plan) {
    for path in SYSTEM.map(Path::new) {
        match fs::read_link(path) {
            Ok(target) => drop(plan.views.insert(path.to_owned(), View::Link(target))),
            Err(_) if path.exists() => plan.see(path),
            Err(_) => {}
        }
    }
    for name in SETTINGS.map(OsString::from).into_iter().chain(versioned()) {
        let path = Path::new("/etc").join(name);
        // At its own name only: where a link leads may be a place full of
        // other things.
        if let Ok(real) = path.canonicalize() {
            plan.views.insert(path, View::Read(real));
        }
    }
}

fn versioned() -> Vec<OsString> {
    let names = fs::read_dir("/etc").into_iter().flatten().flatten().map(|it| it.file_name());
    let is_one = |name: &OsString| {
        VERSIONED.iter().any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()))
    };
    names.filter(is_one).collect()
}

/// A program with what is installed beside it.
fn installation(plan: &mut Plan, program: &Path) {
    let Ok(real) = program.canonicalize() else { return };
    if !plan.shows(program) {
        plan.views.insert(program.to_owned(), View::Read(real.clone()));
    }
    // What npm installed is a tree of packages that need each other.
    let packages =
        real.ancestors().filter(|it| it.file_name().is_some_and(|n| n == "node_modules"));
    match packages.last() {
        Some(packages) if !plan.shows(packages) => {
            plan.see(packages);
            // A link in `.bin` is read where it is, to find its package.
            if let Some(parent) = program.parent()
                && parent.starts_with(packages)
            {
                plan.views.remove(program);
            }
        }
        _ if !plan.shows(&real) => plan.see(&real),
        _ => {}
    }
}

fn workspace(plan: &mut Plan, occupant: &Occupant<'_>) -> Result<(), DrawError> {
    let ground = occupant.ground.canonicalize().map_err(failed(occupant.ground))?;
    match &occupant.reach {
        Reach::Everything => plan.write(occupant.ground),
        Reach::Only { locks, scratch } => {
            plan.see(occupant.ground);
            for path in scratch {
                let path = inside(&ground, path)?;
                fs::create_dir_all(&path).map_err(failed(&path))?;
                plan.write(&path);
            }
            let places = locks.iter().map(|lock| inside(&ground, lock));
            let places = places.collect::<Result<Vec<PathBuf>, _>>()?;
            let is_directory =
                |path: &&PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
            let (whole, single): (Vec<_>, Vec<_>) = places.iter().partition(is_directory);
            for path in &whole {
                plan.write(path);
            }
            for path in single {
                if !whole.iter().any(|directory| path.starts_with(directory)) {
                    open(plan, path)?;
                }
            }
        }
    }
    git_directory(plan, &ground)
}

/// A file is written, replaced, moved and removed by way of its directory, and
/// so is what is not there yet: that directory is opened, and all else in it is
/// nailed down.
fn open(plan: &mut Plan, path: &Path) -> Result<(), DrawError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    fs::create_dir_all(parent).map_err(failed(parent))?;
    plan.write(parent);
    plan.open.entry(parent.to_owned()).or_default().push(path.to_owned());
    Ok(())
}

/// The place of a path in the workspace, which no link on the way leads away
/// from.
fn inside(ground: &Path, path: &LockPath) -> Result<PathBuf, DrawError> {
    let mut at = ground.to_owned();
    let mut parts = Path::new(path.as_str()).components().peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        let link = fs::symlink_metadata(&at).is_ok_and(|found| found.is_symlink());
        if link && parts.peek().is_some() {
            return Err(DrawError::LeadsOut { path: at });
        }
    }
    Ok(at)
}

/// Its own, except for what git would act on: settings, hooks, and where else
/// objects are. Those places are looked at.
fn git_directory(plan: &mut Plan, ground: &Path) -> Result<(), DrawError> {
    let git_dir = ground.join(".git");
    if !git_dir.is_dir() {
        return Ok(());
    }
    plan.write(&git_dir);
    for name in ["hooks", "info", "objects/info"] {
        let path = git_dir.join(name);
        fs::create_dir_all(&path).map_err(failed(&path))?;
        plan.see(&path);
    }
    plan.see(&git_dir.join("config"));
    let mut left = vec![git_dir.join("objects")];
    while let Some(objects) = left.pop() {
        let listed = fs::read_to_string(objects.join("info/alternates")).unwrap_or_default();
        for line in listed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let place = objects.join(line);
            if !plan.views.contains_key(&place) && place.is_dir() {
                plan.see(&place);
                left.push(place);
            }
        }
    }
    Ok(())
}

fn failed(path: &Path) -> impl Fn(io::Error) -> DrawError + use<> {
    let path = path.to_owned();
    move |source| DrawError::Io { path: path.clone(), source }
}
