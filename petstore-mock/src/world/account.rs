//! What is kept of one key: its quotas, and what is held against it.

use std::{sync::Arc, time::Duration};

use super::{KeyUsage, QuotaUsage};
use crate::{
    ban::BanRecord,
    clock::instant,
    exchange::KeyLabel,
    plan::Plan,
    quota::{Allowance, Exhausted, Rate},
    settings::Settings,
};

/// Whether a request is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Admitted,
    /// A quota is used up.
    Exhausted(Exhausted),
    /// The key is banned until then, counted from the Unix epoch.
    Banned(Duration),
}

/// What became of a request with a valid key.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) verdict: Verdict,
    /// What its rate headers say.
    pub(crate) rate: Rate,
    /// How its key may be shown.
    pub(crate) label: Arc<KeyLabel>,
}

/// What is kept of one key.
#[derive(Debug)]
pub(crate) struct Account {
    /// Number and plan of the key, and how it may be shown.
    pub(super) label: Arc<KeyLabel>,
    pub(super) allowance: Allowance,
    pub(super) record: BanRecord,
}

impl Account {
    pub(super) fn new(label: KeyLabel, settings: &Settings) -> Self {
        let plan = label.plan();
        let allowance = Allowance::new(plan.per_minute(), plan.per_day(), settings.window);
        Self { label: Arc::new(label), allowance, record: BanRecord::default() }
    }

    /// Lets a request in or refuses it.
    pub(super) fn admit(&mut self, now: Duration, settings: &Settings) -> Admitted {
        let Self { allowance, record, label } = self;
        let verdict = if let Some(until) = record.arrive(now, settings.ban) {
            Verdict::Banned(until)
        } else if let Err(exhausted) = allowance.admit(now) {
            record.told(exhausted.until);
            Verdict::Exhausted(exhausted)
        } else {
            Verdict::Admitted
        };
        let rate = allowance.rate(now, settings.rate_headers);
        Admitted { verdict, rate, label: Arc::clone(label) }
    }

    /// Gives the key another plan: what it used stays used, and a wait it was told is over.
    pub(super) fn set_plan(&mut self, plan: Plan) {
        self.label = Arc::new(self.label.with_plan(plan));
        self.allowance.set_limits(plan.per_minute(), plan.per_day());
        self.record.excuse();
    }

    pub(super) fn usage(&mut self, now: Duration) -> KeyUsage {
        let [minute, day] = self.allowance.usage(now).map(QuotaUsage::new);
        KeyUsage {
            number: self.label.number(),
            plan: self.label.plan(),
            label: KeyLabel::clone(&self.label),
            minute,
            day,
            banned_until: self.record.banned_until(now).map(instant),
            waits_until: self.record.waits_until(now).map(instant),
        }
    }
}
