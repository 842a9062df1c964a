//! Checks responses against the mock's OpenAPI documents: status, headers and body.

pub(crate) mod document;
mod watched;

use http::{HeaderMap, HeaderValue};

pub(crate) use self::watched::Watched;
use document::{ADMINISTRATION, SERVICE};

/// A response to check against a document.
#[derive(Clone, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) method: &'a str,
    /// The path without the query.
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
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

type Change = fn(&mut Answer<'_>);

fn set(answer: &mut Answer<'_>, name: &'static str, value: &'static str) {
    let value = HeaderValue::from_static(value);
    answer.headers.insert(name, value);
}

#[test]
fn every_part_of_an_answer_is_looked_at() {
    let mut page = Answer {
        method: "GET",
        path: "/v1/pets",
        status: 200,
        headers: HeaderMap::new(),
        body: Some(br#"[{"id": 1, "name": "Rex", "categoryId": 7, "status": "sold"}]"#),
    };
    for (name, value) in [
        ("content-type", "application/json"),
        ("x-ratelimit-limit", "60"),
        ("x-ratelimit-remaining", "59"),
        ("x-ratelimit-reset", "1767225660"),
    ] {
        set(&mut page, name, value);
    }
    assert_eq!(offence(&page), None);
    let changes: [(Change, &str); 6] = [
        (|page| page.status = 204, "not described"),
        (|page| page.method = "PUT", "expected one of"),
        (
            |page| drop(page.headers.remove("x-ratelimit-reset")),
            "Reset is missing",
        ),
        (|page| set(page, "x-ratelimit-limit", "-1"), "-Limit: "),
        (|page| set(page, "content-type", "a/b"), "no media type"),
        (|page| page.body = Some(br#"[{"id": 1}]"#), "name"),
    ];
    for (change, says) in changes {
        let mut changed = page.clone();
        change(&mut changed);
        let found = offence(&changed).unwrap_or_default();
        assert!(found.contains(says), "{says}: {found}");
    }
}
