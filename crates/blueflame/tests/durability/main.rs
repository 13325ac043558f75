//! What has to survive: kills, torn and damaged files, full disks, rivals.
//!
//! Everything here runs against the real file system, and where a process has to
//! die, it is a real process: this test binary starts itself again in a role (see
//! `child`).

#![expect(clippy::unwrap_used, reason = "all of this is test code, also outside of test functions")]

mod atomic;
mod child;
mod damage;
mod full_disk;
mod kill;
mod lock;
mod payloads;
mod sample;
mod store;
mod versions;
