//! What has to be known about the file system. The shell looks; tests make it
//! up.

/// The ground an agent stands on.
pub trait Ground {
    /// The absolute path of the agent's workspace, symbolic links resolved.
    fn workspace(&self) -> &str;

    /// Follows an absolute path as the system would: through symbolic links,
    /// also dangling ones, as far as it exists; what does not exist is kept.
    fn resolve(&self, path: &str) -> Resolved;

    /// The names in a directory, whatever they are; none if there is no such
    /// directory. A name that is no text has `U+FFFD` in it.
    fn names_in(&self, directory: &str) -> Vec<String>;
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    At {
        /// Absolute and without links; what does not exist yet stays at its end.
        path: String,
        found: Found,
    },
    /// It cannot be told, and why.
    Lost(String),
}

/// What is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    File {
        /// How many names the file has.
        links: u64,
    },
    Directory,
    /// A device, a pipe or a socket.
    Special,
}
