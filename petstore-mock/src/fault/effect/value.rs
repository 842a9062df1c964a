//! An effect: what a fault does. Each kind is one file beside this one; how users make them is left to
//! `make`.

use std::{fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    answer::{Act, Answer},
    bandwidth::Bandwidth,
    body::Body,
    content_type::ContentType,
    cut::Cut,
    date::Date,
    delay::Delay,
    empty_reply::EmptyReply,
    hang::Hang,
    header::{AddHeader, RemoveHeader, SetHeader},
    malformed_json::MalformedJson,
    pet_status::PetStatusText,
    rate_headers::RateFault,
    reset::Reset,
    retry_after::RetryAfter,
    stall::Stall,
    status::Status,
    trickle::Trickle,
};
use crate::fault::random::Random;

/// What a fault does to the requests it hits.
///
/// In JSON it is an object with one field, its kind: `{"status": {"status": 503}}`.
///
/// ```
/// use petstore_mock::{Effect, RetryAfter};
///
/// let busy = Effect::all([Effect::status(503), Effect::retry_after(RetryAfter::Seconds(2))]);
/// let json = r#"{"all": [{"status": {"status": 503}}, {"retryAfter": {"seconds": 2}}]}"#;
/// assert_eq!(serde_json::from_str::<Effect>(json)?, busy);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Effect(pub(super) Kind);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Kind {
    All(Vec<Effect>),
    Status(Status),
    Delay(Delay),
    Body(Body),
    MalformedJson(MalformedJson),
    ContentType(ContentType),
    RateHeaders(RateFault),
    Date(Date),
    RetryAfter(RetryAfter),
    SetHeader(SetHeader),
    AddHeader(AddHeader),
    RemoveHeader(RemoveHeader),
    PetStatus(PetStatusText),
    Reset(Reset),
    EmptyReply(EmptyReply),
    Cut(Cut),
    Stall(Stall),
    Hang(Hang),
    Trickle(Trickle),
    Bandwidth(Bandwidth),
}

impl Effect {
    /// Returns the effects that it is made of.
    fn parts(&self) -> Vec<&Kind> {
        match &self.0 {
            Kind::All(effects) => effects.iter().flat_map(Self::parts).collect(),
            kind => vec![kind],
        }
    }

    /// Whether it does nothing at all.
    pub(in crate::fault) fn is_pass(&self) -> bool {
        self.parts().is_empty()
    }

    /// Whether it answers a status of its own, and so needs no answer of the service.
    pub(in crate::fault) fn gives_a_status(&self) -> bool {
        self.parts().into_iter().any(Kind::gives_a_status)
    }

    /// Draws how much later the answer comes; nothing if it is not about that.
    pub(in crate::fault) fn draw_delay(&self, random: &mut Random) -> Option<Duration> {
        let mut sum = None;
        for part in self.parts() {
            if let Kind::Delay(delay) = part {
                let drawn = delay.draw(random);
                sum = Some(sum.unwrap_or(Duration::ZERO).saturating_add(drawn));
            }
        }
        sum
    }

    /// Changes an answer; false if there was nothing in it to change. A status comes first: it
    /// takes the place of everything else.
    pub(in crate::fault) fn act(&self, answer: &mut Answer) -> bool {
        let (first, then): (Vec<_>, Vec<_>) =
            self.parts().into_iter().partition(|kind| kind.gives_a_status());
        let mut acted = false;
        for kind in first.into_iter().chain(then) {
            acted |= kind.act(answer);
        }
        acted
    }
}

impl Kind {
    fn gives_a_status(&self) -> bool {
        matches!(self, Self::Status(_))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::All(_) => "all",
            Self::Status(_) => "status",
            Self::Delay(_) => "delay",
            Self::Body(_) => "body",
            Self::MalformedJson(_) => "malformedJson",
            Self::ContentType(_) => "contentType",
            Self::RateHeaders(_) => "rateHeaders",
            Self::Date(_) => "date",
            Self::RetryAfter(_) => "retryAfter",
            Self::SetHeader(_) => "setHeader",
            Self::AddHeader(_) => "addHeader",
            Self::RemoveHeader(_) => "removeHeader",
            Self::PetStatus(_) => "petStatus",
            Self::Reset(_) => "reset",
            Self::EmptyReply(_) => "emptyReply",
            Self::Cut(_) => "cut",
            Self::Stall(_) => "stall",
            Self::Hang(_) => "hang",
            Self::Trickle(_) => "trickle",
            Self::Bandwidth(_) => "bandwidth",
        }
    }
}

impl Act for Kind {
    fn act(&self, answer: &mut Answer) -> bool {
        match self {
            // Its parts act, and the delay is over already.
            Self::All(_) | Self::Delay(_) => false,
            Self::Status(kind) => kind.act(answer),
            Self::Body(kind) => kind.act(answer),
            Self::MalformedJson(kind) => kind.act(answer),
            Self::ContentType(kind) => kind.act(answer),
            Self::RateHeaders(kind) => kind.act(answer),
            Self::Date(kind) => kind.act(answer),
            Self::RetryAfter(kind) => kind.act(answer),
            Self::SetHeader(kind) => kind.act(answer),
            Self::AddHeader(kind) => kind.act(answer),
            Self::RemoveHeader(kind) => kind.act(answer),
            Self::PetStatus(kind) => kind.act(answer),
            Self::Reset(kind) => kind.act(answer),
            Self::EmptyReply(kind) => kind.act(answer),
            Self::Cut(kind) => kind.act(answer),
            Self::Stall(kind) => kind.act(answer),
            Self::Hang(kind) => kind.act(answer),
            Self::Trickle(kind) => kind.act(answer),
            Self::Bandwidth(kind) => kind.act(answer),
        }
    }
}

impl fmt::Display for Effect {
    /// Writes the kinds as JSON names them, such as `status + retryAfter`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.parts().into_iter().map(Kind::name).collect();
        f.pad(&if names.is_empty() { "pass".to_owned() } else { names.join(" + ") })
    }
}
