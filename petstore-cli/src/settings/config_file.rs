//! `config.toml`: profiles and their settings. An unknown name is an error with its line, because a
//! silently ignored setting would mislead.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value};

use super::Values;
use super::secrets::without_password;
use crate::env::{Dirs, System};
use crate::error::{CliError, Kind, Result};
use crate::files;

/// The name of a profile, which is also part of a file name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Profile(String);

impl Profile {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let may_be_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if !(1..=64).contains(&text.len()) || !text.chars().all(may_be_in_name) {
            return Err("a profile has up to 64 letters, digits, `-` and `_`".to_owned());
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Profile {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|problem| {
            let text = without_password(&text);
            format!("invalid value `{text}`: {problem}")
        })
    }
}

impl std::borrow::Borrow<str> for Profile {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Why the settings are incomplete. The settings from other sources still apply.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The configuration file cannot be read, for example by another user in a container.
    Unreadable(CliError),
    /// A variable or the content of the file is invalid.
    Invalid(CliError),
}

/// The content of the file; empty if there is no file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ConfigFile {
    /// The profile in use.
    #[serde(deserialize_with = "chosen")]
    profile: Option<Profile>,
    profiles: BTreeMap<Profile, Values>,
}

fn chosen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Profile>, D::Error> {
    match serde_json::Value::deserialize(deserializer)? {
        serde_json::Value::String(name) => name.try_into().map(Some).map_err(D::Error::custom),
        _ => {
            let problem = "`profile` is a name; settings stand below `[profiles.NAME]`";
            Err(D::Error::custom(problem))
        }
    }
}

impl ConfigFile {
    /// Returns the path of the file, which may not exist.
    pub(crate) fn path(dirs: &Dirs) -> Option<PathBuf> {
        Some(dirs.config.as_ref()?.join("config.toml"))
    }

    /// Reads the file, if there is one.
    pub(crate) fn load(system: &System) -> Result<Self, Problem> {
        let Some(path) = Self::path(system.dirs()) else {
            return Ok(Self::default());
        };
        let text = files::read(&path, Kind::Config, system).map_err(Problem::Unreadable)?;
        Self::parse(&system.shown(&path), &text.unwrap_or_default()).map_err(Problem::Invalid)
    }

    /// Returns the profile that is used unless another is selected.
    pub(crate) fn profile(&self) -> Option<&str> {
        self.profile.as_ref().map(Profile::as_str)
    }

    pub(crate) fn has(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile)
    }

    pub(crate) fn values(&self, profile: &str) -> Option<&Values> {
        self.profiles.get(profile)
    }

    pub(crate) fn profiles(&self) -> impl Iterator<Item = (&str, &Values)> {
        self.profiles
            .iter()
            .map(|(name, values)| (name.as_str(), values))
    }

    pub(crate) fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(Profile::as_str)
    }

    pub(crate) fn parse(name: &str, text: &str) -> Result<Self> {
        toml_edit::de::from_str(text).map_err(|problem| {
            let start = problem.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let said = problem.message().trim_end().replace('\n', ", ");
            let outside = text.parse::<DocumentMut>().is_ok_and(|document| {
                let mut names = document.iter().map(|(name, _)| name);
                names.any(|name| Values::NAMES.contains(&name))
            });
            let hint = outside.then(|| "settings stand below `[profiles.NAME]`".to_owned());
            let problem = format!("{name} line {line}: {}", without_password(&said));
            CliError::config(problem).hint_if(hint)
        })
    }

    /// Changes the file. Keeps comments, order and layout.
    pub(crate) fn edit(system: &System, change: impl FnOnce(&mut DocumentMut)) -> Result<()> {
        let Some(path) = Self::path(system.dirs()) else {
            return Err(no_folder());
        };
        let _lock = files::lock(&path, system)?;
        let text = files::read(&path, Kind::Config, system)?.unwrap_or_default();
        Self::parse(&system.shown(&path), &text)?;
        let document = text.parse::<DocumentMut>();
        let mut document = document.map_err(CliError::internal)?;
        change(&mut document);
        files::write(&path, document.to_string(), system)
    }
}

pub(crate) fn no_folder() -> CliError {
    let problem = "cannot find the folder of config.toml";
    let hint = "set HOME or XDG_CONFIG_HOME; variables such as PETSTORE_BASE_URL need no folder";
    CliError::config(problem).hint(hint)
}

/// Sets a value. Keeps the comments of the previous one.
pub(crate) fn put(table: &mut dyn TableLike, name: &str, text: &str) {
    // A text such as `007` may be a file's name. Only a text that is unchanged after parsing and
    // formatting is stored as a number.
    let mut value: Value = match (text.parse::<bool>(), text.parse::<i64>()) {
        (Ok(truth), _) => truth.into(),
        (_, Ok(number)) if number.to_string() == text => number.into(),
        _ => text.into(),
    };
    match table.get_mut(name) {
        Some(item) => {
            if let Some(old) = item.as_value() {
                *value.decor_mut() = old.decor().clone();
            }
            *item = Item::Value(value);
        }
        None => drop(table.insert(name, Item::Value(value))),
    }
}

/// Returns a profile's table. Creates it if it is missing.
pub(crate) fn profile_table<'d>(
    document: &'d mut DocumentMut,
    name: &str,
) -> Option<&'d mut dyn TableLike> {
    let mut unnamed = Table::new();
    unnamed.set_implicit(true);
    let profiles = document.entry("profiles").or_insert(unnamed.into());
    let profiles = profiles.as_table_like_mut()?;
    profiles
        .entry(name)
        .or_insert(Item::Table(Table::new()))
        .as_table_like_mut()
}
