//! `told-to-wait`, `retry-after` and `quota-ignored`: rules about limits in responses.

use std::collections::VecDeque;

use super::{
    finding::{Evidence, Ruling},
    request::{JudgedRequest, REACTION, Role, clock_time, push_bounded, seconds},
    rule::Rule,
};
use crate::exchange::Moment;

/// The maximum number of remembered responses with `Retry-After`.
const MAX_TOLD: usize = 64;
/// The number of workers that may each send one request before they know of the wait: as many as
/// cause a ban.
const MAX_WORKERS: usize = 10;
/// The maximum number of simultaneous refusals that are not a burst.
const MAX_REFUSED_AT_ONCE: usize = 5;

/// The limits that a client knows from its responses.
#[derive(Debug, Default)]
pub(super) struct KnownLimits {
    /// The responses with `Retry-After`. A 429 applies to the key, a 503 to one request.
    told: VecDeque<JudgedRequest>,
    wait: WaitPeriod,
    /// The last response with `Remaining: 0`.
    used_up: Option<JudgedRequest>,
    /// When the last requests were refused.
    refused: VecDeque<Moment>,
}

/// A period in which a client should wait because of 429s.
#[derive(Debug, Default)]
struct WaitPeriod {
    /// The number of the first early request in it.
    first_offence: Option<u64>,
    /// The earlier connections on which one request was excused.
    workers: Vec<u64>,
    /// Whether a request on a newer connection was excused.
    has_second_process: bool,
}

impl KnownLimits {
    pub(super) fn judge(&mut self, request: &JudgedRequest, found: &mut Ruling) {
        let is_known = |told: &&JudgedRequest| {
            told.ended.order < request.arrived.order && told.tells_to_wait_at(&request.arrived)
        };
        let (waits, mut pauses): (Vec<_>, Vec<_>) = self
            .told
            .iter()
            .filter(is_known)
            .partition(|told| told.status == Some(429));
        pauses.retain(|told| told.fingerprint == request.fingerprint);
        self.wait.judge(&waits, request, found);
        if pauses.iter().any(|told| request.was_told_by(told)) {
            found.add(Rule::RetryAfter, too_early(&pauses, request));
        }
        let is_waiting = !waits.is_empty() || !pauses.is_empty();
        self.judge_quota(request, is_waiting, found);
        if request.told_until.is_some() && matches!(request.status, Some(429 | 503)) {
            self.told.retain(|told| {
                let is_same = told.fingerprint == request.fingerprint
                    && told.connection == request.connection
                    && told.status == request.status;
                !is_same && told.tells_to_wait_at(&request.ended)
            });
            push_bounded(&mut self.told, request.with_role(Role::Cause), MAX_TOLD);
        }
    }

    /// Records that the client exceeded a known quota.
    fn judge_quota(&mut self, request: &JudgedRequest, is_waiting: bool, found: &mut Ruling) {
        if request.status != Some(429) {
            if request.status.is_some() && request.used_up_until.is_some() {
                self.used_up = Some(request.with_role(Role::Cause));
            }
            return;
        }
        let now = request.arrived;
        self.refused.retain(|ended| now.gap_since(ended) < REACTION);
        let used_up = self.used_up.as_ref().filter(|answer| {
            !is_waiting && answer.used_up_until > Some(now.at) && request.follows(answer)
        });
        if let Some(answer) = used_up {
            let early = answer
                .used_up_until
                .unwrap_or_default()
                .saturating_sub(now.at);
            let early = seconds(early);
            let text =
                format!("refused {early} before the reset, after a response with Remaining: 0");
            let evidence = Evidence::new(0, request, text).show([answer.clone()]);
            found.add(Rule::QuotaIgnored, evidence);
        } else if self.refused.len() >= MAX_REFUSED_AT_ONCE {
            let text = format!("more than {MAX_REFUSED_AT_ONCE} requests were refused at once");
            found.note(Rule::QuotaIgnored, request, text);
        } else {
            self.refused.push_back(request.ended);
        }
    }
}

impl WaitPeriod {
    /// Judges a request by earlier 429s whose `Retry-After` has not elapsed.
    fn judge(&mut self, waits: &[&JudgedRequest], request: &JudgedRequest, found: &mut Ruling) {
        let Some(first) = waits.iter().min_by_key(|told| told.ended.order) else {
            *self = Self::default();
            return;
        };
        let is_told = waits.iter().any(|told| request.was_told_by(told));
        let has_reacted = request.arrived.gap_since(&first.ended) >= REACTION;
        let is_new = request.opened.order > first.ended.order;
        if !is_told && (!has_reacted || self.forgives(request, is_new)) {
            return;
        }
        let evidence = match self.first_offence {
            Some(number) => Evidence::new(number, request, String::new()),
            None => too_early(waits, request),
        };
        self.first_offence.get_or_insert(request.number);
        found.add(Rule::ToldToWait, evidence);
    }

    /// Whether to excuse a request that may come from another worker or process, which did not
    /// receive the 429.
    fn forgives(&mut self, request: &JudgedRequest, is_new: bool) -> bool {
        if is_new {
            return !std::mem::replace(&mut self.has_second_process, true);
        }
        let is_first = !self.workers.contains(&request.connection);
        let is_forgiven = is_first && self.workers.len() < MAX_WORKERS;
        if is_forgiven {
            self.workers.push(request.connection);
        }
        is_forgiven
    }
}

/// Returns the evidence of a request before the latest end of a wait.
fn too_early(told: &[&JudgedRequest], request: &JudgedRequest) -> Evidence {
    let end = |answer: &JudgedRequest| answer.told_until.map(|(until, _)| until);
    let now = request.arrived.at;
    let latest = told
        .iter()
        .max_by_key(|answer| end(answer))
        .copied()
        .unwrap_or(request);
    let until = end(latest).unwrap_or(now);
    let early = until.saturating_sub(now);
    let JudgedRequest {
        status,
        retry_after,
        number,
        ..
    } = latest;
    let wait = format!(
        "wait until {} ({}{}, Retry-After: {}, #{number})",
        clock_time(until),
        if latest.banned {
            "the key is banned, "
        } else {
            ""
        },
        status.unwrap_or_default(),
        retry_after.as_deref().unwrap_or_default(),
    );
    let (at, early_by) = (clock_time(now), seconds(early));
    let text = format!("{} arrived at {at}, {early_by} too early", request.name());
    let evidence = Evidence::new(request.number, request, text).show([latest.clone()]);
    Evidence {
        told: Some(wait),
        by: Some(early),
        ..evidence
    }
}
