//! Response headers, parsed. All of them are hostile until then.
//!
//! A value that cannot be right counts as absent; where a header comes several times, or as a
//! list, the most restrictive value stands. Nothing a server sends makes these functions panic.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, header};

/// Returns the values of a field, one for each line and each member of a comma-separated list.
/// Not for fields whose values hold commas of their own, such as dates.
pub(crate) fn values<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h str> {
    lines(headers, name).flat_map(|line| line.split(',').map(str::trim))
}

/// Returns the lines of a field that are text.
pub(crate) fn lines<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).into_iter();
    lines.filter_map(|line| line.to_str().ok().map(str::trim))
}

/// Returns a whole number of nothing but decimal digits. A sign, a fraction, an exponent, `inf`
/// or more than an `u64` holds is no number.
pub(crate) fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Returns a date in any of the three forms of RFC 9110, section 5.6.7.
pub(crate) fn http_date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// Returns the service's own time (`Date`, RFC 9110, section 6.6.1).
pub(crate) fn date(headers: &HeaderMap) -> Option<SystemTime> {
    lines(headers, &header::DATE).find_map(http_date)
}

/// Returns an instant given as seconds since 1970, where it lies within the calendar.
pub(crate) fn epoch(seconds: u64) -> Option<SystemTime> {
    const YEAR_9999: u64 = 253_370_764_800;
    let within = seconds < YEAR_9999;
    within.then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Numbers below this are taken for seconds from now, where an instant is expected: as seconds
/// since 1970 they would lie before 2001.
const FIRST_EPOCH: u64 = 1_000_000_000;
/// Numbers from this on are taken for milliseconds since 1970: as seconds they would lie beyond
/// the year 5138.
const FIRST_EPOCH_MILLIS: u64 = 100_000_000_000;

/// What the three headers of a response say; which quota they describe, the service does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RateHeaders {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset: SystemTime,
}

/// Returns the quota that a response describes, where all three headers can be right. `now` is
/// the service's time.
pub(crate) fn rate_headers(headers: &HeaderMap, now: SystemTime) -> Option<RateHeaders> {
    let numbers = |name: &'static HeaderName| values(headers, name).map(digits);
    let limit = numbers(&LIMIT).flatten().min()?;
    let remaining = numbers(&REMAINING).flatten().min()?;
    let reset = numbers(&RESET).flatten().filter_map(|n| instant(n, now)).max()?;
    Some(RateHeaders { limit, remaining: remaining.min(limit), reset })
}

/// Returns the wait that `Retry-After` asks for: seconds, a date in any form, reckoned against
/// `now` (the service's time), or, as some servers send it, an instant in seconds since 1970. Where
/// `Retry-After-Ms` says it more exactly, in milliseconds, that stands.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let millis = values(headers, &RETRY_AFTER_MS).filter_map(digits).max();
    millis
        .map(Duration::from_millis)
        .or_else(|| lines(headers, &header::RETRY_AFTER).filter_map(|line| wait(line, now)).max())
}

fn wait(text: &str, now: SystemTime) -> Option<Duration> {
    match digits(text) {
        Some(seconds) if seconds < FIRST_EPOCH => Some(Duration::from_secs(seconds)),
        Some(at) => Some(until(instant(at, now)?, now)),
        None => match http_date(text) {
            Some(at) => Some(until(at, now)),
            // A list of numbers: the longest. (A date's own comma never leaves only digits.)
            None => {
                text.split(',').filter_map(|one| digits(one.trim())).max().and_then(|seconds| {
                    (seconds < FIRST_EPOCH).then(|| Duration::from_secs(seconds))
                })
            }
        },
    }
}

fn until(at: SystemTime, now: SystemTime) -> Duration {
    at.duration_since(now).unwrap_or(Duration::ZERO)
}

fn instant(number: u64, now: SystemTime) -> Option<SystemTime> {
    match number {
        ..FIRST_EPOCH => now.checked_add(Duration::from_secs(number)),
        FIRST_EPOCH..FIRST_EPOCH_MILLIS => epoch(number),
        _ => epoch(number.div_ceil(1000)),
    }
}

