//! The settings: name (`--max-wait`, `PETSTORE_MAX_WAIT` and `max_wait`), type, default and help.

use std::time::Duration;

use clap::ValueHint;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::scalar::{self, choice};
use super::secrets::without_password;
use super::types::{Seconds, Size, StoreAddress};
use crate::error::ErrorFormat;
use crate::output::OutputFormat;
use crate::screen::Color;

/// The headings of the options in the help.
pub(crate) const SERVICE: &str = "Service and key";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const REQUESTS: &str = "Requests";

/// Settings from one source: flags, variables, a profile or the defaults.
#[derive(Debug, Clone, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Values {
    /// The service's base URL, such as https://HOST/v1
    #[arg(long, help_heading = SERVICE, value_name = "URL")]
    #[serde(with = "scalar")]
    base_url: Option<String>,

    /// Send the key over plain http to another machine
    #[arg(long, help_heading = SERVICE, value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true)]
    #[serde(with = "scalar")]
    allow_insecure_http: Option<bool>,

    /// Trust the certificate authorities of this PEM file too
    #[arg(long, help_heading = SERVICE, value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath)]
    #[serde(with = "scalar")]
    ca_file: Option<String>,

    /// The format of results; by default a table on a terminal, else tsv
    #[arg(short, long, help_heading = OUTPUT, value_name = "FORMAT")]
    #[serde(deserialize_with = "choice")]
    output: Option<OutputFormat>,

    /// When colour is used
    #[arg(long, help_heading = OUTPUT, value_name = "WHEN")]
    #[serde(deserialize_with = "choice")]
    color: Option<Color>,

    /// The format of errors and notes
    #[arg(long, help_heading = OUTPUT, value_name = "FORMAT")]
    #[serde(deserialize_with = "choice")]
    error_format: Option<ErrorFormat>,

    /// Time for a request with its retries, without rate-limit waits
    #[arg(long, help_heading = REQUESTS, value_name = "TIME")]
    #[arg(allow_negative_numbers = true)]
    #[serde(with = "scalar")]
    timeout: Option<Seconds<1>>,

    /// Number of retries of a failed request
    #[arg(long, help_heading = REQUESTS, value_name = "N")]
    #[arg(allow_negative_numbers = true)]
    #[serde(with = "scalar")]
    retries: Option<u32>,

    /// Maximum rate-limit wait of a request; 0 never waits
    #[arg(long, help_heading = REQUESTS, value_name = "TIME")]
    #[arg(allow_negative_numbers = true)]
    #[serde(with = "scalar")]
    max_wait: Option<Seconds<0>>,

    /// Maximum size of a response
    #[arg(long, help_heading = REQUESTS, value_name = "SIZE")]
    #[serde(with = "scalar")]
    max_response_size: Option<Size>,

    /// Where rate limits are shared: file, off or redis://HOST
    #[arg(long, help_heading = REQUESTS, value_name = "STORE")]
    #[serde(with = "scalar")]
    limits_store: Option<StoreAddress>,

    /// The program that prints the API key, and its arguments. Only a profile has it.
    #[arg(skip)]
    #[serde(skip_serializing, deserialize_with = "words")]
    key_command: Option<Vec<String>>,
}

/// Reads the words of a command. The error omits the value, which may contain the key.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    let words = Vec::deserialize(deserializer);
    let expected = "key_command is a list, such as [\"pass\", \"show\", \"petstore\"]";
    words.map(Some).map_err(|_| D::Error::custom(expected))
}

impl Values {
    /// The settings that have a flag and a variable.
    pub(crate) const NAMES: &[&str] = &[
        "base_url",
        "allow_insecure_http",
        "ca_file",
        "output",
        "color",
        "error_format",
        "timeout",
        "retries",
        "max_wait",
        "max_response_size",
        "limits_store",
    ];

    pub(crate) fn defaults() -> Self {
        Self {
            base_url: None,
            allow_insecure_http: Some(false),
            ca_file: None,
            output: None,
            color: Some(Color::Auto),
            error_format: Some(ErrorFormat::Text),
            timeout: Some(Seconds(Duration::from_secs(30))),
            retries: Some(3),
            max_wait: Some(Seconds(Duration::from_secs(120))),
            max_response_size: Some(Size(10 << 20)),
            limits_store: Some(StoreAddress::File),
            key_command: None,
        }
    }

    /// Parses a value. The error contains the value, without a password.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let object = Map::from_iter([(name.to_owned(), text.into())]);
        match Self::deserialize(Value::Object(object)) {
            Ok(values) => *self = values.or(self),
            Err(problem) => {
                let problem = problem.to_string();
                return Err(problem.replace(text, &without_password(text)));
            }
        }
        Ok(())
    }

    /// Returns a value as text, without secrets.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let object = serde_json::to_value(self).ok()?;
        Some(object.get(name)?.as_str()?.to_owned())
    }

    /// Adds the values that another source sets, and keeps its own.
    pub(super) fn or(self, other: &Self) -> Self {
        let other = other.clone();
        Self {
            base_url: self.base_url.or(other.base_url),
            allow_insecure_http: self.allow_insecure_http.or(other.allow_insecure_http),
            ca_file: self.ca_file.or(other.ca_file),
            output: self.output.or(other.output),
            color: self.color.or(other.color),
            error_format: self.error_format.or(other.error_format),
            timeout: self.timeout.or(other.timeout),
            retries: self.retries.or(other.retries),
            max_wait: self.max_wait.or(other.max_wait),
            max_response_size: self.max_response_size.or(other.max_response_size),
            limits_store: self.limits_store.or(other.limits_store),
            key_command: self.key_command.or(other.key_command),
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

    /// Returns the format; by default, the stream decides.
    pub(crate) fn output(&self) -> Option<OutputFormat> {
        self.output
    }

    pub(crate) fn color(&self) -> Color {
        self.color.unwrap_or(Color::Auto)
    }

    pub(crate) fn error_format(&self) -> ErrorFormat {
        self.error_format.unwrap_or(ErrorFormat::Text)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
            .map_or(Duration::MAX, |Seconds(timeout)| timeout)
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.retries.unwrap_or_default().saturating_add(1)
    }

    pub(crate) fn max_wait(&self) -> Duration {
        self.max_wait.map_or(Duration::ZERO, |Seconds(wait)| wait)
    }

    pub(crate) fn max_response_size(&self) -> Size {
        self.max_response_size.unwrap_or(Size(usize::MAX))
    }

    pub(crate) fn limits_store(&self) -> StoreAddress {
        self.limits_store.clone().unwrap_or(StoreAddress::Off)
    }

    pub(crate) fn key_command(&self) -> Option<&[String]> {
        self.key_command.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_listed_in_order() {
        let object = serde_json::to_value(Values::default()).unwrap();
        let names: Vec<_> = object.as_object().unwrap().keys().collect();
        assert_eq!(names, Values::NAMES);
    }
}
