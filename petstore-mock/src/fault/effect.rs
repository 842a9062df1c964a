//! Effects of faults.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    change::{self, EndMode, FaultTarget, Pace, RateFault, RetryAfter},
    random::Random,
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
/// let busy = Effect::All(vec![Effect::Status(503), retry_after]);
/// let json = r#"{"all": [{"status": 503}, {"retryAfter": {"seconds": 2}}]}"#;
/// assert_eq!(serde_json::from_str::<Effect>(json)?, busy);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
#[must_use]
pub enum Effect {
    /// Combines several effects.
    All(Vec<Self>),
    /// Answers this status, from 200 to 599, with an Error object, instead of the service's response.
    /// For another body, combine it with [`Body`](Self::Body). A 429 looks like the mock's own.
    Status(u16),
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
    SetHeader {
        /// The name.
        name: String,
        /// The value; `None` to remove the field.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// Resets the connection (RST). Like [`Cut`](Self::Cut), it does not change a short body.
    Reset {
        /// The number of sent bytes of the body; `None` to reset before the status line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_body_bytes: Option<u64>,
    },
    /// Closes the connection before the status line.
    EmptyReply {},
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
        /// The number of bytes in a piece, at least 1. The first piece is sent at once.
        bytes: u32,
        /// The interval on the mock's clock.
        #[serde(with = "seconds")]
        every_seconds: Duration,
    },
}

impl Effect {
    /// Returns the name of the kind in JSON: that of the only field.
    fn kind(&self) -> String {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields.keys().cloned().collect(),
            _ => String::new(),
        }
    }

    /// Returns the combined effects.
    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::All(effects) => effects.iter().flat_map(Self::parts).collect(),
            effect => vec![effect],
        }
    }

    /// Returns why the effect does nothing, or must not be.
    pub(super) fn problem(&self) -> Option<&'static str> {
        match self {
            Self::All(effects) if effects.is_empty() => {
                Some("the effect `all` needs at least one effect")
            }
            Self::All(effects) => effects.iter().find_map(Self::problem),
            Self::Status(..200 | 600..) => Some("the status of a response is from 200 to 599"),
            Self::RateHeaders(RateFault::Wrong {
                limit: None,
                remaining: None,
                reset: None,
            }) => Some("`wrong` needs at least one of `limit`, `remaining` and `reset`"),
            Self::Trickle { bytes: 0, .. } => Some("`bytes` of a trickle is at least 1"),
            Self::SetHeader { name, value } => change::problem_of_header(name, value.as_deref()),
            Self::Status(_)
            | Self::Delay(_)
            | Self::Body { .. }
            | Self::RateHeaders(_)
            | Self::RetryAfter(_)
            | Self::Reset { .. }
            | Self::EmptyReply {}
            | Self::Cut { .. }
            | Self::Hang { .. }
            | Self::Trickle { .. } => None,
        }
    }

    /// Whether the effect replaces the response, so that the service does not process the request.
    pub(super) fn has_status(&self) -> bool {
        self.parts()
            .into_iter()
            .any(|effect| matches!(effect, Self::Status(_)))
    }

    /// Returns a random delay of the response; `None` if it has no delay.
    pub(super) fn draw_delay(&self, random: &mut Random) -> Option<Duration> {
        match self {
            Self::Delay(delay) => Some(delay.draw(random)),
            Self::All(effects) => {
                let delays = effects.iter().filter_map(|one| one.draw_delay(random));
                delays.reduce(Duration::saturating_add)
            }
            _ => None,
        }
    }

    /// Changes a response. Returns false if there was nothing to change. A status comes first,
    /// because it replaces everything else. An early end comes last, because it needs the final body.
    pub(super) fn apply(&self, target: &mut FaultTarget<'_>) -> bool {
        let mut parts = self.parts();
        parts.sort_by_key(|effect| match effect {
            Self::Status(_) => 0,
            Self::Reset { .. } | Self::EmptyReply {} | Self::Cut { .. } | Self::Hang { .. } => 2,
            _ => 1,
        });
        let mut has_changed = false;
        for effect in parts {
            has_changed |= effect.apply_part(target);
        }
        has_changed
    }

    fn apply_part(&self, target: &mut FaultTarget<'_>) -> bool {
        match self {
            // The parts are applied one by one below, and the delay is already over.
            Self::All(_) | Self::Delay(_) => false,
            Self::Status(status) => target.replace(*status),
            Self::Body { text } => target.set_body(text),
            Self::RateHeaders(fault) => fault.apply(target),
            Self::RetryAfter(form) => form.apply(target),
            Self::SetHeader { name, value } => change::set_header(target, name, value.as_deref()),
            Self::Reset { after_body_bytes } => target.end(*after_body_bytes, EndMode::Reset),
            Self::EmptyReply {} => target.end(None, EndMode::Close),
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
        let names: Vec<_> = self.parts().into_iter().map(Self::kind).collect();
        match names.is_empty() {
            true => f.pad("all"),
            false => f.pad(&names.join(" + ")),
        }
    }
}

/// A delay of a response on the mock's clock.
///
/// ```
/// use std::time::Duration;
/// use petstore_mock::{Delay, Effect};
///
/// let fixed = Effect::Delay(Delay::from(Duration::from_secs(2)));
/// let (from, to) = (Duration::from_millis(20), Duration::from_millis(80));
/// let spread = Effect::Delay(Delay::Uniform { from, to });
/// # assert_ne!(fixed, spread);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Delay {
    /// Always the same delay.
    #[serde(rename = "seconds")]
    Fixed(#[serde(with = "seconds")] Duration),
    /// A uniformly distributed delay.
    Uniform {
        /// The minimum.
        #[serde(with = "seconds")]
        from: Duration,
        /// The maximum.
        #[serde(with = "seconds")]
        to: Duration,
    },
}

impl Delay {
    pub(super) fn draw(&self, random: &mut Random) -> Duration {
        match *self {
            Self::Fixed(time) => time,
            Self::Uniform { from, to } => {
                let room = from.abs_diff(to).as_secs_f64() * random.unit();
                let room = Duration::try_from_secs_f64(room).unwrap_or(Duration::MAX);
                from.min(to).saturating_add(room)
            }
        }
    }
}

impl From<Duration> for Delay {
    fn from(time: Duration) -> Self {
        Self::Fixed(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(delay: Delay, seed: u64) -> Vec<Duration> {
        let mut random = Random::new(seed);
        (0..1_000).map(|_| delay.draw(&mut random)).collect()
    }

    #[test]
    fn a_uniform_delay_lies_between_its_ends_and_fills_the_space() {
        let (from, to) = (Duration::from_secs(1), Duration::from_secs(3));
        for delay in [
            Delay::Uniform { from, to },
            Delay::Uniform { from: to, to: from },
        ] {
            let draws = draws(delay, 1);
            assert!(draws.iter().all(|draw| (from..to).contains(draw)));
            let early = draws.iter().filter(|draw| draw.as_secs() < 2).count();
            assert!((450..550).contains(&early), "{early}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same() {
        let delay = Delay::Uniform {
            from: Duration::ZERO,
            to: Duration::from_secs(1),
        };
        assert_eq!(draws(delay, 5), draws(delay, 5));
        assert_ne!(draws(delay, 5), draws(delay, 6));
    }
}
