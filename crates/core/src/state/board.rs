//! All tasks, each in the queue it stands in.
//!
//! Queues are ordered the way they will be served, so that a decision looks
//! only at tasks it can do something with. Phases change through
//! `set_phase` alone (see `cascade`).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use crate::graph;
use crate::ids::{GroupName, TaskId};
use crate::lock_path::LockPath;
use crate::money::Spend;
use crate::plan::Plan;
use crate::rules::WaveMode;

use super::task::{Dropped, HistoryEntry, HistoryResult, Phase, Step, Task};

/// Position of a task on the board.
pub type Place = usize;

/// Group rank (or 0), priority, place: the order in which a queue is served.
type Turn = (usize, u32, Place);

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Board {
    pub(super) mode: WaveMode,
    pub(super) tasks: Vec<Task>,
    /// Whether a task that is sent back can run again within this wave.
    pub(super) developing: bool,
    #[serde(skip)]
    places: BTreeMap<TaskId, Place>,
    #[serde(skip)]
    pub(super) needs: Vec<Vec<Place>>,
    #[serde(skip)]
    pub(super) needed_by: Vec<Vec<Place>>,
    /// Each task's group, as its position among the groups in landing order.
    #[serde(skip)]
    group_rank: Vec<usize>,
    #[serde(skip)]
    queues: [BTreeSet<Turn>; Step::COUNT],
}

/// Why a plan cannot be put on the board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPlan {
    #[error("two tasks are called `{0}`")]
    Twice(TaskId),
    #[error("`{0}` landed already")]
    Landed(TaskId),
    #[error("`{task}` needs `{need}`, which is neither planned nor landed")]
    UnknownNeed { task: TaskId, need: TaskId },
    #[error("tasks need each other in a circle around `{0}`")]
    Circle(TaskId),
    #[error("groups need each other in a circle around `{0}`")]
    GroupCircle(GroupName),
}

impl Board {
    pub fn new(mode: WaveMode) -> Self {
        Board {
            mode,
            tasks: Vec::new(),
            developing: false,
            places: BTreeMap::new(),
            needs: Vec::new(),
            needed_by: Vec::new(),
            group_rank: Vec::new(),
            queues: Default::default(),
        }
    }

    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    pub fn task(&self, place: Place) -> &Task {
        &self.tasks[place]
    }

    pub(super) fn task_mut(&mut self, place: Place) -> &mut Task {
        &mut self.tasks[place]
    }

    pub fn place(&self, id: &TaskId) -> Option<Place> {
        self.places.get(id).copied()
    }

    pub fn get(&self, id: &TaskId) -> Option<&Task> {
        self.place(id).map(|place| self.task(place))
    }

    /// The tasks in one queue, in the order in which they are served.
    pub fn queue(&self, step: Step) -> impl DoubleEndedIterator<Item = &Task> + Clone {
        self.queues[step as usize].iter().map(|&(_, _, place)| &self.tasks[place])
    }

    pub(super) fn places_at(&self, step: Step) -> Vec<Place> {
        self.queues[step as usize].iter().map(|turn| turn.2).collect()
    }

    pub fn count(&self, step: Step) -> usize {
        self.queues[step as usize].len()
    }

    pub fn is_empty(&self, step: Step) -> bool {
        self.queues[step as usize].is_empty()
    }

    /// The files that running workers have to themselves.
    pub fn held_locks(&self) -> Vec<&LockPath> {
        self.queue(Step::Working).flat_map(|task| &task.spec.file_locks).collect()
    }

    /// Direct dependencies of a task.
    pub fn dependencies(&self, place: Place) -> impl Iterator<Item = &Task> {
        self.needs[place].iter().map(|&need| &self.tasks[need])
    }

