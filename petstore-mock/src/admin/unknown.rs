//! What a path below `/_mock` is told that leads nowhere.

use http::Method;
use strsim::osa_distance;

use crate::{
    error::{ApiError, ErrorCode},
    printable::printable,
};

/// How many letters may be wrong, missing, too many or swapped.
const TYPOS: usize = 3;

/// Names the path that is most like this one, if any of those that are known is like it.
pub(super) fn unknown<'a>(
    method: &Method,
    path: &str,
    known: impl Iterator<Item = &'a str>,
) -> ApiError {
    let nearest =
        nearest(path, known).map_or_else(String::new, |it| format!(" did you mean {it}?"));
    let (method, path) = (printable(method.as_str()), printable(path));
    let message =
        format!("there is no {method} {path}:{nearest} GET /_mock/docs/admin shows what there is");
    ApiError::new(ErrorCode::RouteNotFound, message)
}

fn nearest<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // To compare takes time that grows with the square of the length.
    if path.len() > 100 {
        return None;
    }
    let path = path.trim_end_matches('/').to_ascii_lowercase();
    let last = path.rsplit('/').next().unwrap_or_default();
    let typos = |known: &str| {
        // Whatever stands for a number or a name is right.
        let wanted = if known.ends_with('}') {
            known.rsplit_once('/').map_or_else(String::new, |(it, _)| format!("{it}/{last}"))
        } else {
            known.to_owned()
        };
        osa_distance(&path, &wanted)
    };
    let near = known.map(|known| (typos(known), known)).filter(|(typos, _)| *typos <= TYPOS);
    near.min_by_key(|(typos, _)| *typos).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_what_was_meant() {
        let known = ["/_mock", "/_mock/clock", "/_mock/requests", "/_mock/keys/{id}"];
        for (path, meant) in [
            ("/_mock/clok", Some("/_mock/clock")),
            ("/_mock/Request/", Some("/_mock/requests")),
            ("/_mock/key/7", Some("/_mock/keys/{id}")),
            ("/_mocks", Some("/_mock")),
            ("/_mock/journal", None),
        ] {
            assert_eq!(nearest(path, known.into_iter()), meant, "{path}");
        }
        assert_eq!(nearest(&"/_mock".repeat(20), known.into_iter()), None);
    }
}
