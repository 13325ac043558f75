//! The figures in an event of a streamed answer, or in a whole answer.
//!
//! Only what is needed is kept while an event is read, so that a large one
//! costs no more memory than its own bytes. Figures of an unexpected kind are
//! figures that are not there.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::dialect::Dialect;

/// An event, or a whole answer, of any dialect.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'e> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'e, str>,
    usage: Option<Figures>,
    message: Option<Inner>,
    response: Option<Inner>,
    delta: Text,
    choices: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Inner {
    usage: Option<Figures>,
}

/// Usage in the words of all dialects.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Figures {
    input_tokens: Figure,
    output_tokens: Figure,
    cache_read_input_tokens: Figure,
    cache_creation_input_tokens: Figure,
    input_tokens_details: Details,
    prompt_tokens: Figure,
    completion_tokens: Figure,
    prompt_tokens_details: Details,
}

#[derive(Clone, Copy, Debug, Default)]
struct Details(Figure);

#[derive(Clone, Copy, Debug, Default)]
struct Figure(Option<u64>);

/// How many bytes of text a value holds, at any depth.
#[derive(Clone, Copy, Debug, Default)]
struct Text(u64);

/// What the provider has said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reported {
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
    /// The output figure is the last one, not a first or running one.
    pub(super) settled: bool,
    /// The answer came to its end.
    pub(super) ended: bool,
}

impl Event<'_> {
    /// The bytes of what the model wrote in this event.
    pub(super) fn text(&self) -> u64 {
        self.delta.0 + self.choices.0
    }
}

impl Reported {
    pub(super) fn take_event(&mut self, dialect: Dialect, event: Event<'_>) {
        match dialect {
            Dialect::Messages => {
                if let Some(usage) = event.message.and_then(|message| message.usage) {
                    self.take(dialect, &usage);
                }
                if let Some(usage) = event.usage {
                    self.take(dialect, &usage);
                    self.settled = event.kind == "message_delta" && self.output.is_some();
                }
                self.ended |= event.kind == "message_stop";
            }
            Dialect::Responses => {
                if let Some(usage) = event.response.and_then(|response| response.usage) {
                    self.take(dialect, &usage);
                    self.settled = self.output.is_some();
                }
                self.ended |= matches!(
                    &*event.kind,
                    "response.completed" | "response.incomplete" | "response.failed"
                );
            }
            Dialect::Chat => self.take_usage(dialect, event.usage),
        }
    }

    pub(super) fn take_whole(&mut self, dialect: Dialect, answer: Event<'_>) {
        self.take_usage(dialect, answer.usage);
    }

    fn take_usage(&mut self, dialect: Dialect, usage: Option<Figures>) {
        if let Some(usage) = usage {
            self.take(dialect, &usage);
            self.settled = self.output.is_some();
        }
    }

    /// Takes over the figures that are there. The OpenAI dialects count cached
    /// input within the input, Messages counts it beside.
    fn take(&mut self, dialect: Dialect, usage: &Figures) {
        match dialect {
            Dialect::Messages => {
                self.input = usage.input_tokens.0.or(self.input);
                self.output = usage.output_tokens.0.or(self.output);
                self.cache_read = usage.cache_read_input_tokens.0.unwrap_or(self.cache_read);
                self.cache_write = usage.cache_creation_input_tokens.0.unwrap_or(self.cache_write);
            }
            Dialect::Responses => {
                self.take_openai(usage.input_tokens, usage.input_tokens_details);
                self.output = usage.output_tokens.0.or(self.output);
            }
            Dialect::Chat => {
                self.take_openai(usage.prompt_tokens, usage.prompt_tokens_details);
                self.output = usage.completion_tokens.0.or(self.output);
            }
        }
    }

    fn take_openai(&mut self, input: Figure, details: Details) {
        if let Some(input) = input.0 {
            self.cache_read = details.0.0.unwrap_or(0).min(input);
            self.input = Some(input - self.cache_read);
        }
    }
}

/// Reads any value and answers with one kind of it.
macro_rules! any_value {
    ($name:ident { $($method:item)* }) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Any;
                impl<'de> Visitor<'de> for Any {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("any value")
                    }
                    fn visit_unit<E>(self) -> Result<$name, E> {
                        Ok($name::default())
                    }
                    fn visit_bool<E>(self, _: bool) -> Result<$name, E> {
                        Ok($name::default())
                    }
                    fn visit_i64<E>(self, _: i64) -> Result<$name, E> {
                        Ok($name::default())
                    }
                    fn visit_f64<E>(self, _: f64) -> Result<$name, E> {
                        Ok($name::default())
                    }
                    $($method)*
                }
                deserializer.deserialize_any(Any)
            }
        }
    };
}

any_value!(Figure {
    fn visit_u64<E>(self, value: u64) -> Result<Figure, E> {
        Ok(Figure(Some(value)))
    }
    fn visit_str<E>(self, _: &str) -> Result<Figure, E> {
        Ok(Figure(None))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Figure, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Figure(None))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Figure, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Figure(None))
    }
});

any_value!(Details {
    fn visit_u64<E>(self, _: u64) -> Result<Details, E> {
        Ok(Details::default())
    }
    fn visit_str<E>(self, _: &str) -> Result<Details, E> {
        Ok(Details::default())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Details, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Details::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Details, A::Error> {
        let mut cached = Figure::default();
        while let Some(key) = entries.next_key::<Cow<'_, str>>()? {
            if key == "cached_tokens" {
                cached = entries.next_value()?;
            } else {
                entries.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Details(cached))
    }
});

any_value!(Text {
    fn visit_u64<E>(self, _: u64) -> Result<Text, E> {
        Ok(Text::default())
    }
    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text(text.len() as u64))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Text, A::Error> {
        let mut sum = 0;
        while let Some(Text(bytes)) = items.next_element()? {
            sum += bytes;
        }
        Ok(Text(sum))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Text, A::Error> {
        let mut sum = 0;
        while let Some(key) = entries.next_key::<Cow<'_, str>>()? {
            // Words of the protocol, which no model wrote.
            if matches!(&*key, "type" | "role" | "id" | "finish_reason" | "stop_reason") {
                entries.next_value::<IgnoredAny>()?;
            } else {
                sum += entries.next_value::<Text>()?.0;
            }
        }
        Ok(Text(sum))
    }
});
