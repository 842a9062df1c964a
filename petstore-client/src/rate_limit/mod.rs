//! What is known of a key's rate limits, and what follows from it.
//!
//! The client keeps within the limits that the service describes, so that it is not refused.
//! [`Client::rate_limits`](crate::Client::rate_limits) returns what is known. A pure ledger holds
//! it, a pure decision says whether a request may be sent, a queue stands in front, and a registry
//! keeps one of each for every key and origin. Processes may share the ledger: it is then a small record
//! in a [store](LimitStore), which each of them, a member, updates now and then.
//!
//! Each mechanism has a test that fails without it. A figure in the second column is what that test
//! measured then; a cost without a figure was not measured:
//!
//! | mechanism | without it | a test that fails then |
//! |---|---|---|
//! | one probe where nothing is known, after a 429 and after a reset | 330 refusals with 256 tasks at 60 a minute | `goals::a_sole_user_is_never_refused…`, `rules::one_request_asks…` |
//! | lost requests count as outstanding | refusals | `properties::a_sole_user_is_never_refused…` |
//! | a lost request may still be on its way for a second | refusals | `rules::a_lost_request_is_settled…` |
//! | a few requests kept for asking what became of lost ones | 1.29 times the time, with four in ten given up | `lost::giving_up_four_in_ten…` |
//! | a late response only lowers the figure | refusals | `order::the_same_answers_in_any_order…` |
//! | a quota that is not described is counted down | refusals at the day's end | `rules::a_quota_that_is_not_described…` |
//! | the own share beside other clients | 15.9 refusals per five windows at 300 a minute | `goals::four_that_do_not_talk…` |
//! | the margin near a window's end | 15 refusals per five windows at 300 a minute | `goals::four_that_do_not_talk…` |
//! | the guard for resets that are rounded down | more than one refusal in three windows | `quirks::reset_is_rounded_down…` |
//! | an earlier window after the service's clock was set back | 3 refusals, where 2 are allowed | `quirks::the_services_clock_is_set` |
//! | two backends whose clocks differ | a probe too early | `clock::goes_by_the_later_of_two_backends…` |
//! | a clock without `Date` | 244 windows for 300 requests, an hour off | `latencies::without_dates…` |
//! | in flight: an eighth of what is left | 0.990 of the oracle's speed, for 0.995 | `goals::a_sole_user_is_never_refused…` |
//! | in flight: what the latency takes | 0.928 of the oracle's use at 5 s, for 0.99 | `latencies::the_quota_is_used…` |
//! | in flight: 5 while the minute's quota is hidden | a ban with 16 tasks | `latencies::a_hidden_minute…` |
//! | a minute's quota that was shown stays known | 5 in flight where 62 may be | `rules::a_minutes_quota_that_was_shown…` |
//! | in flight: 2, then 8, after an unforeseen 429 | repeats of that 429 | `rules::after_an_unforeseen_429…` |
//! | a longer wait for a 429 that follows another | the wait does not grow | `rules::what_follows_a_429…` |
//! | 25 hours at most | a key blocked for years | `rules::no_value_blocks…` |
//! | only a 429 blocks | one 503 stops all calls | `rules::a_server_error_blocks_nobody…` |
//! | a figure that is old counts for one request beside other clients | 27 refusals in sixty windows at 60 a minute, where 20 are allowed | `sharing::members_beside_a_client…`, `rules::beside_other_clients…` |
//! | each member's part is kept for it, less towards the window's end | of four members, one with 200 tasks gets 503 of 600 | `sharing::members_are_never_refused…` |
//! | what a silent member got is remembered | a light user waits for most of each minute | `sharing::a_light_user…` |
//! | a dead member's reservations count as lost | they count as free | `rules::what_a_dead_member…` |
//! | asking again once own requests are answered | 64 s for what takes 13 s with five in flight | `tests/client/shared.rs` |
//! | the only request in flight is not kept for those that do not ask | nobody sends until the minute's end | `grants::members_that_were_killed…` |
//! | beside other clients, no caution while plenty is left | 1 in flight where 64 may be | `grants::beside_other_clients…` |
//! | leases | a task that is not run holds up all others | `waiting::a_probe_that_is_not_run…` |
//! | a lost record is made anew from a member's copy | a call is refused after the file was deleted | `tests/client/shared.rs`: `a_record_that_is_lost…` |
//! | after an update, a pause of eight times what it took | 32 members on Redis come between each other until their updates time out | `tests/redis`: `members_use_a_quota_up…` |
//! | a second try at once after a conflict on Redis | 4 members' updates time out | `tests/redis`: `members_use_a_quota_up…` |
//! | grants by whoever changes the ledger | calls wait for the next look | `order::calls_go_in_the_order…`, `model` |
//! | waking all when a block comes | those who may not wait so long are told late | `waiting::all_whose_wait_becomes_too_long…` |

mod snapshot;

pub(crate) mod clock;
pub(crate) mod outcome;
mod outstanding;
mod plan;
#[cfg(feature = "test-util")]
mod test_clock;
mod window;

pub(crate) mod ledger;

pub(crate) mod decision;

mod sharing;
mod slot;

pub(crate) mod member;

#[cfg(feature = "file-store")]
mod file;
mod queue;
#[cfg(feature = "redis")]
mod redis;
pub(crate) mod store;

pub(crate) mod limiter;

mod registry;
mod updates;

#[cfg(all(test, shuttle))]
mod model;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod waiting;

#[cfg(test)]
mod bounds;
#[cfg(test)]
mod grants;
#[cfg(test)]
mod members;

#[cfg(feature = "redis")]
pub use self::redis::RedisStore;
pub(crate) use decision::Policy;
#[cfg(feature = "file-store")]
pub use file::FileStore;
pub(crate) use limiter::{Acquire, Limiter, Permit, Wait};
#[cfg(test)]
pub(crate) use outstanding::Reservation;
pub(crate) use registry::ClientLimiters;
pub use slot::MemberId;
pub use snapshot::{
    BlockReason, Blocked, Plan, Priority, Quota, QuotaWindow, RateLimits, SharedStatus, WaitReason,
};
pub(crate) use store::AnyStore;
pub use store::{Change, LimitStore, RecordKey, StoreError, StoreTime};
#[cfg(feature = "test-util")]
pub(crate) use test_clock::TestClock;
#[cfg(test)]
pub(crate) use window::Figure;
