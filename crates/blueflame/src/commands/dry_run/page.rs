//! The paper as a page for people, 80 columns wide.

use blueflame_core::event::Work;
use blueflame_core::forecast::simulation::Doing;
use blueflame_core::forecast::{Forecast, Parallel, Span};
use blueflame_core::ids::{Role, TaskId};
use blueflame_core::money::Budget;
use blueflame_core::plan::Plan;
use blueflame_core::rules::WaveMode;

use super::{Paper, Source};
use crate::amounts;
use crate::columns::{self, Side, Table};
use crate::narrate::{plain, short};
use crate::people::sheet::{Sheet, count};
use crate::report;

const WIDTH: usize = 80;

impl Paper<'_> {
    pub fn page(&self) -> String {
        let mut sheet = Sheet::new(WIDTH);
        sheet.ready("dry run: nothing is started, nothing is written");
        sheet.blank();
        sheet.behind("goal      ", self.goal);
        let at = self.base_commit.as_deref().map(|it| format!(" at {}", short(it)));
        sheet.behind("base      ", &format!("{}{}", self.base_branch, at.unwrap_or_default()));
        if let Some(why) = &self.would_refuse {
            sheet.behind("refused   ", &format!("nothing could be started now: {why}"));
        }
        match (self.plan, &self.forecast) {
            (Some(plan), Some(forecast)) => self.planned(&mut sheet, plan, forecast),
            (Some(_), None) => {
                sheet.behind("plan      ", "cannot be carried through as it is");
            }
            (None, _) => self.unplanned(&mut sheet),
        }
        self.commands(&mut sheet);
        self.agents(&mut sheet);
        if let Some(forecast) = &self.forecast {
            self.forecast(&mut sheet, forecast);
        }
        self.sources(&mut sheet);
        if !self.weaker_settings.is_empty() {
            heading(&mut sheet, "Weaker settings in force");
            for setting in &self.weaker_settings {
                sheet.behind("  - ", setting);
            }
        }
        sheet.finish()
    }

    fn unplanned(&self, sheet: &mut Sheet) {
        let estimate = &self.estimates.planner;
        let time = amounts::time(std::time::Duration::from_secs(estimate.seconds));
        sheet.behind(
            "plan      ",
            &format!(
                "a planner would make one first, for about {} in {time}, and you would be asked \
                 about it. What follows depends on that plan: `--dry-run --plan FILE` shows it \
                 for a plan that you have.",
                estimate.cost
            ),
        );
    }

    fn planned(&self, sheet: &mut Sheet, plan: &Plan, forecast: &Forecast) {
        let (tasks, sets) = (plan.tasks.len(), self.changesets.len());
        let text = format!("{} in {}", count(tasks, "task"), count(sets, "changeset"));
        sheet.behind("plan      ", &text);
        heading(sheet, "Order of work");
        let waves = match self.waves {
            WaveMode::Strict => "then all validation",
            WaveMode::Pipelined => "each validated as soon as it is done",
        };
        let text = format!(
            "Up to {} at a time, {waves} (up to {}), then the merge.",
            count(self.workers as usize, "worker"),
            count(self.validators as usize, "validator")
        );
        sheet.paragraph(2, &text);
        sheet.blank();
        let mut table = Table::new([
            ("  starts", Side::Right),
            ("task", Side::Left),
            ("takes", Side::Right),
            ("group", Side::Left),
            ("after", Side::Left),
            ("title", Side::Left),
        ]);
        let mut spans: Vec<_> = forecast.schedule.spans.iter().collect();
        let place = |span: &Span| match &span.what {
            Doing::Agent(work) => plan.tasks.iter().position(|it| Some(&it.id) == work.task()),
            Doing::Acceptance(_) | Doing::Verification(_) => None,
        };
        spans.sort_by_key(|span| (span.start, place(span)));
        for span in spans {
            let Doing::Agent(Work::Develop { task, .. }) = &span.what else { continue };
            let Some(spec) = plan.tasks.iter().find(|spec| spec.id == *task) else { continue };
            let needs: Vec<&str> = spec.dependencies.iter().map(TaskId::as_str).collect();
            table.row([
                time(span.start),
                task.to_string(),
                time(span.end - span.start),
                spec.group.to_string(),
                if needs.is_empty() { "-".to_owned() } else { needs.join(" ") },
                plain(&spec.title).into_owned(),
            ]);
        }
        lines(sheet, &table);
        sheet.blank();
        for (number, changeset) in self.changesets.iter().enumerate() {
            let lead = format!("  lands {}  ", number + 1);
            let text = format!("{}: {}", changeset.group, changeset.tasks.join(", "));
            sheet.behind(&lead, &text);
        }
        heading(sheet, "Workspaces and branches");
        let mut table =
            Table::new([("  task", Side::Left), ("directory", Side::Left), ("branch", Side::Left)]);
        for place in &self.workspaces {
            let task = format!("  {}", place.task);
            table.row([task, place.directory.clone(), place.branch.clone()]);
        }
        lines(sheet, &table);
        sheet.paragraph(2, "A retry gets the next number: a2, a3. Your checkout stays as it is.");
        heading(sheet, "Files that a task has to itself");
        for task in &plan.tasks {
            let files: Vec<String> = task.file_locks.iter().map(ToString::to_string).collect();
            sheet.behind(&format!("  {}  ", task.id), &files.join(" "));
        }
    }

    fn commands(&self, sheet: &mut Sheet) {
        heading(sheet, "Commands that would be run");
        let commands = &self.commands;
        let mut any = false;
        let mut say = |sheet: &mut Sheet, when: &str, list: &[String]| {
            for command in list {
                any = true;
                sheet.behind(&format!("  {when:<24}"), command);
            }
        };
        say(sheet, "in each new workspace", commands.prepare);
        say(sheet, "on each finished task", commands.acceptance);
        for task in self.plan.iter().flat_map(|plan| &plan.tasks) {
            say(sheet, &format!("on {}", task.id), &task.acceptance);
        }
        say(sheet, "on each merged tree", commands.verify);
        for (name, command) in &commands.hooks {
            say(sheet, &format!("hook {name}"), &[(*command).to_owned()]);
        }
        if !any {
            sheet.paragraph(2, "None: no prepare, acceptance, merge.verify or hooks are set.");
        }
        for (what, list) in [
            ("copied in", &commands.copy),
            ("shared", &commands.share),
            ("scratch", &commands.scratch),
        ] {
            if !list.is_empty() {
                sheet.behind(&format!("  {what:<24}"), &list.join(" "));
            }
        }
    }

    fn agents(&self, sheet: &mut Sheet) {
        heading(sheet, "Agents");
        for agent in &self.agents {
            let text = format!(
                "{} with {}, {} each at most; {}",
                agent.executor, agent.model, agent.budget, agent.starts
            );
            sheet.behind(&format!("  {:<11}", agent.role.name()), &text);
            if agent.role == Role::Planner && self.plan.is_some() {
                continue;
            }
            match &agent.command {
                Some(words) => {
                    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                    sheet.behind("             $ ", &words.join(" "));
                }
                None => sheet.behind("             ", "its program is not installed here"),
            }
        }
    }

    fn forecast(&self, sheet: &mut Sheet, forecast: &Forecast) {
        heading(sheet, "Forecast, if all goes well");
        let mut table = Table::new([
            ("  workers", Side::Right),
            ("whole session", Side::Right),
            ("development", Side::Right),
            ("at least", Side::Right),
            ("", Side::Left),
        ]);
        for line in &forecast.by_workers {
            let configured = line.workers == forecast.workers;
            table.row([
                line.workers.to_string(),
                time(line.seconds),
                time(line.development_seconds),
                time(line.bound_seconds),
                if configured { "<- as configured".to_owned() } else { String::new() },
            ]);
        }
        lines(sheet, &table);
        sheet.blank();
        sheet.paragraph(2, &verdict(forecast));
        let chain: Vec<&str> = forecast.critical_path.iter().map(TaskId::as_str).collect();
        if chain.len() > 1 {
            let text = format!("{} ({})", chain.join(", then "), time(forecast.critical_seconds));
            sheet.behind("  longest chain  ", &text);
        }
        sheet.behind("  cost           ", &self.cost(forecast));
        let long = self.agent_timeout_seconds;
        for task in self.plan.iter().flat_map(|plan| &plan.tasks) {
            let seconds = self.estimates.of(task).seconds;
            if seconds > long {
                let text = format!(
                    "{} is thought to take {}, but limits.agent_timeout ends a worker after {}",
                    task.id,
                    time(seconds),
                    time(long)
                );
                sheet.behind("  warning        ", &text);
            }
        }
    }

    fn cost(&self, forecast: &Forecast) -> String {
        let range = forecast.cost;
        let text = format!(
            "{} if every agent runs once, {} with every retry",
            range.once, range.with_retries
        );
        match self.session_budget {
            Budget::Usd(limit) if limit < range.once => {
                format!("{text}; the session budget of {limit} is not enough")
            }
            Budget::Usd(limit) if limit < range.with_retries => {
                format!("{text}; the session budget of {limit} would stop it before that")
            }
            Budget::Usd(limit) => format!("{text}; the session budget is {limit}"),
            Budget::Tokens(limit) => format!("{text}; the session budget is {limit} tokens"),
            Budget::Unlimited => format!("{text}; the session has no budget"),
        }
    }

    fn sources(&self, sheet: &mut Sheet) {
        heading(sheet, "Where these numbers come from");
        let estimates = &self.estimates;
        let given = self.plan.iter().flat_map(|plan| &plan.tasks);
        let (own, usual): (Vec<_>, Vec<_>) = given.partition(|it| it.estimate_minutes.is_some());
        if !own.is_empty() {
            let names: Vec<&str> = own.iter().map(|task| task.id.as_str()).collect();
            let text =
                format!("estimate_minutes of the plan; money in proportion: {}", names.join(" "));
            sheet.behind("  - ", &text);
        }
        if self.plan.is_none() || !usual.is_empty() {
            let text = format!(
                "a worker: {} {}, {} {}",
                time(estimates.worker.seconds),
                self.source("worker_time"),
                estimates.worker.cost,
                self.source("worker_usd")
            );
            sheet.behind("  - ", &text);
        }
        let text = format!(
            "a validator: {} {}, {} {}",
            time(estimates.validator.seconds),
            self.source("validator_time"),
            estimates.validator.cost,
            self.source("validator_usd")
        );
        sheet.behind("  - ", &text);
        let checks = time(estimates.check_seconds);
        sheet.behind(
            "  - ",
            &format!(
                "the commands on one task or one merged tree: {checks} {}",
                self.source("check_time")
            ),
        );
        for line in estimates.learned.iter().flat_map(report::learned) {
            sheet.behind("  - ", &line);
        }
        sheet.behind(
            "  - ",
            "order and waiting: the scheduler itself, run in time that does not pass. Not in \
             it: your own time at questions, retries, conflicts, memory and provider limits.",
        );
        sheet.paragraph(
            2,
            "`blueflame cost` tells what agents really took; set `forecast` by that.",
        );
    }
}

