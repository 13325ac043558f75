//! Changing one task in the person's editor: what it is to do, and which files
//! it has to itself.

use std::fs;
use std::io::{self, Write as _};

use blueflame_core::gate::ValidationAnswer;
use blueflame_core::lock_path::LockPath;
use blueflame_core::plan::TaskSpec;
use blueflame_core::yaml;
use serde::Serialize;
use tempfile::NamedTempFile;

use super::decisions;
use super::talk::{Choice, Talk};
use super::{Occasion, Unanswered};

const AGAIN: [Choice; 2] = [
    Choice::alone('e', "edit", "open the file again"),
    Choice::alone('d', "discard", "leave the task as it is"),
];

/// What the person sees in the editor.
#[derive(Serialize)]
struct Page<'a> {
    description: &'a str,
    file_locks: &'a [LockPath],
}

pub(super) fn edit(
    talk: &mut Talk<'_>,
    occasion: &Occasion<'_>,
    spec: &TaskSpec,
) -> Result<Option<ValidationAnswer>, Unanswered> {
    let file = match write(spec) {
        Ok(file) => file,
        Err(error) => {
            talk.say(&format!("The task cannot be put into a file: {error}"));
            return Ok(None);
        }
    };
    let name = format!("{} as edited", spec.id);
    loop {
        talk.edit(file.path())?;
        let bytes = match fs::read(file.path()) {
            Ok(bytes) => bytes,
            Err(error) => {
                talk.say(&format!("The edited task cannot be read: {error}"));
                return Ok(None);
            }
        };
        match read(&bytes, spec, occasion) {
            Ok(Some(answer)) => return Ok(Some(answer)),
            Ok(None) => {
                talk.say("The task is the same as before.");
                return Ok(None);
            }
            Err(problems) => talk.problems(&problems, &name, &bytes),
        }
        if talk.choose(&AGAIN)?.0 == 'd' {
            return Ok(None);
        }
    }
}

fn write(spec: &TaskSpec) -> io::Result<NamedTempFile> {
    let page = Page { description: &spec.description, file_locks: &spec.file_locks };
    let text = yaml::to_string(&page).map_err(io::Error::other)?;
    let mut file = tempfile::Builder::new().prefix("blueflame-").suffix(".yaml").tempfile()?;
    let head =
        format!("# {}: what the next agent is told, and the files it may change.\n", spec.id);
    file.write_all(head.as_bytes())?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// What was changed, if anything was.
fn read(
    bytes: &[u8],
    spec: &TaskSpec,
    occasion: &Occasion<'_>,
) -> Result<Option<ValidationAnswer>, Vec<yaml::Problem>> {
    let edited = decisions::task_edit(bytes)?;
    let ValidationAnswer::Edit { description, file_locks } = edited else { return Ok(None) };
    let description = description.filter(|text| text.trim_end() != spec.description.trim_end());
    let file_locks = file_locks.filter(|locks| *locks != spec.file_locks);
    if let Some(why) =
        file_locks.as_ref().and_then(|locks| decisions::refused_lock(locks, occasion))
    {
        return Err(vec![yaml::Problem::error("file_locks", why)]);
    }
    let changed = description.is_some() || file_locks.is_some();
    Ok(changed.then_some(ValidationAnswer::Edit { description, file_locks }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::samples::{Sample, plan};

    #[test]
    fn only_what_was_changed_is_an_edit() {
        let sample = Sample::disputed();
        let occasion = sample.occasion();
        let spec = &plan().tasks[0];
        let text = fs::read_to_string(write(spec).unwrap().path()).unwrap();
        assert_eq!(read(text.as_bytes(), spec, &occasion), Ok(None));
        let edited = text.replace("src/auth/", "src/api").replace("src/auth", "src/api");
        let locks = Some(vec![LockPath::new("src/api").unwrap()]);
        assert_eq!(
            read(edited.as_bytes(), spec, &occasion),
            Ok(Some(ValidationAnswer::Edit { description: None, file_locks: locks }))
        );
        let problems = |text: &str| read(text.as_bytes(), spec, &occasion).unwrap_err();
        let words = |text: &str| {
            problems(text).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(words("descripton: x\n"), "`descripton` is not a known key");
        assert_eq!(
            words("file_locks: []\n"),
            "`file_locks` must be a list of at least one path, got a list"
        );
        assert_eq!(
            words("file_locks: [/etc]\n"),
            "`file_locks[0]` is not a path to lock: it is absolute; locks are relative to the \
             repository, got `/etc`"
        );
        assert_eq!(
            words("file_locks: [.env]\n"),
            "`file_locks` can never be written: `.env*` is blocked, got `.env`"
        );
    }
}
