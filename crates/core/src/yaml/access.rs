//! How the parts of a collection are handed to serde, one by one.

use serde::de::value::{StrDeserializer, UsizeDeserializer};
use serde::de::{
    DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::path::Path;
use super::problem::{Problem, Span};
use super::read::Stop;
use super::tree::{Entry, Node};
use super::values::Reader;

impl<'p> Reader<'p> {
    pub(super) fn members(
        &self,
        entries: &'p [Entry],
        known: Option<&'static [&'static str]>,
    ) -> Members<'p> {
        Members { parent: *self, entries: entries.iter(), known, value: None }
    }

    pub(super) fn elements(&self, items: &'p [Node]) -> Elements<'p> {
        Elements { parent: *self, items: items.iter().enumerate() }
    }
}

/// The entries of a mapping; keys that the type does not know are reported
/// and left out.
pub(super) struct Members<'p> {
    parent: Reader<'p>,
    entries: std::slice::Iter<'p, Entry>,
    known: Option<&'static [&'static str]>,
    value: Option<&'p Entry>,
}

impl Members<'_> {
    fn report_unknown(&self, entry: &Entry, known: &'static [&'static str]) {
        let path = Path::Key(self.parent.path, &entry.key);
        let hint = match self.parent.problems.closest(&entry.key, known.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("known here: {}", known.join(", ")),
        };
        self.parent.problems.push(
            Problem::error(path.to_string(), "is not a known key")
                .at(entry.key_span, "unknown key")
                .hint(hint),
        );
    }
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Stop> {
        while let Some(entry) = self.entries.next() {
            match self.known {
                Some(known) if !known.contains(&entry.key.as_str()) => {
                    self.report_unknown(entry, known);
                }
                _ => {
                    self.value = Some(entry);
                    let key: StrDeserializer<'_, Stop> = entry.key.as_str().into_deserializer();
                    return seed.deserialize(key).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Stop> {
        let Some(entry) = self.value.take() else {
            return Err(Stop::Unreported("has a key without a value".to_owned()));
        };
        let path = Path::Key(self.parent.path, &entry.key);
        read_part(seed, &Reader { node: &entry.value, path: &path, ..self.parent })
    }
}

pub(super) struct Elements<'p> {
    parent: Reader<'p>,
    items: std::iter::Enumerate<std::slice::Iter<'p, Node>>,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Stop> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        let path = Path::Item(self.parent.path, index);
        read_part(seed, &Reader { node, path: &path, ..self.parent }).map(Some)
    }
}

/// Reads one part and reports a [`Stop`] where its place is still known.
fn read_part<'de, S: DeserializeSeed<'de>>(seed: S, reader: &Reader<'_>) -> Result<S::Value, Stop> {
    seed.deserialize(*reader).map_err(|stop| {
        reader.record(&stop);
        Stop::Reported
    })
}

/// Start, end and value, as [`Spanned`](super::Spanned) wants them.
pub(super) struct SpannedParts<'p> {
    pub(super) reader: Reader<'p>,
    pub(super) part: u8,
}

impl<'de> SeqAccess<'de> for SpannedParts<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Stop> {
        let Span { start, end } = self.reader.node.span;
        let number = |value: usize| -> UsizeDeserializer<Stop> { value.into_deserializer() };
        self.part += 1;
        match self.part {
            1 => seed.deserialize(number(start)).map(Some),
            2 => seed.deserialize(number(end)).map(Some),
            3 => seed.deserialize(self.reader).map(Some),
            _ => Ok(None),
        }
    }
}

/// One of the words that an enum knows.
pub(super) struct Chosen(pub(super) &'static str);

impl<'de> EnumAccess<'de> for Chosen {
    type Error = Stop;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Stop> {
        let name: StrDeserializer<'_, Stop> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> VariantAccess<'de> for Chosen {
    type Error = Stop;

    fn unit_variant(self) -> Result<(), Stop> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Stop> {
        Err(no_data(self.0))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Stop> {
        Err(no_data(self.0))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        Err(no_data(self.0))
    }
}

fn no_data(word: &str) -> Stop {
    Stop::Unreported(format!("needs more than the word `{word}`"))
}
