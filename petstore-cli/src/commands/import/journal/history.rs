//! What a journal shows about ids: the range of ids in which the pet of an unknown row must be.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// After this many ids in a row that each exceed all earlier ones, the service counts as assigning
/// rising ids. If two machines assign ids from two ranges, 16 ids rise by chance in one of 65,536
/// journals, and eight in one of 256.
const MIN_RISING: u32 = 16;

/// A range of ids, which includes its ends. An end that is the lowest or highest possible id means
/// that the range is open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IdWindow {
    first: i64,
    last: i64,
}

impl IdWindow {
    pub(crate) const ALL: Self = Self {
        first: i64::MIN,
        last: i64::MAX,
    };

    /// Creates the range of the ids between two others.
    pub(crate) fn between(above: Option<i64>, below: Option<i64>) -> Self {
        Self {
            first: above.map_or(i64::MIN, |id| id.saturating_add(1)),
            last: below.map_or(i64::MAX, |id| id.saturating_sub(1)),
        }
    }

    pub(crate) fn first(self) -> i64 {
        self.first
    }

    pub(crate) fn last(self) -> i64 {
        self.last
    }

    pub(crate) fn join(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
        }
    }
}

/// A row that was sent and has no certain outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sending {
    /// The highest id that was recorded before the row was sent.
    above: Option<i64>,
    /// The number of ids recorded before the row was sent, each of which exceeded all earlier ones.
    rising: u32,
    /// In milliseconds since 1970, like all times here.
    at: u64,
    /// When the loss was recorded. The row was not sent after that.
    lost_at: Option<u64>,
    /// The number of the run that sent it.
    run: usize,
}

/// Rows that were announced together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Block {
    from: usize,
    until: usize,
    above: Option<i64>,
}

/// The order of requests and of recorded ids.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    lowest: Option<i64>,
    highest: Option<i64>,
    rising: u32,
    /// Whether some id does not exceed an id that was recorded before its row was sent. Then ids do
    /// not rise.
    has_fallen: bool,
    sendings: HashMap<usize, Sending>,
    blocks: Vec<Block>,
    /// The range of ids that each run recorded.
    runs: Vec<Option<IdWindow>>,
    /// The lowest id of the rows that were sent in each second.
    by_second: BTreeMap<u64, i64>,
    /// The longest time that a request of this import may take to arrive, in milliseconds.
    limit: u64,
    /// The latest recorded time.
    latest: u64,
}

impl History {
    /// Returns the time of a record, but none before that of an earlier record: if the clock was set
    /// back between two runs, rows of the first would count as sent after those of the second.
    fn not_before(&mut self, at: u64) -> u64 {
        self.latest = self.latest.max(at);
        self.latest
    }

    /// Records the start of a run. Its requests arrive within `limit`.
    pub(super) fn start(&mut self, at: u64, limit: Duration) {
        let at = self.not_before(at);
        for sending in self.sendings.values_mut() {
            sending.lost_at.get_or_insert(at);
        }
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        self.limit = self.limit.max(limit);
        self.runs.push(None);
    }

    pub(super) fn announce(&mut self, from: usize, rows: usize) {
        self.blocks.push(Block {
            from,
            until: from + rows,
            above: self.highest,
        });
    }

    pub(super) fn send(&mut self, row: usize, at: u64) {
        let at = self.not_before(at);
        let mut sending = Sending {
            above: self.highest,
            rising: self.rising,
            at,
            lost_at: None,
            run: self.runs.len().saturating_sub(1),
        };
        if let Some(before) = self.sendings.get(&row) {
            // The row is sent again, although the first request may have been processed.
            sending.above = before.above.min(sending.above);
        }
        self.sendings.insert(row, sending);
    }

    pub(super) fn lose(&mut self, row: usize, at: u64) {
        let at = self.not_before(at);
        if let Some(sending) = self.sendings.get_mut(&row) {
            sending.lost_at = Some(at);
        }
    }

