//! Property tests of the parsers of untrusted text: they accept valid values, reject invalid ones,
//! and agree with a naive second implementation.

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::{Value, json};

use crate::error::{ErrorResponse, MAX_ERROR_BODY};
use crate::rate_limit::QuotaWindow;
use crate::rate_limit::quota::reading::ResponseHead;
use crate::wire::base_url::{BaseUrl, same_origin};
use crate::wire::headers::{digits, http_date, link_targets, retry_after};
use crate::wire::redact::{Redactor, printable};

const CASES: u32 = 2_000;
const NOW: u64 = 1_800_000_000;
/// The first second of the year 10000.
const END: u64 = 253_402_300_800;

/// Tries as many cases as `cases`. They are the same in each run, unless `PROPTEST_RNG_SEED` names
/// another seed.
pub(crate) fn check<S: Strategy>(
    strategy: S,
    (cases, seed): (u32, u64),
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    let default = Config::default();
    let seed = match default.rng_seed {
        RngSeed::Random => seed,
        RngSeed::Fixed(other) => other,
    };
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        max_global_rejects: u32::MAX,
        ..default
    };
    match TestRunner::new(config).run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => {
            panic!("{why}\nin the smallest case found, with PROPTEST_RNG_SEED={seed}: {case:#?}")
        }
        Err(error) => panic!("{error}"),
    }
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn map(name: &HeaderName, values: &[String]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for value in values
        .iter()
        .filter_map(|value| HeaderValue::from_str(value).ok())
    {
        map.append(name.clone(), value);
    }
    map
}

/// Generates a valid number, a number at a bound, or an invalid one.
fn number() -> impl Strategy<Value = String> {
    let odd = [
        "",
        "-1",
        "+1",
        "1.0",
        "1e3",
        "NaN",
        "0x1",
        "18446744073709551616",
        "007",
    ];
    prop_oneof![
        3 => (0..5_000_u64).prop_map(|number| number.to_string()),
        2 => any::<u64>().prop_map(|number| number.to_string()),
        1 => select(odd.to_vec()).prop_map(str::to_owned),
    ]
}

/// Parses a number, independently of the code under test.
fn naive(text: &str) -> Option<u64> {
    let mut number = 0_u128;
    for c in text.trim().chars() {
        number = number.checked_mul(10)? + u128::from(c.is_ascii().then(|| c.to_digit(10))??);
    }
    u64::try_from(number)
        .ok()
        .filter(|_| !text.trim().is_empty())
}

#[test]
fn a_number_is_digits_and_nothing_else() {
    check(
        prop_oneof![number(), any::<String>()],
        (CASES, 31),
        |text| {
            prop_assert_eq!(digits(text.trim().as_bytes()), naive(&text));
            Ok(())
        },
    );
}

#[test]
fn a_date_is_read_in_every_form_and_what_is_read_can_be_written() {
    check((0..END, any::<String>()), (CASES, 32), |(seconds, text)| {
        let fixed = httpdate::fmt_http_date(at(seconds));
        prop_assert_eq!(http_date(&fixed), Some(at(seconds)), "{}", fixed);
        // `Sun, 06 Nov 1994 08:49:37 GMT` is `Sun Nov  6 08:49:37 1994`.
        let [day, date, month, year, time, _] =
            fixed.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let date = date.trim_start_matches('0');
        let asctime = format!(
            "{} {month} {date:>2} {time} {year}",
            day.trim_end_matches(',')
        );
        prop_assert_eq!(http_date(&asctime), Some(at(seconds)), "{}", asctime);
        if let Some(read) = http_date(&text) {
            prop_assert_eq!(http_date(&httpdate::fmt_http_date(read)), Some(read));
        }
        Ok(())
    });
}

#[test]
fn the_longest_wait_counts_and_the_most_restrictive_figures() {
    let lines = || vec(vec(number(), 1..4).prop_map(|list| list.join(", ")), 0..3);
    check(
        (lines(), lines(), lines()),
        (CASES, 33),
        |(waits, limits, resets)| {
            let numbers = |lines: &[String]| -> Vec<u64> {
                lines
                    .iter()
                    .flat_map(|line| line.split(','))
                    .filter_map(naive)
                    .collect()
            };
            // Smaller numbers are seconds, larger ones instants in seconds or milliseconds.
            let instant = |number: u64| match number {
                ..1_000_000_000 => Some(NOW + number),
                1_000_000_000..100_000_000_000 => Some(number),
                _ => Some(number.div_ceil(1_000)).filter(|number| *number < 253_370_764_800),
            };
            let wait = |line: &String| {
                Some(
                    instant(numbers(std::slice::from_ref(line)).into_iter().max()?)?
                        .saturating_sub(NOW),
                )
            };
            let read = retry_after(&map(&header::RETRY_AFTER, &waits), at(NOW));
            prop_assert_eq!(
                read.map(|wait| wait.as_secs()),
                waits.iter().filter_map(wait).max()
            );

            let mut headers = map(&HeaderName::from_static("x-ratelimit-limit"), &limits);
            headers.extend(map(
                &HeaderName::from_static("x-ratelimit-remaining"),
                &waits,
            ));
            headers.extend(map(&HeaderName::from_static("x-ratelimit-reset"), &resets));
            let read = QuotaWindow::read_at(&headers, at(NOW));
            let read = read.map(|rate| (rate.limit, rate.remaining, rate.reset));
            let limit = numbers(&limits).into_iter().min();
            let reset = numbers(&resets).into_iter().filter_map(instant).max();
            let naive = limit.zip(numbers(&waits).into_iter().min()).zip(reset);
            let naive = naive.map(|((limit, left), reset)| (limit, left.min(limit), at(reset)));
            prop_assert_eq!(read, naive);
            Ok(())
        },
    );
}

