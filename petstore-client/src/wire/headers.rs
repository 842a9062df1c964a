//! Parses response headers.
//!
//! Impossible values count as absent. If a header is repeated or has a list, the most restrictive
//! value counts. No input makes these functions panic.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Returns the lines of a field that are valid text.
pub(crate) fn lines<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).into_iter();
    lines.filter_map(|line| line.to_str().ok().map(str::trim))
}

/// Parses a number that consists of decimal digits only, without sign, fraction or exponent.
pub(crate) fn digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// Returns the numbers among the values of a field.
pub(crate) fn numbers(headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = u64> {
    let lines = headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    let values = lines.flat_map(|line| line.split(|byte| *byte == b','));
    values.filter_map(|value| digits(value.trim_ascii()))
}

/// Parses a date in any of the three forms of RFC 9110, section 5.6.7.
pub(crate) fn http_date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text).ok()
}

/// Returns the service's time (`Date`, RFC 9110, section 6.6.1).
pub(crate) fn date(headers: &HeaderMap) -> Option<SystemTime> {
    lines(headers, &header::DATE).find_map(http_date)
}

/// Converts seconds since 1970 to a time, if it is within the calendar.
pub(crate) fn epoch(seconds: u64) -> Option<SystemTime> {
    const YEAR_9999: u64 = 253_370_764_800;
    let within = seconds < YEAR_9999;
    within.then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// The longest wait that is believed: a day's quota, and an hour of slack.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(25 * 60 * 60);
/// Smaller numbers are read as seconds from now: as seconds since 1970, they would be before 2001.
const FIRST_EPOCH: u64 = 1_000_000_000;
/// This and larger numbers are read as milliseconds since 1970: as seconds, they would be after the
/// year 5138.
const FIRST_EPOCH_MILLIS: u64 = 100_000_000_000;

/// Returns the wait of `Retry-After`: seconds, a date in any form, or seconds since 1970, as some
/// servers send it. `now` is the service's time.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    lines(headers, &header::RETRY_AFTER)
        .filter_map(|line| wait(line, now))
        .max()
}

/// Returns the wait that a failed service asks for. A longer one than [`MAX_WAIT`] is a mistake, and
/// counts as none.
pub(crate) fn retry_after_failure(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    retry_after(headers, now).filter(|wait| *wait <= MAX_WAIT)
}

fn wait(text: &str, now: SystemTime) -> Option<Duration> {
    if let Some(at) = http_date(text) {
        return Some(until(at, now));
    }
    match text
        .split(',')
        .filter_map(|number| digits(number.trim().as_bytes()))
        .max()?
    {
        seconds @ ..FIRST_EPOCH => Some(Duration::from_secs(seconds)),
        at => Some(until(instant(at, now)?, now)),
    }
}

fn until(at: SystemTime, now: SystemTime) -> Duration {
    at.duration_since(now).unwrap_or(Duration::ZERO)
}

/// Reads a number as seconds from now, or as seconds or milliseconds since 1970.
pub(crate) fn instant(number: u64, now: SystemTime) -> Option<SystemTime> {
    match number {
        ..FIRST_EPOCH => now.checked_add(Duration::from_secs(number)),
        FIRST_EPOCH..FIRST_EPOCH_MILLIS => epoch(number),
        _ => epoch(number.div_ceil(1000)),
    }
}

/// Returns the targets of the `Link` headers with a relation, in order (RFC 8288). Skips malformed
/// links.
pub(crate) fn link_targets<'h>(
    headers: &'h HeaderMap,
    relation: &str,
) -> impl Iterator<Item = &'h str> {
    lines(headers, &header::LINK)
        .flat_map(|line| split_outside_quotes(line, ','))
        .filter_map(move |link| link_target(link, relation))
}

/// Returns the target of a link if its first `rel` contains the relation, ignoring case (section
/// 3.3). A link with an `anchor` describes another resource (section 3.2).
fn link_target<'h>(link: &'h str, relation: &str) -> Option<&'h str> {
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let mut parameters = split_outside_quotes(parameters, ';').map(str::trim);
    if !parameters.next()?.is_empty() {
        return None;
    }
    let mut relations = None;
    for parameter in parameters {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let name = name.trim();
        if name.eq_ignore_ascii_case("anchor") {
            return None;
        }
        if name.eq_ignore_ascii_case("rel") {
            relations.get_or_insert(value.trim());
        }
    }
    let relations = match relations?.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"')?,
        None => relations?,
    };
    let mut relations = relations.split_ascii_whitespace();
    relations
        .any(|one| one.eq_ignore_ascii_case(relation))
        .then_some(target.trim())
}

/// Splits text at a separator, but not inside `"…"` and `<…>`.
fn split_outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut in_quotes, mut in_target, mut is_escaped) = (false, false, false);
    text.split(move |c| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if in_quotes => is_escaped = true,
            '"' if !in_target => in_quotes = !in_quotes,
            '<' | '>' if !in_quotes => in_target = c == '<',
            _ => return c == separator && !in_quotes && !in_target,
        }
        false
    })
}

#[cfg(test)]
mod tests;
