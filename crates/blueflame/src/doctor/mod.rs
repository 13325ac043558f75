//! What has to be there for Blue Flame to work, looked at one by one.
//!
//! Nothing is started but programs that are asked for their version and the trial
//! of the sandbox, and nothing is left behind. Every finding that stands in the way says what to type.

mod executors;
mod look;
mod machine;

use std::fmt;

use serde::Serialize;

use crate::columns::{Side, Table};

pub use executors::{
    document as executors_document, look as look_for_executors, page as executors_page,
};
pub use look::{Place, examine, git, upstream};
pub use machine::{machine, take_open_files};

/// How it stands with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Good,
    /// Work is possible, and something should be known.
    Warning,
    /// No session can begin.
    Missing,
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Standing::Good => "good",
            Standing::Warning => "warning",
            Standing::Missing => "MISSING",
        })
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub subject: String,
    pub standing: Standing,
    pub says: String,
    /// What to type or to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Finding {
    pub fn good(subject: impl Into<String>, says: impl Into<String>) -> Finding {
        Finding::new(subject, Standing::Good, says, None)
    }

    pub fn warning(
        subject: impl Into<String>,
        says: impl Into<String>,
        fix: Option<&str>,
    ) -> Finding {
        Finding::new(subject, Standing::Warning, says, fix)
    }

    pub fn missing(subject: impl Into<String>, says: impl Into<String>, fix: &str) -> Finding {
        Finding::new(subject, Standing::Missing, says, Some(fix))
    }

    fn new(
        subject: impl Into<String>,
        standing: Standing,
        says: impl Into<String>,
        fix: Option<&str>,
    ) -> Finding {
        let fix = fix.map(str::to_owned);
        Finding { subject: subject.into(), standing, says: says.into(), fix }
    }
}

/// What was found, for people.
pub fn page(findings: &[Finding]) -> String {
    let mut table = Table::new([("", Side::Left), ("", Side::Left), ("", Side::Left)]);
    for finding in findings {
        let mut says = finding.says.lines();
        table.row([
            finding.subject.clone(),
            finding.standing.to_string(),
            says.next().unwrap_or_default().to_owned(),
        ]);
        for more in says {
            table.row([String::new(), String::new(), more.to_owned()]);
        }
        if let Some(fix) = &finding.fix {
            table.row([String::new(), String::new(), format!("-> {fix}")]);
        }
    }
    // The first line would be the headings, of which there are none.
    table.lines().into_iter().skip(1).map(|line| line + "\n").collect()
}

/// The worst of all.
pub fn standing(findings: &[Finding]) -> Standing {
    findings.iter().map(|finding| finding.standing).max().unwrap_or(Standing::Good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_is_a_line_and_its_remedy_another() {
        let findings = [
            Finding::good("git", "2.47.3"),
            Finding::missing("model", "no key", "export KEY=..."),
            Finding::warning("disk", "little\nroom", None),
        ];
        assert_eq!(
            page(&findings),
            "git    good     2.47.3\n\
             model  MISSING  no key\n                \
             -> export KEY=...\n\
             disk   warning  little\n                room\n"
        );
        assert_eq!(standing(&findings), Standing::Missing);
        assert_eq!(standing(&findings[2..]), Standing::Warning);
    }
}