/// Generates numbers at every bound, numbers as people write them, lists, dates, and any bytes.
fn header_value() -> impl Strategy<Value = Vec<u8>> {
    let bounds = [
        "0",
        "1",
        "60",
        "999999999",
        "1000000000",
        "99999999999",
        "100000000000",
        "253370764799",
        "253370764800000",
        "9223372036854775807",
        "18446744073709551615",
        "18446744073709551616",
        "1e30",
        "inf",
        "NaN",
        "-1",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Friday, 15-Jan-27 08:00:30 GMT",
    ];
    prop_oneof![
        4 => select(bounds.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        2 => "[0-9]{1,20}".prop_map(String::into_bytes),
        2 => "[0-9]{1,4}(, ?[0-9]{0,12}){1,3}".prop_map(String::into_bytes),
        1 => "[ -~]{0,30}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..20),
    ]
}

/// Generates a status, and each header at most twice.
pub(crate) fn hostile_answer() -> impl Strategy<Value = (u16, HeaderMap)> {
    let status = select(vec![200_u16, 201, 401, 404, 429, 500, 503]);
    let values = vec(vec(option::of(header_value()), 2), 5);
    (status, values).prop_map(|(status, values)| {
        let names = [
            "x-ratelimit-limit",
            "x-ratelimit-remaining",
            "x-ratelimit-reset",
        ];
        let names = names.map(header::HeaderName::from_static);
        let names = names.into_iter().chain([header::RETRY_AFTER, header::DATE]);
        let mut headers = HeaderMap::new();
        for (name, values) in names.zip(values) {
            let values = values.into_iter().flatten();
            for value in values.filter_map(|value| HeaderValue::from_bytes(&value).ok()) {
                headers.append(name.clone(), value);
            }
        }
        (status, headers)
    })
}

#[test]
fn what_is_read_from_any_headers_is_within_bounds() {
    check(
        (hostile_answer(), 0..4_000_000_000_u64),
        (CASES, 38),
        |((status, headers), now)| {
            let now = at(now);
            if let Some(rate) = QuotaWindow::read_at(&headers, now) {
                prop_assert!(rate.remaining <= rate.limit);
                let since = rate.reset.duration_since(SystemTime::UNIX_EPOCH);
                prop_assert!(since.unwrap().as_secs() < 253_370_764_800);
            }
            let wait = retry_after(&headers, now);
            prop_assert!(wait.is_none_or(|wait| wait.as_secs() < 253_402_300_800));
            let status = StatusCode::from_u16(status).unwrap();
            let blocked = ResponseHead::read(status, &headers, now).blocked();
            prop_assert_eq!(blocked.is_some(), status == StatusCode::TOO_MANY_REQUESTS);
            let seconds = blocked.map_or(1, |blocked| blocked.remaining.as_secs());
            prop_assert!((1..=25 * 3_600).contains(&seconds), "{}", seconds);
            Ok(())
        },
    );
}

/// Generates a written link, and its target if it leads to the next page.
fn link() -> impl Strategy<Value = (String, Option<String>)> {
    let target = "[a-z0-9/?=&,;.%~\"-]{0,12}";
    let relation = select(vec![
        ("rel=next", true),
        ("rel=\"next\"", true),
        ("REL = \"prev Next\"", true),
        ("rel=\"prev\\\",<\"", false),
        ("rel=last", false),
        ("rel=\"nextish\"", false),
        ("rel=prev; rel=next", false),
        ("anchor=\"#x\"; rel=next", false),
        ("relation=next", false),
        ("title=\"; rel=next\"", false),
    ]);
    let more = select(vec![
        "",
        "; title=\"a, <b>; rel=next\"",
        "; crossorigin",
        "; x=\"\\\"\"",
    ]);
    (target, more.clone(), relation, more).prop_map(
        |(target, before, (relation, is_next), after)| {
            (
                format!("<{target}>{before}; {relation}{after}"),
                is_next.then_some(target),
            )
        },
    )
}

#[test]
fn links_are_found_between_lines_of_garbage() {
    let lines = vec(vec(link(), 1..4), 1..3);
    check((lines, "[ -~]{0,40}"), (CASES, 34), |(lines, garbage)| {
        let text = |line: &Vec<(String, _)>| {
            line.iter()
                .map(|(text, _)| text.as_str())
                .collect::<Vec<_>>()
                .join(" ,, ")
        };
        let mut values: Vec<_> = lines.iter().map(text).collect();
        let expected: Vec<_> = lines
            .iter()
            .flatten()
            .filter_map(|(_, next)| next.clone())
            .collect();
        let headers = map(&header::LINK, &values);
        prop_assert_eq!(
            link_targets(&headers, "next").collect::<Vec<_>>(),
            expected.clone()
        );
        values.insert(0, garbage.clone());
        let headers = map(&header::LINK, &values);
        let found: Vec<_> = link_targets(&headers, "next").map(str::to_owned).collect();
        prop_assert!(found.ends_with(&expected), "{:?}", found);
        let added = &found[..found.len() - expected.len()];
        prop_assert!(
            added.iter().all(|target| garbage.contains(target)),
            "{:?}",
            added
        );
        Ok(())
    });
}

/// Generates text that is sometimes a URL.
fn address() -> impl Strategy<Value = String> {
    let part = select(vec![
        "http",
        "https",
        "://",
        ":",
        "/",
        "//",
        "127.0.0.1",
        "[::1]",
        "localhost",
        "a.example",
        ":80",
        "/v1",
        "..",
        ".",
        "%2e",
        "%2F",
        "?a=b",
        "#",
        "@",
        "\\",
        " ",
        "é",
        "\n",
        "pets",
        "foo.localhost",
    ]);
    prop_oneof![
        vec(part, 0..9).prop_map(|parts| parts.concat()),
        any::<String>()
    ]
}

#[test]
fn an_accepted_base_url_keeps_paths_and_protects_the_key() {
    check((address(), address()), (2 * CASES, 35), |(text, path)| {
        let Ok(base) = BaseUrl::parse(&text, false) else {
            return Ok(());
        };
        let url = base.as_url();
        let again = BaseUrl::parse(url.as_str(), false);
        prop_assert_eq!(again.as_ref().map(BaseUrl::as_url).ok(), Some(url));
        prop_assert!(url.scheme() == "https" || base.is_loopback(), "{}", url);
        prop_assert!(url.query().is_none() && url.fragment().is_none(), "{}", url);
        if let Ok(below) = base.relative(&path) {
            let root = format!("{}/", url.path().trim_end_matches('/'));
            prop_assert!(
                same_origin(&below, url) && below.path().starts_with(&root),
                "{}",
                below
            );
            prop_assert_eq!(below.fragment(), None);
            let mut parts = below.path()[root.len()..].split('/');
            prop_assert!(parts.all(|part| part != "." && part != ".."), "{}", below);
        }
        Ok(())
    });
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| vec(inner, 0..3).prop_map(Value::from))
}