    /// Records the id in the response to a row.
    pub(super) fn create(&mut self, row: usize, id: i64) {
        if let Some(sending) = self.sendings.remove(&row) {
            self.has_fallen |= sending.above.is_some_and(|above| id <= above);
            self.rising = self.rising.max(sending.rising + 1);
            let lowest = self.by_second.entry(sending.at / 1_000).or_insert(id);
            *lowest = id.min(*lowest);
            if let Some(run) = self.runs.get_mut(sending.run) {
                let own = IdWindow {
                    first: id,
                    last: id,
                };
                *run = Some(run.map_or(own, |run| run.join(own)));
            }
        }
        self.lowest = Some(self.lowest.map_or(id, |lowest| lowest.min(id)));
        self.highest = self.highest.max(Some(id));
    }

    /// Records that all requests of a row have outcomes.
    pub(super) fn settle(&mut self, row: usize) {
        self.sendings.remove(&row);
    }

    /// Returns how long a request may take to arrive.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_millis(self.limit)
    }

    /// Returns the lowest recorded id.
    pub(crate) fn lowest(&self) -> Option<i64> {
        self.lowest
    }

    /// Returns whether the recorded ids show that ids rise. A few ids may rise by chance.
    pub(crate) fn shows_rising(&self) -> bool {
        !self.has_fallen && self.rising >= MIN_RISING
    }

    pub(crate) fn windows(&self) -> IdWindows<'_> {
        let mut lowest_since = BTreeMap::new();
        let mut lowest = i64::MAX;
        for (second, id) in self.by_second.iter().rev() {
            lowest = lowest.min(*id);
            lowest_since.insert(*second, lowest);
        }
        IdWindows {
            history: self,
            lowest_since,
        }
    }
}

/// The windows of unknown rows.
pub(crate) struct IdWindows<'h> {
    history: &'h History,
    /// The lowest id of the rows that were sent in a second or later.
    lowest_since: BTreeMap<u64, i64>,
}

