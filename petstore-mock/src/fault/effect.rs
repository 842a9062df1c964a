//! Effects of faults.

use std::{fmt, num::NonZeroU32, time::Duration};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{
    delay::Delay,
    response_effects::{FaultTarget, RateFault, RetryAfter, StatusEffect},
    socket_effects::{EndMode, Pace},
    trigger::{HeaderField, Random},
};
use crate::clock::seconds;

/// The effect of a fault on the requests that it hits.
///
/// In JSON, it is an object with one field, the kind of effect: `{"status": 503}`, `{"hang": {}}`.
///
/// ```
/// use petstore_mock::{Effect, RetryAfter};
///
/// let retry_after = Effect::RetryAfter(RetryAfter::Seconds(2));
/// let busy = Effect::All(vec![Effect::status(503), retry_after]);
/// let json = r#"{"all": [{"status": 503}, {"retryAfter": {"seconds": 2}}]}"#;
/// assert_eq!(serde_json::from_str::<Effect>(json)?, busy);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[cfg_attr(test, derive(strum::VariantNames))]
#[strum(serialize_all = "camelCase")]
#[non_exhaustive]
#[must_use]
pub enum Effect {
    /// Combines several effects.
    All(Vec<Self>),
    /// Answers a status instead of the service's response: see [`Effect::status`].
    Status(StatusEffect),
    /// Delays the response on the mock's clock. The service processes the request before the delay.
    Delay(Delay),
    /// Replaces the body, and keeps the status and headers.
    Body {
        /// The new body.
        text: String,
    },
    /// Changes the rate-limit headers: wrong, missing or invalid.
    RateHeaders(RateFault),
    /// Sets `Retry-After`, for any status.
    RetryAfter(RetryAfter),
    /// Sets a header field, for example a wrong `Content-Type`. Replaces all fields with this name.
    /// Without a value, removes them. `Content-Length` and `Transfer-Encoding` are not allowed,
    /// because they follow from the body. [`Cut`](Self::Cut) makes the body shorter than announced.
    SetHeader(HeaderField),
    /// Resets the connection (RST). Like [`Cut`](Self::Cut), it does not change a short body.
    Reset {
        /// The number of sent bytes of the body; `None` to reset before the status line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_body_bytes: Option<u64>,
    },
    /// Closes the connection before the status line.
    #[serde(with = "nothing")]
    EmptyReply,
    /// Closes the connection within the body. A body that is not longer stays unchanged, and that
    /// does not count as a hit.
    Cut {
        /// The number of sent bytes of the body, less than `Content-Length` announces.
        after_body_bytes: u64,
    },
    /// Sends nothing more until the client disconnects. Like [`Cut`](Self::Cut), it does not change a
    /// short body.
    Hang {
        /// The number of sent bytes of the body; `None` to hang before the status line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_body_bytes: Option<u64>,
    },
    /// Sends the response, with its head, in pieces of a number of bytes, at intervals.
    Trickle {
        /// The number of bytes in a piece. The first piece is sent at once.
        bytes: NonZeroU32,
        /// The interval on the mock's clock.
        #[serde(with = "seconds")]
        every_seconds: Duration,
    },
}

impl Effect {
    /// Answers this status with an Error object, instead of the service's response.
    ///
    /// # Panics
    ///
    /// If the status is not from 200 to 599.
    #[track_caller]
    pub fn status(status: u16) -> Self {
        Self::Status(StatusEffect::new(status, true))
    }

    /// Answers this status without a body.
    ///
    /// # Panics
    ///
    /// If the status is not from 200 to 599.
    #[track_caller]
    pub fn bare_status(status: u16) -> Self {
        Self::Status(StatusEffect::new(status, false))
    }

    /// Returns the combined effects.
    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::All(effects) => effects.iter().flat_map(Self::parts).collect(),
            effect => vec![effect],
        }
    }

    /// Whether the effect is a list without effects.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::All(effects) => effects.is_empty() || effects.iter().any(Self::is_empty),
            _ => false,
        }
    }

    /// Whether the effect sets a header that delimits the body. A wrong one would corrupt later
    /// responses.
    pub(super) fn sets_length(&self) -> bool {
        self.parts().into_iter().any(|effect| {
            let Self::SetHeader(field) = effect else {
                return false;
            };
            [CONTENT_LENGTH, TRANSFER_ENCODING].contains(&field.name())
        })
    }

    /// Whether the effect replaces the response, so that the service does not process the request.
    pub(super) fn has_status(&self) -> bool {
        self.parts()
            .into_iter()
            .any(|effect| matches!(effect, Self::Status(_)))
    }

    /// Returns a random delay of the response; `None` if it has no delay.
    pub(super) fn draw_delay(&self, random: &mut Random) -> Option<Duration> {
        let parts = self.parts().into_iter();
        let delays = parts.filter_map(|part| match part {
            Self::Delay(delay) => Some(delay.draw(random)),
            _ => None,
        });
        delays.reduce(Duration::saturating_add)
    }

    /// Changes a response. Returns false if there was nothing to change. A status comes first,
    /// because it replaces everything else.
    pub(super) fn apply(&self, target: &mut FaultTarget<'_>) -> bool {
        let mut parts = self.parts();
        parts.sort_by_key(|effect| !matches!(effect, Self::Status(_)));
        parts
            .into_iter()
            .fold(false, |applied, effect| effect.apply_part(target) | applied)
    }

    fn apply_part(&self, target: &mut FaultTarget<'_>) -> bool {
        match self {
            // The parts are applied one by one below, and the delay is already over.
            Self::All(_) | Self::Delay(_) => false,
            Self::Status(status) => target.set_status(status),
            Self::Body { text } => target.set_body(text.clone()),
            Self::RateHeaders(fault) => fault.apply(target),
            Self::RetryAfter(form) => form.apply(target),
            Self::SetHeader(field) => target.set_header(field.name(), field.value()),
            Self::Reset { after_body_bytes } => target.end(*after_body_bytes, EndMode::Reset),
            Self::EmptyReply => target.end(None, EndMode::Close),
            Self::Cut { after_body_bytes } => target.end(Some(*after_body_bytes), EndMode::Close),
            Self::Hang { after_body_bytes } => target.end(*after_body_bytes, EndMode::Hang),
            Self::Trickle {
                bytes,
                every_seconds,
            } => target.set_pace(Pace::new(*bytes, *every_seconds)),
        }
    }
}

impl fmt::Display for Effect {
    /// Writes the JSON names of the kinds, such as `status + retryAfter`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parts().into_iter().map(Into::into).collect();
        f.pad(&names.join(" + "))
    }
}

/// The JSON of an effect without settings: `{}`.
mod nothing {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}

    pub(super) fn serialize<S: Serializer>(to: S) -> Result<S::Ok, S::Error> {
        Nothing {}.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
        Nothing::deserialize(from).map(drop)
    }
}
