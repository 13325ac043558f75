//! What an agent is told of earlier sessions: the notes that matter most to it,
//! whole, within a bound, and a line on what was left out.
//!
//! Failures that nobody has put right come first and are left out last: nothing
//! that came off is told while there is one of them that is not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::note::{Kind, Note};
use super::{Notebook, decay, learned, wording};
use crate::ids::SessionId;
use crate::lock_path::{LockPath, any_overlap};

/// Tokens are estimated: so many bytes each.
pub const BYTES_PER_TOKEN: usize = 4;

/// Room for the line about what was left out.
const RESERVE: usize = 240;

/// How long a note may be in its short form.
const SHORT: usize = 400;

/// For whom notes are chosen.
#[derive(Clone, Copy, Debug)]
pub enum Reader<'a> {
    /// Gets some of everything; what its goal names counts for more.
    Planner { goal: &'a str },
    /// Gets what touches its files, and nothing else.
    Worker { paths: &'a [LockPath] },
}

/// What an agent is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    pub text: String,
    /// Notes that are in it.
    pub told: usize,
    /// Notes that would have been in it, had there been room.
    pub left_out: usize,
}

/// A part of what is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Section {
    Unresolved,
    Decisions,
    Patterns,
    Sessions,
    Costs,
    /// Gets what the others leave.
    CameOff,
}

impl Section {
    const ALL: [Section; 6] = [
        Section::Unresolved,
        Section::Decisions,
        Section::Patterns,
        Section::Sessions,
        Section::Costs,
        Section::CameOff,
    ];

    fn of(note: &Note) -> Section {
        match note.kind {
            Kind::Failure if note.is_unresolved() => Section::Unresolved,
            Kind::Decision => Section::Decisions,
            Kind::Pattern => Section::Patterns,
            Kind::Session => Section::Sessions,
            Kind::Cost => Section::Costs,
            Kind::Failure | Kind::Result => Section::CameOff,
        }
    }

    /// Its share of the room, in percent. What it does not use goes on to the next.
    fn share(self) -> usize {
        match self {
            Section::Unresolved => 45,
            Section::Decisions => 20,
            Section::Patterns => 15,
            Section::Sessions | Section::Costs => 10,
            Section::CameOff => 0,
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Section::Unresolved => "Failures that nobody has put right yet:",
            Section::Decisions => "What the person decided:",
            Section::Patterns => "What went wrong more than once:",
            Section::Sessions => "Earlier sessions:",
            Section::Costs => "What agents took:",
            Section::CameOff => "What came off:",
        }
    }

    fn name(self, count: usize) -> String {
        let (one, many) = match self {
            Section::Unresolved => ("unresolved failure", "unresolved failures"),
            Section::Decisions => ("decision", "decisions"),
            Section::Patterns => ("pattern", "patterns"),
            Section::Sessions => ("session", "sessions"),
            Section::Costs => ("table of costs", "tables of costs"),
            Section::CameOff => ("result", "results"),
        };
        format!("{count} {}", if count == 1 { one } else { many })
    }
}

/// A note that could be told.
struct Candidate {
    /// In full, and in a line.
    full: String,
    short: String,
    told: Option<String>,
}

/// What to tell, in at most so many tokens; `None` if there is nothing.
pub fn context(notebook: &Notebook, reader: Reader<'_>, tokens: usize) -> Option<Context> {
    let mut sections = candidates(notebook, reader);
    let wanted: usize = sections.values().map(Vec::len).sum();
    let room = (tokens * BYTES_PER_TOKEN).checked_sub(RESERVE)?;
    if wanted == 0 {
        return None;
    }
    let mut used = 0;
    let mut limit = 0;
    // By shares at first, of which the next has what is not used; then whatever is
    // left, in order.
    for section in Section::ALL.into_iter().filter(|section| section.share() > 0) {
        limit += room * section.share() / 100;
        fill(&mut sections, section, &mut used, limit);
    }
    for section in Section::ALL {
        if section == Section::CameOff && left_out(&sections, Section::Unresolved) > 0 {
            break;
        }
        fill(&mut sections, section, &mut used, room);
    }
    let mut text = String::new();
    let mut missing = Vec::new();
    let (mut told, mut omitted) = (0, 0);
    for (section, candidates) in &sections {
        let lines: Vec<&str> = candidates.iter().filter_map(|it| it.told.as_deref()).collect();
        if !lines.is_empty() {
            text.push_str(section.heading());
            text.push('\n');
            for line in &lines {
                text.push_str(line);
                text.push('\n');
            }
            text.push('\n');
        }
        told += lines.len();
        let left = candidates.len() - lines.len();
        omitted += left;
        if left > 0 {
            missing.push(section.name(left));
        }
    }
    if !missing.is_empty() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Left out for want of room: {}.", missing.join(", "));
    }
    text.truncate(text.trim_end().len());
    Some(Context { text, told, left_out: omitted })
}

fn left_out(sections: &BTreeMap<Section, Vec<Candidate>>, section: Section) -> usize {
    let all = sections.get(&section).map_or(&[][..], Vec::as_slice);
    all.iter().filter(|it| it.told.is_none()).count()
}

