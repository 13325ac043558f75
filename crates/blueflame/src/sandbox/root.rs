//! An empty root with only what the plan names in it.
//!
//! Everything is done by descriptors: a source is opened once, without following
//! links, and what was opened is what is mounted. The new root stands in memory
//! and is read-only in the end; the machine's own is gone.

use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{getegid, geteuid, pivot_root};

use super::plan::{Plan, View};
use super::syscalls::{Below, NO_DEVICES, NO_SETUID, READ_ONLY, set_mount};

/// Where the new root is built; what is there now is out of sight meanwhile.
const PLACE: &str = "/tmp";

const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];

/// Parts of `/proc` that belong to the whole machine: not written, or not even
/// read.
const MACHINE: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];
const SECRET: [&str; 13] = [
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "slabinfo",
    "timer_list",
    "vmallocinfo",
];

/// Something that is to be mounted.
struct Tree {
    mounts: OwnedFd,
    at: PathBuf,
    directory: bool,
    attributes: u64,
}

/// Makes the plan's files the only ones that there are.
pub(super) fn build(plan: &Plan) -> io::Result<()> {
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .map_err(at("/"))?;
    // All sources are taken hold of while the machine's root is still there.
    let mut steps = Vec::new();
    for (path, view) in &plan.views {
        steps.push(match view {
            View::Read(from) => Step::Mount(tree(from, path, NO_SETUID | NO_DEVICES | READ_ONLY)?),
            View::Write(from) => Step::Mount(tree(from, path, NO_SETUID | NO_DEVICES)?),
            View::Link(target) => Step::Link(target, path),
            View::Fresh(mb) => Step::Fresh(*mb, path),
        });
        if let Some(free) = plan.open.get(path) {
            for nailed in nailed_down(plan, path, free)? {
                let read_only = NO_SETUID | NO_DEVICES | READ_ONLY;
                steps.push(Step::Mount(tree(&nailed, &nailed, read_only)?));
            }
        }
    }
    let devices: Vec<Tree> = DEVICES
        .iter()
        .map(|name| Path::new("/dev").join(name))
        .map(|path| tree(&path, &path, NO_SETUID))
        .collect::<io::Result<_>>()?;

    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", PLACE, "tmpfs", flags, Some(c"mode=0755,size=16m")).map_err(at(PLACE))?;
    let root = openat2(
        CWD,
        PLACE,
        OFlags::PATH | OFlags::DIRECTORY,
        Mode::empty(),
        ResolveFlags::empty(),
    )?;
    for step in steps {
        match step {
            Step::Mount(tree) => attach(&root, &tree)?,
            Step::Link(target, path) => {
                mount_point(&root, path.parent().unwrap_or(Path::new("/")), Kind::Directory)?;
                symlink(target, below(path)).map_err(at(path))?;
            }
            Step::Fresh(mb, path) => {
                mount_point(&root, path, Kind::Directory)?;
                memory(&below(path), mb, "1777")?;
            }
        }
    }
    accounts(&root, plan)?;
    proc(&root)?;
    dev(&root, &devices)?;

    std::env::set_current_dir(PLACE)?;
    pivot_root(".", ".").map_err(at("pivot_root"))?;
    unmount(".", UnmountFlags::DETACH).map_err(at("the old root"))?;
    std::env::set_current_dir("/")?;
    let root = openat2(CWD, "/", OFlags::PATH, Mode::empty(), ResolveFlags::empty())?;
    set_mount(root.as_fd(), READ_ONLY, Below::Not).map_err(at("/"))
}

enum Step<'a> {
    Mount(Tree),
    Link(&'a Path, &'a Path),
    Fresh(u32, &'a Path),
}

/// What is in an open directory and is neither free nor told of in the plan.
/// Links cannot be mounted on; they lead nowhere that can be written.
fn nailed_down(plan: &Plan, directory: &Path, free: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let entry = entry.map_err(at(directory))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(at(directory))?);
        let is_free = free.contains(&path) || plan.views.contains_key(&path);
        if !is_free && (kind.is_file() || kind.is_dir()) {
            found.push(path);
        }
    }
    Ok(found)
}

