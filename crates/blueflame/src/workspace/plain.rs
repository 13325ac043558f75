//! The person's objects without the person's configuration.
//!
//! A bare git directory of our own through which objects are read, compared and
//! merged. Nothing that is configured for the person, or that an agent could
//! configure, has a say in that: no filters, no merge or diff programs, no
//! attributes from a work tree. So the same commits give the same answer on
//! every machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{WorkspaceError, failed};
use crate::git::{Call, ObjectFormat};

#[derive(Clone, Debug)]
pub struct PlainRepository {
    git_dir: PathBuf,
    objects: PathBuf,
    /// Lists where the history of a shallow clone ends, if there is one.
    shallow: PathBuf,
    format: ObjectFormat,
}

impl PlainRepository {
    /// Makes it inside the person's git directory, unless it is there.
    pub fn of(common: &Path) -> Result<Self, WorkspaceError> {
        let format = Call::plain(common).words(&["rev-parse", "--show-object-format"]).line()?;
        let format = if format == "sha256" { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 };
        let state = common.join("blueflame");
        let plain = PlainRepository {
            git_dir: state.join("plain.git"),
            objects: common.join("objects"),
            shallow: common.join("shallow"),
            format,
        };
        if !plain.git_dir.join("HEAD").exists() {
            fs::create_dir_all(&state).map_err(failed("make", &state))?;
            let new = tempfile::Builder::new()
                .prefix("plain.git.")
                .tempdir_in(&state)
                .map_err(failed("make a directory in", &state))?;
            Call::plain_without_git_dir(new.path())
                .words(&["init", "--quiet", "--bare", "--template="])
                .word(format!("--object-format={}", format.name()))
                .word(".")
                .done()?;
            match fs::rename(new.path(), &plain.git_dir) {
                Ok(()) => {}
                // Somebody else was faster.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                Err(error) => return Err(failed("make", &plain.git_dir)(error)),
            }
        }
        Ok(plain)
    }

    /// Git that sees the person's objects, and writes new ones among them.
    pub fn git(&self) -> Call {
        let call = Call::plain(&self.git_dir).variable("GIT_OBJECT_DIRECTORY", &self.objects);
        if self.shallow.exists() { call.variable("GIT_SHALLOW_FILE", &self.shallow) } else { call }
    }

    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub fn objects(&self) -> &Path {
        &self.objects
    }

    pub fn shallow(&self) -> &Path {
        &self.shallow
    }

    pub fn format(&self) -> ObjectFormat {
        self.format
    }
}
