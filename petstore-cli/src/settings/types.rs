//! The types of settings: how to write a value, and what is wrong with an invalid one.

use std::convert::Infallible;
use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use std::str::{FromStr, ParseBoolError};
use std::time::Duration;

use clap::ValueEnum;

use super::secrets;
use crate::error::{Invalid, either};
use crate::time;

/// Parses a value, or returns its problem.
pub(crate) fn parse<T: FromStr>(text: &str) -> Result<T, Invalid>
where
    Invalid: From<T::Err>,
{
    Ok(text.parse()?)
}

impl From<Infallible> for Invalid {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl From<ParseIntError> for Invalid {
    fn from(error: ParseIntError) -> Self {
        Self::new(match error.kind() {
            IntErrorKind::Empty | IntErrorKind::InvalidDigit => "is not a whole number",
            _ => "is out of range",
        })
    }
}

impl From<ParseBoolError> for Invalid {
    fn from(_: ParseBoolError) -> Self {
        Self::new("is not true or false")
    }
}

/// Parses one of the values that the help names.
pub(super) fn parse_choice<T: ValueEnum>(text: &str) -> Result<T, Invalid> {
    T::from_str(text, false).map_err(|_| {
        let mut names = Vec::new();
        for value in T::value_variants() {
            names.extend(value.to_possible_value().map(|it| it.get_name().to_owned()));
        }
        Invalid::new(format!("is not {}", either(&names)))
    })
}

/// A duration of at least `MIN` seconds: `90`, `90s`, `10m`, `24h` or `1h 30m`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds<const MIN: u64>(pub(crate) Duration);

impl<const MIN: u64> FromStr for Seconds<MIN> {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // This maximum makes sure that adding the duration to an instant cannot overflow.
        const MAX: Duration = Duration::from_secs(0xFFFF_FFFF);

        let time = match text.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => humantime::parse_duration(text).ok(),
        };
        match time {
            Some(time) if time > MAX => {
                Err(Invalid::new("is too long").hint("give at most 49710d"))
            }
            Some(time) if time < Duration::from_secs(MIN) => {
                Err(Invalid::new("is too short").hint(format!("give at least {MIN}s")))
            }
            Some(time) => Ok(Self(time)),
            None => {
                let hint = "give seconds, or a number with s, m, h or d: 90, 10m, 24h";
                Err(Invalid::new("is not a time").hint(hint))
            }
        }
    }
}

impl<const MIN: u64> fmt::Display for Seconds<MIN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&time::typed(self.0))
    }
}

/// A number of bytes: `500KiB`, `16MiB`, `500` or `500B`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) usize);

const SIZE_UNITS: [(&str, usize); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl FromStr for Size {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (number, unit) = SIZE_UNITS
            .iter()
            .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)))
            .unwrap_or((text, 1));
        let number = number.parse::<usize>().ok();
        match number.and_then(|number| number.checked_mul(unit)) {
            None | Some(0) => {
                let hint = "give a number with KiB or MiB: 500KiB, 16MiB";
                Err(Invalid::new("is not a size").hint(hint))
            }
            Some(size) => Ok(Self(size)),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, size) in SIZE_UNITS {
            if self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        Ok(())
    }
}

/// The store of shared rate limits.
#[derive(Debug, Clone)]
pub(crate) enum StoreAddress {
    File,
    Off,
    Redis(String),
}

impl FromStr for StoreAddress {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::read(text, cfg!(feature = "redis"))
    }
}

impl StoreAddress {
    /// Parses an address. A build without Redis says how to get another one.
    fn read(text: &str, has_redis: bool) -> Result<Self, Invalid> {
        let is_redis = text.starts_with("redis://") || text.starts_with("rediss://");
        match text {
            "file" => Ok(Self::File),
            "off" => Ok(Self::Off),
            _ if is_redis && has_redis => Ok(Self::Redis(text.to_owned())),
            _ if is_redis => {
                let hint = "install it with `--features redis`";
                Err(Invalid::new("needs a build with Redis").hint(hint))
            }
            _ => Err(Invalid::new("is not file, off or redis://HOST")),
        }
    }
}

/// Omits the password.
impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Off => f.write_str("off"),
            Self::Redis(url) => f.write_str(&secrets::without_password(url)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_times_and_sizes_with_and_without_a_unit() {
        for (text, shown) in [
            ("90", Some("90s")),
            ("90s", Some("90s")),
            ("10m", Some("10m")),
            ("1h 30m", Some("90m")),
            ("1500ms", Some("1s 500ms")),
            ("24h", Some("24h")),
            ("7d", Some("7d")),
            ("0", Some("0s")),
            ("soon", None),
            ("99999d", None),
            ("99999999999999999999", None),
            ("-1", None),
            ("", None),
        ] {
            let read = text.parse::<Seconds<0>>().ok().map(|time| time.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
        assert!("0".parse::<Seconds<1>>().is_err());
        for (text, shown) in [
            ("500KiB", Some("500KiB")),
            ("16MiB", Some("16MiB")),
            ("7", Some("7B")),
            ("500B", Some("500B")),
            ("0", None),
            ("1.5MiB", None),
            ("99999999999GiB", None),
        ] {
            let read = text.parse::<Size>().ok().map(|size| size.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn a_build_without_redis_says_so() {
        for address in ["redis://cache:6379", "rediss://cache:6379"] {
            let kept = StoreAddress::read(address, true).unwrap();
            assert!(matches!(kept, StoreAddress::Redis(kept) if kept == address));
            let problem = StoreAddress::read(address, false).unwrap_err();
            let said = "needs a build with Redis; install it with `--features redis`";
            assert_eq!(problem.sentence(address), format!("`{address}` {said}"));
        }
        let problem = StoreAddress::read("cache", true).unwrap_err();
        let said = "`cache` is not file, off or redis://HOST";
        assert_eq!(problem.sentence("cache"), said);
    }

    #[test]
    fn hides_the_password_of_a_store() {
        let store = StoreAddress::Redis("redis://me:secret@cache:6379".to_owned());
        assert_eq!(store.to_string(), "redis://[hidden]@cache:6379");
    }
}
