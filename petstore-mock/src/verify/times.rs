//! How often something is to happen.

use std::{
    fmt,
    ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive},
};

/// How many requests there are to be: a number, or a range of them.
///
/// ```
/// use petstore_mock::Times;
///
/// assert!(Times::from(2).holds(2));
/// assert!(Times::from(1..).holds(7));
/// assert!(!Times::from(..=3).holds(4));
/// assert_eq!(Times::from(2..=3).to_string(), "2 to 3 requests");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    least: usize,
    /// Nothing if any number above `least` will do.
    most: Option<usize>,
}

impl Times {
    /// Returns whether so many are right.
    #[must_use]
    pub fn holds(self, count: usize) -> bool {
        count >= self.least && self.most.is_none_or(|most| count <= most)
    }

    /// Returns whether more than so many would be right as well.
    pub(super) fn holds_from(self, count: usize) -> bool {
        count >= self.least && self.most.is_none()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (_, Some(0)) => f.write_str("no request"),
            (1, Some(1)) => f.write_str("1 request"),
            (least, Some(most)) if least == most => write!(f, "{most} requests"),
            (0, Some(most)) => write!(f, "at most {most} requests"),
            (least, Some(most)) => write!(f, "{least} to {most} requests"),
            (least, None) => write!(f, "at least {least} requests"),
        }
    }
}

impl From<usize> for Times {
    fn from(count: usize) -> Self {
        Self { least: count, most: Some(count) }
    }
}

impl From<RangeFrom<usize>> for Times {
    fn from(range: RangeFrom<usize>) -> Self {
        Self { least: range.start, most: None }
    }
}

impl From<RangeInclusive<usize>> for Times {
    fn from(range: RangeInclusive<usize>) -> Self {
        Self { least: *range.start(), most: Some(*range.end()) }
    }
}

impl From<RangeToInclusive<usize>> for Times {
    fn from(range: RangeToInclusive<usize>) -> Self {
        Self { least: 0, most: Some(range.end) }
    }
}

impl From<Range<usize>> for Times {
    /// A range that holds no number holds for none.
    fn from(range: Range<usize>) -> Self {
        match range.end.checked_sub(1) {
            Some(last) => Self { least: range.start, most: Some(last) },
            None => Self { least: 1, most: Some(0) },
        }
    }
}

impl From<RangeTo<usize>> for Times {
    fn from(range: RangeTo<usize>) -> Self {
        (0..range.end).into()
    }
}