#[test]
fn only_texts_of_an_error_are_taken_and_shown() {
    let body = (
        option::of(json_value()),
        option::of(json_value()),
        any::<bool>(),
    );
    let garbage = vec(any::<u8>(), 0..40);
    check(
        (body, garbage, 100..1_000_u16),
        (CASES, 36),
        |((code, message, problem), garbage, status)| {
            let mut body = json!({"status": 1});
            if let Some(code) = &code {
                body["code"] = code.clone();
            }
            // RFC 9457 has no `message`.
            if let Some(message) = &message {
                body[if problem { "detail" } else { "message" }] = message.clone();
            }
            let read = |body: Vec<u8>| {
                let mut response = http::Response::new(Bytes::from(body));
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                ErrorResponse::new(response)
            };
            let error = read(body.to_string().into_bytes());
            prop_assert_eq!(error.code.as_deref(), code.as_ref().and_then(Value::as_str));
            let message = message
                .as_ref()
                .filter(|_| !problem)
                .and_then(Value::as_str);
            prop_assert_eq!(error.message.as_deref(), message);
            for error in [error, read(garbage)] {
                let shown = error.to_string();
                prop_assert!(
                    !shown.contains(char::is_control) && shown.len() < 10_000,
                    "{}",
                    shown
                );
            }
            Ok(())
        },
    );
}

#[test]
fn the_key_is_removed_however_it_is_written_and_nothing_else() {
    let key = "[!-~]{8,12}";
    let text = vec(("[ -!#-\\[\\]-~é\n]{0,20}", vec(0..3_u8, 12)), 1..4);
    check((key, text), (CASES, 37), |(key, parts)| {
        let redactor = Redactor::new(&HeaderValue::from_str(&format!("Bearer {key}")).unwrap());
        let (mut written, mut expected) = (String::new(), String::new());
        for (between, forms) in &parts {
            prop_assume!(!between.contains(&key[..2]));
            let escaped = key.chars().zip(forms).map(|(c, form)| match (form, c) {
                (0, c) if c != '\\' => c.to_string(),
                (1, c @ ('"' | '\\' | '/')) => format!("\\{c}"),
                (_, c) => format!("\\u{:04X}", u32::from(c)),
            });
            written += &format!("{between}|{}|", escaped.collect::<String>());
            expected += &format!("{between}|(the API key)|");
        }
        prop_assert_eq!(
            redactor.removed(Bytes::from(written)),
            Bytes::from(expected.clone())
        );
        let shown = printable(&expected, MAX_ERROR_BODY);
        prop_assert_eq!(shown, expected.trim().replace('\n', " "));
        Ok(())
    });
}
