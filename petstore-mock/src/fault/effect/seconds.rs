//! A length of time in a fault's JSON: a number of seconds, with fractions.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::clock;

pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    // Whole seconds are written without a fraction.
    if time.subsec_nanos() == 0 {
        time.as_secs().serialize(to)
    } else {
        time.as_secs_f64().serialize(to)
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(from)?;
    let error = "a time is a number of seconds from 0 to 253402300799, such as 1.5";
    clock::time(seconds).ok_or_else(|| D::Error::custom(error))
}

/// The same where there may be none.
pub(super) mod maybe {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Seconds(#[serde(with = "super")] Duration);

    #[expect(clippy::ref_option, reason = "serde calls it like this")]
    pub(in crate::fault::effect) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Seconds).serialize(to)
    }

    pub(in crate::fault::effect) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Seconds>::deserialize(from)?.map(|Seconds(time)| time))
    }
}
