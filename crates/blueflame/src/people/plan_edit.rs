//! Editing the plan: the task file in the person's editor, read back and
//! checked.

use std::fs;
use std::io;

use blueflame_core::plan::Plan;
use blueflame_core::projection;
use blueflame_core::yaml;

use super::talk::{Choice, Talk};
use super::{Occasion, Unanswered, plan_context};

const AGAIN: [Choice; 2] = [
    Choice::alone('e', "edit", "open the file again"),
    Choice::alone('d', "discard", "put the plan back as it was shown"),
];

/// Whether the task file still says what the person was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnDisk {
    Same,
    Changed,
}

/// Looks for an edit that was made in another window. A file that is not there
/// is no edit.
pub(super) fn on_disk(plan: &Plan, occasion: &Occasion<'_>) -> OnDisk {
    let Ok(bytes) = fs::read(occasion.tasks_file) else { return OnDisk::Same };
    match Plan::read(&bytes, &plan_context(occasion)) {
        Ok((written, _)) if written == *plan => OnDisk::Same,
        // What was proposed is in the file to the letter, and still refused:
        // the rules have changed since, and not the file.
        Err(_) if shown(occasion).is_ok_and(|text| bytes.ends_with(text.as_bytes())) => {
            OnDisk::Same
        }
        Ok(_) | Err(_) => OnDisk::Changed,
    }
}

/// Has the person edit the plan until it is one, or is given up.
pub(super) fn edit(
    talk: &mut Talk<'_>,
    plan: &Plan,
    occasion: &Occasion<'_>,
) -> Result<Option<Plan>, Unanswered> {
    let file = occasion.tasks_file;
    let name = file.display().to_string();
    let original = match prepare(occasion) {
        Ok(original) => original,
        Err(error) => {
            talk.say(&format!("The task file cannot be used: `{name}`: {error}"));
            return Ok(None);
        }
    };
    loop {
        talk.edit(file)?;
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                talk.say(&format!("The task file cannot be read: `{name}`: {error}"));
                return Ok(None);
            }
        };
        match Plan::read(&bytes, &plan_context(occasion)) {
            Ok((edited, _)) if edited == *plan => {
                talk.say("The plan is the same as before.");
                return Ok(None);
            }
            Ok((edited, warnings)) => {
                talk.problems(&warnings, &name, &bytes);
                return Ok(Some(edited));
            }
            Err(problems) => talk.problems(&problems, &name, &bytes),
        }
        if talk.choose(&AGAIN)?.0 == 'd' {
            if let Err(error) = fs::write(file, &original) {
                talk.say(&format!("The task file cannot be written: `{name}`: {error}"));
            }
            return Ok(None);
        }
    }
}

/// What the file says before the edit; it is made if it is not there.
fn prepare(occasion: &Occasion<'_>) -> io::Result<Vec<u8>> {
    match fs::read(occasion.tasks_file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let text = shown(occasion)?;
            if let Some(parent) = occasion.tasks_file.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(occasion.tasks_file, &text)?;
            Ok(text.into_bytes())
        }
        read => read,
    }
}

/// The task file as it stands for the plan in question.
fn shown(occasion: &Occasion<'_>) -> io::Result<String> {
    yaml::to_string(&projection::tasks_file(occasion.state)).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::samples::{self, Sample};

    #[test]
    fn the_view_of_a_plan_reads_back_as_the_same_plan() {
        let sample = Sample::plan();
        let occasion = sample.occasion();
        let text = shown(&occasion).unwrap();
        let (plan, _) = Plan::read(text.as_bytes(), &plan_context(&occasion)).unwrap();
        assert_eq!(plan, samples::plan());
    }

    #[test]
    fn an_edit_in_another_window_is_noticed() {
        let sample = Sample::plan();
        let occasion = sample.occasion();
        let plan = samples::plan();
        assert_eq!(on_disk(&plan, &occasion), OnDisk::Same, "there is no file");
        let text = String::from_utf8(prepare(&occasion).unwrap()).unwrap();
        assert_eq!(on_disk(&plan, &occasion), OnDisk::Same);
        fs::write(occasion.tasks_file, text.replace("Add auth tests", "Test it")).unwrap();
        assert_eq!(on_disk(&plan, &occasion), OnDisk::Changed);
        fs::write(occasion.tasks_file, "tasks: [").unwrap();
        assert_eq!(on_disk(&plan, &occasion), OnDisk::Changed);
    }
}
