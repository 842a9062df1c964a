//! What holds, and where it comes from: flag over variable over profile over default.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use petstore_client::rate_limit::FileStore;
#[cfg(feature = "redis")]
use petstore_client::rate_limit::RedisStore;

use crate::config::{Config, Setting};
use crate::env::Env;
use crate::error::CliError;
use crate::exit::Exit;
use crate::flags::{GlobalArgs, profile_name};
use crate::output::{Look, OutputFormat};
use crate::report;
use crate::style::Color;
use crate::suggest::similar;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(String),
    Variable(&'static str),
    /// The file, and which part of it.
    File(String),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => f.write_str(name),
            Self::Variable(name) => f.write_str(name),
            Self::File(part) => f.write_str(part),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A store in which processes share rate limits.
#[derive(Debug)]
pub(crate) enum AnyStore {
    File(FileStore),
    #[cfg(feature = "redis")]
    Redis(RedisStore),
}

/// What holds.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) profile: (String, Origin),
    pub(crate) config: Config,
    values: BTreeMap<Setting, (String, Origin)>,
}

impl Settings {
    /// Finds out what holds. With `--mock` no file is read.
    pub(crate) fn resolve(args: &GlobalArgs, env: &Env) -> Result<Self, CliError> {
        let config = if args.wants_mock() { Config::default() } else { Config::load(&env.dirs)? };
        Self::with(args, env, config)
    }

    /// The same without the file, for commands that must work whatever it holds.
    pub(crate) fn without_file(args: &GlobalArgs, env: &Env) -> Result<Self, CliError> {
        Self::with(args, env, Config::default())
    }

    fn with(args: &GlobalArgs, env: &Env, config: Config) -> Result<Self, CliError> {
        let profile = profile(args, env, &config)?;
        let empty = BTreeMap::new();
        let own = config.profiles.get(&profile.0).unwrap_or(&empty);
        let mut values = BTreeMap::new();
        for &setting in Setting::ALL {
            let flag = args.value(setting.name()).map(|text| (text, Origin::Flag(setting.flag())));
            let set = match flag {
                Some(flag) => Some(flag),
                None => variable(setting, env)?,
            };
            let of_file = || {
                let origin = Origin::File(format!("profile {}", profile.0));
                Some((own.get(&setting)?.clone(), origin))
            };
            let default = || Some((setting.default()?.to_owned(), Origin::Default));
            if let Some(value) = set.or_else(of_file).or_else(default) {
                values.insert(setting, value);
            }
        }
        Ok(Self { profile, config, values })
    }

    /// Returns a value and where it comes from.
    pub(crate) fn get(&self, setting: Setting) -> Option<&(String, Origin)> {
        self.values.get(&setting)
    }

