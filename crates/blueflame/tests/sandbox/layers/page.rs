//! The matrix as a page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use blueflame_core::proof::Layer;

use super::{Cell, Row};

const HEAD: &str = "\
# Layers

What stops what. Every case of the attack corpus (`crates/core/tests/policy/cases.json`)
is really made by a test, at every layer: the policy judges the call; with the
policy out of the way, the call is carried out inside the sandbox; what it leaves
is committed, harvested and inspected; requests are sent to a gateway. The person's
home, checkout, repository and another agent's work must be untouched after each.

This page is written by that test, which fails when the page is not true any more:

```console
$ BLUEFLAME_WRITE_DOCS=1 cargo test -p blueflame --test sandbox layers -- --nocapture
```

Read a row like this: the layer in **bold** has to decide the case; the others are
what is left when that one is switched off. `passes` means that a layer was asked
and does not mind, `-` that it has nothing to do with the case. Some words:

| in a row | means |
|---|---|
| `contained` | carried out inside the sandbox: nothing outside changed, came out or ran on, and nothing in the workspace changed. Nobody tried what it would do outside: these are never run there |
| `fails inside` | the attempt itself says that it failed |
| `not taken over` | it changes the workspace, and harvesting leaves it there |
| `harvest` | the whole work is refused when it is taken over |
| a rule, a number | the rule that denies or refuses; what the gateway answers |

To keep in mind:

- The policy judges the line that an agent asks for. What a test or a Makefile does
  once it runs is held by the sandbox alone: `blueflame doctor --prove` attacks that
  way.
- The sandbox holds what is outside. What an agent does to the files of its own task
  is for the post-check, the validator and you.

";

pub fn page(rows: &[Row]) -> String {
    let attacks: Vec<&Row> = rows.iter().filter(|row| row.expected != "allow").collect();
    let benign: Vec<&Row> = rows.iter().filter(|row| row.expected == "allow").collect();
    let mut page = HEAD.to_owned();
    let _ = writeln!(page, "## In short\n");
    let _ = writeln!(
        page,
        "| decided by | attacks | stopped there | held elsewhere as well | by no other layer |"
    );
    let _ = writeln!(page, "|---|---|---|---|---|");
    for layer in Layer::ALL {
        let mine: Vec<&&Row> = attacks.iter().filter(|row| row.own == layer).collect();
        if mine.is_empty() {
            continue;
        }
        let here = mine.iter().filter(|row| stops(row, layer)).count();
        let alone = mine.iter().filter(|row| others(row).is_empty()).count();
        let also = mine.len() - alone;
        let _ = writeln!(page, "| {layer} | {} | {here} | {also} | {alone} |", mine.len());
    }
    let _ = writeln!(
        page,
        "\nSupervision decides no case of the corpus: what outlives an agent, and budgets, are\n\
         in `doctor --prove` and in the rows on lives and deaths of `verification.md`.\n\n\
         {} benign cases pass everywhere they are asked.\n\n## By no other layer\n",
        benign.len()
    );
    let mut alone: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in attacks.iter().filter(|row| others(row).is_empty()) {
        alone.entry(&row.alone).or_default().push(&row.id);
    }
    for (why, ids) in alone {
        let _ = writeln!(page, "- {}: {why}.", ids.join(", "));
    }
    for layer in Layer::ALL {
        let mine: Vec<&Row> = rows.iter().filter(|row| row.own == layer).collect();
        if mine.is_empty() {
            continue;
        }
        let _ = writeln!(page, "\n<details>\n<summary>{layer}: {} cases</summary>\n", mine.len());
        let names = Layer::ALL.map(|layer| layer.to_string());
        let _ = writeln!(page, "| case | must | {} | without it |", names.join(" | "));
        let _ = writeln!(page, "|---|---|---|---|---|---|---|---|");
        for row in mine {
            let cells = Layer::ALL.map(|it| shown(row.cells.get(&it), it == layer));
            let without = match (row.expected.as_str(), others(row)) {
                ("allow", _) => String::new(),
                (_, others) if others.is_empty() => "no other layer".to_owned(),
                (_, others) => others.join(", "),
            };
            let _ = writeln!(
                page,
                "| {} | {} | {} | {without} |",
                row.id,
                row.expected,
                cells.join(" | ")
            );
        }
        let _ = writeln!(page, "\n</details>");
    }
    page
}

fn stops(row: &Row, layer: Layer) -> bool {
    matches!(row.cells.get(&layer), Some(Cell::Stops(_)))
}

/// Who stops it besides its own layer.
fn others(row: &Row) -> Vec<String> {
    let others = Layer::ALL.iter().filter(|layer| **layer != row.own && stops(row, **layer));
    others.map(ToString::to_string).collect()
}

fn shown(cell: Option<&Cell>, own: bool) -> String {
    match cell {
        Some(Cell::Stops(by)) if own => format!("**{by}**"),
        Some(Cell::Stops(by)) => by.clone(),
        Some(Cell::Passes) if own => "**passes**".to_owned(),
        Some(Cell::Passes) => "passes".to_owned(),
        None => "-".to_owned(),
    }
}
