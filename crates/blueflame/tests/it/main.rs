//! Stories told by the real program, and the words it finds.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod chance;
mod config_messages;
mod cost_command;
mod doctor_command;
mod documents;
mod history_commands;
mod hook_command;
mod init_command;
mod plan_messages;
mod policy_command;
mod policy_oracle;
mod status_command;
mod terminal;
