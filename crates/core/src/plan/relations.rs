//! What tasks are to each other: names, dependencies, groups, shared locks.

use std::collections::{BTreeMap, BTreeSet};

use super::file::TaskFile;
use super::order::Groups;
use crate::graph::{Cycle, topological_order};
use crate::ids::TaskId;
use crate::lock_path::LockPath;
use crate::yaml::{Problem, Problems, Span, Spanned};

/// After this many of one kind the rest would say the same again.
const MOST_OF_A_KIND: usize = 20;

type Tasks = [Spanned<TaskFile>];

pub(super) fn check(tasks: &Tasks, landed: &BTreeSet<TaskId>, problems: &Problems) {
    let landed: BTreeSet<&str> = landed.iter().map(TaskId::as_str).collect();
    let places = unique_ids(tasks, problems);
    ids_of_landed_tasks(tasks, &landed, problems);
    let mut needs = dependencies(tasks, &places, &landed, problems);
    let circles = task_circles(tasks, &mut needs, problems);
    if circles == 0 {
        group_circles(tasks, &needs, problems);
    }
    shared_locks(tasks, &needs, problems);
}

fn id(task: &Spanned<TaskFile>) -> &str {
    task.id.as_ref().map_or("?", |id| id.value.as_str())
}

/// Where each id is first used. Ids become directories and branches, which on
/// some machines do not tell upper from lower case.
fn unique_ids<'t>(tasks: &'t Tasks, problems: &Problems) -> BTreeMap<&'t str, usize> {
    let mut places = BTreeMap::new();
    let mut folded: BTreeMap<String, &Spanned<String>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let Some(id) = &task.id else { continue };
        match folded.get(&id.to_ascii_lowercase()) {
            None => {
                folded.insert(id.to_ascii_lowercase(), id);
                places.insert(id.as_str(), at);
            }
            Some(first) => {
                let message = if first.value == id.value {
                    format!("is used by another task, got `{}`", id.value)
                } else {
                    format!(
                        "differs from `{}` only in upper and lower case, got `{}`",
                        first.value, id.value
                    )
                };
                problems.push(
                    Problem::error(format!("tasks[{at}].id"), message)
                        .at(id.span, "second use")
                        .also(first.span, "first use")
                        .hint("every task needs an id of its own"),
                );
            }
        }
    }
    places
}

/// What has landed keeps its id: history and commit messages speak of it.
fn ids_of_landed_tasks(tasks: &Tasks, landed: &BTreeSet<&str>, problems: &Problems) {
    for (at, task) in tasks.iter().enumerate() {
        if let Some(id) = task.id.as_ref().filter(|id| landed.contains(id.as_str())) {
            problems.push(
                Problem::error(
                    format!("tasks[{at}].id"),
                    format!("belongs to a task that has landed, got `{}`", id.value),
                )
                .at(id.span, "")
                .hint("give the new task an id of its own"),
            );
        }
    }
}

/// For each task the positions of the tasks it needs, as far as they are in
/// this plan.
fn dependencies(
    tasks: &Tasks,
    places: &BTreeMap<&str, usize>,
    landed: &BTreeSet<&str>,
    problems: &Problems,
) -> Vec<Vec<usize>> {
    let mut needs = vec![Vec::new(); tasks.len()];
    for (at, task) in tasks.iter().enumerate() {
        for (index, need) in task.dependencies.iter().flatten().enumerate() {
            let path = format!("tasks[{at}].dependencies[{index}]");
            match places.get(need.as_str()) {
                Some(&other) if other == at => problems.push(
                    Problem::error(path, format!("makes task `{}` depend on itself", id(task)))
                        .at(need.span, "")
                        .hint("remove it"),
                ),
                Some(&other) => needs[at].push(other),
                None if landed.contains(need.as_str()) => {}
                None => {
                    let hint = match problems
                        .closest(need, places.keys().copied().filter(|known| *known != id(task)))
                    {
                        Some(meant) => format!("did you mean `{meant}`?"),
                        None => "no task of the plan has this id".to_owned(),
                    };
                    let message =
                        format!("of task `{}` is not a known task, got `{}`", id(task), need.value);
                    problems.push(Problem::error(path, message).at(need.span, "").hint(hint));
                }
            }
        }
    }
    needs
}

/// The place where one task says that it needs another.
fn said(tasks: &Tasks, task: usize, need: usize) -> Option<Span> {
    let wanted = id(&tasks[need]);
    let mut list = tasks[task].dependencies.iter().flatten();
    list.find(|written| written.value == wanted).and_then(|written| written.span)
}

/// Reports circles and cuts them, so that each one is found.
fn task_circles(tasks: &Tasks, needs: &mut [Vec<usize>], problems: &Problems) -> usize {
    for found in 0..MOST_OF_A_KIND {
        let Err(Cycle(circle)) = topological_order(needs) else { return found };
        let names: Vec<&str> =
            circle.iter().chain(circle.first()).map(|&at| id(&tasks[at])).collect();
        let mut problem = Problem::error(
            "",
            format!("tasks depend on each other in a circle: {}", in_short(&names)),
        )
        .hint("none of them could start; remove one of the dependencies");
        for (at, &task) in circle.iter().enumerate().take(8) {
            let need = circle[(at + 1) % circle.len()];
            let label = format!("`{}` needs `{}`", id(&tasks[task]), id(&tasks[need]));
            problem = problem.also(said(tasks, task, need), label);
        }
        problems.push(problem);
        if let (Some(&last), Some(&first)) = (circle.last(), circle.first()) {
            needs[last].retain(|&need| need != first);
        }
    }
    MOST_OF_A_KIND
}

