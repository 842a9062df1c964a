//! Field values, dates and numbers: what all readers of headers share.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, header};

use crate::clock;

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

/// Returns the service's own time, or where it does not say it the wall clock's.
pub(crate) fn service_time(headers: &HeaderMap) -> SystemTime {
    date(headers).unwrap_or_else(clock::wall)
}

/// Returns an instant given as seconds since 1970, where it lies within the calendar.
pub(crate) fn epoch(seconds: u64) -> Option<SystemTime> {
    const YEAR_9999: u64 = 253_370_764_800;
    let within = seconds < YEAR_9999;
    within.then(|| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
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
}
