//! The types of settings: how to write a value, and what to write instead of an invalid one.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::secrets;

/// A duration of at least `MIN` seconds: `90`, `90s`, `10m`, `24h` or `1h 30m`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds<const MIN: u64>(pub(crate) Duration);

impl<const MIN: u64> FromStr for Seconds<MIN> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // This maximum makes sure that adding the duration to an instant cannot overflow.
        const MAX: Duration = Duration::from_secs(0xFFFF_FFFF);

        let time = match text.parse() {
            Ok(seconds) => Some(Duration::from_secs(seconds)),
            Err(_) => humantime::parse_duration(text).ok(),
        };
        match time {
            Some(time) if time > MAX => Err("give at most 49710d".to_owned()),
            Some(time) if time < Duration::from_secs(MIN) => Err(format!("give at least {MIN}s")),
            Some(time) => Ok(Self(time)),
            None => {
                let problem = "give seconds, or a number with s, m, h or d: 90, 10m, 24h";
                Err(problem.to_owned())
            }
        }
    }
}

impl<const MIN: u64> fmt::Display for Seconds<MIN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without spaces, it is one word of a command line.
        let text = humantime::format_duration(self.0).to_string();
        f.write_str(&text.replace(' ', ""))
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = SIZE_UNITS
            .iter()
            .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)))
            .unwrap_or((text, 1));
        let number = number.parse::<usize>().ok();
        match number.and_then(|number| number.checked_mul(unit)) {
            None | Some(0) => Err("give a number with KiB or MiB: 500KiB, 16MiB".to_owned()),
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
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::read(text, cfg!(feature = "redis"))
    }
}

impl StoreAddress {
    /// Parses an address. A build without Redis says how to get another one.
    fn read(text: &str, has_redis: bool) -> Result<Self, String> {
        let is_redis = text.starts_with("redis://") || text.starts_with("rediss://");
        match text {
            "file" => Ok(Self::File),
            "off" => Ok(Self::Off),
            _ if is_redis && has_redis => Ok(Self::Redis(text.to_owned())),
            _ if is_redis => Err("install petstore with `--features redis`".to_owned()),
            _ => Err("give file, off or redis://HOST".to_owned()),
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
            ("90", Some("1m30s")),
            ("90s", Some("1m30s")),
            ("10m", Some("10m")),
            ("1h 30m", Some("1h30m")),
            ("1500ms", Some("1s500ms")),
            ("24h", Some("1day")),
            ("7d", Some("7days")),
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
            assert!(problem.contains("--features redis"), "{problem}");
        }
        let problem = StoreAddress::read("cache", true).unwrap_err();
        assert_eq!(problem, "give file, off or redis://HOST");
    }
}
