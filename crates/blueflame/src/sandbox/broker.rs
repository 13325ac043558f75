//! Connections and servers, where there is no network namespace: made for the
//! program, or refused.
//!
//! The program's `connect`, `bind` and `listen` stop in the kernel and are put to
//! the process that stayed outside. That copies the address once, judges the
//! copy, and acts on a duplicate of the socket itself, so the program cannot swap
//! the address after it was judged. Allowed are sockets in the program's own
//! directories, its gateway, and on the machine's own address servers that it
//! started itself.
#![expect(unsafe_code, reason = "seccomp notifications have no safe wrapper")]

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::net::{AddressFamily, SocketAddrUnix, bind, connect, getsockname, listen, sockopt};

use super::door::Door;
use super::own_ports;

/// From here on every `connect`, `bind` and `listen` of this process, and of
/// all that it starts, is put to whoever holds the descriptor.
pub(super) fn install() -> io::Result<OwnedFd> {
    const LOAD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    /// Once somebody looks at a question, only death takes it back: a program
    /// that is interrupted would ask, and be connected, twice.
    const WAIT: libc::c_ulong = 1 << 5;
    let [connect, bind, listen] = [libc::SYS_connect, libc::SYS_bind, libc::SYS_listen]
        .map(|call| u32::try_from(call).map_err(io::Error::other));
    let mut filter = [
        libc::sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        libc::sock_filter { code: JUMP_EQUAL, jt: 2, jf: 0, k: connect? },
        libc::sock_filter { code: JUMP_EQUAL, jt: 1, jf: 0, k: bind? },
        libc::sock_filter { code: JUMP_EQUAL, jt: 0, jf: 1, k: listen? },
        libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_USER_NOTIF },
        libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ];
    let program = libc::sock_fprog { len: 6, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid while the call reads it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | WAIT,
            &raw const program,
        )
    };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call gave a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes a descriptor over from another process of ours.