    /// Validated tasks that can land, by groups in landing order, each with
    /// its tasks in folding order. A task whose dependency has neither landed
    /// nor can land beside it has to wait.
    pub fn mergeable(&self) -> Vec<(&GroupName, Vec<Place>)> {
        let mut can_land: BTreeSet<Place> =
            self.queues[Step::Validated as usize].iter().map(|turn| turn.2).collect();
        let mut doubtful: Vec<Place> = can_land.iter().copied().collect();
        while let Some(place) = doubtful.pop() {
            let there = |need: &Place| {
                matches!(self.tasks[*need].phase, Phase::Merged { .. }) || can_land.contains(need)
            };
            if can_land.contains(&place) && !self.needs[place].iter().all(there) {
                can_land.remove(&place);
                doubtful.extend(&self.needed_by[place]);
            }
        }
        let mut groups: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
        for place in can_land {
            groups.entry(self.group_rank[place]).or_default().push(place);
        }
        groups
            .into_values()
            .map(|places| (&self.tasks[places[0]].spec.group, self.in_folding_order(&places)))
            .collect()
    }

    /// Dependencies first, then by priority and place in the plan.
    fn in_folding_order(&self, places: &[Place]) -> Vec<Place> {
        let mut by_turn = places.to_vec();
        by_turn.sort_by_key(|&place| (self.tasks[place].spec.priority, place));
        let at: BTreeMap<Place, usize> =
            by_turn.iter().enumerate().map(|(at, &place)| (place, at)).collect();
        let needs: Vec<Vec<usize>> = by_turn
            .iter()
            .map(|&place| {
                self.needs[place].iter().filter_map(|need| at.get(need).copied()).collect()
            })
            .collect();
        // The whole plan was checked for circles, so a part of it has none.
        let order =
            graph::topological_order(&needs).unwrap_or_else(|_| (0..by_turn.len()).collect());
        order.into_iter().map(|node| by_turn[node]).collect()
    }

    pub(super) fn set_developing(&mut self, developing: bool) {
        self.developing = developing;
    }

    /// Puts a plan on the board. What landed stays; what the new plan does
    /// without is dropped; what it keeps goes on counting its attempts.
    pub(super) fn put_plan(&self, plan: &Plan, at: Timestamp) -> Result<Board, BadPlan> {
        let mut next = Board::new(self.mode);
        let mut planned: BTreeSet<&TaskId> = BTreeSet::new();
        for spec in &plan.tasks {
            if !planned.insert(&spec.id) {
                return Err(BadPlan::Twice(spec.id.clone()));
            }
        }
        for old in &self.tasks {
            let landed = matches!(old.phase, Phase::Merged { .. });
            if landed && planned.contains(&old.spec.id) {
                return Err(BadPlan::Landed(old.spec.id.clone()));
            }
            if !planned.contains(&old.spec.id) {
                let mut kept = old.clone();
                if !landed {
                    kept.phase = Phase::Dropped { why: Dropped::Replanned };
                }
                next.tasks.push(kept);
            }
        }
        for spec in &plan.tasks {
            let mut task = Task::new(spec.clone());
            if let Some(old) = self.get(&spec.id) {
                task.attempts = old.attempts;
                task.history = old.history.clone();
                // The very same task, already validated, need not be redone.
                if old.spec == *spec && matches!(old.phase, Phase::Validated { .. }) {
                    task.phase = old.phase.clone();
                }
            }
            next.tasks.push(task);
        }
        next.connect()?;
        next.react((0..next.tasks.len()).collect(), at);
        Ok(next)
    }

