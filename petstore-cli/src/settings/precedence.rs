//! The settings in force: a flag overrides a variable, a variable overrides the profile, and the
//! profile overrides the default.

use petstore_client::url::Url;

use super::config_file::{ConfigFile, Problem, Profile};
use super::{Values, checked_url, flag, variable};
use crate::env::System;
use crate::error::{CliError, Result};
use crate::escape;
use crate::suggest::did_you_mean;

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Flag,
    Variable,
    Profile,
    /// The configuration file, outside profiles.
    ConfigFile,
    Default,
}

/// The sources of a setting, in order of precedence.
const LAYERS: [Source; 4] = [
    Source::Flag,
    Source::Variable,
    Source::Profile,
    Source::Default,
];

/// The settings in force.
#[derive(Debug)]
pub(crate) struct Settings {
    profile: String,
    profile_source: Source,
    config: ConfigFile,
    is_mock: bool,
    layers: [Values; LAYERS.len()],
    values: Values,
}

impl Settings {
    /// Combines flags, variables and the configuration file. A mock server does not need the file.
    pub(crate) fn resolve(
        profile: Option<&Profile>,
        flags: &Values,
        system: &System,
        is_mock: bool,
    ) -> (Self, Option<Problem>) {
        let (profile, profile_source) = match profile {
            Some(profile) => (profile.as_str(), Source::Flag),
            None => ("default", Source::Default),
        };
        let defaults = Values::defaults();
        let none = Values::default();
        let mut settings = Self {
            profile: profile.to_owned(),
            profile_source,
            config: ConfigFile::default(),
            is_mock,
            layers: [flags.clone(), none.clone(), none.clone(), defaults],
            values: none,
        };
        let problem = settings.read(system).err();
        settings.values = settings.layers.iter().fold(Values::default(), Values::or);
        (settings, problem)
    }

    fn read(&mut self, system: &System) -> Result<(), Problem> {
        self.read_variables(system).map_err(Problem::Invalid)?;
        if self.profile_source == Source::Default
            && let Some(profile) = profile_variable(system).map_err(Problem::Invalid)?
        {
            self.profile = profile;
            self.profile_source = Source::Variable;
        }
        if self.is_mock {
            return Ok(());
        }
        self.config = ConfigFile::load(system)?;
        if self.profile_source == Source::Default
            && let Some(profile) = self.config.profile()
        {
            self.profile = profile.to_owned();
            self.profile_source = Source::ConfigFile;
        }
        self.layers[2] = self.profile_values().cloned().unwrap_or_default();
        Ok(())
    }

    /// Reads all variables before an error is reported: one may set the format of errors.
    fn read_variables(&mut self, system: &System) -> Result<()> {
        let mut first = Ok(());
        for name in Values::NAMES {
            let variable = variable(name);
            let set = match system.unicode(&variable) {
                Ok(Some(text)) => self.layers[1]
                    .set(name, text)
                    .map_err(|problem| CliError::config(format!("{variable}: {problem}"))),
                unset => unset.map(|_| ()),
            };
            first = first.and(set);
        }
        first
    }

    pub(crate) fn values(&self) -> &Values {
        &self.values
    }

    pub(crate) fn profile(&self) -> &str {
        &self.profile
    }

    /// Returns the values of the profile, if it exists.
    pub(crate) fn profile_values(&self) -> Option<&Values> {
        self.config.values(&self.profile)
    }

    pub(crate) fn profile_source(&self) -> Source {
        self.profile_source
    }

    pub(crate) fn config(&self) -> &ConfigFile {
        &self.config
    }

    /// Returns whether commands use a built-in mock server.
    pub(crate) fn is_mock(&self) -> bool {
        self.is_mock
    }

    /// Refuses a command that changes settings or keys, which `--mock` does not use.
    pub(crate) fn refuse_mock(&self, command: &str) -> Result<()> {
        if self.is_mock {
            let problem = format!("`{command}` does not apply to `--mock`");
            return Err(CliError::usage(problem));
        }
        Ok(())
    }

    /// Returns a value as text without secrets, and its source.
    pub(crate) fn shown(&self, name: &str) -> Option<(String, Source)> {
        let mut layers = self.layers.iter().zip(LAYERS);
        layers.find_map(|(values, source)| Some((values.text(name)?, source)))
    }

