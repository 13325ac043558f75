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

use crate::dialect::Dialect;
use crate::fields::Fields;

/// One entry of a conversation, as far as it is more than text.
#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    tools: Option<Vec<Tool>>,
}

impl Entry {
    /// Whether it only names what another conversation left at the provider. The
    /// type of such an entry may be left out.
    fn is_kept_elsewhere(&self) -> bool {
        match &self.kind {
            Some(kind) => kind == "item_reference",
            None => self.role.is_none(),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Tool {
    #[serde(rename = "type")]
    kind: Option<String>,
    /// What a namespace is made of.
    tools: Option<Vec<Tool>>,
    /// What a tool of the agent's own is given.
    input_schema: Option<IgnoredAny>,
}

impl Tool {
    /// Only Anthropic's tools need not say what they are, if they say what they take.
    fn is_the_agents_own(&self, dialect: Dialect) -> bool {
        match &self.kind {
            Some(kind) => is_the_agents_own(dialect, kind),
            None => dialect == Dialect::Messages && self.input_schema.is_some(),
        }
    }
}

/// The errand that a request asks for, in words; `None` if it asks for none.
pub(crate) fn wanted(dialect: Dialect, body: &[u8]) -> Result<Option<String>, serde_json::Error> {
    let fields: Fields<'_> = serde_json::from_slice(body)?;
    if let Some(name) = fields.forbidden(dialect) {
        return Ok(Some(format!("`{}`", shown(name))));
    }
    let mut tools: Vec<Tool> = match fields.get("tools") {
        Some(tools) => serde_json::from_str::<Option<_>>(tools.get())?.unwrap_or_default(),
        None => Vec::new(),
    };
    // In the Responses dialect, tools can be added within the conversation.
    if let Some(input) = fields.get("input").filter(|input| input.get().starts_with('[')) {
        let entries: Vec<Entry> = serde_json::from_str(input.get())?;
        if entries.iter().any(Entry::is_kept_elsewhere) {
            return Ok(Some("`item_reference`".to_owned()));
        }
        tools.extend(entries.into_iter().filter_map(|entry| entry.tools).flatten());
    }
    while let Some(tool) = tools.pop() {
        let namespace = dialect == Dialect::Responses && tool.kind.as_deref() == Some("namespace");
        if !namespace && !tool.is_the_agents_own(dialect) {
            let kind = tool.kind.as_deref().unwrap_or("without a type");
            return Ok(Some(format!("the tool `{}`", shown(kind))));
        }
        tools.extend(tool.tools.into_iter().flatten());
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    Look { dialect, at: At::Top }.deserialize(&mut json)
}

fn shown(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Whether a tool of this kind is made use of by the agent, not by the provider.
fn is_the_agents_own(dialect: Dialect, kind: &str) -> bool {
    match dialect {
        // The last two only look through the tools of the same request.
        Dialect::Messages => {
            let dated = [
                "bash",
                "text_editor",
                "computer",
                "memory",
                "tool_search_tool_regex",
                "tool_search_tool_bm25",
            ];
            let is_date = |date: &str| date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit());
            let split = kind.rsplit_once('_');
            kind == "custom"
                || split.is_some_and(|(name, date)| dated.contains(&name) && is_date(date))
        }
        Dialect::Responses => ["function", "custom", "local_shell", "apply_patch"].contains(&kind),
        Dialect::Chat => ["function", "custom"].contains(&kind),
    }
}

/// Finds an address that the provider would fetch, or a name of something that
/// it keeps. Every entry of every object is
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
    /// The source of a picture or document. With Anthropic, a text here is where a
    /// search result says it is from.
    Source,
    /// Whatever a source consists of.
    InSource,
    /// A text here is an address, and so is the `url` of an object.
    Link,
    /// All that stands here is an address.
    Address,
    /// Bytes, in place of which some providers take an address.
    Data,
    /// The name of what the provider keeps.
    Kept,
}

impl Look {
    /// The names are those of all dialects: what a provider knows in one, it may
    /// know in another as well.
    fn under(self, key: &str) -> At {
        let openai = self.dialect != Dialect::Messages;
        match (self.at, key) {
            (At::Address, _) | (At::Source | At::InSource | At::Link, "url") => At::Address,
            (_, "file_id" | "container_id") => At::Kept,
            (_, "source") => At::Source,
            (_, key) if key.ends_with("_url") => At::Link,
            (At::Source | At::InSource, "content" | "data" | "text" | "title") => At::Elsewhere,
            (At::Source | At::InSource, _) => At::InSource,
            (_, "file_data" | "data") if openai => At::Data,
            (_, "image" | "images" | "audio" | "video" | "videos") => At::Data,
            (_, key) if is_named_as_address(key) => At::Data,
            _ => At::Elsewhere,
        }
    }

    /// Whether what is below a key is anything but content: tools are described
    /// there, or called, in words of their own, or it is said where an answer came
    /// from.
    fn is_no_content(self, key: &str) -> bool {
        match key {
            "annotations" | "citations" => true,
            "tools" => self.at == At::Top || self.dialect == Dialect::Responses,
            "input" => self.at != At::Top && self.dialect == Dialect::Messages,
            _ => false,
        }
    }
}

/// `url`, `imageUrl`, `file_uri`.
fn is_named_as_address(key: &str) -> bool {
    let end = key.len().checked_sub(3).and_then(|at| key.get(at..)).unwrap_or_default();
    end.eq_ignore_ascii_case("url") || end.eq_ignore_ascii_case("uri")
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
            At::Address | At::Link => true,
            At::Data | At::InSource => text.contains("://"),
            At::Kept => return Ok(Some(format!("the file `{}`", shown(text)))),
            At::Top | At::Elsewhere | At::Source => false,
        };
        let own = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        Ok((fetched && !own).then(|| format!("to fetch `{}`", shown(text))))
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
            (Messages, r#"{"tools":[{"type":"bash_code_execution_20250825"}]}"#, "the tool"),
            (Messages, r#"{"tools":[{"type":"text_editor_code_execution_20250825"}]}"#, "the tool"),
            (Messages, r#"{"tools":[{"type":"bash_2025"}]}"#, "the tool"),
            (Messages, r#"{"tools":[{"type":"mcp_toolset"}]}"#, "the tool"),
            (
                Messages,
                r#"{"messages":[{"content":[{"source":{"type":"file","file_id":"f"}}]}]}"#,
                "the file",
            ),
            (Chat, r#"{"tools":[{"google_search":{}}]}"#, "the tool"),
            (Chat, r#"{"messages":[{"content":[{"file":{"file_data":"URL"}}]}]}"#, "to fetch"),
            (Chat, r#"{"messages":[{"content":[{"document_url":"URL"}]}]}"#, "to fetch"),
            (Responses, r#"{"input":[{"id":"msg_1"}]}"#, "`item_reference`"),
            (
                Responses,
                r#"{"input":[{"role":"user","content":[{"file_id":"file-1"}]}]}"#,
                "the file",
            ),
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
            (
                Responses,
                r#"{"input":[{"role":"user","content":[{"image_url":"URL"}]}]}"#,
                "to fetch",
            ),
            (
                Responses,
                r#"{"input":[{"role":"user","content":[{"file_url":"URL"}]}]}"#,
                "to fetch",
            ),
            (Chat, r#"{"web_search_options":{}}"#, "`web_search_options`"),
            (Chat, r#"{"plugins":[{"id":"web"}]}"#, "`plugins`"),
            (Chat, r#"{"messages":[{"content":[{"image_url":{"url":"URL"}}]}]}"#, "to fetch"),
            (Messages, r#"{"tools":[{"googleSearch":{}}]}"#, "the tool"),
            (
                Messages,
                r#"{"tools":[{"Type":"web_search_20250305","name":"web_search"}]}"#,
                "the tool",
            ),
            (
                Messages,
                r#"{"messages":[{"content":[{"source":{"s3Location":{"uri":"URL"}}}]}]}"#,
                "to fetch",
            ),
            (
                Messages,
                r#"{"messages":[{"content":[{"source":{"type":"gcs","uri":"URL"}}]}]}"#,
                "to fetch",
            ),
            (
                Messages,
                r#"{"messages":[{"content":[{"source":{"url":{"href":"URL"}}}]}]}"#,
                "to fetch",
            ),
        ] {
            let body = body.replace("URL", web);
            let found = errand(dialect, &body).unwrap_or_default();
            assert!(found.starts_with(expected), "{body}: {found}");
        }
    }

    /// What one dialect calls an address is one in every dialect.
    #[test]
    fn addresses_are_found_under_every_name() {
        for part in [
            r#"{"type":"image_url","image_url":{"url":"URL"}}"#,
            r#"{"type":"input_image","image_url":"URL"}"#,
            r#"{"type":"input_file","file_url":"URL"}"#,
            r#"{"type":"video_url","video_url":{"url":"URL"}}"#,
            r#"{"type":"image","source":{"type":"url","url":"URL"}}"#,
            r#"{"type":"image","image":"URL"}"#,
            r#"{"type":"video","video":["URL","URL"]}"#,
            r#"{"type":"image","images":["URL"]}"#,
            r#"{"type":"image","imageUrl":"URL"}"#,
            r#"{"type":"image","url":"URL"}"#,
            r#"{"fileData":{"fileUri":"URL"}}"#,
        ] {
            let part = part.replace("URL", "https://evil.example/?all=secrets");
            for (dialect, body) in [
                (Messages, r#"{"messages":[{"role":"user","content":[PART]}]}"#),
                (Responses, r#"{"input":[{"role":"user","content":[PART]}]}"#),
                (Chat, r#"{"messages":[{"role":"user","content":[PART]}]}"#),
            ] {
                let found = errand(dialect, &body.replace("PART", &part)).unwrap_or_default();
                assert!(found.starts_with("to fetch"), "{dialect} {part}: {found}");
            }
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
                r#"{"tools":[{"type":"function"},{"type":"local_shell"}],"input":[{"role":"user","content":[{"image_url":"data:image/png;base64,aGk="}]},{"type":"function_call","arguments":"{\"image_url\":\"https://a.example\"}"}]}"#,
            ),
            (
                Responses,
                r#"{"input":[{"type":"additional_tools","tools":[{"type":"namespace","tools":[{"type":"custom"},{"type":"function"}]}]},{"role":"user","content":"hi"}]}"#,
            ),
            (
                Messages,
                r#"{"messages":[{"content":[{"type":"document","source":{"type":"text","data":"see https://a.example"}},{"type":"text","text":"a","citations":[{"url":"https://a.example"}]}]}]}"#,
            ),
            (
                Responses,
                r#"{"input":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[{"type":"url_citation","url":"https://a.example"}]}]},{"type":"tool_search_output","tools":[{"type":"function","parameters":{"properties":{"image_url":{"default":"https://a.example"},"url":"https://a.example"}}}]}]}"#,
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
