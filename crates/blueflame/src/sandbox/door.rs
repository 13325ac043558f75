//! A door to the gateway for programs that know no Unix sockets: a port of their
//! own loopback device.
//!
//! A socket belongs to the network it was made in, whoever holds it. So it is
//! made by the first process inside and handed out to the attempt process, which
//! serves it: nothing inside listens there, and nothing inside can take its
//! place. Without namespaces the port is one of the machine, made outside, and
//! the broker lets connections through to it alone.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::plan::Tier;

/// The port, where there is nobody else who could have it.
const PORT: u16 = 17463;

/// How long the first process inside may take to hand it out.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the launcher has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Door {
    pub port: u16,
    /// The descriptor over which the socket is handed out; `None` if it was made
    /// outside.
    pub handed_over: Option<i32>,
}

/// The outer side of a door.
#[derive(Debug)]
pub enum Doorway {
    /// It is there already.
    Here(TcpListener),
    /// The first process inside makes it and hands it out. The second end is that
    /// process's, which inherits it.
    Awaited { ours: UnixStream, theirs: UnixStream },
}

impl Doorway {
    /// For a program that is about to be started in a sandbox of this tier.
    pub fn prepare(tier: Tier) -> io::Result<Doorway> {
        match tier {
            Tier::Namespaces => {
                let (ours, theirs) = UnixStream::pair()?;
                ours.set_read_timeout(Some(PATIENCE))?;
                Ok(Doorway::Awaited { ours, theirs })
            }
            Tier::Landlock | Tier::Off => {
                Ok(Doorway::Here(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?))
            }
        }
    }

    pub fn door(&self) -> io::Result<Door> {
        Ok(match self {
            Doorway::Here(listener) => {
                Door { port: listener.local_addr()?.port(), handed_over: None }
            }
            Doorway::Awaited { theirs, .. } => {
                Door { port: PORT, handed_over: Some(theirs.as_raw_fd()) }
            }
        })
    }

    /// Lets the next program that is started inherit what it needs.
    pub fn let_inherit(&self) -> io::Result<()> {
        match self {
            Doorway::Here(_) => Ok(()),
            Doorway::Awaited { theirs, .. } => Ok(fcntl_setfd(theirs, FdFlags::empty())?),
        }
    }

    /// Waits until the socket is there. The inheritance ends here.
    pub fn open(self) -> io::Result<TcpListener> {
        match self {
            Doorway::Here(listener) => Ok(listener),
            Doorway::Awaited { ours, theirs } => {
                drop(theirs);
                receive(ours.as_fd()).map(TcpListener::from)
            }
        }
    }
}

/// Makes the socket in this network and hands it out.
pub(super) fn hand_out(door: Door) -> io::Result<()> {
    let Some(number) = door.handed_over else { return Ok(()) };
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, door.port))?;
    let ends = super::syscalls::inherited(number)?;
    send(ends.as_fd(), socket.as_fd())
}

fn send(over: BorrowedFd<'_>, socket: BorrowedFd<'_>) -> io::Result<()> {
    let sockets = [socket];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    if !message.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::other("a descriptor does not fit into a message"));
    }
    sendmsg(over, &[IoSlice::new(b"d")], &mut message, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive(over: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(over, &mut [IoSliceMut::new(&mut byte)], &mut message, RecvFlags::CMSG_CLOEXEC)?;
    let sockets = message.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(sockets) => Some(sockets),
        _ => None,
    });
    let gone = || io::Error::other("the sandbox was not put up");
    sockets.flatten().next().ok_or_else(gone)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_socket_is_handed_over() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let made = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = made.local_addr().unwrap().port();
        send(theirs.as_fd(), made.as_fd()).unwrap();
        drop(made);
        let received = Doorway::Awaited { ours, theirs }.open().unwrap();
        let mut inside = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        drop(received.accept().unwrap());
        assert_eq!(inside.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn a_sandbox_that_is_not_put_up_hands_out_nothing() {
        let doorway = Doorway::prepare(Tier::Namespaces).unwrap();
        assert!(doorway.open().is_err());
    }
}
