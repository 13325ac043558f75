//! What was proven, as a page.

use std::fmt::Write as _;

use blueflame_core::proof::{Proof, Standing};

use super::{Tested, Trial};
use crate::columns::{Side, Table, clip};
use crate::narrate::plain;

/// The longest reason on the page; the record has all of it.
const LONGEST: usize = 70;

pub fn page(proof: &Proof, trials: &[Trial]) -> String {
    let mut page = String::new();
    for trial in trials {
        let Trial { executor, version, attacks, harmless } = trial;
        let sandbox = &proof.under.sandbox;
        let _ = writeln!(page, "{executor} {version}, sandbox: {sandbox}");
        let mut table =
            Table::new([("  attack", Side::Left), ("stopped by", Side::Left), ("", Side::Left)]);
        for Tested { attack, standing } in attacks {
            let (by, how) = match standing {
                Standing::Stopped { by, how } => (by.to_string(), how),
                Standing::NotStopped { harm } => ("NOT STOPPED".to_owned(), harm),
                Standing::NotProven { why } => ("not proven".to_owned(), why),
            };
            let how = plain(how.lines().next().unwrap_or_default()).into_owned();
            table.row([format!("  {attack}"), by, clip(&how, LONGEST)]);
        }
        for line in table.lines() {
            let _ = writeln!(page, "{line}");
        }
        for it in harmless {
            let word = if it.works { "works" } else { "DOES NOT WORK" };
            let _ = writeln!(page, "  {word}: {}", it.what);
        }
        page.push('\n');
    }
    let Proof { tried, stopped, .. } = proof;
    let _ = writeln!(page, "{stopped} of {tried} attacks were stopped");
    page
}
