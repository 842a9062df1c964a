//! `quota-ignored`: requests beyond a quota that the client knows, and bans that no client could
//! foresee.

use std::{collections::VecDeque, sync::Arc};

use super::{ban::Ban, waits::Timing};
use crate::report::{
    breach::{Breach, Ruling, Series},
    facts::{Facts, REACTION},
    rule::Rule,
    text::seconds,
};

/// The maximum number of simultaneous refusals that are not a burst.
const MAX_REFUSED_AT_ONCE: usize = 5;

/// The ids of the two breaches. Each of them counts once per client.
const BEYOND: u64 = 0;
const BANNED: u64 = 1;

/// The quota that a client knows from its responses.
#[derive(Debug, Default)]
pub(in crate::report) struct KnownQuota {
    /// The last response with `Remaining: 0`.
    used_up: Option<Arc<Facts>>,
    /// The last refused requests.
    refused: VecDeque<Arc<Facts>>,
}

impl KnownQuota {
    /// Judges a request. `ban` is the ban that it caused, if any.
    pub(in crate::report) fn judge(
        &mut self,
        request: &Arc<Facts>,
        timing: Timing,
        ban: Option<&Ban>,
        found: &mut Ruling,
    ) {
        if let Some(ban) = ban
            && timing != Timing::Early
        {
            let text = ban.text().to_owned();
            let breach = Breach::new(BANNED, text, ban.series().clone());
            found.add(Rule::QuotaIgnored, breach);
        }
        if request.status() == Some(429) {
            self.judge_refusal(request, timing, found);
        } else if request.status().is_some() && request.used_up_until().is_some() {
            self.used_up = Some(Arc::clone(request));
        }
    }

    fn judge_refusal(&mut self, request: &Arc<Facts>, timing: Timing, found: &mut Ruling) {
        let now = request.arrived();
        self.refused
            .retain(|refused| now.gap_since(refused.ended()) < REACTION);
        self.refused.push_back(Arc::clone(request));
        if timing == Timing::InTime
            && let Some(answer) = self.foreseen(request)
        {
            let reset = answer.used_up_until().unwrap_or(now.at());
            let early = seconds(reset.saturating_sub(now.at()));
            let text = format!(
                "{} was refused {early} before the reset; #{} was answered Remaining: 0",
                request.name(),
                answer.number(),
            );
            let mut series = Series::after(answer);
            series.push(request);
            found.add(Rule::QuotaIgnored, Breach::new(BEYOND, text, series));
            self.refused.clear();
        } else if self.refused.len() > MAX_REFUSED_AT_ONCE {
            let mut series = Series::default();
            for refused in self.refused.drain(..) {
                series.push(&refused);
            }
            let text = format!("more than {MAX_REFUSED_AT_ONCE} requests were refused at once");
            found.add(Rule::QuotaIgnored, Breach::new(BEYOND, text, series));
        }
    }

    /// Returns the response from which the client knew that a request would be refused.
    fn foreseen(&self, request: &Facts) -> Option<&Arc<Facts>> {
        let answer = self.used_up.as_ref()?;
        let is_used_up = answer.used_up_until() > Some(request.arrived().at());
        (is_used_up && request.follows(answer)).then_some(answer)
    }
}
