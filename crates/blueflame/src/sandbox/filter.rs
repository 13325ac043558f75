//! The system call filter: what no build, no test and no agent has to ask of the
//! kernel is refused.
//!
//! Everything else is allowed; what a process may reach is decided by
//! namespaces and Landlock. Refused is what would undo those, what is not
//! confined by them, and what has no place in a sandbox.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::plan::Tier;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Made<T> = Result<T, seccompiler::BackendError>;

/// The last system call that this table was made for. What is newer, and the
/// second set of numbers that x86 has, are not there.
const NEWEST: u32 = 470;

/// A lease on a directory, which no library names yet.
const F_SETDELEG: i32 = 1024 + 16;

/// `open_tree_attr`, which no library names yet.
const OPEN_TREE_ATTR: i64 = 467;

/// From here on, the filter counts for this process and all that it starts.
pub(super) fn apply(tier: Tier) -> io::Result<()> {
    let programs = programs(tier).map_err(io::Error::other)?;
    for program in &programs {
        apply_filter(program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn programs(tier: Tier) -> Made<[BpfProgram; 3]> {
    let arch = if cfg!(target_arch = "x86_64") { TargetArch::x86_64 } else { TargetArch::aarch64 };
    let program = |rules, errno: i32| -> Made<BpfProgram> {
        let refuse = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
    };
    // Their flags and modes are in memory, where a filter cannot look: without
    // them, programs use `clone` and `openat`.
    let unknown = [libc::SYS_clone3, libc::SYS_openat2].map(|call| (call, Vec::new()));
    let unknown = Rules::from(unknown);
    Ok([known_calls_only(), program(unknown, libc::ENOSYS)?, program(refused(tier)?, libc::EPERM)?])
}

/// No ranges in seccompiler: load the number, compare, refuse or allow.
fn known_calls_only() -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_GREATER, jt: 0, jf: 1, k: NEWEST },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: refuse },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

fn refused(tier: Tier) -> Made<Rules> {
    let mut rules: Rules = NEVER.iter().map(|call| (*call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    rules.extend(NEVER_ON_X86.iter().map(|call| (*call, Vec::new())));
    rules.insert(libc::SYS_socket, sockets(tier)?);
    rules.insert(libc::SYS_socketpair, vec![all([isnt(0, libc::AF_UNIX)?])?]);
    let mut spaces = Vec::new();
    for flag in [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
    ] {
        spaces.push(all([has(0, flag)?])?);
    }
    rules.insert(libc::SYS_clone, spaces);
    // Typing into somebody's terminal.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX];
    let typing = typing.map(|request| all([is(1, wide(request))?]));
    let requests = typing.into_iter().chain(
        SUBVOLUMES
            .map(|request| all([condition(1, SeccompCmpOp::MaskedEq(KIND_OF_REQUEST), request)?])),
    );
    rules.insert(libc::SYS_ioctl, requests.collect::<Made<_>>()?);
    // Plain Linux, what `setarch` and old programs ask for, and the question.
    let usual: [u64; 5] = [0, 0x0020_0000, 0x0000_0008, 0x0020_0008, 0xffff_ffff];
    let odd = usual.map(|value| condition(0, SeccompCmpOp::Ne, value));
    let odd = SeccompRule::new(odd.into_iter().collect::<Made<Vec<_>>>()?)?;
    rules.insert(libc::SYS_personality, vec![odd]);
    let mut nodes = vec![(libc::SYS_mknodat, 2)];
    #[cfg(target_arch = "x86_64")]
    nodes.push((libc::SYS_mknod, 1));
    for (call, mode) in nodes {
        let device = |kind: u32| {
            all([condition(mode, SeccompCmpOp::MaskedEq(u64::from(libc::S_IFMT)), kind.into())?])
        };
        rules.insert(call, vec![device(libc::S_IFCHR)?, device(libc::S_IFBLK)?]);
    }
    for (call, rule) in lending(rights_of_files())? {
        rules.entry(call).or_default().push(rule);
    }
    // Whoever holds a lease makes others wait that open the file, outside too.
    let leases = [libc::F_SETLEASE, F_SETDELEG].map(|what| all([is(1, number(what))?]));
    rules.insert(libc::SYS_fcntl, leases.into_iter().collect::<Made<_>>()?);
    if tier == Tier::Landlock {
        rules.extend(SHARED.iter().map(|call| (*call, Vec::new())));
        for (call, conditions) in of_others()? {
            rules.entry(call).or_default().push(conditions);
        }
        // It is a way to connect that is not called `connect`.
        for (call, flags) in
            [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)]
        {
            rules.insert(call, vec![all([has(flags, libc::MSG_FASTOPEN)?])?]);
        }
    }
    Ok(rules)
}

/// What makes, copies, removes and locks subvolumes of btrfs: those who ask for it need
/// not be allowed to write there, and a workspace that was made read-only could neither
/// be taken over nor removed.
const SUBVOLUMES: [u64; 7] = [0x9401, 0x940e, 0x940f, 0x9417, 0x9418, 0x941a, 0x943f];

/// Whose request it is and its number; the rest tells how much is passed.
const KIND_OF_REQUEST: u64 = 0xffff;

/// How much of the machine other processes of the user get, the person's and ours
/// among them: nothing but a namespace would tell them apart. 0 is the process that
/// asks.
fn of_others() -> Made<Vec<(i64, SeccompRule)>> {
    /// All processes of the user, as `setpriority` and `ioprio_set` name them.
    const ALL: [(i64, i32); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];
    let mut rules = Vec::new();
    for call in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setattr,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setscheduler,
    ] {
        rules.push((call, all([isnt(0, 0)?])?));
    }
    for (call, user) in ALL {
        rules.push((call, all([isnt(1, 0)?])?));
        rules.push((call, all([is(0, number(user))?])?));
    }
    // Without new limits it is only a question.
    let new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.push((libc::SYS_prlimit64, all([isnt(0, 0)?, new])?));
    Ok(rules)
}

/// A call that gives a file its mode: which argument that is, and which one has
/// the flags that say whether it counts.
struct Rights {
    call: i64,
    mode: u8,
    flags: Option<u8>,
}

/// The kernel itself takes these bits away from the mode of `mkdir`.
fn rights_of_files() -> Vec<Rights> {
    let of = |call, mode, flags| Rights { call, mode, flags };
    let mut calls = vec![
        of(libc::SYS_fchmod, 1, None),
        of(libc::SYS_fchmodat, 2, None),
        of(libc::SYS_fchmodat2, 2, None),
        of(libc::SYS_mknodat, 2, None),
        of(libc::SYS_openat, 3, Some(2)),
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        of(libc::SYS_chmod, 1, None),
        of(libc::SYS_creat, 1, None),
        of(libc::SYS_mknod, 1, None),
        of(libc::SYS_open, 2, Some(1)),
    ]);
    calls
}

