//! How effects are made in Rust, one function for each; in JSON they are objects.

use std::{num::NonZeroU32, time::Duration};

use http::{HeaderName, HeaderValue};

use super::{
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
    status::{Code, Status},
    trickle::Trickle,
    value::{Effect, Kind},
};

/// What happens on the socket.
impl Effect {
    /// Resets the connection (RST) before the status line.
    #[must_use]
    pub fn reset() -> Self {
        Self(Kind::Reset(Reset::default()))
    }

    /// Resets the connection (RST) after so many bytes of the body. A body that is no longer than
    /// that is left alone, which counts as no hit.
    #[must_use]
    pub fn reset_after(body_bytes: u64) -> Self {
        Self(Kind::Reset(Reset { after_body_bytes: Some(body_bytes) }))
    }

    /// Closes the connection before the status line.
    #[must_use]
    pub fn empty_reply() -> Self {
        Self(Kind::EmptyReply(EmptyReply {}))
    }

    /// Closes the connection after so many bytes of the body, whose whole length was promised. A
    /// body that is no longer than that is left alone, which counts as no hit.
    #[must_use]
    pub fn cut_after(body_bytes: u64) -> Self {
        Self(Kind::Cut(Cut { after_body_bytes: body_bytes }))
    }

    /// Sends the head and so many bytes of the body, and then nothing until the client leaves. A
    /// body that is no longer than that is left alone, which counts as no hit.
    #[must_use]
    pub fn stall_after(body_bytes: u64) -> Self {
        Self(Kind::Stall(Stall { after_body_bytes: body_bytes, seconds: None }))
    }

    /// Sends the head and so many bytes of the body, and the rest after a time on the mock's clock.
    #[must_use]
    pub fn stall_for(time: Duration, body_bytes: u64) -> Self {
        Self(Kind::Stall(Stall { after_body_bytes: body_bytes, seconds: Some(time) }))
    }

    /// Answers nothing until the client leaves.
    #[must_use]
    pub fn hang() -> Self {
        Self(Kind::Hang(Hang {}))
    }

    /// Sends so many bytes at once, the head's included, and as many again each time `every` has
    /// passed on the mock's clock. No bytes means 1.
    #[must_use]
    pub fn trickle(bytes: u32, every: Duration) -> Self {
        let bytes = NonZeroU32::new(bytes).unwrap_or(NonZeroU32::MIN);
        Self(Kind::Trickle(Trickle { bytes, every }))
    }

    /// Sends so many bytes a second of the mock's clock, the head's included, in steps of 50 ms. No
    /// bytes means 1.
    #[must_use]
    pub fn bandwidth(bytes_per_second: u32) -> Self {
        let bytes_per_second = NonZeroU32::new(bytes_per_second).unwrap_or(NonZeroU32::MIN);
        Self(Kind::Bandwidth(Bandwidth { bytes_per_second }))
    }
}

/// What is answered.
impl Effect {
    /// Answers this status in the service's Error shape, instead of what the service would.
    ///
    /// # Panics
    ///
    /// Where no exchange can end with that status: it is from 200 to 599.
    #[must_use]
    #[track_caller]
    pub fn status(status: u16) -> Self {
        Self(Kind::Status(Status::new(code(status))))
    }

    /// Answers this status without a body.
    ///
    /// # Panics
    ///
    /// Where no exchange can end with that status: it is from 200 to 599.
    #[must_use]
    #[track_caller]
    pub fn bare_status(status: u16) -> Self {
        Self(Kind::Status(Status { body: false, ..Status::new(code(status)) }))
    }

    /// Sends another body under the same status and headers.
    #[must_use]
    pub fn body(text: impl Into<String>) -> Self {
        Self(Kind::Body(Body { text: text.into() }))
    }

    /// Sends the body without the bracket that closes it, so that it is no JSON.
    #[must_use]
    pub fn malformed_json() -> Self {
        Self(Kind::MalformedJson(MalformedJson {}))
    }

    /// Sends the body as another media type or, where there is no value, without one.
    #[must_use]
    pub fn content_type(value: impl Into<Option<HeaderValue>>) -> Self {
        Self(Kind::ContentType(ContentType { value: value.into() }))
    }

    /// Makes the rate-limit headers wrong, missing or garbage.
    #[must_use]
    pub fn rate_headers(fault: RateFault) -> Self {
        Self(Kind::RateHeaders(fault))
    }

    /// Lets `Date` differ from the mock's clock by so many seconds: ahead or, where negative,
    /// behind.
    #[must_use]
    pub fn date_offset(seconds: i64) -> Self {
        Self(Kind::Date(Date { offset_seconds: seconds }))
    }

    /// Sets `Retry-After`, whatever the status.
    #[must_use]
    pub fn retry_after(form: RetryAfter) -> Self {
        Self(Kind::RetryAfter(form))
    }

    /// Sets a header field, in the place of all that have its name.
    #[must_use]
    pub fn set_header(name: HeaderName, value: HeaderValue) -> Self {
        Self(Kind::SetHeader(SetHeader { name, value }))
    }

    /// Adds a header field to those there are.
    #[must_use]
    pub fn add_header(name: HeaderName, value: HeaderValue) -> Self {
        Self(Kind::AddHeader(AddHeader { name, value }))
    }

    /// Takes away all header fields of a name.
    #[must_use]
    pub fn remove_header(name: HeaderName) -> Self {
        Self(Kind::RemoveHeader(RemoveHeader { name }))
    }

    /// Gives every pet of an answer a status that the specification does not know.
    #[must_use]
    pub fn pet_status(value: impl Into<String>) -> Self {
        Self(Kind::PetStatus(PetStatusText { value: value.into() }))
    }
}

/// When it is answered, and several effects at once.
impl Effect {
    /// Lets the answer come later, on the mock's clock. The request is carried out before that.
    #[must_use]
    pub fn delay(delay: impl Into<Delay>) -> Self {
        Self(Kind::Delay(delay.into()))
    }

    /// Does all of these.
    #[must_use]
    pub fn all(effects: impl IntoIterator<Item = Self>) -> Self {
        Self(Kind::All(effects.into_iter().collect()))
    }

    /// Does nothing: a step of a sequence in which a request is answered as ever.
    #[must_use]
    pub fn pass() -> Self {
        Self::all([])
    }
}

#[track_caller]
fn code(status: u16) -> Code {
    // As with the size of an array: who writes a status down can write the right one.
    Code::try_from(status).expect("the status of an answer is from 200 to 599")
}
