//! The settings, one row each, with the name (`--max-wait`, `PETSTORE_MAX_WAIT` and `max_wait`),
//! type and default.

pub(crate) mod config_file;
pub(crate) mod credentials;
pub(crate) mod precedence;

use std::convert::Infallible;
use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use std::str::{FromStr, ParseBoolError};
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::error::{ErrorFormat, Invalid, either};
use crate::output::OutputFormat;
use crate::screen::Color;

/// Defines the settings: the help, the name, the type and the default of each.
macro_rules! settings {
    ($($(#[$meta:meta])* $name:ident: $kind:ty = $default:expr;)*) => {
        /// Settings from one source: flags, variables, a profile or the defaults.
        #[derive(Debug, Clone, Default, clap::Args)]
        pub(crate) struct Values {
            $($(#[$meta])*
            #[arg(long, global = true, hide = true, value_parser = parse::<$kind>)]
            pub(crate) $name: Option<$kind>,)*
        }

        impl Values {
            pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];

            pub(crate) fn defaults() -> Self {
                Self { $($name: $default,)* }
            }

            /// Parses a value.
            pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), Invalid> {
                match name {
                    $(stringify!($name) => self.$name = Some(parse(text)?),)*
                    _ => return Err(Invalid::new("is not a setting")),
                }
                Ok(())
            }

            /// Returns a value as text, without secrets.
            pub(crate) fn text(&self, name: &str) -> Option<String> {
                match name {
                    $(stringify!($name) => self.$name.as_ref().map(ToString::to_string),)*
                    _ => None,
                }
            }
        }
    };
}

settings! {
    /// The service's base URL, such as https://HOST/v1
    #[arg(value_name = "URL")]
    base_url: String = None;
    /// Send the key over plain http to another machine
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    allow_insecure_http: bool = Some(false);
    /// Trust these certificate authorities too (PEM)
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    ca_file: String = None;
    /// How results are written
    #[arg(short, value_name = "FORMAT")]
    output: Choice<OutputFormat> = Some(Choice(OutputFormat::Table));
    /// When colour is used
    #[arg(value_name = "WHEN")]
    color: Choice<Color> = Some(Choice(Color::Auto));
    /// How errors and notes are written
    #[arg(value_name = "FORMAT")]
    error_format: Choice<ErrorFormat> = Some(Choice(ErrorFormat::Text));
    /// Time for a request and its retries, without waits for rate limits
    #[arg(value_name = "TIME", allow_negative_numbers = true)]
    timeout: Seconds<1> = Some(Seconds(Duration::from_secs(30)));
    /// Number of retries of a failed request
    #[arg(value_name = "N", allow_negative_numbers = true)]
    retries: u32 = Some(3);
    /// Maximum rate-limit wait of a request; 0 never waits
    #[arg(value_name = "TIME", allow_negative_numbers = true)]
    max_wait: Seconds<0> = Some(Seconds(Duration::from_secs(120)));
    /// Maximum size of a response
    #[arg(value_name = "SIZE")]
    max_response_size: Size = Some(Size(10 << 20));
    /// Store of shared rate limits: file, redis://HOST or off
    #[arg(value_name = "STORE")]
    limits_store: StoreAddress = Some(StoreAddress::File);
}

/// Returns the flag of a setting.
pub(crate) fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// Returns the variable of a setting.
pub(crate) fn variable(name: &str) -> String {
    format!("PETSTORE_{}", name.to_uppercase())
}

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

/// One of the values that the help names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice<T>(pub(crate) T);

impl<T: ValueEnum> FromStr for Choice<T> {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        T::from_str(text, false)
            .map(Self)
            .map_err(|_| Invalid::new(format!("is not {}", either(&value_names::<T>()))))
    }
}

impl<T: ValueEnum> fmt::Display for Choice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            self.0
                .to_possible_value()
                .as_ref()
                .map_or("", PossibleValue::get_name),
        )
    }
}

/// Returns the names of all values.
pub(crate) fn value_names<T: ValueEnum>() -> Vec<String> {
    let values = T::value_variants()
        .iter()
        .filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect()
}

