//! The rules: pure code over the exchanges of one client, each with a bounded state.

mod hygiene;
mod limits;
mod repeats;
mod retries;

use std::time::Duration;

use super::{finding::EvidenceRequest, observed::ObservedExchange, rule::Rule};

/// What a rule found in an exchange.
#[derive(Debug)]
pub(super) enum Judgement {
    Offence(Offence),
    /// What was found before turned out to be none, or is part of a more severe finding.
    Withdrawn {
        rule: Rule,
        began: u64,
    },
}

/// A request that broke a rule.
#[derive(Debug)]
pub(super) struct Offence {
    pub(super) rule: Rule,
    /// The number of the request with which the breach began.
    pub(super) began: u64,
    /// Whether the breach goes on, and was counted before.
    pub(super) goes_on: bool,
    pub(super) causes: Vec<EvidenceRequest>,
    pub(super) told: Option<String>,
    pub(super) text: String,
    pub(super) by: Option<Duration>,
    pub(super) added: Vec<i64>,
}

impl Offence {
    /// Returns a breach that began with this request, and that has no cause.
    fn new(rule: Rule, began: u64, text: String) -> Self {
        let (causes, added) = (Vec::new(), Vec::new());
        Self { rule, began, goes_on: false, causes, told: None, text, by: None, added }
    }
}

/// What the rules remember of one client since the last boundary.
#[derive(Debug, Default)]
pub(super) struct ClientState {
    limits: limits::Limits,
    retries: retries::Retries,
    repeats: repeats::Repeats,
}

/// What is noted once a client, whatever boundaries there were.
#[derive(Debug, Default)]
pub(super) struct ClientNotes {
    hygiene: hygiene::Hygiene,
    is_quota_ignored: bool,
}

/// Judges an exchange, in the order in which they end.
pub(super) fn judge(
    state: &mut ClientState,
    notes: &mut ClientNotes,
    exchange: &ObservedExchange,
) -> Vec<Judgement> {
    let mut found = Vec::new();
    let is_waiting = state.limits.judge(exchange, &mut found);
    state.limits.judge_quota(exchange, is_waiting, &mut notes.is_quota_ignored, &mut found);
    state.retries.judge(exchange, &mut found);
    state.repeats.judge(exchange, &mut found);
    notes.hygiene.judge(exchange, &mut found);
    found
}