    /// Returns a value as it may be shown, and where it comes from.
    pub(crate) fn shown(&self, setting: Setting) -> Option<(String, Origin)> {
        let (text, origin) = self.get(setting)?.clone();
        // A password stands before the host.
        Some(match (text.split_once("://"), text.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) if setting == Setting::LimitsStore => {
                (format!("{scheme}://…@{host}"), origin)
            }
            _ => (text, origin),
        })
    }

    fn text(&self, setting: Setting) -> &str {
        self.get(setting).map_or("", |(text, _)| text)
    }

    /// Returns the base URL.
    pub(crate) fn base_url(&self) -> Result<&str, CliError> {
        match self.get(Setting::BaseUrl) {
            Some((url, _)) => Ok(url),
            None => Err(CliError::new(Exit::Config, "no base URL is set")
                .hint("set PETSTORE_BASE_URL, or pass `--base-url https://HOST/v1`")
                .hint("`petstore config set base_url https://HOST/v1` keeps it")
                .hint("`petstore --mock …` runs any command without a service")),
        }
    }

    pub(crate) fn allow_insecure_http(&self) -> bool {
        self.text(Setting::AllowInsecureHttp) == "true"
    }

    /// Returns the certificate authorities to trust beside the system's.
    pub(crate) fn authorities(&self) -> Result<Option<Vec<u8>>, CliError> {
        let Some((path, origin)) = self.get(Setting::CaFile) else { return Ok(None) };
        std::fs::read(path).map(Some).map_err(|problem| {
            let problem = format!("could not read {path}, which {origin} names: {problem}");
            CliError::new(Exit::Config, problem)
        })
    }

    pub(crate) fn max_wait(&self) -> Duration {
        Duration::from_secs(self.text(Setting::MaxWait).parse().unwrap_or_default())
    }

    /// Returns the store in which processes share rate limits; the default one is in a folder.
    pub(crate) fn limits_store(&self, folder: Option<&Path>) -> Result<Option<AnyStore>, CliError> {
        match self.text(Setting::LimitsStore) {
            "file" => {
                Ok(folder.map(|folder| AnyStore::File(FileStore::new(folder.join("limits")))))
            }
            #[cfg(feature = "redis")]
            url if url.contains("://") => {
                let store = RedisStore::new(url).map_err(|problem| {
                    let problem = format!("the store of rate limits cannot be used: {problem}");
                    let hint = "give an address such as redis://HOST:6379";
                    CliError::new(Exit::Config, problem).hint(hint)
                })?;
                Ok(Some(AnyStore::Redis(store)))
            }
            _ => Ok(None),
        }
    }

    fn color(&self) -> Color {
        Color::from_str(self.text(Setting::Color), false).unwrap_or_default()
    }

    /// Returns what results are to look like.
    pub(crate) fn look(&self, args: &GlobalArgs, env: &Env) -> Look {
        let is_terminal = env.stdout.is_terminal;
        Look {
            format: OutputFormat::from_str(self.text(Setting::Output), false).ok(),
            fields: args.fields.clone(),
            jq: args.jq.clone(),
            is_terminal,
            width: env.width,
            color: self.color().applies(env, is_terminal),
        }
    }

    /// Returns how things are told on standard error.
    pub(crate) fn style(&self, args: &GlobalArgs, env: &Env) -> report::Style {
        report::Style {
            format: args.error_format.unwrap_or_default(),
            color: self.color().applies(env, env.stderr.is_terminal),
            quiet: args.quiet,
            verbose: args.verbose,
            width: env.width,
        }
    }
}

fn profile(args: &GlobalArgs, env: &Env, config: &Config) -> Result<(String, Origin), CliError> {
    const VARIABLE: &str = "PETSTORE_PROFILE";

    not_garbled(VARIABLE, env)?;
    if let Some(name) = &args.profile {
        return Ok((name.clone(), Origin::Flag("--profile".to_owned())));
    }
    if let Some(name) = env.var(VARIABLE) {
        let bad = |problem| CliError::new(Exit::Config, format!("{VARIABLE}: {problem}"));
        return Ok((profile_name(name).map_err(bad)?, Origin::Variable(VARIABLE)));
    }
    Ok(match &config.profile {
        Some(name) => (name.clone(), Origin::File("config.toml".to_owned())),
        None => ("default".to_owned(), Origin::Default),
    })
}

impl Settings {
    /// Checks that the profile that was asked for is there, where a command depends on it.
    pub(crate) fn check_profile(&self) -> Result<(), CliError> {
        let (name, origin) = &self.profile;
        if *origin == Origin::Default || self.config.profiles.contains_key(name) {
            return Ok(());
        }
        let names = || self.config.profiles.keys().map(String::as_str);
        let error = format!("there is no profile `{name}`, which {origin} asks for");
        let error = CliError::new(Exit::Config, error);
        Err(match similar(name, names()) {
            Some(meant) => error.hint(format!("did you mean `{meant}`?")),
            None if names().next().is_none() => error.hint(format!(
                "`petstore config set base_url https://HOST/v1 --profile {name}` makes it"
            )),
            None => error.hint(format!("there are {}", names().collect::<Vec<_>>().join(", "))),
        })
    }
}

fn variable(setting: Setting, env: &Env) -> Result<Option<(String, Origin)>, CliError> {
    let name = setting.variable();
    not_garbled(name, env)?;
    let Some(text) = env.var(name) else { return Ok(None) };
    let bad = |problem| CliError::new(Exit::Config, format!("{name} cannot be that: {problem}"));
    setting.check(text).map_err(bad)?;
    Ok(Some((text.to_owned(), Origin::Variable(name))))
}

/// Refuses a variable that is not Unicode, in place of taking it for not set.
pub(crate) fn not_garbled(name: &str, env: &Env) -> Result<(), CliError> {
    if env.is_garbled(name) {
        let problem = format!("what {name} holds is not UTF-8");
        return Err(CliError::new(Exit::Config, problem).hint(format!("set {name} anew")));
    }
    Ok(())
}
