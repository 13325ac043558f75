//! The one model that codex is told of.
//!
//! Its own catalogue knows some models, has most of them write programs in which
//! calls have no names, and gives an unknown model fewer tools. Ours says the
//! same of every model.

use serde_json::{Value, json};

use super::super::skill_list::with_skills;
use super::super::{Ground, Order, last_message};

pub fn of(order: &Order, ground: &Ground<'_>) -> Value {
    let window = order.context_window();
    json!({"models": [{
        "slug": order.model,
        "display_name": order.model,
        "description": "",
        "default_reasoning_level": "medium",
        "supported_reasoning_levels": [{"effort": "medium", "description": ""}],
        "shell_type": "unified_exec",
        "apply_patch_tool_type": "freeform",
        "visibility": "list",
        "supported_in_api": true,
        "priority": 1,
        "upgrade": null,
        "availability_nux": null,
        "base_instructions": instructions(order, ground),
        "default_reasoning_summary": "none",
        "supports_reasoning_summaries": false,
        "support_verbosity": false,
        "default_verbosity": null,
        "truncation_policy": {"mode": "tokens", "limit": 10_000},
        "context_window": window,
        "max_context_window": window,
        "experimental_supported_tools": [],
        "supports_parallel_tool_calls": true,
        "input_modalities": ["text"],
    }]})
}

/// What it takes as a prompt at most, in characters.
const LONGEST_PROMPT: usize = 1 << 20;

/// The prompt, or where to find it.
pub fn prompt(order: &Order) -> &str {
    if is_long(order) {
        "Do the job that is described in your instructions."
    } else {
        &order.prompt
    }
}

fn is_long(order: &Order) -> bool {
    order.prompt.chars().count() >= LONGEST_PROMPT
}

/// The rules of the role, in codex's own words where those of others would
/// mislead it.
fn instructions(order: &Order, ground: &Ground<'_>) -> String {
    let text = format!("{}\n\n{TOOLS}", order.system.trim_end());
    let mut text = with_skills(&text, order, ground, "`cat`");
    if let Some(schema) = &order.output_schema {
        text.push_str("\n\n");
        text.push_str(&last_message::instructions(schema));
    }
    if is_long(order) {
        text.push_str("\n\nYour job:\n\n");
        text.push_str(&order.prompt);
    }
    text
}

/// Other agents have tools of their own for these things, by whose names denials
/// speak of them.
const TOOLS: &str = "\
Your tools are `exec_command`, which is called Bash in messages about it, and \
`apply_patch`, which is called Write and Edit. Read files with `cat`, search with `grep`, \
and change files with `apply_patch` only. Every call is judged before it is made; one that \
is denied says what to do instead.";
