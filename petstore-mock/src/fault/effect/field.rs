//! The names and values of header fields in a fault's JSON.

use http::{HeaderName, HeaderValue};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

fn name<E: Error>(text: &str) -> Result<HeaderName, E> {
    HeaderName::try_from(text).map_err(|_| E::custom("this is no name of a header field"))
}

fn value<E: Error>(text: &str) -> Result<HeaderValue, E> {
    let error = "the value of a header field holds no control characters but tabs";
    HeaderValue::try_from(text).map_err(|_| E::custom(error))
}

/// A name.
pub(in crate::fault) mod name {
    use super::{Deserialize, Deserializer, HeaderName, Serialize, Serializer};

    pub(in crate::fault) fn serialize<S: Serializer>(
        name: &HeaderName,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        name.as_str().serialize(to)
    }

    pub(in crate::fault) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<HeaderName, D::Error> {
        super::name(&String::deserialize(from)?)
    }
}

/// A value, which may hold bytes that are no UTF-8: these are written as replacement characters.
pub(super) mod value {
    use super::{Deserialize, Deserializer, HeaderValue, Serialize, Serializer};

    pub(in crate::fault) fn serialize<S: Serializer>(
        value: &HeaderValue,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        String::from_utf8_lossy(value.as_bytes()).serialize(to)
    }

    pub(in crate::fault) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<HeaderValue, D::Error> {
        super::value(&String::deserialize(from)?)
    }
}

/// A value, or `null`.
pub(in crate::fault) mod maybe_value {
    use super::{Deserialize, Deserializer, HeaderValue, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it like this")]
    pub(in crate::fault) fn serialize<S: Serializer>(
        value: &Option<HeaderValue>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes())).serialize(to)
    }

    pub(in crate::fault) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<HeaderValue>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| super::value(&text)).transpose()
    }
}
