//! A changeset to look at: what a person is shown before it lands.

use blueflame_core::ids::Oid;

use super::{FileStat, Landing, LandingError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangesetView {
    /// The subjects of its commits, oldest first.
    pub commits: Vec<String>,
    pub files: Vec<FileStat>,
    pub insertions: u32,
    pub deletions: u32,
    /// The whole difference. It is the text of others: it has to be made plain
    /// before a terminal shows it.
    pub diff: String,
}

impl Landing {
    /// What comes with `commit`, seen from `onto`.
    pub fn changeset_view(&self, onto: &Oid, commit: &Oid) -> Result<ChangesetView, LandingError> {
        let files = self.git.stat(onto, commit)?;
        let sum = |count: fn(&(u32, u32)) -> u32| {
            files.iter().filter_map(|file| file.lines.as_ref().map(count)).sum()
        };
        let (insertions, deletions) = (sum(|lines| lines.0), sum(|lines| lines.1));
        let diff = self.diff(onto, commit)?;
        let commits = self.git.subjects(&[(onto, commit)])?.concat();
        Ok(ChangesetView { commits, files, insertions, deletions, diff })
    }

    /// The whole difference between two commits, as the view has it.
    pub fn diff(&self, onto: &Oid, commit: &Oid) -> Result<String, LandingError> {
        let diff = self.git.readable_diff(onto, commit)?;
        Ok(String::from_utf8_lossy(&diff).into_owned())
    }
}
