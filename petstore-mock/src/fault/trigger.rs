//! Conditions of a fault, and the selection of hits by count or seeded probability.

use std::fmt;

use http::{HeaderName, HeaderValue, Method};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{
    operation::{Operation, Target},
    text::{count, printable},
};

/// The parts of a request that faults can match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestView<'a> {
    operation: Option<Operation>,
    method: &'a Method,
    path: &'a str,
    key: Option<&'a str>,
    /// The name of the fault that the request chooses.
    chosen: Option<&'a HeaderValue>,
}

impl<'a> RequestView<'a> {
    /// Creates the view of a request. `key` is its bearer token, even if no such key exists.
    pub(crate) fn new(
        operation: Option<Operation>,
        method: &'a Method,
        path: &'a str,
        key: Option<&'a str>,
    ) -> Self {
        Self {
            operation,
            method,
            path,
            key,
            chosen: None,
        }
    }

    /// Lets the request choose a fault by its name.
    pub(super) fn choosing(self, chosen: Option<&'a HeaderValue>) -> Self {
        Self { chosen, ..self }
    }

    pub(super) fn is_meant(&self, target: &Target) -> bool {
        target.matches(self.operation, self.method, self.path)
    }

    pub(super) fn has_key(&self, key: &MatchedKey) -> bool {
        self.key == Some(&key.0)
    }

    pub(super) fn chosen_fault(&self) -> Option<&'a HeaderValue> {
        self.chosen
    }
}

/// A key, which is never shown.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct MatchedKey(pub(super) String);

impl fmt::Debug for MatchedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

impl Serialize for MatchedKey {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str("[hidden]")
    }
}

/// A header field to set, or without a value, to remove.
///
/// In JSON, it is `{"name": "content-type", "value": "text/html"}`.
///
/// ```
/// use http::{HeaderName, HeaderValue};
/// use petstore_mock::HeaderField;
///
/// let name = HeaderName::from_static("content-type");
/// let removed = HeaderField::new(name.clone(), None);
/// let html = HeaderField::new(name, HeaderValue::from_static("text/html"));
/// assert_ne!(removed, html);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderField {
    name: HeaderText<HeaderName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<HeaderText<HeaderValue>>,
}

impl HeaderField {
    /// Creates a header field.
    #[must_use]
    pub fn new(name: HeaderName, value: impl Into<Option<HeaderValue>>) -> Self {
        Self {
            name: HeaderText(name),
            value: value.into().map(HeaderText),
        }
    }

    pub(super) fn name(&self) -> HeaderName {
        self.name.0.clone()
    }

    pub(super) fn value(&self) -> Option<HeaderValue> {
        self.value.as_ref().map(|value| value.0.clone())
    }
}

/// The name or value of a header field; text in JSON. Invalid UTF-8 becomes replacement characters.
#[derive(Clone, Debug, PartialEq)]
struct HeaderText<T>(T);

impl<'de, T: TryFrom<String>> Deserialize<'de> for HeaderText<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let shown = printable(&text);
        T::try_from(text).map(Self).map_err(|_| {
            D::Error::custom(format!(
                "`{shown}` is not a valid header name or value: names have no spaces, and values no \
                 control characters but tabs"
            ))
        })
    }
}

impl<T: AsRef<[u8]>> Serialize for HeaderText<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(self.0.as_ref()))
    }
}

/// Which of the matching requests are hit. They are numbered from 1 in order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Trigger {
    #[default]
    Always,
    /// The first requests, up to this number.
    First(#[serde(deserialize_with = "count")] u64),
    /// Only the request with this number.
    Nth(#[serde(deserialize_with = "count")] u64),
    /// All requests with a higher number.
    After(#[serde(deserialize_with = "count")] u64),
    /// Only requests that choose the fault by its name.
    Named,
    /// Each request with this probability, from 0 to 1.
    #[serde(rename = "chance")]
    Probability(f64),
}

impl Trigger {
    /// Whether the fault hits the request with this number. Draws once per request, so that the
    /// draws depend only on their order.
    pub(super) fn hits(self, number: u64, random: &mut Random) -> bool {
        match self {
            // Requests that choose another fault do not match at all.
            Self::Always | Self::Named => true,
            Self::First(count) => number <= count,
            Self::Nth(nth) => number == nth,
            Self::After(count) => number > count,
            Self::Probability(chance) => random.unit() < chance,
        }
    }
}

/// A seeded generator: `SplitMix64` by Steele, Lea and Flood. It is implemented here, so that a
/// seed gives the same numbers in every version of this crate.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a uniformly distributed number from 0 (inclusive) to 1 (exclusive).
    pub(super) fn unit(&mut self) -> f64 {
        // 32 bits fit exactly into a float, and are enough for any test.
        let bits = u32::try_from(self.next() >> 32).unwrap_or(0);
        f64::from(bits) / 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(when: Trigger) -> Vec<u64> {
        let mut random = Random::new(3);
        (1..=6)
            .filter(|number| when.hits(*number, &mut random))
            .collect()
    }

    #[test]
    fn counts_from_one() {
        assert_eq!(hits(Trigger::Always), [1, 2, 3, 4, 5, 6]);
        assert_eq!(hits(Trigger::First(2)), [1, 2]);
        assert_eq!(hits(Trigger::Nth(3)), [3]);
        assert_eq!(hits(Trigger::After(4)), [5, 6]);
    }

    #[test]
    fn chance_can_be_had_again() {
        assert_eq!(hits(Trigger::Probability(1.0)).len(), 6);
        assert_eq!(
            hits(Trigger::Probability(0.5)),
            hits(Trigger::Probability(0.5))
        );
        assert!((1..6).contains(&hits(Trigger::Probability(0.5)).len()));
    }

    #[test]
    fn matches_the_published_generator() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn draws_are_spread_as_they_should_be() {
        let mut random = Random::new(7);
        let units: Vec<f64> = (0..10_000).map(|_| random.unit()).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        let below = units.iter().filter(|unit| **unit < 0.2).count();
        assert!((1_900..2_100).contains(&below), "{below}");
    }
}
