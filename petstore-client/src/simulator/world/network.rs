//! The network: random, or from a list, which proptest can shrink.

use super::rng::Rng;

/// The latency of one request in both directions, in microseconds, and its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::simulator) struct RoundTrip {
    pub(in crate::simulator) there: i64,
    pub(in crate::simulator) back: i64,
    pub(in crate::simulator) end: End,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::simulator) enum End {
    Answered,
    /// Cancelled this long after it was sent. The service still receives it.
    Cancelled(i64),
    /// Never received by the service. The client notices this long after it was sent.
    LostThere(i64),
    /// Received, but the response is lost. The client notices this long after it was written.
    LostBack(i64),
    /// Cancelled before it was sent.
    Dropped,
}

#[derive(Debug, Clone)]
pub(in crate::simulator) enum Network {
    /// `way` is the minimum latency in one direction, and the maximum of a random addition. One
    /// request in fifty takes much longer, so that others overtake it. The other fields are numbers
    /// per thousand requests: lost in either direction, cancelled in flight, dropped unsent.
    Chance {
        way: (i64, i64),
        lost: u32,
        cancelled: u32,
        dropped: u32,
    },
    /// Round trips with a log-normal distribution, half of it each way: the median, and the standard
    /// deviation of the logarithm.
    LogNormal { median: i64, deviation: f64 },
    /// Uses these in turn, and starts over after the last one.
    List(Vec<RoundTrip>),
}

impl Network {
    /// A network that loses nothing: about 95 ms there and back.
    pub(in crate::simulator) const FAIR: Self = Self::Chance {
        way: (35_000, 25_000),
        lost: 0,
        cancelled: 0,
        dropped: 0,
    };

    pub(in crate::simulator) fn round_trip(&self, number: usize, rng: &mut Rng) -> RoundTrip {
        match self {
            Self::List(trips) => trips[number % trips.len()],
            Self::LogNormal { median, deviation } => {
                let round_trip = *median as f64 * (deviation * rng.normal()).exp();
                let way = round_trip as i64 / 2;
                RoundTrip {
                    there: way,
                    back: way,
                    end: End::Answered,
                }
            }
            Self::Chance {
                way,
                lost,
                cancelled,
                dropped,
            } => {
                let [there, back] = [0; 2].map(|_| chance_way(*way, rng));
                let end = if rng.in_thousand(*dropped) {
                    End::Dropped
                } else if rng.in_thousand(*lost) {
                    // Half of the losses are noticed at once, and the others by a time-out.
                    End::LostThere(there + rng.below(2) * 2_000_000)
                } else if rng.in_thousand(*lost) {
                    End::LostBack(back + 2_000_000)
                } else if rng.in_thousand(*cancelled) {
                    End::Cancelled(rng.below(2 * (way.0 + way.1) + 1))
                } else {
                    End::Answered
                };
                RoundTrip { there, back, end }
            }
        }
    }
}

fn chance_way((least, more): (i64, i64), rng: &mut Rng) -> i64 {
    let more = if rng.in_thousand(20) { 4 * more } else { more };
    least + rng.below(more + 1)
}
