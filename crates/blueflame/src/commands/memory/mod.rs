//! `blueflame memory`: what sessions have left to know.

mod init;
mod page;

use std::path::Path;

use blueflame_core::ids::SessionId;
use blueflame_core::lock_path::LockPath;
use blueflame_core::memory::{Note, Notebook};

use crate::atomic_file::{self, Durability};
use crate::cli::{Common, Memory, MemoryArguments, MemoryForget, MemoryList, MemoryShow};
use crate::config_file::{self, Loaded};
use crate::failure::{self, Failure};
use crate::memory::mirror::{
    Mirrored, Patience, Pending, Place, Standing, StateDirectory, Unusable,
};
use crate::memory::{self, CaughtUp, Copied, Keeper, Recall, Remembering, Terms};
use crate::narrate::plain;
use crate::people::sheet::count;
use crate::stderr::eprintln;
use crate::stdout;
use crate::store::Store;

const NOTHING_NEW: &str =
    "note: `beads.enabled` is false: nothing new is remembered, and no agent is told anything";

pub fn run(arguments: &MemoryArguments, common: &Common) -> Result<(), Failure> {
    let loaded = config_file::load(common.config.as_deref())?;
    let store = loaded.store();
    let desk = Desk { keeper: Keeper::of(&store), loaded: &loaded, store: &store };
    match &arguments.command {
        None => desk.list(&arguments.list),
        Some(Memory::List(list)) => desk.list(list),
        Some(Memory::Show(show)) => desk.show(show),
        Some(Memory::Forget(forget)) => desk.forget(forget),
        Some(Memory::Export(export)) => desk.export(export.file.as_deref()),
        Some(Memory::Import(import)) => desk.import(&import.file),
        Some(Memory::Init(arguments)) => init::run(&loaded, arguments),
    }
}

/// Where the notes of one repository are looked at.
struct Desk<'a> {
    keeper: Keeper,
    loaded: &'a Loaded,
    store: &'a Store,
}

