//! Processes that share a store: none is refused, nobody starves, and all is used.

use super::table::{Promise, Size, check, run};
use super::world::{Case, Sharing};

const FILE: Sharing = Sharing::Store(0);

pub(super) fn file(size: Size) {
    for minute in size.of(&[60, 300, 1_000, 20_000], 300) {
        for processes in size.of(&[2, 4, 8, 16, 64], 8) {
            for tasks in size.of(&[1, 8], 8) {
                let mut case = Case::new(minute, processes, tasks, FILE);
                if minute == 20_000 {
                    case.minutes = 2;
                }
                let fairness = if processes == 64 && minute == 60 {
                    0.4
                } else {
                    0.8
                };
                // One task a process cannot use 20,000 a minute.
                let can_use = (processes * tasks * 600) as f64 / minute as f64;
                let used = if can_use > 1.2 { 0.99 } else { 0.0 };
                let promise = Promise::used(used).fairness(fairness);
                let name = format!("file, {minute} a minute, {processes} x {tasks}");
                check(&name, &case, promise, size);
            }
        }
    }
}

#[test]
fn processes_with_a_file_use_all_and_get_alike() {
    file(Size::Usual);
}

pub(super) fn redis(size: Size) {
    for minute in size.of(&[300, 1_000, 20_000], 1_000) {
        for processes in size.of(&[4, 16], 4) {
            for micros in size.of(&[300, 20_000, 250_000], 20_000) {
                if minute == 20_000 && micros == 250_000 {
                    continue;
                }
                let mut case = Case::new(minute, processes, 16, Sharing::Store(micros));
                if minute == 20_000 {
                    case.minutes = 2;
                }
                let can_use = (processes * 16 * 600) as f64 / minute as f64;
                let used = if can_use > 1.5 { 0.97 } else { 0.0 };
                let name = format!("{micros} µs away, {minute} a minute, {processes} x 16");
                check(&name, &case, Promise::used(used), size);
            }
        }
    }
}

#[test]
fn a_store_that_is_far_away_costs_little() {
    redis(Size::Usual);
}

pub(super) fn unequal(size: Size) {
    for minute in size.of(&[60, 300, 1_000], 300) {
        let mut case = Case::new(minute, 4, 1, FILE);
        case.tasks = vec![64, 8, 8, 1];
        let promise = Promise::used(0.97);
        let promise = if minute == 1_000 {
            // One task can only do 600.
            promise
        } else {
            promise.fairness(0.75)
        };
        check(
            &format!("{minute} a minute, 64, 8, 8 and 1 tasks"),
            &case,
            promise,
            size,
        );
        case.tasks = vec![64, 64, 64, 1];
        case.thinks = vec![0.0, 0.0, 0.0, 1.0];
        check(
            &format!("{minute} a minute, a light user"),
            &case,
            Promise::used(0.97),
            size,
        );
    }
}

#[test]
fn processes_with_unequal_tasks_get_what_they_can_use() {
    unequal(Size::Usual);
}

/// An import beside `xargs -P 16` of short commands gets at least half of its part, one seventeenth.
pub(super) fn import_beside_commands(size: Size) {
    let mut case = Case::new(60, 1, 8, FILE);
    case.commands = 16;
    case.minutes = 10;
    for outcome in run("an import beside 16 commands", &case, size) {
        let part = outcome.done.iter().sum::<u64>() as f64 / 17.0;
        assert_eq!((outcome.refused, outcome.bans), (0, 0));
        assert!(outcome.used >= 0.97, "{outcome:?}");
        assert!(outcome.done[0] as f64 >= part / 2.0, "{outcome:?}");
        assert!(outcome.done[1] as f64 >= part * 8.0, "{outcome:?}");
    }
}

#[test]
fn an_import_is_not_starved_by_short_commands() {
    import_beside_commands(Size::Usual);
}