/// `a -> b -> a`, with the middle left out if it is long.
fn in_short(names: &[&str]) -> String {
    if names.len() <= 10 {
        return names.join(" -> ");
    }
    let (start, end) = (&names[..5], &names[names.len() - 4..]);
    format!("{} -> ... -> {}", start.join(" -> "), end.join(" -> "))
}

/// Groups land one after the other, so two groups cannot need each other.
fn group_circles(tasks: &Tasks, needs: &[Vec<usize>], problems: &Problems) {
    let group = |at: usize| {
        tasks[at].cohesion_group.as_ref().map_or(id(&tasks[at]), |group| group.value.as_str())
    };
    let groups = Groups::of((0..tasks.len()).map(|at| (id(&tasks[at]), group(at))));
    let edges: Vec<(usize, usize)> = needs
        .iter()
        .enumerate()
        .flat_map(|(task, of)| of.iter().map(move |&need| (task, need)))
        .collect();
    let group_needs =
        groups.needs(edges.iter().map(|&(task, need)| (id(&tasks[task]), id(&tasks[need]))));
    let Err(Cycle(circle)) = topological_order(&group_needs) else { return };
    let names: Vec<&str> =
        circle.iter().chain(circle.first()).map(|&at| groups.names[at]).collect();
    let mut problem =
        Problem::error("", format!("groups need each other in a circle: {}", in_short(&names)))
            .hint("groups land one after the other; put these tasks into one cohesion_group");
    for (at, &ours) in circle.iter().enumerate().take(8) {
        let theirs = circle[(at + 1) % circle.len()];
        let cause = edges.iter().find(|&&(task, need)| {
            groups.of_task(id(&tasks[task])) == Some(ours)
                && groups.of_task(id(&tasks[need])) == Some(theirs)
        });
        if let Some(&(task, need)) = cause {
            let label = format!(
                "task `{}` ({}) needs `{}` ({})",
                id(&tasks[task]),
                groups.names[ours],
                id(&tasks[need]),
                groups.names[theirs]
            );
            problem = problem.also(said(tasks, task, need), label);
        }
    }
    problems.push(problem);
}

/// Warns about tasks that could run side by side but share a lock. Each lock
/// is compared with the nearest one of another task at or above it.
fn shared_locks(tasks: &Tasks, needs: &[Vec<usize>], problems: &Problems) {
    let mut locks: Vec<(String, LockPath, usize, Option<Span>)> = Vec::new();
    for (at, task) in tasks.iter().enumerate() {
        for text in task.file_locks.iter().flatten() {
            if let Ok(lock) = LockPath::new(text) {
                // So that a directory stands right before what it contains.
                locks.push((lock.as_str().replace('/', "\0"), lock, at, text.span));
            }
        }
    }
    locks.sort();
    // A task can only need tasks that come before it in this order.
    let mut place = vec![0; tasks.len()];
    for (at, task) in topological_order(needs).unwrap_or_default().into_iter().enumerate() {
        place[task] = at;
    }
    let mut above: Vec<usize> = Vec::new();
    let mut seen = BTreeSet::new();
    for at in 0..locks.len() {
        let (_, lock, task, span) = &locks[at];
        while above.last().is_some_and(|&top| !locks[top].1.covers(lock)) {
            above.pop();
        }
        let nearest = above.iter().rev().map(|&top| &locks[top]).find(|other| other.2 != *task);
        if let Some((_, other_lock, other, other_span)) = nearest {
            let pair = (*task.min(other), *task.max(other));
            if seen.len() < MOST_OF_A_KIND && !dependent(needs, &place, pair) && seen.insert(pair) {
                problems.push(
                    Problem::warning(
                        "",
                        format!(
                            "tasks `{}` and `{}` share a lock and will run one after the other",
                            id(&tasks[pair.0]),
                            id(&tasks[pair.1])
                        ),
                    )
                    .at(*span, format!("`{lock}` of `{}`", id(&tasks[*task])))
                    .also(*other_span, format!("`{other_lock}` of `{}`", id(&tasks[*other])))
                    .hint("lock smaller paths if they can work side by side"),
                );
            }
        }
        above.push(at);
    }
}

/// Whether one of two tasks needs the other, directly or through others.
fn dependent(needs: &[Vec<usize>], place: &[usize], (one, other): (usize, usize)) -> bool {
    let (from, to) = if place[one] > place[other] { (one, other) } else { (other, one) };
    let mut open = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(task) = open.pop() {
        if needs[task].contains(&to) {
            return true;
        }
        let before = needs[task].iter().copied().filter(|need| place[*need] > place[to]);
        open.extend(before.filter(|need| seen.insert(*need)));
    }
    false
}
