//! What several processes say at the same time, each one by itself.
//!
//! A shell writes a complaint in pieces, and the parts of a pipe write theirs in
//! between. Here each piece comes with the process that wrote it.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair, sockopt,
};
use rustix::process::Pid;

/// Listens to all that write to one end.
#[derive(Debug)]
pub(super) struct Voices {
    ear: OwnedFd,
    /// Processes in the order in which they first spoke.
    heard: Vec<(Pid, Vec<u8>)>,
}

/// No shell writes more at once.
const PIECE: usize = 1 << 16;

impl Voices {
    /// The listener, and what the processes are to write to.
    pub(super) fn listen() -> rustix::io::Result<(Voices, Stdio)> {
        let flags = SocketFlags::CLOEXEC;
        let (ear, mouth) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        sockopt::set_socket_passcred(&ear, true)?;
        Ok((Voices { ear, heard: Vec::new() }, Stdio::from(mouth)))
    }

    /// Takes what has been written by now; writers wait for it when it is much.
    pub(super) fn hear(&mut self) {
        let mut bytes = vec![0; PIECE];
        loop {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
            let mut about = RecvAncillaryBuffer::new(&mut space);
            let into = &mut [IoSliceMut::new(&mut bytes)];
            let Ok(piece) = recvmsg(&self.ear, into, &mut about, RecvFlags::DONTWAIT) else {
                return;
            };
            let from = about.drain().find_map(|part| match part {
                RecvAncillaryMessage::ScmCredentials(writer) => Some(writer.pid),
                _ => None,
            });
            // Nobody has it open any more.
            let (Some(from), true) = (from, piece.bytes > 0) else { return };
            let text = &bytes[..piece.bytes];
            match self.heard.iter_mut().find(|(pid, _)| *pid == from) {
                Some((_, said)) => said.extend_from_slice(text),
                None => self.heard.push((from, text.to_vec())),
            }
        }
    }

    /// One after the other, each from the beginning of a line.
    pub(super) fn one_by_one(self) -> String {
        let texts = self.heard.iter().map(|(_, said)| String::from_utf8_lossy(said));
        texts.collect::<Vec<_>>().join("\n")
    }
}
