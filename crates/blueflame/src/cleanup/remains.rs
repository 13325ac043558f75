//! What a session that ended has left, piece by piece.

use std::io;
use std::path::PathBuf;

use blueflame_core::event::Work;
use blueflame_core::state::State;

use super::{Fate, Item, Reason, Ref, Sweep, Unlanded, names, size};
use crate::attempt::directory::Directory;
use crate::failure::Failure;
use crate::session::bench;
use crate::store::SessionDir;
use crate::workspace::{Leftover, WorkspaceName};

/// One session that ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remains<'a> {
    pub sweep: &'a Sweep<'a>,
    pub state: &'a State,
    pub directory: &'a SessionDir,
}

impl Remains<'_> {
    pub fn workspaces(self, found: &[&Leftover]) -> Vec<Item> {
        let fate = |leftover: &Leftover| match &leftover.name {
            Some(name) => self.fate_of_work(name.as_str()),
            // It was being made when its orchestrator died: nobody worked in it.
            None => Fate::Goes,
        };
        found.iter().map(|it| Item::of_workspace(it, fate(it))).collect()
    }

    /// References keep commits from being collected. Those of landed work go once
    /// the base branch has it.
    pub fn refs(self, found: &[&Ref]) -> Result<Vec<Item>, Failure> {
        let landed = found.iter().find(|it| it.kind == "integration");
        let published = landed.map_or(Ok(true), |it| self.sweep.is_on_base(&it.commit))?;
        let (mut gone, mut unlanded, mut unpublished) = (Vec::new(), Vec::new(), Vec::new());
        for it in found {
            let fate = match (it.kind.as_str(), &it.name) {
                ("base" | "restored" | "attempts", Some(name)) => self.fate_of_work(name),
                // Several for one run, by number.
                ("elsewhere", Some(name)) => {
                    self.fate_of_work(name.split_once('/').map_or(name.as_str(), |(run, _)| run))
                }
                // Made of the attempts, and can be made again.
                ("folded", _) => Fate::Goes,
                _ if published => Fate::Goes,
                _ => Fate::Stays(Reason::Unpublished),
            };
            match fate {
                Fate::Stays(Reason::Unpublished) => unpublished.push((*it).clone()),
                Fate::Stays(_) => unlanded.push((*it).clone()),
                Fate::Goes => gone.push((*it).clone()),
            }
        }
        let rows = [
            (gone, "refs", Fate::Goes),
            (unlanded, "refs of attempts", Fate::Stays(Reason::Unlanded)),
            (unpublished, "refs of landed work", Fate::Stays(Reason::Unpublished)),
        ];
        let rows = rows.into_iter().filter(|(refs, ..)| !refs.is_empty());
        let item = |(refs, what, fate)| Item::of_refs(&self.state.session, what, refs, fate);
        Ok(rows.map(item).collect())
    }

    /// Homes go at once, snapshots when the work landed, logs when they are old or
    /// there is no room left for them.
    pub fn attempts(self, room_for_logs: &mut u64) -> io::Result<Vec<Item>> {
        let why_logs_go = self.why_logs_go(room_for_logs)?;
        let go = why_logs_go.is_some();
        let (mut homes, mut snapshots, mut logs) = (Vec::new(), Vec::new(), Vec::new());
        homes.extend(bench::left_behind(&self.directory.checkouts()));
        homes.push(self.directory.checkouts());
        for name in ["home", "tmp"] {
            homes.push(self.directory.path().join(name));
        }
        let root = self.directory.attempts();
        for name in names(&root)? {
            let attempt = Directory::open(&root.join(&name));
            homes.extend([attempt.home(), attempt.tmp()]);
            let stays = self.fate_of_work(&name) != Fate::Goes;
            match (stays, go) {
                (false, true) => logs.push(attempt.root().to_owned()),
                (false, false) => snapshots.push(attempt.snapshots()),
                (true, true) => logs.extend(logs_of(&attempt)?),
                (true, false) => {}
            }
        }
        let logs_stay = if self.sweep.replays(&self.state.session) {
            Fate::Stays(Reason::Replayed)
        } else {
            Fate::Goes
        };
        let rows = [
            ("homes and temporary files", homes, Fate::Goes),
            ("snapshots of finished work", snapshots, Fate::Goes),
            (why_logs_go.unwrap_or_default(), logs, logs_stay),
        ];
        let mut items = Vec::new();
        for (name, paths, fate) in rows {
            let paths: Vec<PathBuf> = paths.into_iter().filter(|path| path.exists()).collect();
            if !paths.is_empty() {
                let session = Some(&self.state.session);
                items.push(Item::of_paths(session, name.to_owned(), paths, fate));
            }
        }
        Ok(items)
    }

    /// What to call logs that go, if they do. Those that stay take their part of
    /// the room; the first that do not fit leave none for those that are older.
    fn why_logs_go(self, room: &mut u64) -> io::Result<Option<&'static str>> {
        if self.sweep.now.duration_since(self.state.last_at) > self.sweep.keep_logs {
            return Ok(Some("old logs"));
        }
        let attempts = self.directory.attempts();
        let mut bytes = 0;
        for name in names(&attempts)? {
            let logs = logs_of(&Directory::open(&attempts.join(name)))?;
            bytes += logs.iter().map(|path| size(path)).sum::<u64>();
        }
        let left = room.checked_sub(bytes);
        *room = left.unwrap_or(0);
        Ok(if left.is_none() { Some("logs beyond the room for them") } else { None })
    }

    /// What becomes of what an agent run left, by the name of its workspace or of
    /// its directory.
    fn fate_of_work(self, name: &str) -> Fate {
        let is_it = |work: &&Work| {
            let workspace = WorkspaceName::of(work);
            let named = workspace.as_str();
            // Runs that share a workspace have the agent's name behind it.
            let run = name.strip_prefix(named).is_some_and(|rest| rest.starts_with('.'));
            name == named || (run && !matches!(work, Work::Develop { .. }))
        };
        let work = self.state.crew.past().iter().map(|past| &past.work).find(is_it);
        match (self.state.may_hold_unlanded(work), self.sweep.unlanded) {
            (true, Unlanded::Stays) => Fate::Stays(Reason::Unlanded),
            (true, Unlanded::Goes) | (false, _) => Fate::Goes,
        }
    }
}

/// What an attempt whose work stays has written about itself.
fn logs_of(attempt: &Directory) -> io::Result<Vec<PathBuf>> {
    let kept = [attempt.snapshots(), attempt.home(), attempt.tmp(), attempt.spec_file()];
    let all = names(attempt.root())?.into_iter().map(|name| attempt.root().join(name));
    Ok(all.filter(|path| !kept.contains(path)).collect())
}
