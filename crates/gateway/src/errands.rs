//! What a provider would do on an agent's behalf, beyond answering.
//!
//! An agent reaches nothing but the gateway. Providers, however, search the web,
//! run code, talk to servers and fetch addresses for whoever asks: a way out
//! around every wall here, and a cost that no answer states. Requests that want
//! such an errand are refused. Tools are let pass only if they are known to be
//! the agent's own; new kinds of tools have to be looked at first.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::dialect::Dialect;

/// The fields in which errands are asked for. A field that is there twice is an
/// error.
#[derive(Debug, Deserialize)]
struct Fields<'b> {
    #[serde(borrow)]
    tools: Option<&'b RawValue>,
    #[serde(borrow)]
    mcp_servers: Option<&'b RawValue>,
    #[serde(borrow)]
    container: Option<&'b RawValue>,
    #[serde(borrow)]
    web_search_options: Option<&'b RawValue>,
    #[serde(borrow)]
    plugins: Option<&'b RawValue>,
    /// Kept at the provider, with tools of its own.
    #[serde(borrow)]
    prompt: Option<&'b RawValue>,
    /// In the Responses dialect, tools can be added within the conversation.
    #[serde(borrow)]
    input: Option<&'b RawValue>,
}

/// One entry of a conversation, as far as it brings tools along.
#[derive(Debug, Deserialize)]
struct Entry {
    tools: Option<Vec<Tool>>,
}

#[derive(Debug, Deserialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: Option<String>,
    /// What a namespace is made of.
    tools: Option<Vec<Tool>>,
}

/// The errand that a request asks for, in words; `None` if it asks for none.
pub(crate) fn wanted(dialect: Dialect, body: &[u8]) -> Result<Option<String>, serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_slice(body)?;
    for (name, value) in [
        ("mcp_servers", fields.mcp_servers),
        ("container", fields.container),
        ("web_search_options", fields.web_search_options),
        ("plugins", fields.plugins),
        ("prompt", fields.prompt),
    ] {
        if value.is_some_and(|value| !matches!(value.get(), "null" | "[]")) {
            return Ok(Some(format!("`{name}`")));
        }
    }
    let mut tools: Vec<Tool> = match fields.tools {
        Some(tools) => serde_json::from_str::<Option<_>>(tools.get())?.unwrap_or_default(),
        None => Vec::new(),
    };
    if let Some(input) = fields.input.filter(|input| input.get().starts_with('[')) {
        let entries: Vec<Entry> = serde_json::from_str(input.get())?;
        tools.extend(entries.into_iter().filter_map(|entry| entry.tools).flatten());
    }
    while let Some(Tool { kind, tools: inner }) = tools.pop() {
        let namespace = dialect == Dialect::Responses && kind.as_deref() == Some("namespace");
        if let Some(kind) = kind.filter(|kind| !namespace && !is_the_agents_own(dialect, kind)) {
            return Ok(Some(format!("the tool `{}`", shown(&kind))));
        }
        tools.extend(inner.into_iter().flatten());
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let address = Look { dialect, at: At::Top }.deserialize(&mut json)?;
    Ok(address.map(|address| format!("to fetch `{}`", shown(&address))))
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Whether a tool of this kind is made use of by the agent, not by the provider.
fn is_the_agents_own(dialect: Dialect, kind: &str) -> bool {
    match dialect {
        // The last only looks through the tools of the same request.
        Dialect::Messages => {
            let dated = ["bash_", "text_editor_", "computer_", "memory_", "tool_search_tool_"];
            kind == "custom" || dated.iter().any(|start| kind.starts_with(start))
        }
        Dialect::Responses => ["function", "custom", "local_shell", "apply_patch"].contains(&kind),
        Dialect::Chat => ["function", "custom"].contains(&kind),
    }
}

/// Finds an address that the provider would fetch. Every entry of every object is
/// looked at, also if its name stands there twice.
#[derive(Clone, Copy)]
struct Look {
    dialect: Dialect,
    at: At,
}

/// What a value stands under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Top,
    Elsewhere,
    /// The source of a picture or document.
    Source,
    Address,
}

impl Look {
    fn under(self, key: &str) -> At {
        match (self.dialect, self.at, key) {
            (_, At::Source, "url") => At::Address,
            (Dialect::Messages, _, "source")
            | (
                Dialect::Responses | Dialect::Chat,
                _,
                "image_url" | "video_url" | "audio_url" | "file_url",
            ) => At::Source,
            _ => At::Elsewhere,
        }
    }