impl Desk<'_> {
    /// Notes that there are can be looked at and forgotten whatever the configuration
    /// says of new ones.
    fn terms(&self) -> Terms<'_> {
        match &self.loaded.config.memory {
            Some(config) => Terms::of(config),
            None => Terms::as_it_is(),
        }
    }

    fn notes(&self) -> Result<CaughtUp, Failure> {
        let caught_up = self.keeper.catch_up(&self.terms())?;
        warn(&caught_up.warnings);
        if self.loaded.config.memory.is_none() {
            eprintln!("{NOTHING_NEW}");
        }
        Ok(caught_up)
    }

    fn list(&self, arguments: &MemoryList) -> Result<(), Failure> {
        let notebook = self.notes()?.notebook;
        let wanted = |note: &&Note| {
            arguments.kind.is_none_or(|kind| note.kind == kind)
                && (!arguments.unresolved || note.is_unresolved())
        };
        let mut notes: Vec<&Note> = notebook.notes().filter(wanted).collect();
        notes.sort_by(|one, other| {
            (&other.session, one.kind, &one.key).cmp(&(&one.session, other.kind, &other.key))
        });
        let pending = Pending::read(self.keeper.root());
        let text = if arguments.json {
            page::document(&self.keeper.file(), &notes, pending.as_ref())
        } else {
            page::list(&notes, &notebook, pending.as_ref())
        };
        stdout::write(&text)
    }

    fn show(&self, arguments: &MemoryShow) -> Result<(), Failure> {
        let Some(asked) = &arguments.note else { return self.show_context(arguments) };
        let notebook = self.notes()?.notebook;
        let note = find(&notebook, asked)?;
        stdout::write(&if arguments.json { page::note_document(note) } else { page::note(note) })
    }

    fn show_context(&self, arguments: &MemoryShow) -> Result<(), Failure> {
        let config = self.loaded.config.memory.as_ref();
        if config.is_none() {
            eprintln!("{NOTHING_NEW}");
        }
        let recall = Recall::of(self.store, config, None);
        warn(recall.warnings());
        let context = if arguments.locks.is_empty() {
            recall.for_planner(&arguments.task)
        } else {
            let lock = |text: &String| {
                LockPath::new(text).map_err(|why| {
                    Failure::new(failure::Kind::Usage, format!("`{text}` is no path: {why}"))
                })
            };
            recall.for_worker(&arguments.locks.iter().map(lock).collect::<Result<Vec<_>, _>>()?)
        };
        if arguments.json {
            return stdout::write(&page::context_document(context.as_ref()));
        }
        let Some(context) = context else {
            eprintln!("there is nothing to tell");
            return Ok(());
        };
        stdout::write(&page::context(&context))
    }

    fn forget(&self, arguments: &MemoryForget) -> Result<(), Failure> {
        let terms = self.terms();
        let before = self.notes()?.notebook;
        let mut sessions: Vec<SessionId> = Vec::new();
        let mut notes: Vec<&Note> = Vec::new();
        // All of them first: a name that is wrong forgets nothing.
        for asked in &arguments.what {
            match SessionId::new(asked.as_str()) {
                Ok(session) if before.sessions().contains(&session) => sessions.push(session),
                Ok(session) => {
                    let why = format!("nothing is remembered of session {session}");
                    return Err(Failure::new(failure::Kind::Usage, why));
                }
                Err(_) => notes.push(find(&before, asked)?),
            }
        }
        let after = self.keeper.forget(&terms, |forgotten| {
            for session in &sessions {
                forgotten.session(session);
            }
            for note in &notes {
                forgotten.note(note);
            }
        })?;
        let gone = before.notes().filter(|note| after.notebook.get(&note.key).is_none()).count();
        eprintln!("{} forgotten", count(gone, "note"));
        self.copy(&after, "what `bd` had of that is emptied too")
    }

    fn export(&self, file: Option<&Path>) -> Result<(), Failure> {
        let notebook = self.notes()?.notebook;
        // It goes to others: within the bounds of today, whoever kept it.
        let notes: Vec<Note> = notebook.notes().map(|note| note.clone().bounded()).collect();
        let bytes = memory::write_lines(&notes)
            .map_err(|error| Failure::new(failure::Kind::Internal, error))?;
        let Some(file) = file else { return stdout::write(&String::from_utf8_lossy(&bytes)) };
        atomic_file::replace(file, &bytes, Durability::Power)
            .map_err(|error| Failure::new(failure::Kind::Missing, error))?;
        eprintln!("{} written to {}", count(notebook.len(), "note"), file.display());
        Ok(())
    }

    fn import(&self, file: &Path) -> Result<(), Failure> {
        let bytes = std::fs::read(file).map_err(|error| {
            let why = format!("`{}` cannot be read: {error}", file.display());
            Failure::new(failure::Kind::Usage, why)
        })?;
        let (notes, skipped) = memory::read_lines(&bytes);
        if notes.is_empty() && !bytes.trim_ascii().is_empty() {
            let why = format!("there are no notes of Blue Flame's in `{}`", file.display());
            return Err(Failure::new(failure::Kind::Usage, why)
                .hint("`blueflame memory export` writes such a file"));
        }
        let (after, imported) = self.keeper.import(&self.terms(), notes)?;
        warn(&after.warnings);
        eprintln!(
            "{} new, {} newer than ours, {} known already",
            imported.new, imported.newer, imported.known
        );
        if imported.refused > 0 {
            let notes = count(imported.refused, "note");
            eprintln!("warning: {notes} not taken over, known by what is no key of ours");
        }
        if imported.forgotten > 0 {
            let notes = count(imported.forgotten, "note");
            let list = self.keeper.forgotten_file();
            eprintln!("note: {notes} left out, because you wanted that forgotten");
            eprintln!(
                "hint: to have one back, take its line out of `{}` and import again",
                list.display()
            );
        }
        if skipped.others > 0 {
            eprintln!("note: {} of others passed over", count(skipped.others, "line"));
        }
        if skipped.torn || !skipped.unreadable.is_empty() {
            let lines = skipped.unreadable.len() + usize::from(skipped.torn);
            eprintln!("warning: {} could not be read", count(lines, "line"));
        }
        self.copy(&after, "`bd` has a copy of all notes")
    }

    /// What changed here changes in the copy, too.
    fn copy(&self, caught_up: &CaughtUp, done: &str) -> Result<(), Failure> {
        let copied = Remembering::of(self.loaded, self.store).copy(caught_up, Patience::default());
        copied.warn();
        match copied {
            Copied::Interrupted => return Err(Failure::new(failure::Kind::Interrupted, "")),
            Copied::Done(Mirrored { left: 0, .. }) => eprintln!("{done}"),
            // It may have been on before.
            Copied::NotWanted if self.agreed() => {
                eprintln!("note: what `bd` has stays as it is: `beads.mirror` is not on");
            }
            Copied::Nowhere(why @ (Unusable::NotInstalled | Unusable::NotAgreed))
                if self.beads().standing() == Standing::Ready =>
            {
                eprintln!("note: what `bd` has stays as it is for now: {why}");
            }
            Copied::NotWanted | Copied::Nowhere(_) | Copied::Done(_) | Copied::Failed(_) => {}
        }
        Ok(())
    }

    fn agreed(&self) -> bool {
        StateDirectory::here().consent(&self.beads()).is_some()
    }

    fn beads(&self) -> Place {
        Place::of(&self.loaded.repository)
    }
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        eprintln!("warning: {}", plain(warning));
    }
}

/// The note that a person means.
fn find<'n>(notebook: &'n Notebook, asked: &str) -> Result<&'n Note, Failure> {
    let means = |note: &&Note| {
        let id = memory::bead_id(&note.key);
        note.key == asked
            || id.starts_with(asked)
            || id.trim_start_matches("bf-").starts_with(asked)
    };
    let found: Vec<&Note> = notebook.notes().filter(means).collect();
    match found.as_slice() {
        [one] if !asked.is_empty() => Ok(one),
        [] | [_] => Err(Failure::new(failure::Kind::Usage, format!("there is no note `{asked}`"))
            .hint("`blueflame memory` lists them")),
        many => {
            let ids: Vec<String> =
                many.iter().take(5).map(|note| memory::bead_id(&note.key)).collect();
            let why = format!("`{asked}` could be any of {} notes", many.len());
            Err(Failure::new(failure::Kind::Usage, why)
                .hint(format!("say more: {}", ids.join(", "))))
        }
    }
}
