//! Rate limits: what is known of a key's quotas, and when the next request may be sent.
//!
//! The client keeps within the quotas that the service describes, so that its requests are not refused.
//! [`Client::rate_limits`](crate::Client::rate_limits) returns what is known. A pure ledger records
//! each response, a pure decision says whether a request may be sent, a queue holds the calls that
//! wait, and a registry keeps one limiter for each key and origin. Processes may share a ledger: then
//! it is a small record in a [store](LimitStore), and each process is a member that updates it.
//!
//! <details><summary>The mechanisms, for those who change them</summary>
//!
//! Each mechanism has a test that fails without it. The second column is what that test measured; a
//! cost without a reading was not measured:
//!
//! | mechanism | without it | a test that fails then |
//! |---|---|---|
//! | one probe while nothing is known, after a 429 and after a reset | 330 refusals with 256 tasks at 60 a minute | `goals::a_sole_user_is_never_refused…`, `rules::one_request_asks…` |
//! | lost requests count as outstanding | refusals | `properties::a_sole_user_is_never_refused…` |
//! | a lost request may still arrive for one second | refusals | `rules::a_lost_request_is_settled…` |
//! | a few requests kept back for settling lost ones | 1.29 times the time, with four in ten given up | `lost::giving_up_four_in_ten…` |
//! | a late response only lowers the reading | refusals | `order::the_same_answers_in_any_order…` |
//! | a quota that responses do not describe is counted down | refusals at the day's end | `rules::a_quota_that_is_not_described…` |
//! | the own share beside other clients | 15.9 refusals per five windows at 300 a minute | `goals::four_that_do_not_talk…` |
//! | the margin near a window's end | 15 refusals per five windows at 300 a minute | `goals::four_that_do_not_talk…` |
//! | later resets where the service rounds them down | more than one refusal in three windows | `quirks::reset_is_rounded_down…` |
//! | an earlier window after the service's clock was set back | 3 refusals, where 2 are allowed | `quirks::the_services_clock_is_set` |
//! | two backends whose clocks differ | a probe too early | `clock::goes_by_the_later_of_two_backends…` |
//! | a clock without `Date` | 244 windows for 300 requests, an hour off | `latencies::without_dates…` |
//! | in flight: an eighth of what is left | 0.990 of the oracle's speed, for 0.995 | `goals::a_sole_user_is_never_refused…` |
//! | in flight: as many as the latency requires | 0.928 of the oracle's use at 5 s, for 0.99 | `latencies::the_quota_is_used…` |
//! | in flight: 5 while the minute's quota is hidden | a ban with 16 tasks | `latencies::a_hidden_minute…` |
//! | a minute's quota that was shown once stays known | 5 in flight where 62 may be | `rules::a_minutes_quota_that_was_shown…` |
//! | in flight: 2, then 8, after an unforeseen 429 | repeats of that 429 | `rules::after_an_unforeseen_429…` |
//! | a longer wait after repeated 429s | the wait does not grow | `rules::what_follows_a_429…` |
//! | a block lasts 25 hours at most | a key blocked for years | `rules::no_value_blocks…` |
//! | only a 429 blocks | one 503 stops all calls | `rules::a_server_error_blocks_nobody…` |
//! | beside other clients, an old reading allows one request | 27 refusals in sixty windows at 60 a minute, where 20 are allowed | `sharing::members_beside_a_client…`, `rules::beside_other_clients…` |
//! | each member's part is reserved for it, less towards the window's end | of four members, one with 200 tasks gets 503 of 600 | `sharing::members_are_never_refused…` |
//! | a silent member's use is remembered | a light user waits for most of each minute | `sharing::a_light_user…` |
//! | a dead member's reservations count as lost | they count as free | `rules::what_a_dead_member…` |
//! | a member that is dead, or leaves, is removed | of 50 processes with a call each, one is refused its part | `tests/client/shared.rs`: `nothing_is_reserved…` |
//! | an early update once own requests are answered | 64 s for what takes 13 s with five in flight | `tests/client/shared.rs` |
//! | one request in flight is never reserved for members that do not wait | no member sends until the minute's end | `grants::members_that_fell_silent…` |
//! | beside other clients, no margin while plenty is left | 1 in flight where 64 may be | `grants::beside_other_clients…` |
//! | leases | a task that is not polled blocks all others | `waiting::a_probe_that_is_not_run…` |
//! | a lost record is restored from a member's copy | a call is refused after the file was deleted | `tests/client/shared.rs`: `a_record_that_is_lost…` |
//! | after an update, a pause of eight times its duration | 32 members on Redis conflict until their updates time out | `tests/redis`: `members_use_a_quota_up…` |
//! | a second try at once after a conflict on Redis | 4 members' updates time out | `tests/redis`: `members_use_a_quota_up…` |
//! | every change of the ledger grants permits | calls wait for the next check | `order::calls_go_in_the_order…`, `model` |
//! | a new block wakes all waiters | calls that may not wait so long fail late | `waiting::all_whose_wait_becomes_too_long…` |
//!
//! </details>

pub(crate) mod time;
pub(crate) mod view;

pub(crate) mod quota;

pub(crate) mod shared;

mod limiter;
mod queue;
mod registry;

#[cfg(test)]
mod tests;

pub(crate) use limiter::{Acquire, Limiter, Permit, Wait};
pub(crate) use quota::decision::Policy;
pub(crate) use registry::ClientLimiters;
#[cfg(feature = "file-store")]
pub use shared::file::FileStore;
#[cfg(feature = "redis")]
pub use shared::redis::RedisStore;
pub use shared::slot::MemberId;
pub(crate) use shared::store::AnyStore;
pub use shared::store::{Change, LimitStore, RecordKey, StoreError, StoreTime};
#[cfg(feature = "test-util")]
pub(crate) use time::TestClock;
pub use view::{
    BlockReason, Blocked, Plan, Priority, Quota, QuotaWindow, RateLimits, SharedStatus, WaitReason,
};
