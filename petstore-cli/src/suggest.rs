//! What was meant by a name that does not exist.

/// Returns the candidate that is most like a name, if any is like it.
pub(crate) fn similar<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    let likeness = |candidate: &&str| strsim::jaro_winkler(name, candidate);
    let best = candidates.into_iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(&best) > 0.7).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_alike_and_nothing_else() {
        assert_eq!(similar("base_ulr", ["output", "base_url"]), Some("base_url"));
        assert_eq!(similar("zzz", ["output", "base_url"]), None);
    }
}
