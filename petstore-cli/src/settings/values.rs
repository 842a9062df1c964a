//! The settings, one row each: name (`--max-wait`, `PETSTORE_MAX_WAIT` and `max_wait`), type,
//! default and help. A new setting is a row here.

use std::time::Duration;

use clap::ValueHint;

use super::types::{Choice, Seconds, SettingType, Size, StoreAddress, parse};
use crate::error::{ErrorFormat, Invalid, either};
use crate::output::OutputFormat;
use crate::screen::Color;

/// The headings of the options in the help.
pub(crate) const SERVICE: &str = "Service and key";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const REQUESTS: &str = "Requests";

/// Defines the settings below each heading: the help, the name, the type and the default of each.
macro_rules! settings {
    ($($heading:ident {
        $($(#[$meta:meta])* $name:ident: $kind:ty = $default:expr;)*
    })*) => {
        /// Settings from one source: flags, variables, a profile or the defaults.
        #[derive(Debug, Clone, Default, clap::Args)]
        pub(crate) struct Values {
            $($($(#[$meta])*
            #[arg(long, global = true, hide_short_help = true)]
            #[arg(help_heading = $heading)]
            #[arg(value_parser = parse::<$kind>)]
            $name: Option<$kind>,)*)*
        }

        impl Values {
            pub(crate) const NAMES: &[&str] = &[
                $($(stringify!($name),)*)*
            ];

            pub(super) fn defaults() -> Self {
                Self { $($($name: $default,)*)* }
            }

            /// Parses a value.
            pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), Invalid> {
                match name {
                    $($(stringify!($name) => self.$name = Some(parse(text)?),)*)*
                    _ => return Err(Invalid::new("is not a setting")),
                }
                Ok(())
            }

            /// Returns the values that the completions of the shells offer.
            pub(crate) fn choices(name: &str) -> Vec<String> {
                match name {
                    $($(stringify!($name) => <$kind as SettingType>::choices(),)*)*
                    _ => Vec::new(),
                }
            }

            /// Returns whether the help lists the values of a setting.
            fn is_choice(name: &str) -> bool {
                match name {
                    $($(stringify!($name) => <$kind as SettingType>::IS_CHOICE,)*)*
                    _ => false,
                }
            }

            /// Returns a value as text, without secrets.
            pub(crate) fn text(&self, name: &str) -> Option<String> {
                match name {
                    $($(stringify!($name) => {
                        let value = self.$name.as_ref()?;
                        Some(value.to_string())
                    })*)*
                    _ => None,
                }
            }

            /// Adds the values that another source sets, and keeps its own.
            pub(super) fn or(mut self, other: &Self) -> Self {
                $($(if self.$name.is_none() {
                    self.$name.clone_from(&other.$name);
                })*)*
                self
            }
        }
    };
}

settings! {
    SERVICE {
        /// The service's base URL, such as https://HOST/v1
        #[arg(value_name = "URL")]
        base_url: String = None;

        /// Send the key over plain http to another machine
        #[arg(value_name = "BOOL", num_args = 0..=1)]
        #[arg(require_equals = true)]
        #[arg(default_missing_value = "true")]
        allow_insecure_http: bool = Some(false);

        /// Trust the certificate authorities of this PEM file too
        #[arg(value_name = "FILE")]
        #[arg(value_hint = ValueHint::FilePath)]
        ca_file: String = None;
    }
    OUTPUT {
        /// The format of results
        #[arg(short, value_name = "FORMAT")]
        output: Choice<OutputFormat> = Some(Choice(OutputFormat::Table));

        /// When colour is used
        #[arg(value_name = "WHEN")]
        color: Choice<Color> = Some(Choice(Color::Auto));

        /// The format of errors and notes
        #[arg(value_name = "FORMAT")]
        error_format: Choice<ErrorFormat> = Some(Choice(ErrorFormat::Text));
    }
    REQUESTS {
        /// Time for a request with its retries, without rate-limit waits
        #[arg(value_name = "TIME")]
        #[arg(allow_negative_numbers = true)]
        timeout: Seconds<1> = Some(Seconds(Duration::from_secs(30)));

        /// Number of retries of a failed request
        #[arg(value_name = "N")]
        #[arg(allow_negative_numbers = true)]
        retries: u32 = Some(3);

        /// Maximum rate-limit wait of a request; 0 never waits
        #[arg(value_name = "TIME")]
        #[arg(allow_negative_numbers = true)]
        max_wait: Seconds<0> = Some(Seconds(Duration::from_secs(120)));

        /// Maximum size of a response
        #[arg(value_name = "SIZE")]
        max_response_size: Size = Some(Size(10 << 20));

        /// Where rate limits are shared: file, off or redis://HOST
        #[arg(value_name = "STORE")]
        limits_store: StoreAddress = Some(StoreAddress::File);
    }
}

/// The help.
impl Values {
    /// Adds the values and the default of a setting to its help.
    pub(crate) fn explain(name: &str, help: &str) -> String {
        let mut text = help.to_owned();
        if Self::is_choice(name) {
            text += &format!(": {}", either(&Self::choices(name)));
        }
        match Self::defaults().text(name) {
            Some(default) => format!("{text}\n[default: {default}]"),
            None => text,
        }
    }
}

/// The typed values.
impl Values {
    pub(crate) fn base_url(&self) -> Option<&str> {
        self.base_url.as_deref()
    }

    pub(crate) fn allow_insecure_http(&self) -> bool {
        self.allow_insecure_http.unwrap_or(false)
    }

    pub(crate) fn ca_file(&self) -> Option<&str> {
        self.ca_file.as_deref()
    }

    pub(crate) fn output(&self) -> Option<OutputFormat> {
        let Choice(format) = self.output?;
        Some(format)
    }

    pub(crate) fn color(&self) -> Color {
        match self.color {
            Some(Choice(color)) => color,
            None => Color::Auto,
        }
    }

    pub(crate) fn error_format(&self) -> ErrorFormat {
        match self.error_format {
            Some(Choice(format)) => format,
            None => ErrorFormat::Text,
        }
    }

    /// Returns the time for a request and its retries.
    pub(crate) fn timeout(&self) -> Duration {
        match self.timeout {
            Some(Seconds(timeout)) => timeout,
            None => Duration::MAX,
        }
    }

    /// Returns the maximum number of attempts of a request.
    pub(crate) fn attempts(&self) -> u32 {
        self.retries.unwrap_or_default().saturating_add(1)
    }

    pub(crate) fn max_wait(&self) -> Duration {
        match self.max_wait {
            Some(Seconds(wait)) => wait,
            None => Duration::ZERO,
        }
    }

    pub(crate) fn max_response_size(&self) -> Size {
        self.max_response_size.unwrap_or(Size(usize::MAX))
    }

    pub(crate) fn limits_store(&self) -> StoreAddress {
        match &self.limits_store {
            Some(store) => store.clone(),
            None => StoreAddress::Off,
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
    fn a_source_adds_only_what_is_not_set() {
        let mut flags = Values::default();
        flags.set("retries", "7").unwrap();
        let values = flags.or(&Values::defaults());
        assert_eq!((values.attempts(), values.max_wait().as_secs()), (8, 120));
    }
}