    /// Builds everything that follows from the list of tasks.
    fn connect(&mut self) -> Result<(), BadPlan> {
        self.places = self
            .tasks
            .iter()
            .enumerate()
            .map(|(place, task)| (task.spec.id.clone(), place))
            .collect();
        for task in &self.tasks {
            // What a later plan dropped is past; its needs may be gone as well.
            let past = task.step() == Step::Replaced;
            let needs = if past { &[][..] } else { &task.spec.dependencies };
            let mut places = BTreeSet::new();
            for need in needs {
                let known = self
                    .places
                    .get(need)
                    .filter(|place| self.tasks[**place].step() != Step::Replaced);
                let Some(&place) = known else {
                    return Err(BadPlan::UnknownNeed {
                        task: task.spec.id.clone(),
                        need: need.clone(),
                    });
                };
                places.insert(place);
            }
            self.needs.push(places.into_iter().collect());
        }
        let order = graph::topological_order(&self.needs)
            .map_err(|circle| BadPlan::Circle(self.tasks[circle.0[0]].spec.id.clone()))?;
        self.needed_by = graph::reversed(&self.needs);
        self.rank_groups()?;
        for place in order {
            self.tasks[place].unmet =
                self.needs[place].iter().filter(|&&need| !self.tasks[need].met).count();
            self.tasks[place].hopeless_needs = self.needs[place]
                .iter()
                .filter(|&&need| self.tasks[need].phase.is_hopeless())
                .count();
            self.tasks[place].met = self.is_met(place);
            self.queues[self.tasks[place].step() as usize].insert(self.turn(place));
        }
        Ok(())
    }

    fn rank_groups(&mut self) -> Result<(), BadPlan> {
        let mut names: Vec<&GroupName> = Vec::new();
        let mut index: BTreeMap<&GroupName, usize> = BTreeMap::new();
        // Landed tasks order nothing any more, and a name may come back.
        let open = |task: &Task| !matches!(task.step(), Step::Merged | Step::Replaced);
        for task in self.tasks.iter().filter(|task| open(task)) {
            index.entry(&task.spec.group).or_insert_with(|| {
                names.push(&task.spec.group);
                names.len() - 1
            });
        }
        let mut needs = vec![Vec::new(); names.len()];
        for (place, task) in self.tasks.iter().enumerate().filter(|(_, task)| open(task)) {
            let group = index[&task.spec.group];
            for &need in self.needs[place].iter().filter(|&&need| open(&self.tasks[need])) {
                let needed = index[&self.tasks[need].spec.group];
                if needed != group {
                    needs[group].push(needed);
                }
            }
        }
        let order = graph::topological_order(&needs)
            .map_err(|circle| BadPlan::GroupCircle(names[circle.0[0]].clone()))?;
        let mut rank = vec![0; names.len()];
        for (at, group) in order.into_iter().enumerate() {
            rank[group] = at;
        }
        self.group_rank = self
            .tasks
            .iter()
            .map(|task| index.get(&task.spec.group).map_or(0, |&group| rank[group]))
            .collect();
        Ok(())
    }

    /// Validation goes group by group; everything else by priority alone.
    fn turn(&self, place: Place) -> Turn {
        let task = &self.tasks[place];
        let by_group = matches!(task.step(), Step::Done | Step::Accepted);
        (if by_group { self.group_rank[place] } else { 0 }, task.spec.priority, place)
    }

    /// Changes a task and moves it to the queue it belongs in then.
    pub(super) fn update(&mut self, place: Place, change: impl FnOnce(&mut Task)) {
        self.queues[self.tasks[place].step() as usize].remove(&self.turn(place));
        change(&mut self.tasks[place]);
        self.queues[self.tasks[place].step() as usize].insert(self.turn(place));
    }

    /// Tasks that someone works on although what they are built on is being
    /// done again: nothing good can come of it.
    pub fn doomed(&self) -> impl Iterator<Item = &Task> {
        self.queue(Step::Working)
            .chain(self.queue(Step::Validating))
            .filter(|task| task.is_doomed())
    }

    pub(super) fn note(
        &mut self,
        place: Place,
        at: Timestamp,
        result: HistoryResult,
        notes: impl Into<String>,
    ) {
        let task = &mut self.tasks[place];
        let (agent, spend) = match &task.last_worker {
            Some((agent, spend)) => (Some(agent.clone()), *spend),
            None => (None, Spend::default()),
        };
        let notes = notes.into();
        task.history.add(HistoryEntry { attempt: task.attempts, agent, spend, at, result, notes });
    }
}
