//! Checks responses against the mock's OpenAPI documents: status, headers and body.

pub(crate) mod document;
mod watched;

pub(crate) use self::watched::Watched;
use document::{ADMINISTRATION, SERVICE};

/// A response to check against a document.
#[derive(Clone, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) method: &'a str,
    /// The path without the query.
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    /// The names of the headers are in lower case.
    pub(crate) headers: Vec<(&'a str, &'a str)>,
    /// The body; `None` if it is not completely known.
    pub(crate) body: Option<&'a [u8]>,
}

/// Returns how a response violates its document.
pub(crate) fn offence(answer: &Answer<'_>) -> Option<String> {
    // Unknown paths are in no document, but their errors must still have the documented shape.
    let is_admin = answer.path.starts_with("/_mock/");
    let document = if is_admin { &ADMINISTRATION } else { &SERVICE };
    let found = document.check(answer).err()?;
    Some(format!(
        "{} {} {}: {found}",
        answer.method, answer.path, answer.status
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Answer<'static> {
        let headers = [
            ("content-type", "application/json"),
            ("x-ratelimit-limit", "60"),
            ("x-ratelimit-remaining", "59"),
            ("x-ratelimit-reset", "1767225660"),
        ];
        Answer {
            method: "GET",
            path: "/v1/pets",
            status: 200,
            headers: headers.to_vec(),
            body: Some(br#"[{"id": 1, "name": "Rex", "categoryId": 7, "status": "sold"}]"#),
        }
    }

    #[test]
    fn an_answer_as_described_is_none() {
        assert_eq!(offence(&page()), None);
        assert_eq!(
            offence(&Answer {
                body: None,
                ..page()
            }),
            None
        );
        assert_eq!(
            offence(&Answer {
                method: "HEAD",
                body: Some(b""),
                ..page()
            }),
            None
        );
    }

    #[test]
    fn every_part_of_an_answer_is_looked_at() {
        let without = |name: &str| {
            let mut answer = page();
            answer.headers.retain(|(it, _)| *it != name);
            answer
        };
        let with = |name, value| {
            let mut answer = without(name);
            answer.headers.push((name, value));
            answer
        };
        for (answer, says) in [
            (
                Answer {
                    status: 204,
                    ..page()
                },
                "not described",
            ),
            (
                Answer {
                    method: "PUT",
                    ..page()
                },
                "expected one of",
            ),
            (
                Answer {
                    path: "/v1/animals",
                    ..page()
                },
                "expected one of",
            ),
            (without("x-ratelimit-reset"), "X-RateLimit-Reset is missing"),
            (with("x-ratelimit-limit", "sixty"), "X-RateLimit-Limit: "),
            (with("x-ratelimit-limit", "-1"), "X-RateLimit-Limit: "),
            (with("link", "</v1/pets>"), "Link: "),
            (with("content-type", "text/json"), "no media type"),
            (
                Answer {
                    body: Some(b"[{]"),
                    ..page()
                },
                "line 1",
            ),
            (
                Answer {
                    body: Some(br#"[{"id": 1, "name": "Rex"}]"#),
                    ..page()
                },
                "categoryId",
            ),
            (
                Answer {
                    body: Some(br#"[{"id": 1.5, "name": "", "categoryId": 1}]"#),
                    ..page()
                },
                "1.5",
            ),
            (
                Answer {
                    path: "/v1/animals",
                    status: 404,
                    body: Some(br#"{"code": "lost", "message": "x", "status": 404}"#),
                    ..page()
                },
                "lost is not described",
            ),
        ] {
            let found = offence(&answer).unwrap_or_default();
            assert!(found.contains(says), "{says}: {found}");
        }
    }
}