impl Paper<'_> {
    /// Where a number comes from, to follow it.
    fn source(&self, key: &str) -> String {
        match self.estimate_sources.get(key) {
            Some(Source::Set) => format!("(forecast.{key} in your configuration)"),
            Some(Source::Learned) => "(learned from earlier sessions)".to_owned(),
            Some(Source::Default) | None => format!("(the default of forecast.{key})"),
        }
    }
}

/// Whether more than one worker is worth it, and why.
fn verdict(forecast: &Forecast) -> String {
    let Some(alone) = forecast.by_workers.first() else { return String::new() };
    match forecast.parallel() {
        Parallel::NotWorthIt if forecast.by_workers.len() == 1 => {
            "One task needs one worker.".to_owned()
        }
        Parallel::NotWorthIt => {
            "Parallel work does not pay here: tasks wait for each other or share files, and one \
             worker is as good as many (less than a tenth is gained)."
                .to_owned()
        }
        Parallel::UpTo(best) => {
            let with = forecast.by_workers.iter().find(|line| line.workers == best);
            let with = with.map_or(alone.seconds, |line| line.seconds);
            format!(
                "Parallel work pays: {} with {best} workers against {} with one. From {} workers \
                 on it stops helping.",
                time(with),
                time(alone.seconds),
                best + 1
            )
        }
    }
}

fn heading(sheet: &mut Sheet, text: &str) {
    sheet.blank();
    sheet.ready(text);
}

fn lines(sheet: &mut Sheet, table: &Table) {
    for line in table.lines() {
        sheet.ready(&columns::clip(&line, WIDTH));
    }
}

fn time(seconds: u64) -> String {
    amounts::time(std::time::Duration::from_secs(seconds))
}

/// A word as a shell would have to be given it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,<>@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
