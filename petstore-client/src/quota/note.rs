//! What the processes that share a key leave for each other: the state, and where the service's
//! clock stands by the machine's.
//!
//! Where it is kept, and who may write, is left to `gate`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::keeper::Keeper;
use super::state::State;
use super::time::{Local, Time};

/// Changes with each change of what is written: another version's note is no note.
const VERSION: u32 = 2;
/// A note that is from further in the future was left before the machine's clock was set back.
const FUTURE: Duration = Duration::from_secs(1);

#[derive(Serialize)]
struct Written<'k> {
    version: u32,
    wall: Time,
    ahead: Option<(i64, i64)>,
    state: &'k State,
}

#[derive(Deserialize)]
struct Read {
    version: u32,
    /// What the machine's clock showed.
    wall: Time,
    /// How far the service's clock is ahead of the wall clock, at least and at most.
    ahead: Option<(i64, i64)>,
    state: State,
}

impl Keeper {
    /// Returns all that other processes have to know, as one line. `wall` is this machine's clock.
    pub(crate) fn note(&mut self, now: Local, wall: Time) -> Vec<u8> {
        if let (Some((floor, _)), Some(block)) = (self.floor, &mut self.state.block)
            && now < floor
        {
            // Others may know the service's clock better, and must not be early for that.
            block.until = block.until.max(self.clock.latest(floor));
        }
        let skew = wall.0.saturating_sub(now.0);
        let ahead = self.clock.bounds();
        let ahead = ahead.map(|(a, b)| (a.saturating_sub(skew), b.saturating_sub(skew)));
        let note = Written { version: VERSION, wall, ahead, state: &self.state };
        // Nothing in it can fail to be written; an empty note is like none.
        let mut line = serde_json::to_vec(&note).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Takes over another process's note; returns whether it was one.
    pub(crate) fn take_over(&mut self, note: &[u8], now: Local, wall: Time) -> bool {
        // What is behind the line is the rest of an older, longer one.
        let line = note.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let Ok(Read { version: VERSION, wall: written, ahead, state }) =
            serde_json::from_slice(line)
        else {
            return false;
        };
        if written > wall.after(FUTURE) {
            return false;
        }
        self.state = state;
        self.clock.move_by(self.state.set_by.saturating_sub(self.set_by));
        self.set_by = self.state.set_by;
        if let Some((least, most)) = ahead {
            let skew = wall.0.saturating_sub(now.0);
            self.clock.adopt((least.saturating_add(skew), most.saturating_add(skew)));
        }
        self.state.expire(self.clock.earliest(now));
        true
    }

    /// Takes in that no note can be had: there may be others whom this process cannot see.
    pub(crate) fn on_its_own(&mut self, now: Local) {
        self.state.expire(self.clock.earliest(now));
        self.state.suspect_strangers();
    }
}

#[cfg(test)]
mod tests {
    use super::super::keeper::Head;
    use super::super::policy::Policy;
    use super::super::state::Ticket;
    use super::super::verdict::Verdict;
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn go(keeper: &mut Keeper, at: i64) -> Ticket {
        match keeper.verdict(Local(at), &Policy::default()) {
            Verdict::Go(pass) => keeper.grant(Local(at), pass),
            held => panic!("{held:?}"),
        }
    }

    fn tell(keeper: &mut Keeper, ticket: Ticket, (sent, now): (i64, i64), date: i64, wait: u64) {
        let retry_after = (wait > 0).then(|| Duration::from_secs(wait));
        let status = if wait > 0 { 429 } else { 200 };
        let head = Head { status, date: Some(Time(date * SECOND)), rate: None, retry_after };
        keeper.answered(ticket, Local(sent), Local(now), &head, Duration::ZERO);
    }

    #[test]
    fn a_process_that_knows_the_clock_better_is_not_early_for_that() {
        let mut one = Keeper::new(Local(0), Time(0));
        let first = go(&mut one, 0);
        tell(&mut one, first, (0, 100_000), 101, 0);
        let (refused, other) = (go(&mut one, 900_000), go(&mut one, 900_000));
        tell(&mut one, refused, (900_000, SECOND), 101, 10);
        let note = one.note(Local(SECOND), Time(SECOND));
        let mut two = Keeper::new(Local(0), Time(0));
        assert!(two.take_over(&note, Local(SECOND), Time(SECOND)));
        // The service's clock is nearly a second further than the first process knew.
        tell(&mut two, other, (900_000, 1_010_000), 102, 0);
        let held = two.verdict(Local(10_990_000), &Policy::default());
        assert!(matches!(held, Verdict::Blocked(_)), "{held:?}");
    }

    #[test]
    fn one_process_tells_the_others_that_the_services_clock_was_set() {
        let (mut one, mut two) = (Keeper::new(Local(0), Time(0)), Keeper::new(Local(0), Time(0)));
        let first = go(&mut one, 0);
        tell(&mut one, first, (0, SECOND), 9_001, 0);
        assert!(two.take_over(&one.note(Local(SECOND), Time(SECOND)), Local(SECOND), Time(SECOND)));
        let refused = go(&mut one, SECOND);
        tell(&mut one, refused, (SECOND, 2 * SECOND), 1_802, 10);
        let note = one.note(Local(2 * SECOND), Time(2 * SECOND));
        assert!(two.take_over(&note, Local(2 * SECOND), Time(2 * SECOND)));
        let held = |at| matches!(two.verdict(Local(at), &Policy::default()), Verdict::Blocked(_));
        assert!(held(11_900_000) && !held(14 * SECOND));
    }

    #[test]
    fn a_note_from_before_the_machines_clock_was_set_back_is_none() {
        let (mut one, mut two) = (Keeper::new(Local(0), Time(0)), Keeper::new(Local(0), Time(0)));
        let note = one.note(Local(0), Time(3_600 * SECOND));
        assert!(!two.take_over(&note, Local(0), Time(0)));
        assert!(two.take_over(&note, Local(0), Time(3_600 * SECOND)));
    }
}
