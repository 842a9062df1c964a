//! `repeated-error`: a request was refused because of its content, and sent again unchanged.

use std::{sync::Arc, time::Duration};

use crate::report::{
    breach::{Breach, Ruling, Series},
    facts::Facts,
    rule::Rule,
};

/// This many consecutive repeats cause a finding: the fifth request is the fourth repeat.
const MIN_REPEATS: u64 = 4;
/// The maximum time between consecutive repeats.
const MAX_GAP: Duration = Duration::from_secs(30);

/// The last refused request and its repeats.
#[derive(Debug, Default)]
pub(in crate::report) struct Refusals(Option<RepeatedRefusal>);

#[derive(Debug)]
struct RepeatedRefusal {
    last: Arc<Facts>,
    series: Series,
}

impl Refusals {
    pub(in crate::report) fn judge(&mut self, request: &Arc<Facts>, found: &mut Ruling) {
        let Some(status) = request.status().filter(|status| is_final(*status)) else {
            self.0 = None;
            return;
        };
        let mut row = match self.0.take() {
            Some(row) if row.is_continued_by(request) => row,
            _ => {
                self.0 = Some(RepeatedRefusal {
                    last: Arc::clone(request),
                    series: Series::after(request),
                });
                return;
            }
        };
        row.last = Arc::clone(request);
        row.series.push(request);
        let repeats = row.series.count();
        let text = format!(
            "{} was sent again {repeats} times, unchanged, and refused each time; the last time \
             with {status}",
            request.name(),
        );
        let id = row.series.cause().map_or(0, |first| first.number());
        if repeats == MIN_REPEATS {
            let breach = Breach::new(id, text, row.series.clone());
            found.add(Rule::RepeatedError, breach);
        } else if repeats > MIN_REPEATS {
            found.add(Rule::RepeatedError, Breach::continued(id, text, request));
        }
        self.0 = Some(row);
    }
}

impl RepeatedRefusal {
    fn is_continued_by(&self, request: &Facts) -> bool {
        let gap = request.arrived().gap_since(self.last.ended());
        request.is_same_as(&self.last) && gap <= MAX_GAP
    }
}

/// Whether a status means that the same request will be refused again.
const fn is_final(status: u16) -> bool {
    match status {
        404 | 408 | 409 | 425 | 429 => false,
        _ => matches!(status, 400..=499),
    }
}
