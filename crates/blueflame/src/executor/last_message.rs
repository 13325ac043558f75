//! Structured output of programs that cannot hold their model to a schema: it is
//! the last message, and it is checked here.

use serde_json::Value;

use super::{Account, Told};

/// What the model is told about it.
pub fn instructions(schema: &Value) -> String {
    format!("{OUTPUT}{schema}")
}

const OUTPUT: &str = "\
Where you are told to hand in a result or to call StructuredOutput, give it as your last \
message: one JSON object and nothing else, no words around it and no code fence. It has to \
fit this JSON Schema:\n";

/// Takes the output from the last words of a run that came to its end.
pub fn take_output(account: &mut Account, schema: &Value) {
    account.output = object(&account.text);
    let fits = |output| jsonschema::is_valid(schema, output);
    if account.output.as_ref().is_some_and(|output| !fits(output)) {
        account.output = None;
        account.end = Told::BadOutput;
    }
}

/// The object in a message, which may stand in a code fence.
fn object(said: &str) -> Option<Value> {
    let said = said.trim();
    let fenced = said.strip_prefix("```json").or_else(|| said.strip_prefix("```"));
    let inner = fenced.and_then(|rest| rest.strip_suffix("```")).unwrap_or(said);
    serde_json::from_str(inner.trim()).ok().filter(Value::is_object)
}
