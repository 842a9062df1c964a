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
    /// Whether they share what they know, through a page; and when the first is killed.
    pub(in crate::simulator) shared: bool,
    pub(in crate::simulator) killed: i64,
    /// So many of them share nothing, the last ones.
    pub(in crate::simulator) strangers: usize,
    /// All processes start within this time, the first one at once.
    pub(in crate::simulator) starts_within: i64,
    /// How far the wall clock of each process may be off, besides `wall`.
    pub(in crate::simulator) skew: i64,
    /// From when to when the first is stopped.
    pub(in crate::simulator) stopped: Range<i64>,
    /// From when to when the store is unreachable, and for how many processes, the last ones first.
    pub(in crate::simulator) outage: Range<i64>,
    pub(in crate::simulator) cut_off: usize,
    /// Bursts of other clients, if there are any.
    pub(in crate::simulator) bursts: Option<Bursts>,
    /// When the store's clock is set, and by how much.
    pub(in crate::simulator) store_step: (i64, i64),
    /// For how long the first's tasks pause after each job.
    pub(in crate::simulator) first_pause: i64,
    /// Tasks and jobs of each process.
    pub(in crate::simulator) tasks: usize,
    /// Tasks of the first process.
    pub(in crate::simulator) first_tasks: usize,
    pub(in crate::simulator) jobs: u64,
    /// When the tasks begin: if not at once, one job goes ahead of them.
    pub(in crate::simulator) burst_at: i64,
    /// When the run ends at the latest.
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
            // A noon, and some of the minute gone.
            start: NOON + rng.below(MINUTE),
            policy: Policy::default(),
        }
    }
}

/// The service's clock at the noon of a day.
pub(in crate::simulator) const NOON: i64 = 1_735_732_800_000_000;

#[derive(Debug, Default, Clone)]
pub(in crate::simulator) struct Outcome {
    /// When the last job was done.
    pub(in crate::simulator) finished: i64,
    pub(in crate::simulator) refusals: u64,
    /// Those for a quota of which no answer had told in its window when the request was sent.
    pub(in crate::simulator) unforeseen: u64,
    pub(in crate::simulator) late_repeats: u64,
    pub(in crate::simulator) bans: u64,
    pub(in crate::simulator) let_in: u64,
    /// Requests of other clients, which came in bursts.
    pub(in crate::simulator) others: u64,
    pub(in crate::simulator) seconds: Vec<[u32; 2]>,
    /// Requests sent before the end of a wait that an answer had named.
    pub(in crate::simulator) defied: u64,
    /// The sum of all processes' remaining jobs: nothing when each wait has ended.
    pub(in crate::simulator) undone: u64,
    /// What is still outstanding at rest, once one more request has been answered.
    pub(in crate::simulator) left_over: u64,
    /// The most requests that were under way while no answer had told anything.
    pub(in crate::simulator) most_while_unknown: usize,
    /// Requests whose end told nothing of limits: in all, and the most in a row.
    pub(in crate::simulator) unheard: u64,
    pub(in crate::simulator) most_unheard: u64,
    /// What each process got done.
    pub(in crate::simulator) done: Vec<u64>,
    /// How long each job of the first process took.
    pub(in crate::simulator) first_latencies: Vec<i64>,
    /// Updates of the record that processes share, and its size at most.
    pub(in crate::simulator) updates: u64,
    pub(in crate::simulator) largest_record: usize,
    /// When each request was granted, and how long each job took that was answered.
    pub(in crate::simulator) times: Vec<i64>,
    pub(in crate::simulator) latencies: Vec<i64>,
}
