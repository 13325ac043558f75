//! Values that remember where they were written.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::problem::Span;

/// The names by which the reader knows these types.
pub(super) const SPANNED: &str = "$spanned";
pub(super) const DURATION: &str = "$duration";

/// A value and its place in the file; a default has none. It serializes, and
/// looks in the schema, like the value alone.
#[derive(Clone, Debug, Default)]
pub struct Spanned<T> {
    pub value: T,
    pub span: Option<Span>,
}

impl<T> Spanned<T> {
    /// A value that was not written by anyone.
    pub fn bare(value: T) -> Self {
        Spanned { value, span: None }
    }
}

impl<T> From<T> for Spanned<T> {
    fn from(value: T) -> Self {
        Spanned::bare(value)
    }
}

impl From<&str> for Spanned<String> {
    fn from(value: &str) -> Self {
        Spanned::bare(value.to_owned())
    }
}

impl<T> Deref for Spanned<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

/// Two values are the same wherever they were written.
impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Serialize> Serialize for Spanned<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(SPANNED, SpannedVisitor(PhantomData))
    }
}

/// Our reader hands over start, end and value; any other format only a value.
struct SpannedVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for SpannedVisitor<T> {
    type Value = Spanned<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Spanned<T>, D::Error> {
        T::deserialize(inner).map(Spanned::bare)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Spanned<T>, A::Error> {
        let missing = || serde::de::Error::custom("a part of a spanned value is missing");
        let start = parts.next_element()?.ok_or_else(missing)?;
        let end = parts.next_element()?.ok_or_else(missing)?;
        let value = parts.next_element()?.ok_or_else(missing)?;
        Ok(Spanned { value, span: Some(Span::new(start, end)) })
    }
}

/// A length of time as people write it: `300s`, `1h 30m`. It is text here; the
/// check turns it into a duration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationText(pub String);

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^\\s*[0-9]+(\\.[0-9]+)?\\s*[a-zµ]+",
            "examples": ["300s", "1h 30m"]
        })
    }
}

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = DurationText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as 300s")
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                inner: D,
            ) -> Result<DurationText, D::Error> {
                String::deserialize(inner).map(DurationText)
            }
        }
        deserializer.deserialize_newtype_struct(DURATION, Text)
    }
}

impl From<&str> for Spanned<DurationText> {
    fn from(text: &str) -> Self {
        Spanned::bare(DurationText(text.to_owned()))
    }
}
