//! The settings in force: a flag overrides a variable, a variable overrides the profile, and the
//! profile overrides the default.

use std::net::IpAddr;

use petstore_client::Url;

use super::config_file::{ConfigFile, Profile};
use super::{Values, flag, variable};
use crate::env::Env;
use crate::error::{CliError, Kind};
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
    pub(crate) profile: String,
    pub(crate) profile_source: Source,
    pub(crate) config: ConfigFile,
    /// The problem of the configuration file, if any. Then only flags and variables apply.
    pub(crate) problem: Option<CliError>,
    layers: [Values; LAYERS.len()],
}

impl Settings {
    /// Combines flags, variables and the configuration file.
    pub(crate) fn resolve(
        profile: Option<&Profile>,
        flags: &Values,
        env: &Env,
        reads_file: bool,
    ) -> Self {
        let (profile, profile_source) = match profile {
            Some(Profile(name)) => (name.clone(), Source::Flag),
            None => ("default".to_owned(), Source::Default),
        };
        let layers = [
            flags.clone(),
            Values::default(),
            Values::default(),
            Values::defaults(),
        ];
        let config = ConfigFile::default();
        let mut settings = Self {
            profile,
            profile_source,
            config,
            problem: None,
            layers,
        };
        settings.problem = settings.read(env, reads_file).err();
        settings
    }

    fn read(&mut self, env: &Env, reads_file: bool) -> Result<(), CliError> {
        // All of them, so that an invalid one is reported in the format that another one sets.
        let set: Vec<_> = Values::NAMES
            .iter()
            .map(|name| self.set_variable(name, env))
            .collect();
        set.into_iter().collect::<Result<(), _>>()?;
        if reads_file {
            self.config = ConfigFile::load(env)?;
        }
        let chosen = unicode("PETSTORE_PROFILE", env)?;
        match (self.profile_source, chosen, &self.config.profile) {
            (Source::Default, Some(name), _) => {
                let invalid = |invalid: crate::error::Invalid| {
                    invalid.of(Kind::Config, format!("PETSTORE_PROFILE `{name}`"))
                };
                let Profile(name) = name.parse().map_err(invalid)?;
                (self.profile, self.profile_source) = (name, Source::Variable);
            }
            (Source::Default, None, Some(name)) => {
                (self.profile, self.profile_source) = (name.clone(), Source::ConfigFile);
            }
            _ => {}
        }
        self.layers[2] = self
            .config
            .profiles
            .get(&self.profile)
            .cloned()
            .unwrap_or_default();
        Ok(())
    }

    fn set_variable(&mut self, name: &str, env: &Env) -> Result<(), CliError> {
        let variable = variable(name);
        let Some(text) = unicode(&variable, env)? else {
            return Ok(());
        };
        let set = self.layers[1].set(name, text);
        set.map_err(|invalid| invalid.of(Kind::Config, format!("{variable} `{text}`")))
    }

    /// Sets a typed base URL, like the flag.
    pub(crate) fn set_base_url(&mut self, text: &str) {
        self.layers[0].base_url = Some(text.to_owned());
    }

    /// Returns a value.
    pub(crate) fn get<T: Clone>(&self, field: impl Fn(&Values) -> &Option<T>) -> Option<T> {
        self.layers.iter().find_map(|values| field(values).clone())
    }

    /// Returns a value that is not the default.
    pub(crate) fn chosen<T: Clone>(&self, field: impl Fn(&Values) -> &Option<T>) -> Option<T> {
        let mut layers = self.layers.iter().zip(LAYERS);
        layers.find_map(|(values, source)| {
            field(values).clone().filter(|_| source != Source::Default)
        })
    }

    /// Returns a value as text without secrets, and its source.
    pub(crate) fn shown(&self, name: &str) -> Option<(String, Source)> {
        let mut layers = self.layers.iter().zip(LAYERS);
        layers.find_map(|(values, source)| Some((values.text(name)?, source)))
    }

    /// Returns the name of a source for people.
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
            _ => String::new(),
        }
    }

    /// Returns the base URL, if a key may be sent to it.
    pub(crate) fn base_url(&self) -> Result<Url, CliError> {
        let Some((text, source)) = self.shown("base_url") else {
            let option = self.profile_option();
            let hint = format!("`petstore auth login{option} --base-url https://HOST/v1` sets one");
            return Err(CliError::new(Kind::Config, "no base URL").hint(hint));
        };
        let Some(url) = web_url(&text) else {
            return Err(self.no_url(&text, source));
        };
        let allows_http = self.get(|values| &values.allow_insecure_http) == Some(true);
        if url.scheme() == "http" && !is_local(&url) && !allows_http {
            let origin = url.origin().ascii_serialization();
            let problem = format!("{origin} would send the key unencrypted");
            let hint = "use https, or accept the risk with `--allow-insecure-http`";
            return Err(CliError::new(Kind::Config, problem).hint(hint));
        }
        Ok(url)
    }

    /// Returns the error for a base URL that is none, and names a similar one, if there is one.
    fn no_url(&self, text: &str, source: Source) -> CliError {
        let (scheme, address) = text.split_once("://").unwrap_or(("", text));
        let lacks = if scheme.starts_with("http") {
            "is not a URL"
        } else {
            "has no https://"
        };
        let problem = format!("base URL `{text}` {lacks}{}", self.source("base_url"));
        let setting = match source {
            Source::Profile => format!("base_url of profile {}", self.profile),
            source => self.source_name("base_url", source),
        };
        let address = address.trim_matches(['"', '\'']);
        let hint = match web_url(&format!("https://{address}")) {
            Some(url) if is_local(&url) => format!("set {setting} to http://{address}"),
            Some(_) => format!("set {setting} to https://{address}"),
            None => format!("set {setting} to a URL such as https://HOST/v1"),
        };
        CliError::new(Kind::Config, problem).hint(hint)
    }

    /// Checks that the requested profile exists.
    pub(crate) fn require_profile(&self) -> Result<(), CliError> {
        let exists = self.config.profiles.contains_key(&self.profile);
        if exists || self.profile_source == Source::Default {
            return Ok(());
        }
        Err(self.no_profile(&self.profile))
    }

    /// Returns the error for a missing profile.
    pub(crate) fn no_profile(&self, name: &str) -> CliError {
        let profiles = &self.config.profiles;
        let hint = did_you_mean(name, profiles.keys().map(String::as_str));
        let hint = hint.unwrap_or_else(|| match profiles.is_empty() {
            true => {
                format!(
                    "`petstore auth login --profile {name} --base-url https://HOST/v1` creates it"
                )
            }
            false => "`petstore config profiles` lists them".to_owned(),
        });
        CliError::new(Kind::Config, format!("no profile `{name}`")).hint(hint)
    }
}

fn web_url(text: &str) -> Option<Url> {
    Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// Returns whether a URL names this machine.
pub(crate) fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Returns a variable. Fails if it is not Unicode, instead of ignoring it.
pub(crate) fn unicode<'e>(name: &str, env: &'e Env) -> Result<Option<&'e str>, CliError> {
    match env.vars.get(name) {
        Some(value) if value.to_str().is_none() => {
            Err(CliError::new(Kind::Config, format!("{name} is not UTF-8")))
        }
        _ => Ok(env.var(name)),
    }
}
