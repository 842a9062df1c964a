//! The setup of a run, and its results.

use std::ops::Range;

use super::client::Contender;
use super::network::Network;
use super::rng::Rng;
use super::service::Model;
use super::window::{MINUTE, SECOND};
use crate::rate_limit::Policy;

/// Requests that other clients send at the same moment. These clients know what is left, so none of
/// them is refused.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulator) struct Bursts {
    pub(in crate::simulator) size: u64,
    /// The mean time between two bursts.
    pub(in crate::simulator) interval: i64,
}

#[derive(Debug, Clone)]
pub(in crate::simulator) struct Setup {
    pub(in crate::simulator) seed: u64,
    pub(in crate::simulator) contender: Contender,
    pub(in crate::simulator) model: Model,
    pub(in crate::simulator) network: Network,
    pub(in crate::simulator) processes: usize,
    /// Whether the processes share a record, and when the first process is killed.
    pub(in crate::simulator) shared: bool,
    pub(in crate::simulator) killed: i64,
    /// How many processes, counted from the last one, do not share the record.
    pub(in crate::simulator) strangers: usize,
    /// All processes start within this time, the first one at once.
    pub(in crate::simulator) starts_within: i64,
    /// How far the wall clock of each process may be off, besides `wall`.
    pub(in crate::simulator) skew: i64,
    /// The period in which the first process is suspended.
    pub(in crate::simulator) stopped: Range<i64>,
    /// The period in which the store is unreachable, and for how many processes, counted from the
    /// last one.
    pub(in crate::simulator) outage: Range<i64>,
    pub(in crate::simulator) cut_off: usize,
    /// Bursts of other clients, if there are any.
    pub(in crate::simulator) bursts: Option<Bursts>,
    /// When the store's clock is set, and by how much.
    pub(in crate::simulator) store_step: (i64, i64),
    /// How long the tasks of the first process pause after each job.
    pub(in crate::simulator) first_pause: i64,
    /// Tasks and jobs of each process.
    pub(in crate::simulator) tasks: usize,
    /// Tasks of the first process.
    pub(in crate::simulator) first_tasks: usize,
    pub(in crate::simulator) jobs: u64,
    /// When the tasks begin. If it is not 0, one job runs before that.
    pub(in crate::simulator) burst_at: i64,
    /// The latest end of the run.
    pub(in crate::simulator) horizon: i64,
    /// How far the local wall clock is ahead of the service's clock.
    pub(in crate::simulator) wall: i64,
    /// Where in the service's day the run starts.
    pub(in crate::simulator) start: i64,
    pub(in crate::simulator) policy: Policy,
}

impl Setup {
    pub(in crate::simulator) fn new(
        contender: Contender,
        model: Model,
        tasks: usize,
        jobs: u64,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::new(seed ^ 0xabcd);
        Self {
            seed,
            contender,
            model,
            network: Network::FAIR,
            processes: 1,
            shared: false,
            killed: i64::MAX,
            strangers: 0,
            starts_within: SECOND / 2,
            skew: 0,
            stopped: 0..0,
            outage: 0..0,
            cut_off: usize::MAX,
            bursts: None,
            store_step: (i64::MAX, 0),
            first_pause: 0,
            tasks,
            first_tasks: tasks,
            jobs,
            burst_at: 0,
            horizon: i64::MAX,
            wall: 0,
            // At a random time within the minute that begins at noon.
            start: NOON + rng.below(MINUTE),
            policy: Policy::default(),
        }
    }
}

/// A noon on the service's clock: 2025-01-01T12:00:00Z.
pub(in crate::simulator) const NOON: i64 = 1_735_732_800_000_000;

#[derive(Debug, Default, Clone)]
pub(in crate::simulator) struct Outcome {
    /// When the last job was done.
    pub(in crate::simulator) finished: i64,
    pub(in crate::simulator) refusals: u64,
    /// Refusals by a window that no response had described when the request was sent.
    pub(in crate::simulator) unforeseen: u64,
    pub(in crate::simulator) late_repeats: u64,
    pub(in crate::simulator) bans: u64,
    pub(in crate::simulator) admitted: u64,
    /// The number of requests that other clients sent in bursts.
    pub(in crate::simulator) others: u64,
    pub(in crate::simulator) seconds: Vec<[u32; 2]>,
    /// Requests that were sent before a received `Retry-After` had elapsed.
    pub(in crate::simulator) sent_while_blocked: u64,
    /// The remaining jobs of all processes: 0 if every wait has ended.
    pub(in crate::simulator) undone: u64,
    /// Outstanding requests at the end, after one more request was answered. Must be 0.
    pub(in crate::simulator) left_over: u64,
    /// The maximum number of requests in flight before the first response described a quota.
    pub(in crate::simulator) most_while_unknown: usize,
    /// Requests whose outcome said nothing about limits: in total, and the longest series.
    pub(in crate::simulator) uninformative: u64,
    pub(in crate::simulator) most_uninformative: u64,
    /// The number of finished jobs of each process.
    pub(in crate::simulator) done: Vec<u64>,
    /// How long each job of the first process took.
    pub(in crate::simulator) first_latencies: Vec<i64>,
    /// The number of updates of the shared record, and its maximum size.
    pub(in crate::simulator) updates: u64,
    pub(in crate::simulator) largest_record: usize,
    /// The time of each grant, and the duration of each finished job.
    pub(in crate::simulator) times: Vec<i64>,
    pub(in crate::simulator) latencies: Vec<i64>,
}
