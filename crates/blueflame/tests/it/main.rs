//! Stories told by the real program, and the words it finds.

mod config_messages;
mod plan_messages;