/// Tells what there is room for, in full or else in short.
fn fill(
    sections: &mut BTreeMap<Section, Vec<Candidate>>,
    section: Section,
    used: &mut usize,
    limit: usize,
) {
    let Some(candidates) = sections.get_mut(&section) else { return };
    let mut begun = candidates.iter().any(|it| it.told.is_some());
    for candidate in candidates {
        if candidate.told.is_some() {
            continue;
        }
        // A heading, two line breaks after the last line, and one after each.
        let more = if begun { 1 } else { section.heading().len() + 3 };
        let fits = |text: &&String| *used + more + text.len() <= limit;
        let Some(text) = [&candidate.full, &candidate.short].into_iter().find(fits) else {
            continue;
        };
        *used += more + text.len();
        candidate.told = Some(text.clone());
        begun = true;
    }
}

/// What could be told, section by section, the most telling first.
fn candidates(notebook: &Notebook, reader: Reader<'_>) -> BTreeMap<Section, Vec<Candidate>> {
    let sessions = notebook.sessions();
    let ages: BTreeMap<&SessionId, u64> = sessions.into_iter().rev().zip(0..).collect();
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    for cause in
        notebook.notes().filter(|note| note.kind == Kind::Failure).flat_map(|it| &it.causes)
    {
        *causes.entry(cause).or_default() += 1;
    }
    let score = |note: &Note| {
        let age = ages.get(&note.session).copied().unwrap_or(0);
        let often = note.causes.iter().filter_map(|cause| causes.get(cause.as_str())).max();
        let often = often.copied().unwrap_or(1).max(u64::from(note.times)).clamp(1, 4);
        let near = if reader.touches(note) { 4 } else { 1 };
        1_000_000 / (age + 1) * often * near
    };
    let mut ranked: BTreeMap<Section, Vec<(u64, &Note)>> = BTreeMap::new();
    for note in notebook.notes().filter(|note| reader.wants(note)) {
        ranked.entry(Section::of(note)).or_default().push((score(note), note));
    }
    let mut sections = BTreeMap::new();
    for (section, mut notes) in ranked {
        notes.sort_by(|(one, first), (other, second)| {
            other
                .cmp(one)
                .then_with(|| second.at.cmp(&first.at))
                .then_with(|| first.key.cmp(&second.key))
        });
        if section == Section::Sessions {
            let landed = notes.iter().filter_map(|(_, note)| Candidate::of_landed(note));
            let landed: Vec<Candidate> = landed.collect();
            sections.entry(Section::CameOff).or_insert_with(Vec::new).extend(landed);
        }
        let told = notes.into_iter().map(|(_, note)| Candidate::of(note));
        sections.entry(section).or_insert_with(Vec::new).extend(told);
    }
    sections.retain(|_, candidates| !candidates.is_empty());
    if let Reader::Planner { .. } = reader
        && let Some(table) = learned::table(notebook)
    {
        let table = Candidate { short: table.clone(), full: table, told: None };
        sections.insert(Section::Costs, vec![table]);
    }
    sections
}

impl Reader<'_> {
    fn wants(&self, note: &Note) -> bool {
        match self {
            // One table says more than a line for each session.
            Reader::Planner { .. } => note.kind != Kind::Cost,
            Reader::Worker { .. } => self.touches(note),
        }
    }

    /// Whether a note is about what the reader is about.
    fn touches(&self, note: &Note) -> bool {
        match self {
            Reader::Planner { goal } => note.paths.iter().any(|path| {
                let file = path.as_str().rsplit('/').next().unwrap_or_default();
                goal.contains(path.as_str()) || (file.contains('.') && goal.contains(file))
            }),
            Reader::Worker { paths } => any_overlap(paths, &note.paths),
        }
    }
}

impl Candidate {
    fn of(note: &Note) -> Candidate {
        let paths: Vec<&str> = note.paths.iter().map(LockPath::as_str).collect();
        let mut head = format!("- {} {}", note.session, wording::line(&note.title, SHORT));
        if !paths.is_empty() {
            let _ = write!(head, " [{}]", wording::line(&paths.join(" "), SHORT / 2));
        }
        let (text, _) = decay::without_landed(&note.text);
        let mut full = head.clone();
        for line in text.lines() {
            full.push_str("\n  ");
            full.push_str(line);
        }
        let short = wording::line(&format!("{head} {text}"), SHORT);
        Candidate { full: wording::harmless(&full), short: wording::harmless(&short), told: None }
    }

    /// The finished tasks that were folded into the note of their session.
    fn of_landed(note: &Note) -> Option<Candidate> {
        let (_, landed) = decay::without_landed(&note.text);
        let titles: Vec<&str> = landed?.lines().filter(|line| !line.is_empty()).collect();
        let full = format!("- {} landed {}", note.session, titles.join("; "));
        let short = wording::line(&full, SHORT);
        Some(Candidate {
            full: wording::harmless(&full),
            short: wording::harmless(&short),
            told: None,
        })
    }
}
