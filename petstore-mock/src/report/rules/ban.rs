//! The requests that cause a ban. A ban concerns a key, so these requests may come from several
//! clients.

use std::{collections::VecDeque, sync::Arc};

use crate::report::{
    breach::Series,
    facts::Facts,
    text::{clock_time, count},
};

/// The number of early requests that are kept. With the default policy, 11 cause a ban.
const MAX_EARLY: usize = 12;

/// The last early requests of one key. [`Strikes::into_ban`] keeps those that count.
#[derive(Debug, Default)]
pub(in crate::report) struct Strikes {
    /// The refusal that asked the clients to wait.
    refusal: Option<Arc<Facts>>,
    early: VecDeque<Arc<Facts>>,
}

/// A ban that begins.
#[derive(Debug)]
pub(in crate::report) struct Ban {
    text: String,
    series: Series,
}

impl Strikes {
    /// Records a request of the key. Returns the ban that it causes.
    pub(in crate::report) fn record(&mut self, request: &Arc<Facts>) -> Option<Ban> {
        if request.strikes() == 0 {
            if request.is_refused() {
                self.refusal = Some(Arc::clone(request));
            }
            return None;
        }
        if self.early.len() == MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back(Arc::clone(request));
        if !request.has_caused_ban() {
            return None;
        }
        Some(std::mem::take(self).into_ban(request))
    }

    /// Returns the ban that a request causes. The service counts only the last early requests.
    fn into_ban(mut self, request: &Facts) -> Ban {
        let strikes = u64::from(request.strikes());
        let counted = usize::try_from(strikes).unwrap_or(usize::MAX);
        while self.early.len() > counted {
            self.early.pop_front();
        }
        let mut series = self.refusal.as_ref().map(Series::after).unwrap_or_default();
        for request in &self.early {
            series.push(request);
        }
        series.count_unkept(strikes - self.early.len() as u64);
        let now = request.arrived().at();
        let until = match request.wait_until() {
            Some(until) => format!(" until {}", clock_time(until, now)),
            None => String::new(),
        };
        let early = count(strikes, "request");
        let numbers: Vec<_> = self
            .early
            .iter()
            .map(|it| format!("#{}", it.number()))
            .collect();
        let shown = numbers.join(", ");
        let are_all = strikes == self.early.len() as u64;
        let which = if are_all { "" } else { "the last ones: " };
        Ban {
            text: format!(
                "the key is banned{until}: {early} arrived before Retry-After had elapsed \
                 ({which}{shown})"
            ),
            series,
        }
    }
}

impl Ban {
    pub(in crate::report) fn text(&self) -> &str {
        &self.text
    }

    pub(in crate::report) fn series(&self) -> &Series {
        &self.series
    }
}
