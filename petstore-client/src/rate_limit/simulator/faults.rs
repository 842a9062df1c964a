//! What goes wrong: processes that stop, stores that are away, strangers, refusals without a reason.

use super::table::{Promise, Size, check};
use super::world::{Case, Sharing};

const FILE: Sharing = Sharing::Store(0);
const FOR_EVER: f64 = 1e6;

pub(super) fn stopped(size: Size) {
    for minute in size.of(&[60, 300, 1_000], 300) {
        for at in size.of(&[0.5, 1.5, 61.0, 100.0], 61.0) {
            for length in [10.0, FOR_EVER] {
                let mut case = Case::new(minute, 4, 8, FILE);
                case.begins = Some(1.0);
                case.stopped = Some((at, length));
                // In the simulation, the timers of a stopped process go on. So it takes its store for away, and for
                // a moment has what it would have without one in flight. Real processes are tested elsewhere.
                let refused = if length == FOR_EVER { 1 } else { 8 };
                let promise = Promise::used(0.97).refused(refused);
                let name = format!("{minute} a minute, stopped at {at} for {length}");
                check(&name, &case, promise, size);
            }
        }
        let mut case = Case::new(minute, 4, 8, FILE);
        case.begins = Some(1.0);
        case.store_deleted = vec![0.7, 30.0, 61.0, 121.5];
        // What the others have used meanwhile looks like the use of strangers for five minutes.
        let used = if minute == 60 { 0.95 } else { 0.97 };
        let promise = Promise::used(used).refused(1);
        check(&format!("{minute} a minute, deleted"), &case, promise, size);
    }
}

#[test]
fn a_stopped_process_or_a_deleted_file_costs_little() {
    stopped(Size::Usual);
}

pub(super) fn without_store(size: Size) {
    let losses = [
        (0.0, FOR_EVER),
        (1.0, FOR_EVER),
        (60.5, FOR_EVER),
        (60.5, 100.0),
        (100.0, 20.0),
    ];
    for minute in size.of(&[300, 1_000], 300) {
        for processes in size.of(&[4, 8, 16], 8) {
            for (at, length) in size.of(&losses, (60.5, FOR_EVER)) {
                for tasks in size.of(&[8, 64], 8) {
                    let mut case = Case::new(minute, processes, tasks, Sharing::Store(300));
                    case.begins = Some(1.0);
                    case.store_lost = Some((at, length));
                    let promise = Promise::used(0.90).refused(40);
                    let name =
                        format!("lost at {at} for {length}, {minute}, {processes} x {tasks}");
                    check(&name, &case, promise, size);
                }
            }
        }
    }
}

#[test]
fn processes_without_a_store_are_not_banned() {
    without_store(Size::Usual);
}

/// A large quota, and a slow service.
pub(super) fn without_store_at_the_bounds(size: Size) {
    let mut large = Case::new(20_000, 4, 64, Sharing::Store(300));
    large.store_lost = Some((0.0, FOR_EVER));
    large.minutes = 3;
    let promise = Promise::used(0.95).refused(40);
    check("without a store, 20,000 a minute", &large, promise, size);
    let mut slow = Case::new(1_000, 4, 16, Sharing::Store(300));
    slow.store_lost = Some((0.0, FOR_EVER));
    slow.latency = 0.5;
    check("without a store, 500 ms", &slow, promise, size);
}

pub(super) fn strangers(size: Size) {
    for minute in size.of(&[60, 300, 1_000], 300) {
        for tasks in size.of(&[1, 16, 64], 16) {
            let mut case = Case::new(minute, 4, tasks, Sharing::Nothing);
            case.minutes = 10;
            let refused = if minute == 60 { 20 } else { 10 };
            let promise = Promise::used(0.0).refused(refused);
            check(
                &format!("four strangers, {minute}, {tasks} tasks"),
                &case,
                promise,
                size,
            );
        }
        let mut case = Case::new(minute, 4, 16, FILE);
        case.tasks = vec![16, 16, 16, 64];
        case.last_is_a_stranger = true;
        let promise = Promise::used(0.0).refused(10);
        check(
            &format!("a stranger beside three, {minute}"),
            &case,
            promise,
            size,
        );
    }
}

/// Two of them are near, and use a window up while the requests of the others are on their way. If all start at
/// once and some are farther away than here, the first burst of those is refused, which may ban the key.
pub(super) fn near_and_far(size: Size) {
    for minute in size.of(&[60, 300, 1_000], 300) {
        for tasks in size.of(&[16, 64], 16) {
            for far in size.of(&[0.03, 0.1], 0.1) {
                let mut case = Case::new(minute, 4, tasks, Sharing::Nothing);
                case.latency = 0.002;
                case.far_latency = Some(far);
                case.spread = 0.05;
                // In the middle of a window, others may have used it up slowly, or in this moment.
                case.begins = Some(3.6);
                let promise = Promise::used(0.0).refused(20);
                check(
                    &format!("near and far strangers, {minute}, {tasks} tasks, {far} s"),
                    &case,
                    promise,
                    size,
                );
            }
        }
    }
}

#[test]
fn near_strangers_do_not_ban_the_key_of_far_ones() {
    near_and_far(Size::Usual);
}

#[test]
fn strangers_are_seldom_refused_and_not_banned() {
    strangers(Size::Usual);
}

pub(super) fn bursts(size: Size) {
    for minute in size.of(&[60, 300, 1_000], 300) {
        for tasks in size.of(&[1, 16, 64, 256], 64) {
            for burst in size.of(&[10, 40], 40) {
                let mut case = Case::new(minute, 1, tasks, Sharing::Nothing);
                case.bursts = burst;
                let promise = Promise::used(0.0).refused(10);
                check(
                    &format!("bursts of {burst}, {minute}, {tasks}"),
                    &case,
                    promise,
                    size,
                );
                let mut case = Case::new(minute, 4, tasks / 4 + 1, FILE);
                case.bursts = burst;
                check(
                    &format!("bursts of {burst}, {minute}, file"),
                    &case,
                    promise,
                    size,
                );
            }
        }
    }
}

#[test]
fn bursts_of_strangers_do_not_ban_the_key() {
    bursts(Size::Usual);
}

/// The service refuses two of a hundred without a reason.
pub(super) fn whims(size: Size) {
    for minute in size.of(&[60, 300], 300) {
        for (tasks, bans) in size.of(&[(1, 0), (8, 0), (16, 1)], (8, 0)) {
            let mut case = Case::new(minute, 1, tasks, Sharing::Nothing);
            case.model.whims = 0.02;
            let promise = Promise::used(0.0).refused(60).bans(bans);
            check(
                &format!("two of a hundred refused, {minute}, {tasks}"),
                &case,
                promise,
                size,
            );
        }
    }
}

#[test]
fn refusals_without_a_reason_do_not_ban_the_key() {
    whims(Size::Usual);
}

/// Five of a hundred requests get no response for half a minute, as after a cold start.
pub(super) fn hanging(size: Size) {
    let mut case = Case::new(60, 4, 16, FILE);
    case.model.hangs = 0.05;
    case.minutes = 10;
    let promise = Promise::used(0.90).refused(2);
    check("five of a hundred hang", &case, promise, size);
}

#[test]
fn probes_that_hang_hold_up_nobody() {
    hanging(Size::Usual);
}
