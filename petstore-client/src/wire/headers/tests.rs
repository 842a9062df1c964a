//! Tests of the parsers of headers.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::cases::cases;

const CASES: u32 = 2_000;
/// The first second of the year 10000.
const END: u64 = 253_402_300_800;

const NOW: u64 = 1_800_000_000;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn map(lines: &[(&'static str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), value.parse().unwrap())
    };
    let mut map = HeaderMap::new();
    for (name, value) in lines.iter().map(line) {
        map.append(name, value);
    }
    map
}

fn waits(value: &str) -> Option<u64> {
    retry_after(&map(&[("retry-after", value)]), at(NOW)).map(|wait| wait.as_secs())
}

#[test]
fn reads_retry_after_in_every_form() {
    for (value, seconds) in [
        (" 30 ", Some(30)),
        ("Fri, 15 Jan 2027 08:00:30 GMT", Some(30)),
        ("Friday, 15-Jan-27 08:00:30 GMT", Some(30)),
        ("Fri Jan 15 08:00:30 2027", Some(30)),
        ("1800000030", Some(30)),
        ("1800000030000", Some(30)),
        ("5, 40", Some(40)),
        ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0)),
        ("Fri, 01 Jan 2100 00:00:00 GMT", Some(4_102_444_800 - NOW)),
        ("999999999", Some(999_999_999)),
        ("", None),
        ("1.5", None),
        ("soon", None),
    ] {
        assert_eq!(waits(value), seconds, "{value}");
    }
}

fn next_targets(lines: &[&str]) -> Vec<String> {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(header::LINK, line.parse().unwrap());
    }
    link_targets(&headers, "next").map(str::to_owned).collect()
}

#[test]
fn finds_the_links_to_the_next_page() {
    for (line, expected) in [
        (r#"</a>; rel="prev", </b>; rel="next""#, &["/b"][..]),
        (
            r#"</a,b;c>; title="x, <y>; rel=\"prev\""; rel="next""#,
            &["/a,b;c"],
        ),
        ("</a>; REL=\"start Next\thttps://example.com/x\"", &["/a"]),
        (r#"</a>; rel="nextish""#, &[]),
        (r#"</a>; rel="prev"; rel="next""#, &[]),
        (
            r##"</a>; anchor="#x"; rel="next", </b>; rel="next""##,
            &["/b"],
        ),
        (r#", ,<> ; crossorigin ; rel = "next" , "#, &[""]),
        ("/a; rel=next", &[]),
        ("</a; rel=next", &[]),
        (r#"</a>; rel="next"#, &[]),
        ("</a> rel=next", &[]),
        ("<", &[]),
    ] {
        // What is malformed ends its line only.
        let expected = [expected, &["/z"]].concat();
        assert_eq!(next_targets(&[line, "</z>; rel=next"]), expected, "{line}");
    }
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
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

/// Returns the latest instant of a list of numbers, independently of the code under test.
fn naive_instant(list: &str) -> Option<u64> {
    match list.split(',').filter_map(naive).max()? {
        seconds @ ..1_000_000_000 => Some(NOW + seconds),
        epoch @ 1_000_000_000..100_000_000_000 => Some(epoch),
        millis => Some(millis.div_ceil(1_000)).filter(|epoch| *epoch < 253_370_764_800),
    }
}

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn a_number_is_digits_and_nothing_else(text in prop_oneof![number(), any::<String>()]) {
        prop_assert_eq!(digits(text.trim().as_bytes()), naive(&text));
    }

    #[test]
    fn a_date_is_read_in_every_form(seconds in 0..END) {
        let fixed = httpdate::fmt_http_date(at(seconds));
        prop_assert_eq!(http_date(&fixed), Some(at(seconds)), "{}", fixed);
        // `Sun, 06 Nov 1994 08:49:37 GMT` is `Sun Nov  6 08:49:37 1994`.
        let [day, date, month, year, time, _] =
            fixed.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let (day, date) = (day.trim_end_matches(','), date.trim_start_matches('0'));
        let asctime = format!("{day} {month} {date:>2} {time} {year}");
        prop_assert_eq!(http_date(&asctime), Some(at(seconds)), "{}", asctime);
    }

    #[test]
    fn a_date_that_is_read_can_be_written(text in any::<String>()) {
        if let Some(read) = http_date(&text) {
            prop_assert_eq!(http_date(&httpdate::fmt_http_date(read)), Some(read));
        }
    }

    #[test]
    fn the_longest_wait_of_all_lines_counts(
        lines in vec(vec(number(), 1..4).prop_map(|list| list.join(", ")), 0..3),
    ) {
        let mut headers = HeaderMap::new();
        for line in &lines {
            headers.append(header::RETRY_AFTER, line.parse().unwrap());
        }
        let read = retry_after(&headers, at(NOW)).map(|wait| wait.as_secs());
        let waits = lines.iter().filter_map(|line| naive_instant(line));
        prop_assert_eq!(read, waits.map(|instant| instant.saturating_sub(NOW)).max());
    }
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

proptest! {
    #![proptest_config(cases(CASES))]

    #[test]
    fn links_are_found_between_lines_of_garbage(
        lines in vec(vec(link(), 1..4), 1..3),
        garbage in "[ -~]{0,40}",
    ) {
        let mut written = Vec::new();
        let mut expected = Vec::new();
        for line in lines {
            let (texts, targets): (Vec<_>, Vec<_>) = line.into_iter().unzip();
            written.push(texts.join(" ,, "));
            expected.extend(targets.into_iter().flatten());
        }
        let lines: Vec<_> = written.iter().map(String::as_str).collect();
        prop_assert_eq!(&next_targets(&lines), &expected);
        let found = next_targets(&[&[garbage.as_str()], &lines[..]].concat());
        prop_assert!(found.ends_with(&expected), "{:?}", found);
        let added = &found[..found.len() - expected.len()];
        prop_assert!(added.iter().all(|target| garbage.contains(target)), "{:?}", added);
    }
}