    /// Whether what is below a key is anything but content: tools are described
    /// there, or called, in words of their own.
    fn is_no_content(self, key: &str) -> bool {
        match self.at {
            At::Top => key == "tools",
            At::Elsewhere | At::Source | At::Address => {
                self.dialect == Dialect::Messages && key == "input"
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Look {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        let fetched = match self.at {
            At::Address => true,
            // In the OpenAI dialects the address may stand there itself. With
            // Anthropic this is where a search result says it is from.
            At::Source => self.dialect != Dialect::Messages,
            At::Top | At::Elsewhere => false,
        };
        let own = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        Ok((fetched && !own).then(|| text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if found.is_some() || self.is_no_content(&key) {
                map.next_value::<IgnoredAny>()?;
            } else {
                found = map.next_value_seed(Look { at: self.under(&key), ..self })?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let at = if self.at == At::Top { At::Elsewhere } else { self.at };
        let mut found = None;
        while let Some(next) = seq.next_element_seed(Look { at, ..self })? {
            found = found.or(next);
        }
        Ok(found)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dialect::{Chat, Messages, Responses};

    fn errand(dialect: Dialect, body: &str) -> Option<String> {
        wanted(dialect, body.as_bytes()).unwrap()
    }

    #[test]
    fn errands_are_found() {
        let web = "https://evil.example/?all=secrets";
        for (dialect, body, expected) in [
            (Messages, r#"{"tools":[{"name":"a"},{"type":"web_search_20250305"}]}"#, "the tool"),
            (Messages, r#"{"tools":[{"type":"web_fetch_20250910"}]}"#, "the tool"),
            (Messages, r#"{"tools":[{"type":"code_execution_20250825"}]}"#, "the tool"),
            (Messages, r#"{"tools":[{"type":"mcp_toolset"}]}"#, "the tool"),
            (Messages, r#"{"tools":[{"type":"something_new"}]}"#, "the tool"),
            (Messages, r#"{"mcp_servers":[{"url":"x"}]}"#, "`mcp_servers`"),
            (Messages, r#"{"container":{"skills":[]}}"#, "`container`"),
            (
                Messages,
                r#"{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"URL"}}]}]}"#,
                "to fetch",
            ),
            (
                Messages,
                r#"{"messages":[{"content":[{"content":[{"source":{"url":"data:","url":"URL"}}]}]}]}"#,
                "to fetch",
            ),
            (Messages, r#"{"system":[{"source":{"type":"url","u\u0072l":"URL"}}]}"#, "to fetch"),
            (Responses, r#"{"tools":[{"type":"web_search"}]}"#, "the tool"),
            (Responses, r#"{"tools":[{"type":"code_interpreter"}]}"#, "the tool"),
            (Responses, r#"{"tools":[{"type":"mcp"}]}"#, "the tool"),
            (
                Responses,
                r#"{"input":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]}"#,
                "the tool",
            ),
            (
                Responses,
                r#"{"tools":[{"type":"namespace","tools":[{"type":"custom"},{"type":"mcp"}]}]}"#,
                "the tool",
            ),
            (Responses, r#"{"prompt":{"id":"pmpt_1"}}"#, "`prompt`"),
            (Responses, r#"{"input":[{"content":[{"image_url":"URL"}]}]}"#, "to fetch"),
            (Responses, r#"{"input":[{"content":[{"file_url":"URL"}]}]}"#, "to fetch"),
            (Chat, r#"{"web_search_options":{}}"#, "`web_search_options`"),
            (Chat, r#"{"plugins":[{"id":"web"}]}"#, "`plugins`"),
            (Chat, r#"{"messages":[{"content":[{"image_url":{"url":"URL"}}]}]}"#, "to fetch"),
        ] {
            let body = body.replace("URL", web);
            let found = errand(dialect, &body).unwrap_or_default();
            assert!(found.starts_with(expected), "{body}: {found}");
        }
    }

    #[test]
    fn ordinary_requests_ask_for_none() {
        for (dialect, body) in [
            (Messages, r#"{"tools":null,"mcp_servers":[],"container":null,"messages":[]}"#),
            (
                Messages,
                r#"{"tools":[{"name":"Fetch","input_schema":{"properties":{"source":{"default":{"url":"https://a.example"}}}}},{"type":"custom"},{"type":"bash_20250124"}]}"#,
            ),
            (
                Messages,
                r#"{"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"aGk="}},{"type":"tool_use","input":{"source":{"url":"https://a.example"}}},{"type":"search_result","source":"https://a.example"},{"type":"text","text":"https://a.example"}]}]}"#,
            ),
            (
                Responses,
                r#"{"tools":[{"type":"function"},{"type":"local_shell"}],"input":[{"content":[{"image_url":"data:image/png;base64,aGk="}]},{"arguments":"{\"image_url\":\"https://a.example\"}"}]}"#,
            ),
            (
                Responses,
                r#"{"input":[{"type":"additional_tools","tools":[{"type":"namespace","tools":[{"type":"custom"},{"type":"function"}]}]},{"role":"user","content":"hi"}]}"#,
            ),
            (Responses, r#"{"input":"hello"}"#),
            (Chat, r#"{"messages":[{"content":[{"image_url":{"url":"DATA:image/png,x"}}]}]}"#),
        ] {
            assert_eq!(errand(dialect, body), None, "{body}");
        }
    }

    #[test]
    fn a_tool_of_two_kinds_is_refused() {
        let body = br#"{"tools":[{"type":"custom","type":"web_search_20250305"}]}"#;
        assert!(wanted(Messages, body).is_err());
        let body = br#"{"tools":[],"tools":[{"type":"web_search_20250305"}]}"#;
        assert!(wanted(Messages, body).is_err());
    }
}
