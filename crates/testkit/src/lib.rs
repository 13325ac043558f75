//! What the tests stand on, and nothing that ships.

pub mod sim;
