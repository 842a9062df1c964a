//! Effects of faults.

use std::{fmt, num::NonZeroU32, time::Duration};

use http::{HeaderName, HeaderValue, header::CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::{
    delay::{Delay, Seconds},
    response_effects::{FaultTarget, RateFault, RetryAfter, StatusEffect},
    socket_effects::{At, How, Pace},
    trigger::{HeaderText, Random},
};

/// The effect of a fault on the requests that it hits.
///
/// In JSON, it is an object with one field, the kind of effect: `{"status": 503}`.
///
/// ```
/// use petstore_mock::{Effect, RetryAfter};
///
/// let busy = Effect::all([Effect::status(503), Effect::retry_after(RetryAfter::Seconds(2))]);
/// let json = r#"{"all": [{"status": 503}, {"retryAfter": {"seconds": 2}}]}"#;
/// assert_eq!(serde_json::from_str::<Effect>(json)?, busy);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
#[must_use]
pub struct Effect(EffectKind);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
#[strum(serialize_all = "camelCase")]
enum EffectKind {
    All(Vec<Effect>),
    Pass {},
    Status(StatusEffect),
    Delay(Delay),
    Body { text: String },
    MalformedJson {},
    ContentType { value: Option<HeaderText<HeaderValue>> },
    RateHeaders(RateFault),
    Date { offset_seconds: i64 },
    RetryAfter(RetryAfter),
    SetHeader(Header),
    AddHeader(Header),
    RemoveHeader { name: HeaderText<HeaderName> },
    PetStatus { value: String },
    Reset(ResetEffect),
    EmptyReply {},
    Cut { after_body_bytes: u64 },
    Stall(StallEffect),
    Hang {},
    Trickle(TrickleEffect),
    Bandwidth { bytes_per_second: NonZeroU32 },
}

/// A header field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    name: HeaderText<HeaderName>,
    value: HeaderText<HeaderValue>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResetEffect {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_body_bytes: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StallEffect {
    #[serde(default)]
    after_body_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<Seconds>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TrickleEffect {
    bytes: NonZeroU32,
    every_seconds: Seconds,
}

/// Effects on the socket.
impl Effect {
    /// Resets the connection (RST) before the status line.
    pub fn reset() -> Self {
        Self(EffectKind::Reset(ResetEffect { after_body_bytes: None }))
    }

    /// Resets the connection (RST) after `body_bytes` of the body. Does not change a body that is
    /// not longer, and does not count that as a hit.
    pub fn reset_after(body_bytes: u64) -> Self {
        Self(EffectKind::Reset(ResetEffect { after_body_bytes: Some(body_bytes) }))
    }

    /// Closes the connection before the status line.
    pub fn empty_reply() -> Self {
        Self(EffectKind::EmptyReply {})
    }

    /// Closes the connection after `body_bytes` of the body, less than `Content-Length` announces.
    /// Does not change a body that is not longer, and does not count that as a hit.
    pub fn cut_after(body_bytes: u64) -> Self {
        Self(EffectKind::Cut { after_body_bytes: body_bytes })
    }

    /// Sends the head and `body_bytes` of the body, and then nothing until the client disconnects.
    /// Does not change a body that is not longer, and does not count that as a hit.
    pub fn stall_after(body_bytes: u64) -> Self {
        Self(EffectKind::Stall(StallEffect { after_body_bytes: body_bytes, seconds: None }))
    }

    /// Sends the head and `body_bytes` of the body, and the rest after `time` on the mock's clock.
    pub fn stall_for(time: Duration, body_bytes: u64) -> Self {
        let seconds = Some(Seconds(time));
        Self(EffectKind::Stall(StallEffect { after_body_bytes: body_bytes, seconds }))
    }

    /// Sends nothing until the client disconnects.
    pub fn hang() -> Self {
        Self(EffectKind::Hang {})
    }

    /// Sends this many bytes, including the head, and as many again after each `every` on the
    /// mock's clock. 0 bytes count as 1.
    pub fn trickle(bytes: u32, every: Duration) -> Self {
        let bytes = NonZeroU32::new(bytes).unwrap_or(NonZeroU32::MIN);
        Self(EffectKind::Trickle(TrickleEffect { bytes, every_seconds: Seconds(every) }))
    }

    /// Sends this many bytes per second of the mock's clock, including the head, in steps of 50 ms.
    /// 0 bytes count as 1.
    pub fn bandwidth(bytes_per_second: u32) -> Self {
        let bytes_per_second = NonZeroU32::new(bytes_per_second).unwrap_or(NonZeroU32::MIN);
        Self(EffectKind::Bandwidth { bytes_per_second })
    }
}

/// Effects on the response.
impl Effect {
    /// Answers this status with an Error object, instead of the service's response.
    ///
    /// # Panics
    ///
    /// If the status is not from 200 to 599.
    #[track_caller]
    pub fn status(status: u16) -> Self {
        Self(EffectKind::Status(StatusEffect::new(status, true)))
    }

    /// Answers this status without a body.
    ///
    /// # Panics
    ///
    /// If the status is not from 200 to 599.
    #[track_caller]
    pub fn bare_status(status: u16) -> Self {
        Self(EffectKind::Status(StatusEffect::new(status, false)))
    }

    /// Replaces the body, and keeps the status and headers.
    pub fn body(text: impl Into<String>) -> Self {
        Self(EffectKind::Body { text: text.into() })
    }

    /// Removes the closing bracket of the body, so that it is invalid JSON.
    pub fn malformed_json() -> Self {
        Self(EffectKind::MalformedJson {})
    }

    /// Replaces the `Content-Type`, or removes it if there is no value.
    pub fn content_type(value: impl Into<Option<HeaderValue>>) -> Self {
        Self(EffectKind::ContentType { value: value.into().map(HeaderText) })
    }

    /// Changes the rate-limit headers: wrong, missing or invalid.
    pub fn rate_headers(fault: RateFault) -> Self {
        Self(EffectKind::RateHeaders(fault))
    }

    /// Sets `Date` this many seconds ahead of the mock's clock, or behind it if negative.
    pub fn date_offset(seconds: i64) -> Self {
        Self(EffectKind::Date { offset_seconds: seconds })
    }

    /// Sets `Retry-After`, for any status.
    pub fn retry_after(form: RetryAfter) -> Self {
        Self(EffectKind::RetryAfter(form))
    }

    /// Sets a header field. Replaces all fields with this name.
    pub fn set_header(name: HeaderName, value: HeaderValue) -> Self {
        Self(EffectKind::SetHeader(Header { name: HeaderText(name), value: HeaderText(value) }))
    }

    /// Adds a header field.
    pub fn add_header(name: HeaderName, value: HeaderValue) -> Self {
        Self(EffectKind::AddHeader(Header { name: HeaderText(name), value: HeaderText(value) }))
    }

    /// Removes all header fields with this name.
    pub fn remove_header(name: HeaderName) -> Self {
        Self(EffectKind::RemoveHeader { name: HeaderText(name) })
    }

    /// Sets the status of every pet in the response, for example to one that the specification does
    /// not list.
    pub fn pet_status(value: impl Into<String>) -> Self {
        Self(EffectKind::PetStatus { value: value.into() })
    }
}

/// Delays and combinations.
impl Effect {
    /// Delays the response on the mock's clock. The service processes the request before that.
    pub fn delay(delay: impl Into<Delay>) -> Self {
        Self(EffectKind::Delay(delay.into()))
    }

    /// Combines several effects.
    pub fn all(effects: impl IntoIterator<Item = Self>) -> Self {
        Self(EffectKind::All(effects.into_iter().collect()))
    }

    /// Does nothing. A step of a sequence that does not change the response.
    pub fn pass() -> Self {
        Self(EffectKind::Pass {})
    }
}

impl Effect {
    /// Returns the combined effects.
    fn parts(&self) -> Vec<&EffectKind> {
        match &self.0 {
            EffectKind::All(effects) => effects.iter().flat_map(Self::parts).collect(),
            EffectKind::Pass {} => Vec::new(),
            kind => vec![kind],
        }
    }

    /// Whether it does nothing at all.
    pub(super) fn is_pass(&self) -> bool {
        self.parts().is_empty()
    }

    /// Whether it replaces the response, so that the service does not process the request.
    pub(super) fn has_status(&self) -> bool {
        self.parts().into_iter().any(|kind| matches!(kind, EffectKind::Status(_)))
    }

    /// Returns a random delay of the response; `None` if it has no delay.
    pub(super) fn draw_delay(&self, random: &mut Random) -> Option<Duration> {
        let parts = self.parts().into_iter();
        let delays = parts.filter_map(|part| match part {
            EffectKind::Delay(delay) => Some(delay.draw(random)),
            _ => None,
        });
        delays.reduce(Duration::saturating_add)
    }

    /// Changes a response. Returns false if there was nothing to change. A status comes first,
    /// because it replaces everything else.
    pub(super) fn apply(&self, target: &mut FaultTarget<'_>) -> bool {
        let mut parts = self.parts();
        parts.sort_by_key(|kind| !matches!(kind, EffectKind::Status(_)));
        parts.into_iter().fold(false, |applied, kind| kind.apply(target) | applied)
    }
}

impl EffectKind {
    fn apply(&self, target: &mut FaultTarget<'_>) -> bool {
        match self {
            // The parts are applied one by one, and the delay is already over.
            Self::All(_) | Self::Pass {} | Self::Delay(_) => false,
            Self::Status(status) => {
                status.replace(target.response);
                true
            }
            Self::Body { text } => target.set_body(text.clone()),
            Self::MalformedJson {} => target.malform_json(),
            Self::ContentType { value } => {
                target.set_header(CONTENT_TYPE, value.as_ref().map(|value| value.0.clone()))
            }
            Self::RateHeaders(fault) => fault.apply(target),
            Self::Date { offset_seconds } => target.offset_date(*offset_seconds),
            Self::RetryAfter(form) => form.apply(target),
            Self::SetHeader(Header { name, value }) => {
                target.set_header(name.0.clone(), Some(value.0.clone()))
            }
            Self::AddHeader(Header { name, value }) => {
                target.response.headers_mut().append(name.0.clone(), value.0.clone());
                true
            }
            Self::RemoveHeader { name } => target.set_header(name.0.clone(), None),
            Self::PetStatus { value } => target.set_pet_status(value),
            Self::Reset(ResetEffect { after_body_bytes: Some(bytes) }) => {
                target.end_body(*bytes, How::Reset)
            }
            Self::Reset(_) => target.plan.end(At::Start, How::Reset),
            Self::EmptyReply {} => target.plan.end(At::Start, How::Close),
            Self::Cut { after_body_bytes } => target.end_body(*after_body_bytes, How::Close),
            Self::Stall(StallEffect { after_body_bytes, seconds }) => {
                target.end_body(*after_body_bytes, How::Stall(seconds.map(|seconds| seconds.0)))
            }
            Self::Hang {} => target.plan.end(At::Start, How::Stall(None)),
            Self::Trickle(TrickleEffect { bytes, every_seconds }) => {
                target.plan.pace(Pace::trickle(*bytes, every_seconds.0))
            }
            Self::Bandwidth { bytes_per_second } => {
                target.plan.pace(Pace::bandwidth(*bytes_per_second))
            }
        }
    }
}

impl fmt::Display for Effect {
    /// Writes the JSON names of the kinds, such as `status + retryAfter`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parts().into_iter().map(Into::into).collect();
        f.pad(&if names.is_empty() { "pass".to_owned() } else { names.join(" + ") })
    }
}