pub(super) fn take_over(process: i32, number: i32) -> io::Result<OwnedFd> {
    // SAFETY: numbers only; a descriptor that comes back is new and ours.
    unsafe {
        let handle = libc::syscall(libc::SYS_pidfd_open, process, 0);
        let handle = i32::try_from(handle).map_err(io::Error::other)?;
        if handle < 0 {
            return Err(io::Error::last_os_error());
        }
        let handle = OwnedFd::from_raw_fd(handle);
        let fd = libc::syscall(libc::SYS_pidfd_getfd, handle.as_raw_fd(), number, 0);
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Answers from now on, besides what this process does. Each question has a
/// thread of its own: one whose connection takes its time holds up nobody else.
pub(super) fn answer_all(
    questions: OwnedFd,
    places: Vec<PathBuf>,
    door: Option<Door>,
) -> io::Result<()> {
    let (questions, places) = (Arc::new(questions), Arc::new(places));
    let listening = move || {
        loop {
            // Nobody who could ask is left, or one who asked is gone.
            let Some(question) = next(&questions) else { continue };
            let (questions, places) = (questions.clone(), places.clone());
            // Without a thread there is no answer, and the program goes on waiting.
            let _ = Builder::new().spawn(move || answer(&questions, &question, &places, door));
        }
    };
    Builder::new().spawn(listening).map(drop)
}

fn next(questions: &OwnedFd) -> Option<libc::seccomp_notif> {
    // Waited for with `poll`, which does not fail over and over at the end.
    let mut events = [PollFd::new(questions, PollFlags::IN)];
    poll(&mut events, None).ok()?;
    if !events[0].revents().contains(PollFlags::IN) {
        std::thread::sleep(PAUSE);
        return None;
    }
    // SAFETY: zero is a valid value for each of its fields, and the kernel wants
    // to see zeroes.
    let mut question: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is of the kind that this call fills.
    let got = unsafe {
        libc::ioctl(questions.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut question)
    };
    (got >= 0).then_some(question)
}

/// When there is nobody left to ask, this process is about to end.
const PAUSE: Duration = Duration::from_millis(10);

fn answer(
    questions: &OwnedFd,
    question: &libc::seccomp_notif,
    places: &[PathBuf],
    door: Option<Door>,
) {
    let (error, flags) = match judge(questions, question, places, door) {
        Ok(Answer::Done) => (0, 0),
        Ok(Answer::NotOurs) => {
            (0, u32::try_from(libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE).unwrap_or_default())
        }
        Err(error) => (-error.raw_os_error().unwrap_or(libc::EACCES), 0),
    };
    let reply = libc::seccomp_notif_resp { id: question.id, val: 0, error, flags };
    // SAFETY: the structure is of the kind that this call reads.
    unsafe { libc::ioctl(questions.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const reply) };
}

enum Answer {
    /// It was done for the program.
    Done,
    /// The program does it itself. What it hands over then may be something
    /// else, so nothing may follow from this.
    NotOurs,
}

fn refused() -> io::Error {
    io::Error::from_raw_os_error(libc::EACCES)
}

fn judge(
    questions: &OwnedFd,
    question: &libc::seccomp_notif,
    places: &[PathBuf],
    door: Option<Door>,
) -> io::Result<Answer> {
    let process = i32::try_from(question.pid).map_err(|_| refused())?;
    let [socket, address, length, ..] = question.data.args;
    let call = i64::from(question.data.nr);
    let bytes = if call == libc::SYS_listen {
        Vec::new()
    } else {
        let length = usize::try_from(length).map_err(|_| refused())?;
        if !(2..=128).contains(&length) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        memory_of(process, address, length)?
    };
    let number = i32::try_from(socket & 0xffff_ffff).map_err(|_| refused())?;
    let leader = thread_group(process).unwrap_or(process);
    let socket = take_over(leader, number)?;
    // It may have died, and its number be another's.
    // SAFETY: the call reads a number.
    let valid = unsafe {
        libc::ioctl(
            questions.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const question.id,
        )
    };
    if valid < 0 {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let domain = sockopt::socket_domain(&socket)?;
    let of_network = domain == AddressFamily::INET || domain == AddressFamily::INET6;
    match call {
        libc::SYS_listen => {
            if of_network {
                stay_on_loopback(&socket, domain)?;
            }
            let backlog = i32::try_from(address & 0x7fff_ffff).unwrap_or(i32::MAX);
            listen(&socket, backlog)?;
        }
        libc::SYS_bind if of_network => bind(&socket, &loopback_for(&socket, &bytes)?)?,
        // Landlock decides where sockets are made.
        libc::SYS_bind => return Ok(Answer::NotOurs),
        _ if of_network => {
            let to = internet(&bytes).ok_or_else(refused)?;
            let gateway = door.map(|door| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), door.port));
            let own = to.ip().to_canonical().is_loopback() && own_ports::is_own(to.port());
            if gateway != Some(to) && !own {
                return Err(refused());
            }
            connect(&socket, &to)?;
        }
        _ if domain == AddressFamily::UNIX => connect_in(places, process, &socket, &bytes)?,
        _ => return Err(refused()),
    }
    Ok(Answer::Done)
}

/// An address of the network as the kernel is given it.
fn internet(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let address: IpAddr = match family {
        libc::AF_INET => <[u8; 4]>::try_from(bytes.get(4..8)?).ok()?.into(),
        libc::AF_INET6 => <[u8; 16]>::try_from(bytes.get(8..24)?).ok()?.into(),
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// Where a server is put that wants to be at this address: on the machine's own
/// addresses only, because the others are seen from the network.
fn loopback_for(socket: &OwnedFd, bytes: &[u8]) -> io::Result<SocketAddr> {
    let wanted = internet(bytes).ok_or_else(refused)?;
    // We may be root; the program is not to be.
    if (1..1024).contains(&wanted.port()) {
        return Err(refused());
    }
    let address = match wanted.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        // Most who ask for everything want to be found at 127.0.0.1, too.
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) if !sockopt::ipv6_v6only(socket)? => {
            Ipv4Addr::LOCALHOST.to_ipv6_mapped().into()
        }
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        named if named.to_canonical().is_loopback() => named,
        _ => return Err(refused()),
    };
    Ok(SocketAddr::new(address, wanted.port()))
}

/// A socket that listens without an address gets every address.
fn stay_on_loopback(socket: &OwnedFd, domain: AddressFamily) -> io::Result<()> {
    let at = SocketAddr::try_from(getsockname(socket)?).map_err(|_| refused())?;
    if at.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    if at.port() != 0 {
        return Err(refused());
    }
    let here: IpAddr = if domain == AddressFamily::INET {
        Ipv4Addr::LOCALHOST.into()
    } else {
        Ipv6Addr::LOCALHOST.into()
    };
    Ok(bind(socket, &SocketAddr::new(here, 0))?)
}

/// A socket in the file system, if it lies in one of these places.
fn connect_in(places: &[PathBuf], process: i32, socket: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
    let name = &bytes[2..];
    if family != libc::AF_UNIX || name.first().is_none_or(|first| *first == 0) {
        return Err(refused());
    }
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let path = Path::new(std::ffi::OsStr::from_bytes(&name[..end]));
    // A relative path is the program's, an absolute one is everybody's.
    let path = Path::new(&format!("/proc/{process}/cwd")).join(path);
    // Held first and judged where it really is, so that nothing changes between.
    let held = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let pinned = format!("/proc/self/fd/{}", held.as_raw_fd());
    let real = fs::read_link(&pinned)?;
    if !places.iter().any(|place| real.starts_with(place)) {
        return Err(refused());
    }
    Ok(connect(socket, &SocketAddrUnix::new(&*pinned)?)?)
}

fn memory_of(process: i32, address: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0u8; length];
    let there = usize::try_from(address).map_err(io::Error::other)? as *mut libc::c_void;
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: length };
    let remote = libc::iovec { iov_base: there, iov_len: length };
    // SAFETY: what is written to is ours and as long as said; what is read is
    // another process's, and the kernel checks it.
    let count =
        unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    if usize::try_from(count) == Ok(length) {
        Ok(bytes)
    } else {
        Err(io::Error::from_raw_os_error(libc::EFAULT))
    }
}

/// The process that a thread belongs to.
fn thread_group(thread: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}
