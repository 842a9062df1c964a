//! The settings in force: a flag goes before a variable, a variable before the profile, the profile
//! before the default.

use std::fmt;

use petstore_client::Url;

use super::config_file::{ConfigFile, Profile};
use super::{Text, Values, flag, variable};
use crate::env::Env;
use crate::error::{CliError, Invalid, Kind};
use crate::suggest::similar;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Flag(String),
    Variable(String),
    /// The configuration file, outside of a profile.
    ConfigFile,
    Profile(String),
    Default,
}

impl Source {
    /// Returns the source in brackets, for a message.
    pub(crate) fn in_brackets(&self) -> String {
        match self {
            Self::Variable(name) => format!(" (from {name})"),
            Self::Profile(name) => format!(" (profile {name})"),
            Self::Flag(_) | Self::ConfigFile | Self::Default => String::new(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) | Self::Variable(name) => f.write_str(name),
            Self::ConfigFile => f.write_str("config.toml"),
            Self::Profile(name) => write!(f, "profile {name}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The settings in force.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) profile: (String, Source),
    pub(crate) config: ConfigFile,
    /// Flags, variables, the profile and the defaults, in that order.
    layers: [Values; 4],
}

impl Settings {
    /// Puts flags, variables and the configuration file together.
    pub(crate) fn resolve(
        profile: Option<&str>,
        flags: &Values,
        env: &Env,
        config: ConfigFile,
    ) -> Result<Self, CliError> {
        let profile = chosen_profile(profile, env, &config)?;
        let mut variables = Values::default();
        for name in Values::NAMES {
            let variable = variable(name);
            require_unicode(&variable, env)?;
            if let Some(text) = env.var(&variable) {
                let invalid =
                    |invalid: Invalid| invalid.of(Kind::Config, format!("{variable} `{text}`"));
                variables.set(name, text).map_err(invalid)?;
            }
        }
        let own = config.profiles.get(&profile.0).cloned().unwrap_or_default();
        Ok(Self { profile, layers: [flags.clone(), variables, own, Values::defaults()], config })
    }

    /// Returns a value.
    pub(crate) fn get<T: Clone>(&self, field: impl Fn(&Values) -> &Option<T>) -> Option<T> {
        self.layers.iter().find_map(|values| field(values).clone())
    }

    /// Returns a value as text that may be shown, and where it comes from.
    pub(crate) fn shown(&self, name: &str) -> Option<(String, Source)> {
        let mut found = self.layers.iter().zip(0..).filter_map(|(values, layer)| {
            let source = match layer {
                0 => Source::Flag(flag(name)),
                1 => Source::Variable(variable(name)),
                2 => Source::Profile(self.profile.0.clone()),
                _ => Source::Default,
            };
            Some((values.text(name)?, source))
        });
        found.next()
    }

    /// Returns the source of a value in brackets, for a message.
    pub(crate) fn source(&self, name: &str) -> String {
        self.shown(name).map_or_else(String::new, |(_, source)| source.in_brackets())
    }

    /// Returns the profile as an option to repeat, where one was chosen for this command.
    pub(crate) fn profile_option(&self) -> String {
        match &self.profile {
            (_, Source::Default | Source::ConfigFile) => String::new(),
            (name, _) => format!(" --profile {name}"),
        }
    }

    /// Returns the base URL.
    pub(crate) fn base_url(&self) -> Result<String, CliError> {
        let Some(Text(text)) = self.get(|values| &values.base_url) else {
            let option = self.profile_option();
            return Err(CliError::new(Kind::Config, "no base URL").hint(format!(
                "`petstore auth login{option} --base-url https://HOST/v1` keeps one"
            )));
        };
        match Url::parse(&text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text),
            _ if text.contains("://") => Ok(text),
            _ => {
                let source = self.source("base_url");
                let problem = format!("base URL `{text}` has no https://{source}");
                let place = match self.shown("base_url") {
                    Some((_, Source::Variable(name))) => format!("set {name} to"),
                    Some((_, Source::Profile(name))) => {
                        format!("`petstore config set --profile {name} base_url` takes")
                    }
                    _ => "give".to_owned(),
                };
                Err(CliError::new(Kind::Config, problem).hint(format!("{place} https://{text}")))
            }
        }
    }

    /// Checks that the profile that was asked for exists.
    pub(crate) fn require_profile(&self) -> Result<(), CliError> {
        let (name, source) = &self.profile;
        if *source == Source::Default || self.config.profiles.contains_key(name) {
            return Ok(());
        }
        Err(self.config.no_profile(name, Kind::Config))
    }
}

impl ConfigFile {
    /// Returns the error of a profile that does not exist.
    pub(crate) fn no_profile(&self, name: &str, kind: Kind) -> CliError {
        let names = self.profiles.keys().map(String::as_str);
        let error = CliError::new(kind, format!("no profile `{name}`"));
        error.hint(match similar(name, names) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if self.profiles.is_empty() => {
                format!(
                    "`petstore auth login --profile {name} --base-url https://HOST/v1` makes it"
                )
            }
            None => "`petstore config profiles` lists them".to_owned(),
        })
    }
}

fn chosen_profile(
    typed: Option<&str>,
    env: &Env,
    config: &ConfigFile,
) -> Result<(String, Source), CliError> {
    const VARIABLE: &str = "PETSTORE_PROFILE";

    require_unicode(VARIABLE, env)?;
    if let Some(name) = typed {
        return Ok((name.to_owned(), Source::Flag("--profile".to_owned())));
    }
    if let Some(name) = env.var(VARIABLE) {
        let invalid = |invalid: Invalid| invalid.of(Kind::Config, format!("{VARIABLE} `{name}`"));
        let Profile(name) = name.parse().map_err(invalid)?;
        return Ok((name, Source::Variable(VARIABLE.to_owned())));
    }
    Ok(match &config.profile {
        Some(name) => (name.clone(), Source::ConfigFile),
        None => ("default".to_owned(), Source::Default),
    })
}

/// Refuses a variable that is not Unicode, instead of ignoring it.
pub(crate) fn require_unicode(name: &str, env: &Env) -> Result<(), CliError> {
    if env.is_garbled(name) {
        return Err(CliError::new(Kind::Config, format!("{name} is not UTF-8")));
    }
    Ok(())
}
