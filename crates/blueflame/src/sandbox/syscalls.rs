//! The few system calls that no safe wrapper has. Nothing is decided here.
#![expect(unsafe_code, reason = "that is what this file is for")]

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::thread::UnshareFlags;

/// Which process a fork came back in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forked {
    Parent { child: i32 },
    Child,
}

fn checked(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        other => Ok(other),
    }
}

/// Splits the process in two. Only for a process with a single thread.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: the launcher has one thread, so no lock is held by another one
    // that the child would miss.
    match checked(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        child => Ok(Forked::Parent { child: i32::try_from(child).map_err(io::Error::other)? }),
    }
}

/// Leaves namespaces. Only for a process with a single thread.
pub fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: descriptors are not unshared, only namespaces.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// The process ends here, without unwinding and without what is registered to
/// be done at its end: that belongs to the process it was forked from.
pub fn leave(code: i32) -> ! {
    // SAFETY: it does not come back.
    unsafe { libc::_exit(code) }
}

pub const READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub const NO_SETUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub const NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

/// Sets attributes of a mount, and of all below it if asked to.
pub fn set_mount(mount: BorrowedFd<'_>, attributes: u64, below: Below) -> io::Result<()> {
    let set = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let recursive = match below {
        Below::Too => libc::AT_RECURSIVE,
        Below::Not => 0,
    };
    // SAFETY: the path is an empty string, and the size is that of the struct.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const set,
            size_of::<libc::mount_attr>(),
        )
    })?;
    Ok(())
}

/// Whether what is mounted below counts as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    Too,
    Not,
}

/// Brings the loopback device up; its addresses appear by themselves.
pub fn loopback_up() -> io::Result<()> {
    use std::net::UdpSocket;
    // Any socket will do to ask through; this one cannot be bound to an address
    // that is not there yet.
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    // SAFETY: zero is a valid value for each of its fields.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    // SAFETY: the request is of the kind that this call reads.
    checked(unsafe {
        libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    })?;
    Ok(())
}

/// From here on the signal has no effect; whatever is started inherits that.
pub fn ignore(signal: i32) -> io::Result<()> {
    // SAFETY: no handler is installed.
    let before = unsafe { libc::signal(signal, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The signal has its usual effect again.
pub fn restore(signal: i32) -> io::Result<()> {
    // SAFETY: no handler is installed.
    let before = unsafe { libc::signal(signal, libc::SIG_DFL) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A descriptor that can be read when a child of this process has ended. What is
/// started from here on is not told of its own.
pub fn ends_of_children() -> io::Result<OwnedFd> {
    // SAFETY: zero is a valid value, and the set is made empty.
    let mut signals: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is ours; nothing is written to but it.
    checked(unsafe {
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut())
    })?;
    let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
    // SAFETY: the set is only read.
    let number = checked(unsafe { libc::signalfd(-1, &raw const signals, flags) })?;
    let number = i32::try_from(number).map_err(io::Error::other)?;
    // SAFETY: it is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Has a descriptor of [`ends_of_children`] wait for the next one. Those who keep telling
/// it the same do not keep anybody here.
pub fn take_note(ends: &OwnedFd) -> io::Result<()> {
    let mut told = [0; size_of::<libc::signalfd_siginfo>()];
    match rustix::io::read(ends, &mut told) {
        Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Has the next program inherit no descriptor from this one on.
pub fn keep_from_programs(first: u32) -> io::Result<()> {
    let on_exec = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: nothing is closed before this process becomes another program.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, on_exec) })?;
    Ok(())
}

/// Takes all capabilities away that a new program could be given.
pub fn drop_bounding_set() {
    for capability in 0..64 {
        // SAFETY: numbers only. Those that there are not are refused.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}

/// Sends a signal to this process that ends it the way another one ended.
pub fn end_by(signal: i32) -> ! {
    let _ = restore(signal);
    // SAFETY: a signal to ourselves.
    unsafe { libc::raise(signal) };
    leave(128 + signal)
}

pub fn host_name(name: &CStr) -> io::Result<()> {
    let bytes = name.to_bytes();
    // SAFETY: the length is that of the bytes.
    checked(unsafe { libc::sethostname(bytes.as_ptr().cast(), bytes.len()) })?;
    Ok(())
}

/// The process at the other end of a connection: the one that listens there. 0
/// is one that this process cannot see, because it is outside of the sandbox.
pub fn peer(connection: impl AsFd) -> io::Result<i32> {
    // SAFETY: zero is a valid value for each of its fields.
    let mut found: libc::ucred = unsafe { std::mem::zeroed() };
    let mut size = u32::try_from(size_of::<libc::ucred>()).map_err(io::Error::other)?;
    // SAFETY: what is written to is of the size that is said.
    checked(unsafe {
        libc::getsockopt(
            connection.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut size,
        )
    })?;
    Ok(found.pid)
}

/// A descriptor that this program was started with, by its number.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: numbers only; it is an error if there is no such descriptor.
    checked(unsafe { libc::fcntl(number, libc::F_GETFD) })?;
    // SAFETY: it is open, and whoever started us said that it is for this.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
