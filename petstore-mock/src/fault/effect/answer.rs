//! An answer of the service as a plain value, which faults change before it is sent. How it came
//! about, and how it travels, is left to the router and to the connection.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header::CONTENT_LENGTH};

use super::{script::Script, status::Status};

/// What is about to be answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether only the head is sent (it answers HEAD), so that there is no body to do harm to.
    pub(crate) is_head: bool,
    /// The time it is on the mock's clock, since the Unix epoch.
    pub(crate) now: Duration,
    /// What happens on the socket while it is sent.
    pub(crate) script: Script,
}

impl Answer {
    /// The answer to a request that is not carried out.
    pub(crate) fn unavailable() -> Self {
        let mut answer = Self::default();
        Status::unavailable().act(&mut answer);
        answer
    }

    /// Replaces the body, if one is sent; its length is said anew where the answer is written.
    pub(super) fn set_body(&mut self, body: impl Into<Bytes>) -> bool {
        if !self.is_head {
            self.headers.remove(CONTENT_LENGTH);
            self.body = body.into();
        }
        !self.is_head
    }

    /// Returns how many bytes of body are sent.
    pub(super) fn length(&self) -> u64 {
        u64::try_from(self.body.len()).unwrap_or(u64::MAX)
    }
}

/// Something that can happen to an answer.
pub(super) trait Act {
    /// Changes the answer; false if there was nothing in it to change, so that nothing happened.
    fn act(&self, answer: &mut Answer) -> bool;
}