/// A copy of the mounts at a path that nobody sees yet.
fn tree(from: &Path, to: &Path, attributes: u64) -> io::Result<Tree> {
    let found = openat2(
        CWD,
        from,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
    .map_err(at(from))?;
    let directory = fs::metadata(from).map_err(at(from))?.is_dir();
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH;
    if directory {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    let mounts = open_tree(&found, c"", flags).map_err(at(from))?;
    Ok(Tree { mounts, at: to.to_owned(), directory, attributes })
}

fn attach(root: &OwnedFd, tree: &Tree) -> io::Result<()> {
    let below = if tree.directory { Below::Too } else { Below::Not };
    set_mount(tree.mounts.as_fd(), tree.attributes, below).map_err(at(&tree.at))?;
    let kind = if tree.directory { Kind::Directory } else { Kind::File };
    let point = mount_point(root, &tree.at, kind)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&tree.mounts, c"", &point, c"", flags).map_err(at(&tree.at))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
}

/// The place for a mount below the new root, made if need be, never through a
/// link.
fn mount_point(root: &OwnedFd, path: &Path, kind: Kind) -> io::Result<OwnedFd> {
    let path_only = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let straight = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut here = openat2(root, ".", path_only, Mode::empty(), ResolveFlags::empty())?;
    let names: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    for (depth, name) in names.iter().enumerate() {
        let open = |here: &OwnedFd| openat2(here, *name, path_only, Mode::empty(), straight);
        here = match open(&here) {
            Ok(next) => next,
            Err(rustix::io::Errno::NOENT) => {
                let made = if depth + 1 == names.len() && kind == Kind::File {
                    let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                    openat2(&here, *name, new, Mode::from_raw_mode(0o600), straight).map(drop)
                } else {
                    rustix::fs::mkdirat(&here, *name, Mode::from_raw_mode(0o755))
                };
                match made {
                    // Another sandbox over the same directory was faster.
                    Ok(()) | Err(rustix::io::Errno::EXIST) => open(&here).map_err(at(path))?,
                    Err(error) => return Err(at(path)(error)),
                }
            }
            Err(error) => return Err(at(path)(error)),
        };
    }
    Ok(here)
}

/// Names for the user and the group that it runs as. Who else has an account on
/// the machine is nobody's business.
fn accounts(root: &OwnedFd, plan: &Plan) -> io::Result<()> {
    mount_point(root, Path::new("/etc"), Kind::Directory)?;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let home = plan.home.to_string_lossy();
    let put = |name: &str, text: String| {
        fs::File::create(below(Path::new(name)))?.write_all(text.as_bytes())
    };
    put(
        "/etc/passwd",
        format!(
            "agent:x:{user}:{group}:agent:{home}:/bin/sh\n\
             nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
        ),
    )?;
    put("/etc/group", format!("agent:x:{group}:\nnogroup:x:65534:\n"))
}

fn proc(root: &OwnedFd) -> io::Result<()> {
    let path = Path::new("/proc");
    mount_point(root, path, Kind::Directory)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", below(path), "proc", flags, None).map_err(at("/proc"))?;
    // They belong to the machine's root, who may be who we are.
    for name in MACHINE {
        let (from, to) = (below(&path.join(name)), path.join(name));
        if from.exists() {
            attach(root, &tree(&from, &to, READ_ONLY)?)?;
        }
    }
    for name in SECRET {
        let to = path.join(name);
        if below(&to).is_file() {
            attach(root, &tree(Path::new("/dev/null"), &to, READ_ONLY)?)?;
        }
    }
    Ok(())
}

fn dev(root: &OwnedFd, devices: &[Tree]) -> io::Result<()> {
    for device in devices {
        attach(root, device)?;
    }
    let terminals = Path::new("/dev/pts");
    mount_point(root, terminals, Kind::Directory)?;
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    let options = c"newinstance,ptmxmode=0666,mode=620";
    mount("devpts", below(terminals), "devpts", flags, Some(options)).map_err(at("/dev/pts"))?;
    let shared = Path::new("/dev/shm");
    mount_point(root, shared, Kind::Directory)?;
    memory(&below(shared), SHARED_MB, "1777")?;
    for (target, name) in [
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
        ("pts/ptmx", "/dev/ptmx"),
    ] {
        symlink(target, below(Path::new(name))).map_err(at(name))?;
    }
    Ok(())
}

/// Shared memory of programs, in MiB.
const SHARED_MB: u32 = 256;

fn memory(path: &Path, mb: u32, mode: &str) -> io::Result<()> {
    let options = std::ffi::CString::new(format!("mode={mode},size={mb}m"))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", path, "tmpfs", flags, Some(options.as_c_str())).map_err(at(path))
}

/// A path of the new root while it is being built.
fn below(path: &Path) -> PathBuf {
    Path::new(PLACE).join(path.strip_prefix("/").unwrap_or(path))
}

/// An error that says where.
fn at<E: Into<io::Error>>(path: impl AsRef<Path>) -> impl Fn(E) -> io::Error {
    move |error| {
        let error: io::Error = error.into();
        io::Error::new(error.kind(), format!("`{}`: {error}", path.as_ref().display()))
    }
}
