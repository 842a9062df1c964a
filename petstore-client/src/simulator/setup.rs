//! The setup of a run, and its results.

use std::ops::Range;

use super::client::Contender;
use super::network::Network;
use super::rng::Rng;
use super::service::Model;
use super::window::{MINUTE, SECOND};
use crate::rate_limit::Policy;

/// Requests that other clients send at the same moment. They know what is left: none of them is
/// refused.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bursts {
    pub(super) size: u64,
    /// The mean time between two bursts.
    pub(super) interval: i64,
}

#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) seed: u64,
    pub(super) contender: Contender,
    pub(super) model: Model,
    pub(super) network: Network,
    pub(super) processes: usize,
    /// Whether they share what they know, through a page; and when the first is killed.
    pub(super) shared: bool,
    pub(super) killed: i64,
    /// So many of them share nothing, the last ones.
    pub(super) strangers: usize,
    /// All processes start within this time, the first one at once.
    pub(super) starts_within: i64,
    /// How far the wall clock of each process may be off, besides `wall`.
    pub(super) skew: i64,
    /// From when to when the first is stopped.
    pub(super) stopped: Range<i64>,
    /// From when to when the store is unreachable, and for how many processes, the last ones first.
    pub(super) outage: Range<i64>,
    pub(super) cut_off: usize,
    /// Bursts of other clients, if there are any.
    pub(super) bursts: Option<Bursts>,
    /// When the store's clock is set, and by how much.
    pub(super) store_step: (i64, i64),
    /// For how long the first's tasks pause after each job.
    pub(super) first_pause: i64,
    /// Tasks and jobs of each process.
    pub(super) tasks: usize,
    /// Tasks of the first process.
    pub(super) first_tasks: usize,
    pub(super) jobs: u64,
    /// When the tasks begin: if not at once, one job goes ahead of them.
    pub(super) burst_at: i64,
    /// When the run ends at the latest.
    pub(super) horizon: i64,
    /// How far the local wall clock is ahead of the service's clock.
    pub(super) wall: i64,
    /// Where in the service's day the run starts.
    pub(super) start: i64,
    pub(super) policy: Policy,
}

impl Setup {
    pub(super) fn new(
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
            // A noon, and some of the minute gone.
            start: NOON + rng.below(MINUTE),
            policy: Policy::default(),
        }
    }
}

/// The service's clock at the noon of a day.
pub(super) const NOON: i64 = 1_735_732_800_000_000;

#[derive(Debug, Default, Clone)]
pub(super) struct Outcome {
    /// When the last job was done.
    pub(super) finished: i64,
    pub(super) refusals: u64,
    /// Those for a quota of which no answer had told in its window when the request was sent.
    pub(super) unforeseen: u64,
    pub(super) late_repeats: u64,
    pub(super) bans: u64,
    pub(super) let_in: u64,
    /// Requests of other clients, which came in bursts.
    pub(super) others: u64,
    pub(super) seconds: Vec<[u32; 2]>,
    /// Requests sent before the end of a wait that an answer had named.
    pub(super) defied: u64,
    /// The sum of all processes' remaining jobs: nothing when each wait has ended.
    pub(super) undone: u64,
    /// What is still outstanding at rest, once one more request has been answered.
    pub(super) left_over: u64,
    /// The most requests that were under way while no answer had told anything.
    pub(super) most_while_unknown: usize,
    /// Requests whose end told nothing of limits: in all, and the most in a row.
    pub(super) unheard: u64,
    pub(super) most_unheard: u64,
    /// What each process got done.
    pub(super) done: Vec<u64>,
    /// How long each job of the first process took.
    pub(super) first_latencies: Vec<i64>,
    /// Updates of the record that processes share, and its size at most.
    pub(super) updates: u64,
    pub(super) largest_record: usize,
    /// When each request was granted, and how long each job took that was answered.
    pub(super) times: Vec<i64>,
    pub(super) latencies: Vec<i64>,
}
