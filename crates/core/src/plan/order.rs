//! The order of tasks and of groups in a checked plan.

use std::collections::BTreeMap;

use super::{Plan, TaskSpec};
use crate::graph::{Cycle, topological_order};
use crate::ids::GroupName;

impl Plan {
    /// Positions of all tasks, each after the tasks it depends on; among those
    /// that could come next the lower priority number goes first, then the
    /// earlier place in the plan.
    pub fn order(&self) -> Vec<usize> {
        let mut by_priority: Vec<usize> = (0..self.tasks.len()).collect();
        by_priority.sort_by_key(|&at| (self.tasks[at].priority, at));
        let rank: BTreeMap<&str, usize> = by_priority
            .iter()
            .enumerate()
            .map(|(rank, &at)| (self.tasks[at].id.as_str(), rank))
            .collect();
        let needs: Vec<Vec<usize>> = by_priority
            .iter()
            .map(|&at| {
                let ids = self.tasks[at].dependencies.iter();
                ids.filter_map(|id| rank.get(id.as_str()).copied()).collect()
            })
            .collect();
        match topological_order(&needs) {
            Ok(order) => order.into_iter().map(|rank| by_priority[rank]).collect(),
            // Only a plan that was never checked comes here.
            Err(Cycle(_)) => by_priority,
        }
    }

    /// All groups, each after the groups it builds on.
    pub fn group_order(&self) -> Vec<GroupName> {
        let order = self.order();
        let in_order: Vec<&TaskSpec> = order.iter().map(|&at| &self.tasks[at]).collect();
        let groups =
            Groups::of(in_order.iter().map(|task| (task.id.as_str(), task.group.as_str())));
        let needs = groups.needs(in_order.iter().flat_map(|task| {
            task.dependencies.iter().map(move |need| (task.id.as_str(), need.as_str()))
        }));
        let order = topological_order(&needs).unwrap_or_else(|Cycle(_)| (0..needs.len()).collect());
        order
            .into_iter()
            .filter_map(|group| {
                let name = groups.names[group];
                in_order.iter().find(|task| task.group.as_str() == name).map(|t| t.group.clone())
            })
            .collect()
    }
}

/// Groups as nodes of a graph, in the order in which they first appear.
pub(super) struct Groups<'p> {
    pub names: Vec<&'p str>,
    of_task: BTreeMap<&'p str, usize>,
}

impl<'p> Groups<'p> {
    /// From pairs of a task and its group.
    pub fn of(tasks: impl Iterator<Item = (&'p str, &'p str)>) -> Self {
        let mut names = Vec::new();
        let mut number = BTreeMap::new();
        let mut of_task = BTreeMap::new();
        for (task, group) in tasks {
            let at = *number.entry(group).or_insert_with(|| {
                names.push(group);
                names.len() - 1
            });
            of_task.insert(task, at);
        }
        Groups { names, of_task }
    }

    pub fn of_task(&self, task: &str) -> Option<usize> {
        self.of_task.get(task).copied()
    }

    /// Which groups each group needs, from pairs of a task and what it needs.
    pub fn needs<'d>(
        &self,
        dependencies: impl Iterator<Item = (&'d str, &'d str)>,
    ) -> Vec<Vec<usize>> {
        let mut needs = vec![Vec::new(); self.names.len()];
        for (task, need) in dependencies {
            if let (Some(ours), Some(theirs)) = (self.of_task(task), self.of_task(need))
                && ours != theirs
            {
                needs[ours].push(theirs);
            }
        }
        needs
    }
}