/// A duration of at least `MIN` seconds: `90`, `90s`, `10m` or `24h`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds<const MIN: u64>(pub(crate) Duration);

const TIME_UNITS: [(&str, u64); 3] = [("h", 3_600), ("m", 60), ("s", 1)];

impl<const MIN: u64> FromStr for Seconds<MIN> {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        // So that a time can be added to any instant.
        let seconds = read_units(text, &TIME_UNITS).filter(|time| *time <= u32::MAX.into());
        let hint = "give seconds, or a number with s, m or h: 90, 10m, 24h";
        match seconds.ok_or_else(|| Invalid::new("is not a time").hint(hint))? {
            seconds if seconds >= MIN => Ok(Self(Duration::from_secs(seconds))),
            _ => Err(Invalid::new("is too short").hint(format!("give at least {MIN} s"))),
        }
    }
}

impl<const MIN: u64> fmt::Display for Seconds<MIN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_unit(self.0.as_secs(), &TIME_UNITS))
    }
}

/// A number of bytes: `500KiB`, `16MiB`, `500` or `500B`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) usize);

const SIZE_UNITS: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

impl FromStr for Size {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let size = read_units(text, &SIZE_UNITS).and_then(|size| size.try_into().ok());
        let hint = "give a number with KiB or MiB: 500KiB, 16MiB";
        let size = size.filter(|size| *size > 0).map(Self);
        size.ok_or_else(|| Invalid::new("is not a size").hint(hint))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&with_unit(self.0 as u64, &SIZE_UNITS))
    }
}

/// Parses a number with an optional unit.
fn read_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let in_unit = units
        .iter()
        .find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
    let (number, size) = in_unit.unwrap_or((text, 1));
    number.parse::<u64>().ok()?.checked_mul(size)
}

/// Formats a number in the largest unit that divides it. The last unit is 1.
fn with_unit(number: u64, units: &[(&str, u64)]) -> String {
    let fits = |size: u64| size == 1 || number > 0 && number.is_multiple_of(size);
    let unit = units.iter().find(|(_, size)| fits(*size));
    unit.map_or_else(String::new, |(unit, size)| {
        format!("{}{unit}", number / size)
    })
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
        match text {
            "file" => Ok(Self::File),
            "off" => Ok(Self::Off),
            text if !text.starts_with("redis://") && !text.starts_with("rediss://") => {
                Err(Invalid::new("is not file, off or redis://HOST"))
            }
            text if cfg!(feature = "redis") => Ok(Self::Redis(text.to_owned())),
            _ => {
                Err(Invalid::new("needs a build with Redis")
                    .hint("install it with `--features redis`"))
            }
        }
    }
}

/// Omits the password, which is before the host.
impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Off => f.write_str("off"),
            Self::Redis(url) => match (url.split_once("://"), url.rsplit_once('@')) {
                (Some((scheme, _)), Some((_, host))) => write!(f, "{scheme}://…@{host}"),
                _ => f.write_str(url),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_reads_back_as_it_is_shown() {
        let defaults = Values::defaults();
        for name in Values::NAMES {
            if let Some(text) = defaults.text(name) {
                let mut values = Values::default();
                values.set(name, &text).unwrap();
                assert_eq!(values.text(name), Some(text));
            }
        }
    }

    #[test]
    fn reads_and_writes_times_and_sizes_with_and_without_a_unit() {
        for (text, shown) in [
            ("90", Some("90s")),
            ("90s", Some("90s")),
            ("10m", Some("10m")),
            ("24h", Some("24h")),
            ("0", Some("0s")),
            ("soon", None),
            ("-1", None),
            ("", None),
        ] {
            let read = text.parse::<Seconds<0>>().ok().map(|time| time.to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
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
    fn hides_the_password_of_a_store() {
        let store = StoreAddress::Redis("redis://me:secret@cache:6379".to_owned());
        assert_eq!(store.to_string(), "redis://…@cache:6379");
    }
}
