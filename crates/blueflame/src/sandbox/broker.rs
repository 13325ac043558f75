//! Connections, where there is no network namespace: made for the program, or
//! refused.
//!
//! The program's `connect` stops in the kernel and is put to the process that
//! stayed outside. That copies the address once, judges the copy, and connects
//! a duplicate of the socket itself, so the program cannot swap the address
//! after it was judged. Allowed are sockets in the program's own directories
//! and its gateway, and nothing of the network.
#![expect(unsafe_code, reason = "seccomp notifications have no safe wrapper")]

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::door::Door;

/// From here on every `connect` of this process, and of all that it starts, is
/// put to whoever holds the descriptor.
pub(super) fn install() -> io::Result<OwnedFd> {
    const LOAD: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    let connect = u32::try_from(libc::SYS_connect).map_err(io::Error::other)?;
    let mut filter = [
        libc::sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        libc::sock_filter { code: JUMP_EQUAL, jt: 0, jf: 1, k: connect },
        libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_USER_NOTIF },
        libc::sock_filter { code: RETURN, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: the program is valid while the call reads it.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
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

/// Answers one question, if there is one.
pub(super) fn answer(questions: BorrowedFd<'_>, places: &[PathBuf], door: Option<Door>) {
    // SAFETY: zero is a valid value for each of its fields, and the kernel wants
    // to see zeroes.
    let mut question: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is of the kind that this call fills.
    let got = unsafe {
        libc::ioctl(questions.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut question)
    };
    if got < 0 {
        return;
    }
    let error = match judge(questions, &question, places, door) {
        Ok(()) => 0,
        Err(error) => -error.raw_os_error().unwrap_or(libc::EACCES),
    };
    let reply = libc::seccomp_notif_resp { id: question.id, val: 0, error, flags: 0 };
    // SAFETY: the structure is of the kind that this call reads.
    unsafe { libc::ioctl(questions.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const reply) };
}

fn judge(
    questions: BorrowedFd<'_>,
    question: &libc::seccomp_notif,
    places: &[PathBuf],
    door: Option<Door>,
) -> io::Result<()> {
    let refused = || io::Error::from_raw_os_error(libc::EACCES);
    let process = i32::try_from(question.pid).map_err(|_| refused())?;
    let [socket, address, length, ..] = question.data.args;
    let length = usize::try_from(length).map_err(|_| refused())?;
    if !(2..=128).contains(&length) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let bytes = memory_of(process, address, length)?;
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
    let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
    let name = &bytes[2..];
    let number = i32::try_from(socket).map_err(|_| refused())?;
    let leader = thread_group(process).unwrap_or(process);
    if let Some(door) = door
        && family == libc::AF_INET
        && name.starts_with(&door.port.to_be_bytes())
        && name.get(2..6) == Some(&[127, 0, 0, 1])
    {
        return connect_to_port(&take_over(leader, number)?, door.port);
    }
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
    let duplicate = take_over(leader, number)?;
    connect(&duplicate, Path::new(&pinned))
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

/// To an address that is made here: what the program wrote may change while it is
/// looked at.
fn connect_to_port(socket: &OwnedFd, port: u16) -> io::Result<()> {
    // SAFETY: zero is a valid value for each of its fields.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = u16::try_from(libc::AF_INET).map_err(io::Error::other)?;
    address.sin_port = port.to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    let size = u32::try_from(size_of::<libc::sockaddr_in>()).map_err(io::Error::other)?;
    // SAFETY: the address is of the size that is said.
    let done = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn connect(socket: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = CString::new(path.to_owned().into_os_string().into_vec())?;
    // SAFETY: zero is a valid value for each of its fields.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = u16::try_from(libc::AF_UNIX).map_err(io::Error::other)?;
    for (to, from) in address.sun_path.iter_mut().zip(path.as_bytes()) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let size = u32::try_from(size_of::<libc::sockaddr_un>()).map_err(io::Error::other)?;
    // SAFETY: the address is of the size that is said.
    let done = unsafe { libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
