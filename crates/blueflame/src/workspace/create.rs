//! Making a workspace.
//!
//! It is put together beside its place and then moved there in one step: a
//! workspace that has its name is complete.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use blueflame_core::ids::Oid;

use super::bring::Source;
use super::error::{WorkspaceError, failed};
use super::fittings::Floor;
use super::starting_point::{Merged, merge};
use super::{
    Created, Making, Order, Restore, Workspace, Workspaces, fittings, git_dir, remove, space,
};
use crate::git::Call;

/// A large tree on a busy disk takes its time.
const CHECKOUT_DEADLINE: Duration = Duration::from_secs(300);

impl Workspaces {
    pub fn create(&self, order: &Order) -> Result<Created, WorkspaceError> {
        let workspace = self.of(order);
        if fs::symlink_metadata(&workspace.path).is_ok() {
            return Err(WorkspaceError::Exists { path: workspace.path });
        }
        let directory = self.root.join(self.session.as_str());
        fs::create_dir_all(&directory).map_err(failed("make", &directory))?;
        let tree = match self.making {
            Making::Checkouts => {
                let survey = self.survey(&order.start);
                survey.map_err(|error| self.or_no_such(&order.start, error))?.bytes
            }
            Making::Layers { .. } | Making::Copies => 0,
        };
        let need = tree + self.fitter().shared_bytes(&order.fittings);
        space::check(&directory, need, self.spare_bytes)?;
        // From here on no clean-up of the person's repository takes the start.
        let (kept, commit) = (self.base_ref(&order.name), format!("{}^{{commit}}", order.start));
        let keep = self.refs.set(&kept, &commit);
        keep.map_err(|error| self.or_no_such(&order.start, error.into()))?;
        let content = match &order.restore {
            Some(restore) => self.bring_back(order, restore)?,
            None => Merged { tree: order.start.clone(), conflicts: Vec::new() },
        };
        let staging = directory.join(format!(".{}.new", order.name));
        remove::remove_tree(&staging).map_err(failed("remove", &staging))?;
        let built = match self.making {
            Making::Checkouts => self.build(&staging, &workspace, order, &content.tree),
            Making::Layers { .. } | Making::Copies => {
                self.build_from_a_base(&staging, &workspace, order, &content.tree)
            }
        };
        let built = built.and_then(|left_out| match fs::rename(&staging, &workspace.path) {
            Ok(()) => Ok(left_out),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Err(WorkspaceError::Exists { path: workspace.path.clone() })
            }
            Err(error) => Err(failed("make", &workspace.path)(error)),
        });
        match built {
            Ok(left_out) => {
                let Merged { conflicts, .. } = content;
                Ok(Created { workspace, left_out, conflicts })
            }
            Err(error) => {
                // What is left of it does no harm: the next try removes it.
                let _ = remove::remove_tree(&staging);
                Err(error)
            }
        }
    }

    fn build(
        &self,
        staging: &Path,
        workspace: &Workspace,
        order: &Order,
        content: &Oid,
    ) -> Result<Vec<fittings::LeftOut>, WorkspaceError> {
        // The directory around it goes with the last workspace, perhaps just now.
        fs::create_dir_all(staging).map_err(failed("make", staging))?;
        let git_dir = staging.join(".git");
        git_dir::make_common(&git_dir, &self.author, &self.plain)?;
        git_dir::make_own(&git_dir, workspace, &order.start, &self.plain)?;
        let git = || Call::plain(&git_dir).work_tree(staging).deadline(CHECKOUT_DEADLINE);
        git().words(&["read-tree", "--reset", "-u", content.as_str()]).done()?;
        if *content != order.start {
            git().words(&["read-tree", "--reset", order.start.as_str()]).done()?;
        }
        self.fitter().furnish(&Floor::Plain(staging), &order.fittings)
    }

    /// The same from a checkout that is there: over it or as a copy of it.
    fn build_from_a_base(
        &self,
        staging: &Path,
        workspace: &Workspace,
        order: &Order,
        content: &Oid,
    ) -> Result<Vec<fittings::LeftOut>, WorkspaceError> {
        let exactly = order.in_one_place;
        let git =
            || Call::plain(&staging.join(".git")).work_tree(staging).deadline(CHECKOUT_DEADLINE);
        let (floor, base, git): (_, _, Box<dyn Fn() -> Call>) = match &self.making {
            Making::Layers { blueflame } => {
                fs::create_dir_all(staging).map_err(failed("make", staging))?;
                let (layers, base) = self.lay_over_a_base(staging, &order.start, exactly)?;
                // Both layers are seen as one only from inside.
                (Floor::Layered(layers), base, Box::new(move || git().within(blueflame, staging)))
            }
            Making::Copies | Making::Checkouts => {
                let base = self.copy_a_base(staging, &order.start, exactly)?;
                (Floor::Plain(staging), base, Box::new(git))
            }
        };
        let git_dir = floor.writable().join(".git");
        git_dir::make_own(&git_dir, workspace, &order.start, &self.plain)?;
        let [wanted, beneath] = self.objects.trees_of([content, &base.commit])?;
        if wanted != beneath {
            let words = ["read-tree", "-m", "-u", base.commit.as_str(), content.as_str()];
            git().words(&words).done()?;
        }
        if *content != order.start {
            git().words(&["read-tree", "--reset", order.start.as_str()]).done()?;
        }
        self.fitter().furnish(&floor, &order.fittings)
    }

    /// Why a start could not be used: it may not be there.
    fn or_no_such(&self, start: &Oid, error: WorkspaceError) -> WorkspaceError {
        match self.objects.about(&[format!("{start}^{{commit}}")]).as_deref() {
            Ok([None]) => WorkspaceError::NoSuchStart(start.clone()),
            _ => error,
        }
    }

    /// The files of unfinished work as they are to be on top of the start.
    fn bring_back(&self, order: &Order, restore: &Restore) -> Result<Merged, WorkspaceError> {
        let commit = &restore.commit;
        let git_dir = &restore.git_dir;
        let looked = git_dir::look_through(git_dir).map_err(WorkspaceError::Restore)?;
        let from = Source { git_dir, looked: &looked, branch: &order.branch };
        self.bring(commit, &order.start, from).map_err(WorkspaceError::Restore)?;
        self.refs.set(&self.restored_ref(&order.name), commit.as_str())?;
        let name = |what: &str| {
            let what = format!("{commit}{what}");
            self.plain.git().words(&["rev-parse", "--verify", &what]).oid()
        };
        let began_from = name("^1")?;
        if began_from == order.start {
            return Ok(Merged { tree: name("^{tree}")?, conflicts: Vec::new() });
        }
        // The start has moved on: only what the work changed is brought along.
        Ok(merge(&self.plain, Some(&began_from), &order.start, commit)?)
    }
}
