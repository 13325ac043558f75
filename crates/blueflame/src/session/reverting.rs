//! Taking a landed changeset back: folded without touching a checkout, shown to
//! the person, checked, landed and published, all by the way that work takes.

use blueflame_core::event::{Event, FoldResult, LandResult};
use blueflame_core::ids::{ChangesetId, Oid};
use blueflame_core::outcome::Fold;
use blueflame_core::state::errands::RevertPhase;
use jiff::Timestamp;

use super::errand::{BASE_MOVES, Publishing};
use super::{Session, internal};
use crate::failure::{Failure, Kind};
use crate::landing::{ChangesetView, LandedChangeset, LandingError, RevertOrder, Tip};

/// What the person is shown before anything happens.
#[derive(Debug)]
pub struct Proposal {
    pub undo: LandedChangeset,
    pub view: ChangesetView,
}

/// What came of it.
#[derive(Debug)]
pub struct TakenBack {
    pub changeset: ChangesetId,
    pub commit: Oid,
    /// `None` where the base is left alone.
    pub published: Option<Publishing>,
}

impl Session {
    /// `ask` has the last word on each change that is proposed.
    pub async fn take_back(
        &mut self,
        undoes: &ChangesetId,
        mut ask: impl FnMut(&Proposal) -> Result<(), Failure>,
    ) -> Result<TakenBack, Failure> {
        self.ensure_can_be_taken_back(undoes)?;
        if let Some(done) = self.finish_cut_short(undoes).await? {
            return Ok(done);
        }
        let mut approved = None;
        for _ in 0..BASE_MOVES {
            let (undo, tip) = self.find(undoes)?;
            let changeset = self.free_name(undoes)?;
            let fold = self.fold_revert(&changeset, &undo, &tip)?;
            if approved.as_ref() != Some(&fold.patch) {
                let view = self.site.landing.changeset_view(&tip.onto, &fold.commit);
                ask(&Proposal { undo, view: view.map_err(internal)? })?;
                approved = Some(fold.patch.clone());
            }
            let undoes = undoes.clone();
            let request = Event::RevertRequested { changeset: changeset.clone(), undoes, fold };
            self.errand(request).await?;
            if let Some(done) = self.outcome_of(&changeset)? {
                return Ok(done);
            }
        }
        let branch = &self.site.config.project.base_branch;
        Err(Failure::new(Kind::Incomplete, format!("`{branch}` would not hold still"))
            .hint("try again when nobody commits to it"))
    }

    fn ensure_can_be_taken_back(&self, undoes: &ChangesetId) -> Result<(), Failure> {
        let id = &self.state.session;
        if self.state.ended().is_none() {
            let message = format!("session {id} can still go on, and may build on `{undoes}`");
            return Err(Failure::new(Kind::Usage, message)
                .hint(format!("bring it to its end first: `blueflame resume {id}`")));
        }
        let Some(by) = self.state.reverted_by(undoes) else { return Ok(()) };
        let message = format!("`{undoes}` was taken back already, by `{}`", by.changeset);
        let failure = Failure::new(Kind::Usage, message);
        Err(if self.state.has_unpublished() {
            failure.hint(format!("`blueflame publish {id}` brings that to the base branch"))
        } else {
            let back = format!("`blueflame revert {id}/{}` brings it back", by.changeset);
            failure.hint(back)
        })
    }

    /// One that had landed when the program was killed, before it could say so.
    async fn finish_cut_short(
        &mut self,
        undoes: &ChangesetId,
    ) -> Result<Option<TakenBack>, Failure> {
        let landing = self.state.reverts.iter().find(|revert| {
            revert.undoes == *undoes && matches!(revert.phase, RevertPhase::Landing { .. })
        });
        let Some(revert) = landing else { return Ok(None) };
        let changeset = revert.changeset.clone();
        let landed = self.site.landing.landed_as(&self.state.session, &changeset);
        if landed.map_err(internal)?.is_none() {
            return Ok(None);
        }
        let result = LandResult::Landed;
        self.record(Event::LandFinished { changeset: changeset.clone(), result })?;
        self.finish_errand().await?;
        self.outcome_of(&changeset)
    }

