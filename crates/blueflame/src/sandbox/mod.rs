//! The sandbox: what an agent's program, and every command of the project, finds
//! itself in.
//!
//! A [`Plan`] says what is visible, what is writable and how much of the machine
//! there is. It is drawn up from the policy's reach, the configuration and a
//! look at the machine ([`draw`]), and put into force by [`become_program`] in the
//! process that becomes the program. Nothing is put into force in a process
//! that goes on as ours, and nothing is left out: what cannot be had is an
//! error, and the program is not started.
//!
//! Two tiers: namespaces with an empty root, and Landlock with a broker for
//! connections where namespaces are not to be had. [`choose`] tries both.

mod broker;
mod disk;
mod door;
mod draw;
mod filter;
mod headcount;
mod launch;
mod limits;
mod outsider;
mod own_ports;
mod plan;
mod probe;
mod profile;
mod root;
mod rules;
mod sockets;
pub(crate) mod syscalls;
mod toolchains;
mod unmapped;
mod watch;

pub use door::{Door, Doorway};
pub use draw::{DrawError, Occupant, draw};
pub use launch::{PLAN, become_program, excess_told};
pub use limits::limit_behind;
pub use plan::{Boundary, Limits, Plan, Terms, Tier, View};
pub use probe::{choose, holds, try_everything};
pub use profile::{confined, profile};
pub use syscalls::peer;
pub use toolchains::{stores, terms};
