//! How trouble with a journal ends a command: the exit code, and what to do.

use super::event::EventError;
use super::scan::ReadError;
use super::writer::{AppendError, OpenError};
use crate::failure::{Failure, Kind};

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        let (kind, hint) = match &error {
            ReadError::Newer { program, .. } => {
                (Kind::Missing, format!("use blueflame {program} or a later one"))
            }
            ReadError::Event { source: EventError::Unknown { .. }, .. } => {
                (Kind::Missing, "use the blueflame that wrote it, or a later one".to_owned())
            }
            ReadError::Damaged(_) => (
                Kind::Internal,
                "nothing was changed; keep a copy of the file before you do anything".to_owned(),
            ),
            ReadError::Io { .. } | ReadError::NoHeader { .. } | ReadError::Event { .. } => {
                return Failure::new(Kind::Internal, &error);
            }
        };
        Failure::new(kind, &error).hint(hint)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Failure {
        match error {
            OpenError::Read(error) => error.into(),
            OpenError::KeepAside { .. } => Failure::new(Kind::Internal, &error)
                .hint("nothing was changed; make room on the disk and try again"),
            OpenError::Create(_) | OpenError::Disk { .. } | OpenError::Encode(_) => {
                Failure::new(Kind::Internal, &error)
            }
        }
    }
}

impl From<AppendError> for Failure {
    fn from(error: AppendError) -> Failure {
        Failure::new(Kind::Internal, &error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::chain::Flaw;
    use super::super::scan::Damage;
    use super::*;

    #[test]
    fn damage_is_internal_and_what_a_later_program_wrote_is_a_prerequisite() {
        let path = PathBuf::from("journal.jsonl");
        let unknown = EventError::Unknown { seq: 2, kind: "x".to_owned() };
        let damage = Damage {
            path: path.clone(),
            line: 2,
            offset: 9,
            expected: 2,
            flaw: Flaw::NotJson,
            following: 0,
        };
        for (error, kind) in [
            (damage.into(), Kind::Internal),
            (ReadError::Event { path: path.clone(), source: unknown }, Kind::Missing),
            (ReadError::Newer { path, schema: 2, program: "9".to_owned() }, Kind::Missing),
        ] {
            assert_eq!(Failure::from(OpenError::from(error)).kind(), kind);
        }
    }
}
