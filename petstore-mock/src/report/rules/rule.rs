//! What a rule is, and the list of them.

use std::fmt;

use super::{
    back_off::BackOff, banned::Banned, burst::Burst, deprecated::Deprecated, keep_alive::KeepAlive,
    key_in_url::KeyInUrl, key_scheme::KeyScheme, remaining_zero::RemainingZero,
    repeated_error::RepeatedError, repeated_post::RepeatedPost, told_to_wait::ToldToWait,
    user_agent::UserAgent,
};
use crate::{
    exchange::Record,
    report::finding::{About, Finding},
};

/// A request that was answered, or that will never be.
#[derive(Clone, Copy, Debug)]
pub(in crate::report) struct Sent<'a> {
    pub(in crate::report) record: &'a Record,
    /// Whether its key sends one request at a time, so that it was sent after the ones before it
    /// were answered.
    pub(in crate::report) alone: bool,
}

/// A rule: a state machine in bounded memory.
pub(in crate::report) trait Rule: fmt::Debug + Send {
    fn about(&self) -> &'static About;

    /// Takes a request in that has ended, and adds to the finding if it broke the rule.
    fn ended(&mut self, sent: Sent<'_>, finding: &mut Finding);

    /// Takes in that the client did not get the answer to a request that ended.
    fn lost(&mut self, _: &Record) {}
}

/// Returns every rule.
pub(in crate::report) fn all() -> Vec<Box<dyn Rule>> {
    vec![
        Box::<ToldToWait>::default(),
        Box::<Banned>::default(),
        Box::<BackOff>::default(),
        Box::<RepeatedPost>::default(),
        Box::<KeyInUrl>::default(),
        Box::<KeyScheme>::default(),
        Box::<RemainingZero>::default(),
        Box::<Burst>::default(),
        Box::<RepeatedError>::default(),
        Box::<Deprecated>::default(),
        Box::<KeepAlive>::default(),
        Box::<UserAgent>::default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_names_every_rule() {
        let readme = include_str!("../../../README.md");
        for rule in all() {
            let About { rule, title, severity, .. } = rule.about();
            let line = readme.lines().find(|line| line.starts_with(&format!("| `{rule}` |")));
            let line = line.expect(rule);
            assert!(line.contains(title) && line.ends_with(&format!("| {severity} |")), "{line}");
        }
        assert_eq!(readme.matches("| violation |").count(), 5);
    }
}