/// Returns the targets that the `Link` headers give for a relation, in their order.
///
/// Of a link, only its first `rel` counts (section 3.3), relations are compared without regard to
/// case, and a link with an `anchor` speaks of another resource (section 3.2) and is passed over.
/// What is malformed ends its own header line, and nothing more.
pub(crate) fn link_targets<'h>(headers: &'h HeaderMap, relation: &str) -> Vec<&'h str> {
    let mut found = Vec::new();
    for line in lines(headers, &header::LINK) {
        let mut reader = LinkReader(line);
        while let Some(link) = reader.link() {
            if !link.anchored && has(&link.relations, relation) {
                found.push(link.target);
            }
        }
    }
    found
}

fn has(relations: &str, wanted: &str) -> bool {
    let mut each = relations.split_ascii_whitespace();
    each.any(|one| one.eq_ignore_ascii_case(wanted))
}

struct Link<'h> {
    target: &'h str,
    relations: String,
    anchored: bool,
}

/// What is left of a header line.
struct LinkReader<'h>(&'h str);

impl<'h> LinkReader<'h> {
    fn link(&mut self) -> Option<Link<'h>> {
        self.0 = self.0.trim_start_matches([' ', '\t', ',']);
        let (target, rest) = self.0.strip_prefix('<')?.split_once('>')?;
        self.0 = rest;
        let mut relations = None;
        let mut anchored = false;
        while let Some((name, value)) = self.parameter()? {
            if name.eq_ignore_ascii_case("rel") {
                relations.get_or_insert(value);
            } else if name.eq_ignore_ascii_case("anchor") {
                anchored = true;
            }
        }
        Some(Link { target: target.trim(), relations: relations.unwrap_or_default(), anchored })
    }

    /// Reads one `; name=value`. `Some(None)` is the end of the link, `None` a malformed one.
    fn parameter(&mut self) -> Option<Option<(&'h str, String)>> {
        self.skip_space();
        let Some(rest) = self.0.strip_prefix(';') else {
            let ended = self.0.is_empty() || self.0.starts_with(',');
            return ended.then_some(None);
        };
        self.0 = rest;
        self.skip_space();
        let name = self.token();
        self.skip_space();
        let Some(rest) = self.0.strip_prefix('=') else {
            return Some(Some((name, String::new())));
        };
        self.0 = rest;
        self.skip_space();
        let value = match self.0.strip_prefix('"') {
            Some(rest) => {
                self.0 = rest;
                self.quoted()?
            }
            None => self.token().to_owned(),
        };
        Some(Some((name, value)))
    }

    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn token(&mut self) -> &'h str {
        let end = self.0.find([' ', '\t', '=', ';', ',', '"']);
        let (token, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        token
    }

    fn quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.0 = &self.0[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(chars.next()?.1),
                c => value.push(c),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_only_plain_digits_for_a_number() {
        assert_eq!(digits("0060"), Some(60));
        for odd in ["", "-1", "+1", "1.0", "1e3", "inf", "NaN", "0x1", "٣", "18446744073709551616"]
        {
            assert_eq!(digits(odd), None, "{odd}");
        }
    }

    #[test]
    fn reads_all_three_forms_of_a_date() {
        let expected = epoch(784_111_777);
        for form in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(http_date(form), expected, "{form}");
        }
    }

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
        assert_eq!(waits("30"), Some(30));
        assert_eq!(waits(" 30 "), Some(30));
        assert_eq!(waits("Fri, 15 Jan 2027 08:00:30 GMT"), Some(30));
        assert_eq!(waits("Friday, 15-Jan-27 08:00:30 GMT"), Some(30));
        assert_eq!(waits("Fri Jan 15 08:00:30 2027"), Some(30));
        assert_eq!(waits("1800000030"), Some(30));
        assert_eq!(waits("1800000030000"), Some(30));
        assert_eq!(waits("5, 40"), Some(40));
    }

    #[test]
    fn milliseconds_are_read_where_they_are_sent() {
        let both = map(&[("retry-after", "2"), ("retry-after-ms", "1250")]);
        assert_eq!(retry_after(&both, at(NOW)), Some(Duration::from_millis(1250)));
        let odd = map(&[("retry-after", "2"), ("retry-after-ms", "soon")]);
        assert_eq!(retry_after(&odd, at(NOW)), Some(Duration::from_secs(2)));
    }

    #[test]
    fn a_date_in_the_past_asks_for_no_wait() {
        assert_eq!(waits("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
    }

    #[test]
    fn a_retry_after_that_cannot_be_right_is_absent() {
        for odd in ["", "-1", "1.5", "soon", "inf", "18446744073709551616", "9e9"] {
            assert_eq!(waits(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_wait_of_years_is_not_shortened() {
        assert_eq!(waits("63072000"), Some(63_072_000));
        assert_eq!(waits("999999999"), Some(999_999_999));
        assert_eq!(waits("Fri, 01 Jan 2100 00:00:00 GMT"), Some(4_102_444_800 - NOW));
    }

    #[test]
    fn the_longest_of_several_waits_stands() {
        let both = map(&[("retry-after", "5"), ("retry-after", "9")]);
        assert_eq!(retry_after(&both, at(NOW)), Some(Duration::from_secs(9)));
    }

    fn quota(limit: &str, remaining: &str, reset: &str) -> Option<RateHeaders> {
        let lines = [
            ("x-ratelimit-limit", limit),
            ("x-ratelimit-remaining", remaining),
            ("x-ratelimit-reset", reset),
        ];
        rate_headers(&map(&lines), at(NOW))
    }

    #[test]
    fn reads_a_reset_in_seconds_milliseconds_or_from_now() {
        for form in ["1800000060", "1800000060000", "60"] {
            let quota = quota("60", "59", form).unwrap();
            assert_eq!((quota.limit, quota.remaining, quota.reset), (60, 59, at(NOW + 60)));
        }
    }

    #[test]
    fn takes_the_most_restrictive_of_several_values() {
        let quota = quota("60, 50", "7, 9", "1800000010, 1800000060").unwrap();
        assert_eq!((quota.limit, quota.remaining, quota.reset), (50, 7, at(NOW + 60)));
    }

    #[test]
    fn never_believes_more_remaining_than_the_limit() {
        assert_eq!(quota("60", "1000000", "60").unwrap().remaining, 60);
    }

    #[test]
    fn garbage_counts_as_absent() {
        for odd in ["", "-1", "NaN", "1e30", "99999999999999999999999", "∞"] {
            assert_eq!(quota("60", odd, "60"), None, "{odd}");
            assert_eq!(quota(odd, "1", "60"), None, "{odd}");
            assert_eq!(quota("60", "1", odd), None, "{odd}");
        }
        assert_eq!(quota("60", "1", "18446744073709551615"), None);
    }

    fn next_targets(lines: &[&str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::LINK, line.parse().unwrap());
        }
        let found = link_targets(&headers, "next");
        found.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn finds_the_relation_among_several_links_and_lines() {
        let lines = [r#"</a>; rel="prev", </b>; rel="next""#, r#"</c>; rel=last, </d>; rel=next"#];
        assert_eq!(next_targets(&lines), ["/b", "/d"]);
    }

    #[test]
    fn a_quoted_comma_semicolon_or_quote_does_not_end_a_link() {
        assert_eq!(
            next_targets(&[r#"</a,b;c>; title="x, <y>; rel=\"prev\""; rel="next""#]),
            ["/a,b;c"]
        );
    }

    #[test]
    fn reads_a_list_of_relations_in_any_case() {
        assert_eq!(next_targets(&[r#"</a>; REL="start Next	https://example.com/x""#]), ["/a"]);
        assert_eq!(next_targets(&[r#"</a>; rel="nextish""#]), [""; 0]);
    }

    #[test]
    fn only_the_first_rel_counts() {
        assert_eq!(next_targets(&[r#"</a>; rel="prev"; rel="next""#]), [""; 0]);
    }

    #[test]
    fn passes_over_a_link_with_another_context() {
        assert_eq!(next_targets(&[r##"</a>; anchor="#x"; rel="next", </b>; rel="next""##]), ["/b"]);
    }

    #[test]
    fn takes_space_and_parameters_without_value() {
        assert_eq!(next_targets(&[r#", ,<> ; crossorigin ; rel = "next" , "#]), [""]);
    }

    #[test]
    fn what_is_malformed_ends_its_line_only() {
        for odd in ["/a; rel=next", "</a; rel=next", r#"</a>; rel="next"#, "</a> rel=next", "<"] {
            assert_eq!(next_targets(&[odd, "</b>; rel=next"]), ["/b"], "{odd}");
        }
    }
}
