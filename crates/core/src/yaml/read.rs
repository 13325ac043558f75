//! From the tree into types, without stopping at the first mistake.
//!
//! This is a serde deserializer that never refuses a value of the wrong kind.
//! It reports the problem, puts a placeholder in its place and goes on; whoever
//! asked throws the result away when there are problems. Unknown keys come out
//! here too, because serde says which keys a type knows.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, Deserializer, Visitor};

use super::access::{Chosen, SpannedParts};
use super::number::{Plain, resolve};
use super::path::Path;
use super::problem::Problems;
use super::spanned::{DURATION, SPANNED};
use super::suggest::one_of;
use super::tree::{Kind, Node};
use super::values::Reader;

pub(super) fn read<T: DeserializeOwned>(root: &Node, problems: &Problems) -> Option<T> {
    let reader = Reader { node: root, path: &Path::Root, problems };
    match T::deserialize(reader) {
        Ok(value) => Some(value),
        Err(stop) => {
            reader.record(&stop);
            None
        }
    }
}

/// A mistake that no placeholder can stand in for: a type with rules of its
/// own, or a key that must be there. Types read from files avoid both.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Stop {
    #[error("{0}")]
    Unreported(String),
    #[error("already reported")]
    Reported,
}

impl serde::de::Error for Stop {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Stop::Unreported(message.to_string())
    }
    fn missing_field(field: &'static str) -> Self {
        Stop::Unreported(format!("needs the key `{field}`"))
    }
}

macro_rules! integers {
    ($($method:ident $kind:ident $visit:ident $wide:ident),* $(,)?) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
            let value = self.integer(i128::from($kind::MIN), i128::from($kind::MAX));
            visitor.$visit($wide::try_from(value).unwrap_or_default())
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Stop;

    integers! {
        deserialize_u8 u8 visit_u64 u64,
        deserialize_u16 u16 visit_u64 u64,
        deserialize_u32 u32 visit_u64 u64,
        deserialize_u64 u64 visit_u64 u64,
        deserialize_i8 i8 visit_i64 i64,
        deserialize_i16 i16 visit_i64 i64,
        deserialize_i32 i32 visit_i64 i64,
        deserialize_i64 i64 visit_i64 i64,
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_f64(self.float())
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_f64(self.float())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_bool(self.boolean())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_str(self.text())
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_str(self.text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        if self.node.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Stop> {
        match name {
            SPANNED => visitor.visit_seq(SpannedParts { reader: self, part: 0 }),
            DURATION if self.refuse_bare_duration() => {
                visitor.visit_newtype_struct(StrDeserializer::<Stop>::new("1s"))
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_seq(self.elements(self.items()))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_map(self.members(self.entries(), None))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        visitor.visit_map(self.members(self.entries(), Some(fields)))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        let known = match &self.node.kind {
            Kind::Scalar { text, .. } => variants.iter().find(|name| *name == text),
            _ => None,
        };
        let chosen = known.or(variants.first()).copied().unwrap_or_default();
        if known.is_none() {
            let meant = match &self.node.kind {
                Kind::Scalar { text, .. } => self.problems.closest(text, variants.iter().copied()),
                _ => None,
            };
            let hint = meant.map(|meant| format!("did you mean `{meant}`?"));
            self.mismatch(&one_of(variants.iter().copied()), hint);
        }
        visitor.visit_enum(Chosen(chosen))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_unit()
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match &self.node.kind {
            Kind::Mapping(entries) => visitor.visit_map(self.members(entries, None)),
            Kind::Sequence(items) => visitor.visit_seq(self.elements(items)),
            Kind::Scalar { text, quoted: true } => visitor.visit_str(text),
            Kind::Refused => visitor.visit_unit(),
            Kind::Scalar { text, .. } => match resolve(text) {
                Plain::Null => visitor.visit_unit(),
                Plain::Bool(value) => visitor.visit_bool(value),
                Plain::Float(value) => visitor.visit_f64(value),
                Plain::Text => visitor.visit_str(text),
                Plain::HugeInt => visitor.visit_f64(self.float()),
                Plain::Int(value) => match (u64::try_from(value), i64::try_from(value)) {
                    (Ok(value), _) => visitor.visit_u64(value),
                    (_, Ok(value)) => visitor.visit_i64(value),
                    _ => visitor.visit_f64(self.float()),
                },
            },
        }
    }

    serde::forward_to_deserialize_any! {
        char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}
