//! One skill's folder, read whole and within bounds.
//!
//! Links that lead out of it are refused, and so is all that is no plain file:
//! what a skill shows to an agent is what is in its folder.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use blueflame_core::ids::SkillName;
use blueflame_core::skill::{Conduct, SkillFile};
use rustix::fs::{Mode, OFlags};

use super::places::Place;

/// The file that makes a folder a skill.
const FILE: &str = "SKILL.md";

/// Of one skill.
const MOST_BYTES: u64 = 1 << 20;
const MOST_FILES: usize = 200;
const DEEPEST: usize = 8;

/// Folders that are looked at in one place.
const MOST_FOLDERS: usize = 500;

/// A folder that has a good `SKILL.md`; what else is in it is not known yet.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub name: SkillName,
    pub conduct: Option<Conduct>,
    path: PathBuf,
}

/// A skill with all that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: SkillName,
    pub description: String,
    /// Identifies all of its files.
    pub digest: String,
    /// As agents get them, by their paths in the folder.
    pub(super) files: Vec<(PathBuf, Vec<u8>)>,
}

/// The skills in a place, by name; a folder that is none says why.
pub fn candidates(place: &Place) -> Vec<Result<Candidate, (String, String)>> {
    let entries = fs::read_dir(&place.path).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let folders = names.into_iter().filter(|name| place.path.join(name).join(FILE).exists());
    folders
        .take(MOST_FOLDERS)
        .map(|name| candidate(place, &name).map_err(|why| (name, why)))
        .collect()
}

fn candidate(place: &Place, name: &str) -> Result<Candidate, String> {
    let path = real(&place.path.join(name), place.within.as_deref())?;
    let text = text(&path)?;
    let read = SkillFile::read(&text, name).map_err(|bad| bad.to_string())?;
    Ok(Candidate { name: read.name, conduct: read.conduct, path })
}

/// Where a path leads, unless that is out of what it has to stay in.
fn real(path: &Path, within: Option<&Path>) -> Result<PathBuf, String> {
    let failed = |error| format!("`{}` cannot be read: {error}", path.display());
    let real = path.canonicalize().map_err(failed)?;
    let stays = match within.map(Path::canonicalize).transpose().map_err(failed)? {
        Some(within) => real.starts_with(within),
        None => true,
    };
    if stays {
        Ok(real)
    } else {
        Err(format!("a link leads out of it: `{}` to `{}`", path.display(), real.display()))
    }
}

fn text(folder: &Path) -> Result<String, String> {
    let bytes = bytes(&real(&folder.join(FILE), Some(folder))?, MOST_BYTES)?;
    String::from_utf8(bytes).map_err(|_| format!("{FILE} is no UTF-8 text"))
}

fn bytes(path: &Path, most: u64) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("`{}` cannot be read: {error}", path.display());
    let mut bytes = Vec::new();
    // A pipe does not keep us waiting; what was opened is asked what it is.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let file = File::from(file);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("`{}` is no plain file", path.display()));
    }
    file.take(most + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > most {
        return Err(format!("it is larger than {} KiB", MOST_BYTES >> 10));
    }
    Ok(bytes)
}

impl Skill {
    pub fn read(place: &Place, candidate: &Candidate) -> Result<Skill, String> {
        let root = real(&candidate.path, place.within.as_deref())?;
        let text = text(&root)?;
        let about =
            SkillFile::read(&text, candidate.name.as_str()).map_err(|bad| bad.to_string())?;
        let mut gathered = Gathered { root: &root, files: Vec::new(), room: MOST_BYTES };
        gathered.take(Path::new(""), DEEPEST)?;
        let mut files = gathered.files;
        for (path, content) in &mut files {
            if path == Path::new(FILE) {
                *content = about.handed().into_bytes();
            }
        }
        files.sort();
        let digest = digest(&files);
        Ok(Skill { name: about.name, description: about.description, digest, files })
    }
}

struct Gathered<'r> {
    root: &'r Path,
    files: Vec<(PathBuf, Vec<u8>)>,
    room: u64,
}

impl Gathered<'_> {
    fn take(&mut self, below: &Path, depth: usize) -> Result<(), String> {
        let directory = self.root.join(below);
        let failed = |error| format!("`{}` cannot be read: {error}", directory.display());
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            // What is hidden is about the folder: the history of a clone, settings.
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let (path, inside) = (entry.path(), below.join(&name));
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                if depth == 0 {
                    return Err(format!("`{}` lies too deep", inside.display()));
                }
                self.take(&inside, depth - 1)?;
                continue;
            }
            let real = if kind.is_symlink() { real(&path, Some(self.root))? } else { path };
            if !real.is_file() {
                return Err(format!("`{}` is no plain file", inside.display()));
            }
            let content = bytes(&real, self.room)?;
            self.room -= content.len() as u64;
            self.files.push((inside, content));
            if self.files.len() > MOST_FILES {
                return Err(format!("it has more than {MOST_FILES} files"));
            }
        }
        Ok(())
    }
}

fn digest(files: &[(PathBuf, Vec<u8>)]) -> String {
    let mut hasher = blake3::Hasher::new();
    for (path, content) in files {
        let path = path.as_os_str().as_encoded_bytes();
        for part in [path, content] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().to_hex()[..32].to_owned()
}
