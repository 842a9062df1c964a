//! The settings: one row each, with its name in three spellings (`--max-wait`, `PETSTORE_MAX_WAIT`
//! and `max_wait`), its type and its default.

pub(crate) mod config_file;
pub(crate) mod credentials;
mod keyring;
pub(crate) mod precedence;

use std::convert::Infallible;
use std::fmt;
use std::num::ParseIntError;
use std::str::{FromStr, ParseBoolError};

use crate::error::Invalid;
use crate::output::OutputFormat;
use crate::screen::Color;
use crate::time::Seconds;

/// Defines what can be set: a field, its type, its default, and what the help says.
macro_rules! settings {
    ($($(#[$meta:meta])* $name:ident: $kind:ty = $default:expr;)*) => {
        /// Settings from one place: flags, variables, a profile or the defaults.
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

            /// Reads a value.
            pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), Invalid> {
                match name {
                    $(stringify!($name) => self.$name = Some(parse(text)?),)*
                    _ => return Err(Invalid::new("is not a setting")),
                }
                Ok(())
            }

            /// Returns a value as text that may be shown.
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
    base_url: Text = None;
    /// Send the key over plain http to another machine
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    allow_insecure_http: bool = Some(false);
    /// Trust these certificate authorities too (PEM)
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    ca_file: Text = None;
    /// How results are written
    #[arg(short, value_name = "FORMAT")]
    output: OutputFormat = None;
    /// When colour is used
    #[arg(value_name = "WHEN")]
    color: Color = Some(Color::Auto);
    /// How long a request and its retries may take, waits for rate limits not counted
    #[arg(value_name = "TIME", allow_negative_numbers = true)]
    timeout: Seconds = Some(Seconds(30));
    /// How often a request that failed is sent again
    #[arg(value_name = "N", allow_negative_numbers = true)]
    retries: u32 = Some(3);
    /// How long one wait for rate limits may take; 0 never waits
    #[arg(value_name = "TIME", allow_negative_numbers = true)]
    max_wait: Seconds = Some(Seconds(120));
    /// The largest response that is read
    #[arg(value_name = "SIZE")]
    max_response_size: Size = Some(Size(10 << 20));
    /// Where rate limits are shared: file, redis://HOST or off
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

/// Reads a value, and says what is wrong with it.
pub(crate) fn parse<T: FromStr>(text: &str) -> Result<T, Invalid>
where
    Invalid: From<T::Err>,
{
    Ok(text.parse()?)
}

impl From<ParseIntError> for Invalid {
    fn from(_: ParseIntError) -> Self {
        Self::new("is not a whole number")
    }
}

impl From<ParseBoolError> for Invalid {
    fn from(_: ParseBoolError) -> Self {
        Self::new("is not true or false")
    }
}

impl From<Infallible> for Invalid {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Text that is not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text(pub(crate) String);

impl FromStr for Text {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() {
            return Err(Invalid::new("is empty"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Color {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        Invalid::unless_one_of(text)
    }
}

impl fmt::Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = clap::ValueEnum::to_possible_value(self);
        f.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

/// A number of bytes: `500KiB`, `16MiB`, or a number alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) usize);

const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl FromStr for Size {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let unit = UNITS.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size)));
        let (number, unit) = unit.unwrap_or((text, 1));
        let size = number.trim_end().parse::<usize>().ok().and_then(|n| n.checked_mul(unit));
        let invalid =
            || Invalid::new("is not a size").hint("give a number with KiB or MiB: 500KiB, 16MiB");
        size.filter(|size| *size > 0).map(Self).ok_or_else(invalid)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS.iter().find(|(_, size)| self.0.is_multiple_of(*size)) {
            Some((unit, size)) => write!(f, "{}{unit}", self.0 / size),
            None => self.0.fmt(f),
        }
    }
}

/// Where processes share rate limits.
#[derive(Debug, Clone, PartialEq, Eq)]
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
            text if text.starts_with("redis://") || text.starts_with("rediss://") => {
                if cfg!(feature = "redis") {
                    return Ok(Self::Redis(text.to_owned()));
                }
                Err(Invalid::new("needs a build with Redis")
                    .hint("install it with `--features redis`"))
            }
            _ => Err(Invalid::new("is not file, off or redis://HOST")),
        }
    }
}

/// Leaves out the password, which stands before the host.
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
    fn reads_sizes_and_hides_passwords() {
        let size = |text: &str| text.parse::<Size>().map(|size| size.0).ok();
        assert_eq!(
            [size("500KiB"), size("16MiB"), size("7")],
            [Some(512_000), Some(16 << 20), Some(7)]
        );
        assert_eq!([size("0"), size("1.5MiB"), size("99999999999GiB")], [None; 3]);
        let store = StoreAddress::Redis("redis://me:secret@cache:6379".to_owned());
        assert_eq!(store.to_string(), "redis://…@cache:6379");
    }
}
