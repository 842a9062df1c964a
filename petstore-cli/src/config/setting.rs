//! What can be set: each with its name in a profile, its variable, and what it may be.

use clap::ValueEnum;

use crate::flags::{limits_store, seconds};
use crate::output::OutputFormat;
use crate::style::Color;

/// A setting of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum Setting {
    /// The service's base URL, version segment included
    BaseUrl,
    /// Whether plain http to another machine is allowed
    AllowInsecureHttp,
    /// A file with certificate authorities to trust beside the system's (PEM)
    CaFile,
    /// How results are written
    Output,
    /// When colour is used
    Color,
    /// How many seconds rate limits may hold a call back
    MaxWait,
    /// Where processes share rate limits: file, redis://HOST or off
    LimitsStore,
}

impl Setting {
    pub(crate) const ALL: &[Self] = &[
        Self::BaseUrl,
        Self::AllowInsecureHttp,
        Self::CaFile,
        Self::Output,
        Self::Color,
        Self::MaxWait,
        Self::LimitsStore,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BaseUrl => "base_url",
            Self::AllowInsecureHttp => "allow_insecure_http",
            Self::CaFile => "ca_file",
            Self::Output => "output",
            Self::Color => "color",
            Self::MaxWait => "max_wait",
            Self::LimitsStore => "limits_store",
        }
    }

    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::BaseUrl => "PETSTORE_BASE_URL",
            Self::AllowInsecureHttp => "PETSTORE_ALLOW_INSECURE_HTTP",
            Self::CaFile => "PETSTORE_CA_FILE",
            Self::Output => "PETSTORE_OUTPUT",
            Self::Color => "PETSTORE_COLOR",
            Self::MaxWait => "PETSTORE_MAX_WAIT",
            Self::LimitsStore => "PETSTORE_LIMITS_STORE",
        }
    }

    pub(crate) fn flag(self) -> String {
        format!("--{}", self.name().replace('_', "-"))
    }

    /// Returns what holds where nothing is set.
    pub(crate) fn default(self) -> Option<&'static str> {
        match self {
            Self::BaseUrl | Self::CaFile | Self::Output => None,
            Self::AllowInsecureHttp => Some("false"),
            Self::Color => Some("auto"),
            Self::MaxWait => Some("120"),
            Self::LimitsStore => Some("file"),
        }
    }

    /// Returns what is wrong with a value.
    pub(crate) fn check(self, text: &str) -> Result<(), String> {
        match self {
            Self::BaseUrl | Self::CaFile if text.is_empty() => Err("it is empty".to_owned()),
            Self::BaseUrl | Self::CaFile => Ok(()),
            Self::AllowInsecureHttp => {
                text.parse::<bool>().map(drop).map_err(|_| "it is true or false".to_owned())
            }
            Self::Output => one_of::<OutputFormat>(text),
            Self::Color => one_of::<Color>(text),
            Self::MaxWait => seconds(text).map(drop),
            Self::LimitsStore => limits_store(text).map(drop),
        }
    }
}

fn one_of<T: ValueEnum>(text: &str) -> Result<(), String> {
    if T::from_str(text, false).is_ok() {
        return Ok(());
    }
    let names = T::value_variants().iter().filter_map(|value| {
        value.to_possible_value().map(|possible| possible.get_name().to_owned())
    });
    Err(format!("it is one of {}", names.collect::<Vec<_>>().join(", ")))
}