    pub(crate) fn source_name(&self, name: &str, source: Source) -> String {
        match source {
            Source::Flag => flag(name),
            Source::Variable => variable(name),
            Source::Profile => format!("profile {}", self.profile),
            Source::ConfigFile => "config.toml".to_owned(),
            Source::Default => "default".to_owned(),
        }
    }

    /// Returns the source of a value in brackets, for a message.
    pub(crate) fn source(&self, name: &str) -> String {
        match self.shown(name) {
            Some((_, Source::Variable)) => format!(" (from {})", variable(name)),
            Some((_, Source::Profile)) => format!(" (profile {})", self.profile),
            _ => String::new(),
        }
    }

    /// Returns the option that selects the profile, if this command selected one.
    pub(crate) fn profile_option(&self) -> String {
        match self.profile_source {
            Source::Flag | Source::Variable => format!(" --profile {}", self.profile),
            Source::Profile | Source::ConfigFile | Source::Default => String::new(),
        }
    }

    /// Returns the options with which another command reaches the same service with the same key:
    /// ` --profile staging`.
    pub(crate) fn same_service(&self) -> String {
        if self.is_mock {
            return " --mock".to_owned();
        }
        let mut options = self.profile_option();
        let [flags, ..] = &self.layers;
        if let Some(url) = flags.base_url() {
            options += &format!(" --base-url {}", escape::shell(url));
        }
        if let Some(path) = flags.ca_file() {
            options += &format!(" --ca-file {}", escape::shell(path));
        }
        if flags.allow_insecure_http() {
            options += " --allow-insecure-http";
        }
        options
    }

    /// Returns a command for a hint, which reaches the same service: `` `petstore pets list` ``.
    pub(crate) fn command(&self, words: &str) -> String {
        format!("`petstore {words}{}`", self.same_service())
    }

    /// Returns whether there is a base URL, which may be invalid.
    pub(crate) fn has_base_url(&self) -> bool {
        self.values.base_url().is_some()
    }

    /// Returns the base URL, if a key may be sent to it.
    pub(crate) fn base_url(&self) -> Result<Url> {
        let Some((text, source)) = self.shown("base_url") else {
            let option = self.profile_option();
            let hint = format!("`petstore auth login{option} --base-url https://HOST/v1` sets one");
            return Err(CliError::config("no base URL").hint(hint));
        };
        let setting = match source {
            Source::Profile => format!("base_url of profile {}", self.profile),
            source => self.source_name("base_url", source),
        };
        let allows_http = self.values.allow_insecure_http();
        checked_url(&text, &setting, &self.source("base_url"), allows_http)
    }

    /// Checks that the requested profile exists.
    pub(crate) fn require_profile(&self) -> Result<()> {
        if self.profile_source == Source::Default || self.config.has(&self.profile) {
            return Ok(());
        }
        let error = self.no_profile(&self.profile);
        Err(match self.profile_source {
            Source::Variable => error.with_source(&variable("profile")),
            Source::ConfigFile => error.with_source("config.toml"),
            Source::Flag | Source::Profile | Source::Default => error,
        })
    }

    pub(crate) fn no_profile(&self, name: &str) -> CliError {
        let hint = match did_you_mean(name, self.config.profile_names()) {
            Some(meant) => meant,
            None if self.config.profile_names().next().is_some() => {
                "`petstore config profiles` lists them".to_owned()
            }
            None => {
                let login = format!("petstore auth login --profile {name}");
                format!("`{login} --base-url https://HOST/v1` creates it")
            }
        };
        CliError::config(format!("no profile `{name}`")).hint(hint)
    }
}

fn profile_variable(system: &System) -> Result<Option<String>> {
    const NAME: &str = "PETSTORE_PROFILE";

    let Some(name) = system.unicode(NAME)? else {
        return Ok(None);
    };
    match Profile::try_from(name.to_owned()) {
        Ok(profile) => Ok(Some(profile.as_str().to_owned())),
        Err(problem) => Err(CliError::config(format!("{NAME}: {problem}"))),
    }
}