impl IdWindows<'_> {
    /// Returns the ids that the pet of a row may have. They are above all ids that were recorded
    /// before the row was sent. They are below all ids of rows that were sent when the row's
    /// request could no longer arrive.
    pub(crate) fn of(&self, row: usize) -> IdWindow {
        let history = self.history;
        if history.has_fallen {
            return IdWindow::ALL;
        }
        let Some(sending) = history.sendings.get(&row) else {
            return self.since_announced(row);
        };
        let below = sending.lost_at.and_then(|lost_at| {
            let arrived = lost_at.saturating_add(history.limit).div_ceil(1_000);
            let (_, lowest) = self.lowest_since.range(arrived..).next()?;
            Some(*lowest)
        });
        IdWindow::between(sending.above, below)
    }

    /// Returns the known ids of the time in which a row was sent: its window, and the ids of its
    /// whole run. A stranger that created pets in this range may also have created the pet that
    /// looks like the row's.
    pub(crate) fn around(&self, row: usize) -> IdWindow {
        let window = self.of(row);
        let sending = self.history.sendings.get(&row);
        let run = sending.and_then(|sending| *self.history.runs.get(sending.run)?);
        match run {
            Some(run) => run.join(window),
            None => window,
        }
    }

    /// Returns the window of a row whose record of sending was lost. Its announcement is certainly
    /// on the disk.
    fn since_announced(&self, row: usize) -> IdWindow {
        let mut blocks = self.history.blocks.iter();
        let block = blocks.find(|block| block.from <= row && row < block.until);
        IdWindow::between(block.and_then(|block| block.above), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal whose rows are sent in these milliseconds, one after the other, and get these ids.
    fn history(sent: &[(u64, Option<i64>)]) -> History {
        let mut history = History::default();
        history.start(0, Duration::from_secs(2));
        history.announce(0, sent.len());
        for (row, (at, id)) in sent.iter().enumerate() {
            history.send(row, *at);
            match id {
                Some(id) => history.create(row, *id),
                None => history.lose(row, *at + 500),
            }
        }
        history
    }

    fn window(sent: &[(u64, Option<i64>)], row: usize) -> (i64, i64) {
        let history = history(sent);
        let window = history.windows().of(row);
        (window.first(), window.last())
    }

    #[test]
    fn a_row_is_above_recorded_ids_and_below_later_ids() {
        let lost = [
            (0, Some(5)),
            (1_000, None),
            (3_000, Some(8)),
            (4_000, Some(9)),
        ];
        assert_eq!(window(&lost, 1), (6, 8));
        // The third row was sent when the second one could still arrive.
        let open = [(0, Some(5)), (1_000, None), (3_400, Some(8))];
        assert_eq!(window(&open, 1), (6, i64::MAX));
        assert_eq!(window(&[(0, None), (9_000, Some(3))], 0), (i64::MIN, 2));
    }

    #[test]
    fn there_is_no_window_once_an_id_does_not_exceed_those_before() {
        let falling = [(0, Some(5)), (1_000, None), (9_000, Some(5))];
        assert_eq!(window(&falling, 1), (i64::MIN, i64::MAX));
    }

    #[test]
    fn rows_in_flight_together_may_get_their_ids_in_any_order() {
        let mut history = History::default();
        (0..3).for_each(|row| history.send(row, 0));
        history.create(2, 7);
        history.create(0, 5);
        assert_eq!((history.has_fallen, history.rising), (false, 1));
        assert_eq!(history.windows().of(1), IdWindow::ALL);
    }

    #[test]
    fn a_row_without_a_record_is_above_ids_recorded_before_it() {
        let mut history = history(&[(0, Some(5)), (0, Some(6))]);
        history.announce(2, 4);
        history.send(2, 50);
        history.create(2, 7);
        history.announce(6, 2);
        let first = |row| history.windows().of(row).first();
        assert_eq!((first(3), first(5), first(6), first(7)), (7, 7, 8, 8));
        assert_eq!(history.windows().of(8), IdWindow::ALL);
    }

    #[test]
    fn a_row_that_is_sent_again_may_be_the_first_pet_or_the_second() {
        let mut history = history(&[(0, Some(5)), (0, None), (0, Some(6))]);
        history.send(1, 9_000);
        assert_eq!(history.windows().of(1).first(), 6);
    }

    #[test]
    fn a_row_that_was_settled_begins_anew() {
        // The service has rejected the row, so that the first request created no pet.
        let mut history = history(&[(0, Some(5)), (0, None)]);
        history.settle(1);
        history.send(2, 100);
        history.create(2, 6);
        history.send(1, 9_000);
        assert_eq!(history.windows().of(1).first(), 7);
    }

    #[test]
    fn a_run_that_begins_ends_the_sending_of_all_rows_before() {
        let mut history = history(&[(0, Some(5))]);
        history.send(1, 100);
        history.start(5_000, Duration::from_secs(1));
        history.send(2, 7_000);
        history.create(2, 9);
        let window = history.windows().of(1);
        assert_eq!((window.first(), window.last()), (6, 8));
        assert_eq!(history.limit(), Duration::from_secs(2));
    }

    #[test]
    fn a_clock_that_was_set_back_closes_no_window() {
        let mut history = history(&[(100_000, Some(5)), (200_000, Some(6))]);
        history.start(10_000, Duration::from_secs(2));
        history.send(2, 11_000);
        history.lose(2, 11_500);
        let window = |history: &History| history.windows().of(2);
        assert_eq!(window(&history), IdWindow::between(Some(6), None));
        // Once the clock shows a later time than before, there are bounds again.
        history.send(3, 203_000);
        history.create(3, 9);
        assert_eq!(window(&history), IdWindow::between(Some(6), Some(9)));
    }

    #[test]
    fn the_lowest_id_of_a_second_bounds_the_rows_before_it() {
        let mut history = history(&[(0, None)]);
        history.send(1, 4_000);
        history.send(2, 4_001);
        history.create(2, 8);
        history.create(1, 9);
        assert_eq!(history.windows().of(0).last(), 7);
    }

    #[test]
    fn around_a_row_are_the_ids_of_its_own_run() {
        let mut history = history(&[(0, Some(5))]);
        history.start(5_000, Duration::from_secs(2));
        history.send(1, 6_000);
        history.lose(1, 6_500);
        history.send(2, 9_000);
        history.create(2, 9);
        history.send(3, 9_100);
        history.create(3, 30);
        let windows = history.windows();
        let (window, around) = (windows.of(1), windows.around(1));
        assert_eq!((window.first(), window.last()), (6, 8));
        assert_eq!((around.first(), around.last()), (6, 30));
    }

    #[test]
    fn few_ids_do_not_show_that_ids_rise() {
        let sent = |rows: i64| (0..rows).map(|id| (0, Some(id))).collect::<Vec<_>>();
        assert!(!history(&sent(15)).shows_rising());
        assert!(history(&sent(16)).shows_rising());
    }
}