    fn find(&self, undoes: &ChangesetId) -> Result<(LandedChangeset, Tip), Failure> {
        let (site, id) = (&self.site, &self.state.session);
        let tip = site.tip().map_err(|error| Failure::new(Kind::Incomplete, error))?;
        match site.landing.find_landed(&tip.onto, undoes, Some(id)) {
            Ok(undo) => Ok((undo, tip)),
            Err(LandingError::UnknownChangeset { .. }) => {
                let branch = &site.config.project.base_branch;
                let message = format!("the commits of `{undoes}` are not in `{branch}` any more");
                Err(Failure::new(Kind::Usage, message)
                    .hint("somebody rewrote the branch; there is nothing to take back"))
            }
            Err(error) => Err(internal(error)),
        }
    }

    /// The first name for the undoing that nothing has landed under.
    fn free_name(&self, undoes: &ChangesetId) -> Result<ChangesetId, Failure> {
        let mut number = 1;
        loop {
            let name = undoes.undoing(number);
            let landed = self.site.landing.landed_as(&self.state.session, &name);
            let taken = self.state.has_landed(&name)
                || self.state.merging.get(&name).is_some()
                || landed.map_err(internal)?.is_some();
            if !taken {
                return Ok(name);
            }
            number += 1;
        }
    }

    fn fold_revert(
        &self,
        changeset: &ChangesetId,
        undo: &LandedChangeset,
        tip: &Tip,
    ) -> Result<Fold, Failure> {
        let landing = &self.site.landing;
        let order = RevertOrder {
            session: self.state.session.clone(),
            changeset: changeset.clone(),
            onto: tip.onto.clone(),
            undo: undo.clone(),
            author: self.site.author.clone(),
            when: Timestamp::now(),
        };
        let undone = &undo.changeset;
        match landing.revert(&order).map_err(internal)? {
            FoldResult::Folded(fold) if fold.files == 0 => {
                let message = format!("nothing of `{undone}` is left to take back");
                Err(Failure::new(Kind::Usage, message)
                    .hint("what it changed was undone or replaced since"))
            }
            FoldResult::Folded(fold) => Ok(fold),
            FoldResult::Conflict { files } => {
                let named: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
                let message = format!(
                    "`{undone}` cannot be taken back: later work changed the same places in {}",
                    named.join(", ")
                );
                let later = landing.changed_since(undo, &tip.onto, &files).map_err(internal)?;
                let mut failure = Failure::new(Kind::Incomplete, message);
                if !later.is_empty() {
                    failure = failure.hint(format!("changed since by {}", later.join(", ")));
                }
                let by_hand = format!("git revert --no-commit {}..{}", undo.before, undo.last);
                Err(failure
                    .hint("take the later changesets back first, the newest first")
                    .hint(format!("or do it by hand: `{by_hand}`")))
            }
        }
    }

    /// What became of an undoing; `None` if it has to be folded again.
    fn outcome_of(&self, changeset: &ChangesetId) -> Result<Option<TakenBack>, Failure> {
        match self.state.revert(changeset).map(|revert| &revert.phase) {
            Some(RevertPhase::Landed { commit }) => Ok(Some(TakenBack {
                changeset: changeset.clone(),
                commit: commit.clone(),
                published: self.state.rules.publish.then(|| self.published()),
            })),
            Some(RevertPhase::BaseMoved) => Ok(None),
            Some(RevertPhase::Failed { evidence }) => {
                let message = format!("without it the project does not pass its check: {evidence}");
                Err(Failure::new(Kind::Incomplete, message)
                    .hint("nothing was changed; something may build on it (`merge.verify`)"))
            }
            phase => Err(internal(format!("`{changeset}` stopped halfway: {phase:?}"))),
        }
    }
}
