//! Suggestions for mistyped names.

/// Returns the candidate most similar to a name, if any is similar. Case does not count.
pub(crate) fn similar<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    const MIN_LIKENESS: f64 = 0.75;

    let name = plain(name);
    let mut likest = None;
    let mut most = MIN_LIKENESS;
    for other in candidates {
        let likeness = strsim::jaro_winkler(&name, &plain(other));
        // Of equals, the last one counts.
        if likeness > MIN_LIKENESS && likeness >= most {
            most = likeness;
            likest = Some(other);
        }
    }
    likest
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// Asks whether the user meant the most similar candidate, if there is one.
pub(crate) fn did_you_mean<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<String> {
    let meant = similar(name, candidates)?;
    Some(format!("did you mean `{meant}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let known = ["output", "base_url"];
        for name in ["base_ulr", "base-url", "BASE_URL"] {
            assert_eq!(similar(name, known), Some("base_url"));
        }
        assert_eq!(similar("zzz", known), None);
    }
}
