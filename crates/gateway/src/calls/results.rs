//! What came of calls, as the next request tells it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::Dialect;

/// A request, as far as calls go.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) streamed: bool,
    pub(super) results: Vec<CameBack>,
}

/// What came of one call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CameBack {
    pub(super) id: String,
    pub(super) said: String,
}

#[derive(Deserialize)]
struct Body<'b> {
    stream: Option<bool>,
    #[serde(borrow)]
    input: Option<&'b RawValue>,
    #[serde(borrow)]
    messages: Option<&'b RawValue>,
}

/// An item of the Responses dialect, or a message of the chat dialect.
#[derive(Deserialize)]
struct Item<'b> {
    #[serde(rename = "type", borrow)]
    kind: Option<Cow<'b, str>>,
    #[serde(borrow)]
    call_id: Option<Cow<'b, str>>,
    output: Option<Value>,
    #[serde(borrow)]
    role: Option<Cow<'b, str>>,
    #[serde(borrow)]
    tool_call_id: Option<Cow<'b, str>>,
    content: Option<Value>,
}

impl Request {
    pub(super) fn read(dialect: Dialect, body: &[u8]) -> Result<Request, serde_json::Error> {
        let body: Body<'_> = serde_json::from_slice(body)?;
        let said = match dialect {
            Dialect::Responses => body.input,
            Dialect::Chat | Dialect::Messages => body.messages,
        };
        let items: Vec<Item<'_>> = match said {
            // A prompt and nothing else may be plain text.
            Some(said) if !said.get().starts_with('"') => serde_json::from_str(said.get())?,
            Some(_) | None => Vec::new(),
        };
        let results = items.into_iter().filter_map(|item| item.result(dialect)).collect();
        Ok(Request { streamed: body.stream == Some(true), results })
    }
}

impl Item<'_> {
    fn result(self, dialect: Dialect) -> Option<CameBack> {
        let (is_result, id, said) = match dialect {
            Dialect::Responses => {
                let kind = self.kind.as_deref().unwrap_or_default();
                (kind.ends_with("_output"), self.call_id, self.output)
            }
            Dialect::Chat | Dialect::Messages => {
                // `function` is how it was called before calls had names.
                let role = self.role.as_deref().unwrap_or_default();
                (matches!(role, "tool" | "function"), self.tool_call_id, self.content)
            }
        };
        let said = said.as_ref().map(text).unwrap_or_default().to_owned();
        is_result.then(|| CameBack { id: id.unwrap_or_default().into_owned(), said })
    }
}

/// What a result says: its text, or the first of its parts.
fn text(output: &Value) -> &str {
    output.as_str().or_else(|| output.pointer("/0/text")?.as_str()).unwrap_or_default()
}