/// Files that lend their owner's or group's rights to whoever runs them. Inside
/// they are without effect, but the files of an agent are seen outside too.
fn lending(calls: Vec<Rights>) -> Made<Vec<(i64, SeccompRule)>> {
    let mut rules = Vec::new();
    for Rights { call, mode, flags } in calls {
        for bit in [libc::S_ISUID, libc::S_ISGID] {
            let lends = || condition(mode, SeccompCmpOp::MaskedEq(bit.into()), bit.into());
            match flags {
                None => rules.push((call, all([lends()?])?)),
                // Without one of these, the mode is whatever was in the register.
                Some(flags) => {
                    for makes in [libc::O_CREAT, libc::O_TMPFILE] {
                        rules.push((call, all([has(flags, makes)?, lends()?])?));
                    }
                }
            }
        }
    }
    Ok(rules)
}

/// Families that namespaces confine, and of netlink only the questions about
/// network devices. Without namespaces, connections that Landlock or the broker
/// see: streams.
fn sockets(tier: Tier) -> Made<Vec<SeccompRule>> {
    let mut rules = vec![
        all([
            isnt(0, libc::AF_UNIX)?,
            isnt(0, libc::AF_INET)?,
            isnt(0, libc::AF_INET6)?,
            isnt(0, libc::AF_NETLINK)?,
        ])?,
        all([is(0, number(libc::AF_NETLINK))?, isnt(2, libc::NETLINK_ROUTE)?])?,
    ];
    if tier == Tier::Landlock {
        for family in [libc::AF_INET, libc::AF_INET6].map(number) {
            for kind in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET, libc::SOCK_RDM] {
                let of_kind = condition(1, SeccompCmpOp::MaskedEq(0xf), number(kind))?;
                rules.push(all([is(0, family)?, of_kind])?);
            }
            let odd = [is(0, family)?, isnt(2, 0)?, isnt(2, libc::IPPROTO_TCP)?];
            rules.push(all(odd)?);
        }
        // They need no connection to send to a socket of somebody else's.
        let datagrams = condition(1, SeccompCmpOp::MaskedEq(0xf), number(libc::SOCK_DGRAM))?;
        rules.push(all([is(0, number(libc::AF_UNIX))?, datagrams])?);
    }
    Ok(rules)
}

const NEVER: [i64; 52] = [
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_vhangup,
    libc::SYS_syslog,
    libc::SYS_fanotify_init,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

/// Memory, messages and semaphores that all processes of the user share, where there
/// is no namespace for them.
const SHARED: [i64; 13] = [
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

#[cfg(target_arch = "x86_64")]
const NEVER_ON_X86: [i64; 7] = [
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS_kexec_file_load,
];

fn condition(argument: u8, compare: SeccompCmpOp, value: u64) -> Made<SeccompCondition> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, compare, value)
}

fn is(argument: u8, value: u64) -> Made<SeccompCondition> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn isnt(argument: u8, value: i32) -> Made<SeccompCondition> {
    condition(argument, SeccompCmpOp::Ne, number(value))
}

fn has(argument: u8, flag: i32) -> Made<SeccompCondition> {
    condition(argument, SeccompCmpOp::MaskedEq(number(flag)), number(flag))
}

fn number(value: i32) -> u64 {
    u64::from(value.unsigned_abs())
}

fn wide(value: libc::Ioctl) -> u64 {
    #[allow(clippy::unnecessary_cast, reason = "its type differs between libraries")]
    let value = value as u64;
    value & 0xffff_ffff
}

fn all<const N: usize>(conditions: [SeccompCondition; N]) -> Made<SeccompRule> {
    SeccompRule::new(conditions.into())
}
