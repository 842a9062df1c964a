//! The right to send one request, and what becomes of it.

use http::{HeaderMap, StatusCode};

use super::door::{Gate, Hold};
use crate::quota::{Local, Ticket};

/// The right to send one request. Dropped before it was sent, it passes on; dropped after, its
/// request counts as one of unknown fate.
#[derive(Debug)]
#[must_use = "a permit is for sending a request"]
pub(crate) struct Permit<'g> {
    gate: &'g Gate,
    ticket: Ticket,
    /// The call's number in line.
    number: u64,
    sent: Option<Local>,
    observed: bool,
}

impl<'g> Permit<'g> {
    pub(super) fn new(gate: &'g Gate, ticket: Ticket, number: u64) -> Self {
        Self { gate, ticket, number, sent: None, observed: false }
    }

    /// Returns the call's number in line, with which a retry keeps its place.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Takes in that the request leaves now.
    pub(crate) fn sent(&mut self) {
        self.sent = Some(self.gate.now());
    }

    /// Takes in the head of the answer; returns the block that it asks for.
    pub(crate) fn observe(mut self, status: StatusCode, headers: &HeaderMap) -> Option<Hold> {
        self.observed = true;
        let sent = self.sent.unwrap_or_else(|| self.gate.now());
        self.gate.observe(self.ticket, sent, Some((status, headers)))
    }

    /// Takes in that the request cannot have reached the service.
    pub(crate) fn never_left(mut self) {
        self.sent = None;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        match self.sent {
            _ if self.observed => {}
            Some(sent) => {
                self.gate.observe(self.ticket, sent, None);
            }
            None => self.gate.unused(self.ticket),
        }
    }
}
