//! Landlock: who may read and write which files, told to the kernel a second
//! time. With namespaces it is the wall behind the wall; without them it is the
//! wall.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope,
};

use super::plan::{Plan, Tier, View};

/// What this was written for; an older kernel enforces what it knows.
const VERSION: ABI = ABI::V6;

/// Confines this process and all that it starts.
pub(super) fn apply(plan: &Plan) -> io::Result<()> {
    let everything = AccessFs::from_all(VERSION);
    let reading = AccessFs::from_read(VERSION);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket | Scope::Signal))
        .map_err(io::Error::other)?;
    if plan.tier == Tier::Landlock {
        rules = rules.handle_access(AccessNet::ConnectTcp).map_err(io::Error::other)?;
    }
    let mut rules = rules.create().map_err(io::Error::other)?;
    let (read, write) = paths(plan);
    let sides = [(read, reading), (write, everything)];
    for (path, access) in
        sides.iter().flat_map(|(paths, access)| paths.iter().map(move |path| (path, *access)))
    {
        // What is not there cannot be reached either.
        let Ok(opened) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(VERSION) };
        rules = rules.add_rule(PathBeneath::new(opened, access)).map_err(io::Error::other)?;
    }
    let status = rules.restrict_self().map_err(io::Error::other)?;
    if plan.tier == Tier::Landlock && status.ruleset == RulesetStatus::NotEnforced {
        return Err(io::Error::other("this kernel has no Landlock"));
    }
    Ok(())
}

/// What may be read and what may be written.
fn paths(plan: &Plan) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let known = |wanted: fn(&View) -> bool| {
        let chosen = plan.views.iter().filter(move |(_, view)| wanted(view));
        chosen.map(|(path, _)| path.clone())
    };
    let mut write: Vec<PathBuf> = ["/dev/null", "/dev/zero", "/dev/full"].map(PathBuf::from).into();
    let read = match plan.tier {
        // Nothing else is there, and terminals and shared memory are its own.
        Tier::Namespaces | Tier::Off => {
            write.extend(["/dev/pts", "/dev/shm", "/dev/ptmx"].map(PathBuf::from));
            write.extend(known(|view| matches!(view, View::Write(_) | View::Fresh(_))));
            vec![PathBuf::from("/")]
        }
        // The machine's terminals and shared memory are other people's too: a
        // rule cannot tell a new terminal from the person's.
        Tier::Landlock => {
            write.extend(known(|view| matches!(view, View::Write(_))));
            let mut read: Vec<PathBuf> = known(|view| matches!(view, View::Read(_))).collect();
            let always = ["/proc", "/dev/random", "/dev/urandom", "/etc/passwd", "/etc/group"];
            read.extend(always.map(PathBuf::from));
            read
        }
    };
    (read, write)
}
