//! What must not be reached: canaries outside of the agent's workspace. There
//! are two sets of them. The agent is told of one; on the other, the same
//! attacks are made without any boundary, to see that they do what they should.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{FlockOperation, flock};
use tempfile::NamedTempFile;

use super::leavings;

/// The variable with a secret in the environment of the process outside.
const VARIABLE: &str = "BLUEFLAME_PROOF_SECRET";

#[derive(Debug)]
pub struct Outside {
    /// What only the canaries know, so that it can be recognized anywhere.
    pub secret: String,
    /// A person's home, made for this.
    pub human: PathBuf,
    /// A person's checkout.
    pub checkout: PathBuf,
    /// The workspace of another agent.
    pub other: PathBuf,
    /// A file in the real home, if one can be made there.
    home: Option<NamedTempFile>,
    /// Who listens, for programs and for tools.
    port: TcpListener,
    tools_port: TcpListener,
    name_server: UdpSocket,
    socket: UnixListener,
    hidden: UnixListener,
    pub hidden_name: String,
    process: Child,
}

impl Outside {
    /// Puts everything up below `place`, which is nobody else's. `checkout` is
    /// there already.
    pub fn new(place: &Path, checkout: &Path) -> io::Result<Outside> {
        let secret = format!("secret-{}", random_name()?);
        let (human, other) = (place.join("human"), checkout.join(".trees/another/task-001.a1"));
        for directory in [&human.join(".ssh"), &other] {
            fs::create_dir_all(directory)?;
        }
        for file in [human.join(".ssh/id"), checkout.join(".env"), other.join("notes.txt")] {
            fs::write(file, &secret)?;
        }
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        // A directory of that name is nobody else's, and so is the socket.
        let hidden_name = format!("blueflame-proof-{}", place.display());
        // It waits for input that never comes, and so ends with us in any case.
        let process = Command::new("cat")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env(VARIABLE, &secret)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let outside = Outside {
            home: file_in_home(&secret),
            port: listen()?,
            tools_port: listen()?,
            name_server: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
            socket: UnixListener::bind(human.join("socket"))?,
            hidden: UnixListener::bind_addr(&SocketAddr::from_abstract_name(&hidden_name)?)?,
            hidden_name,
            process,
            secret,
            checkout: checkout.to_owned(),
            human,
            other,
        };
        for listener in [&outside.port, &outside.tools_port] {
            listener.set_nonblocking(true)?;
        }
        for listener in [&outside.socket, &outside.hidden] {
            listener.set_nonblocking(true)?;
        }
        outside.name_server.set_nonblocking(true)?;
        Ok(outside)
    }

    /// A secret in the home: the real one, or else the one that was made.
    pub fn home_secret(&self) -> PathBuf {
        match &self.home {
            Some(file) => file.path().to_owned(),
            None => self.human.join(".ssh/id"),
        }
    }

    pub fn port(&self) -> u16 {
        self.port.local_addr().map_or(0, |address| address.port())
    }

    pub fn tools_port(&self) -> u16 {
        self.tools_port.local_addr().map_or(0, |address| address.port())
    }

    pub fn name_server_port(&self) -> u16 {
        self.name_server.local_addr().map_or(0, |address| address.port())
    }

    pub fn socket_path(&self) -> PathBuf {
        self.human.join("socket")
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.process.id()).unwrap_or(i32::MAX)
    }

    /// Whether somebody came to this canary. Each visit is told once.
    pub fn visited(&mut self, canary: Canary) -> bool {
        match canary {
            Canary::Port => self.port.accept().is_ok(),
            Canary::ToolsPort => self.tools_port.accept().is_ok(),
            Canary::Socket => self.socket.accept().is_ok(),
            Canary::Hidden => self.hidden.accept().is_ok(),
            Canary::NameServer => self.name_server.recv_from(&mut [0; 512]).is_ok(),
            Canary::Process => !matches!(self.process.try_wait(), Ok(None)),
        }
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What notices by itself that somebody came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    Port,
    ToolsPort,
    Socket,
    Hidden,
    NameServer,
    Process,
}

/// It is removed when it is dropped. A home that cannot be written to holds
/// none.
fn file_in_home(secret: &str) -> Option<NamedTempFile> {
    let home = PathBuf::from(std::env::var_os("HOME")?).canonicalize().ok()?;
    let file = tempfile::Builder::new().prefix(leavings::SECRET).tempfile_in(home).ok()?;
    // The file itself holds the lock, and lets go of it when it is removed.
    flock(file.as_file(), FlockOperation::NonBlockingLockExclusive).ok()?;
    fs::write(file.path(), secret).ok()?;
    Some(file)
}

/// A name that nobody can guess.
pub fn random_name() -> io::Result<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(blake3::hash(&bytes).to_hex()[..36].to_owned())
}
