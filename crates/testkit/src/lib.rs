//! What the tests stand on, and nothing that ships.

pub mod env;
pub mod long_session;
pub mod notes;
pub mod oracle;
pub mod planted;
pub mod repository;
pub mod screen;
pub mod sim;

pub use env::{Ran, TestEnv};
pub use repository::Repository;
