//! The templates, compiled in, and the engine that fills them.
//!
//! A variable that is not given is an error and never an empty place: a prompt
//! that lost a rule on the way must not reach an agent.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior, Value};

/// Every template by name. Those that end with `rules` are a role's system
/// prompt, those that end with `job` its user prompt; the rest is included.
pub(super) const TEMPLATES: [(&str, &str); 10] = [
    ("conventions", include_str!("templates/conventions.md.j2")),
    ("data", include_str!("templates/data.md.j2")),
    ("merger-job", include_str!("templates/merger-job.md.j2")),
    ("merger-rules", include_str!("templates/merger-rules.md.j2")),
    ("planner-job", include_str!("templates/planner-job.md.j2")),
    ("planner-rules", include_str!("templates/planner-rules.md.j2")),
    ("validator-job", include_str!("templates/validator-job.md.j2")),
    ("validator-rules", include_str!("templates/validator-rules.md.j2")),
    ("worker-job", include_str!("templates/worker-job.md.j2")),
    ("worker-rules", include_str!("templates/worker-rules.md.j2")),
];

/// Made ready once: every agent gets two prompts.
static ENGINE: LazyLock<Environment<'static>> =
    LazyLock::new(|| engine().expect("the templates are part of the program, and tested"));

pub(super) fn render(name: &str, values: Value) -> Result<String, Error> {
    Ok(ENGINE.get_template(name)?.render(values)?.trim_end().to_owned())
}

fn engine() -> Result<Environment<'static>, Error> {
    let mut engine = Environment::new();
    engine.set_undefined_behavior(UndefinedBehavior::Strict);
    engine.set_auto_escape_callback(|_| AutoEscape::None);
    engine.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    for (name, source) in TEMPLATES {
        engine.add_template(name, source)?;
    }
    Ok(engine)
}

#[cfg(test)]
mod tests {
    use minijinja::{ErrorKind, context};

    use super::*;

    #[test]
    fn every_template_is_well_formed() {
        engine().unwrap();
    }

    /// Without a single value every template that takes any is refused, also
    /// when it only asks whether there is one.
    #[test]
    fn an_undefined_variable_is_an_error() {
        for (name, source) in TEMPLATES {
            let result = render(name, context!());
            if source.contains("{{") || source.contains("{% if") {
                assert_eq!(result.unwrap_err().kind(), ErrorKind::UndefinedError, "{name}");
            } else {
                result.unwrap();
            }
        }
    }
}
