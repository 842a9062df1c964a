//! `config.toml`: profiles and their settings. An unknown name is an error with its line, because a
//! silently ignored setting would mislead.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use toml_edit::{Document, DocumentMut, Item, Key, Table, TableLike, TomlError, Value};

use super::Values;
use super::secrets::without_password;
use crate::env::{Dirs, System};
use crate::error::{CliError, Invalid, Kind, Result};
use crate::files;
use crate::suggest::did_you_mean;

/// The name of a profile, which is also part of a file name.
#[derive(Debug, Clone)]
pub(crate) struct Profile(String);

impl Profile {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Profile {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let has_length = (1..=64).contains(&text.len());
        if !has_length || !text.chars().all(may_be_in_name) {
            let hint = "a profile has up to 64 letters, digits, `-` and `_`";
            return Err(Invalid::new("is not the name of a profile").hint(hint));
        }
        Ok(Self(text.to_owned()))
    }
}

fn may_be_in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// Why the settings are incomplete. The settings from other sources still apply.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The configuration file cannot be read. A command may still find all that it needs in flags
    /// and variables.
    Unreadable(CliError),
    /// A variable or the content of the file is invalid.
    Invalid(CliError),
}

/// The content of the file; empty if there is no file.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    /// The profile in use.
    profile: Option<String>,
    profiles: BTreeMap<String, Values>,
}

impl ConfigFile {
    /// Returns the path of the file, which may not exist.
    pub(crate) fn path(dirs: &Dirs) -> Option<PathBuf> {
        let folder = dirs.config.as_ref()?;
        Some(folder.join("config.toml"))
    }

    /// Reads the file, if there is one.
    pub(crate) fn load(system: &System) -> Result<Self, Problem> {
        let Some(path) = Self::path(system.dirs()) else {
            return Ok(Self::default());
        };
        let text = match files::read(&path, Kind::Config, system) {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => return Err(Problem::Unreadable(error)),
        };
        let shown = system.shown(&path);
        match Self::parse(&shown, &text) {
            Ok(config) => Ok(config),
            Err(error) => Err(Problem::Invalid(error)),
        }
    }

    /// Returns the profile that is used unless another is selected.
    pub(crate) fn profile(&self) -> Option<&str> {
        self.profile.as_deref()
    }

    pub(crate) fn has(&self, profile: &str) -> bool {
        self.profiles.contains_key(profile)
    }

    pub(crate) fn values(&self, profile: &str) -> Option<&Values> {
        self.profiles.get(profile)
    }

    /// Returns the profiles in the order of their names.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = (&str, &Values)> {
        self.profiles.iter().map(|(name, values)| (&**name, values))
    }

    pub(crate) fn profile_names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    pub(crate) fn parse(name: &str, text: &str) -> Result<Self> {
        match read(text) {
            Ok(config) => Ok(config),
            Err(problem) => {
                let line = problem.line(text);
                let place = format!("{name} line {line}:");
                Err(problem.invalid.of(Kind::Config, place))
            }
        }
    }

    /// Changes the file. Keeps comments, order and layout.
    pub(crate) async fn edit<F>(system: &System, change: F) -> Result<()>
    where
        F: FnOnce(&mut DocumentMut),
    {
        let Some(path) = Self::path(system.dirs()) else {
            return Err(no_folder());
        };
        let _lock = files::lock(&path, system).await?;
        let text = files::read(&path, Kind::Config, system)?;
        let text = text.unwrap_or_default();
        let shown = system.shown(&path);
        Self::parse(&shown, &text)?;
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
    let mut value = value_of(text);
    if let Some(item) = table.get(name)
        && let Some(old) = item.as_value()
    {
        *value.decor_mut() = old.decor().clone();
    }
    let value = Item::Value(value);
    match table.get_mut(name) {
        Some(item) => *item = value,
        None => drop(table.insert(name, value)),
    }
}

/// Returns a truth value, a number or a text.
fn value_of(text: &str) -> Value {
    if let Ok(truth) = text.parse::<bool>() {
        return truth.into();
    }
    // A text such as `007` may be a file's name. Only a text that is unchanged after parsing and
    // formatting is stored as a number.
    match text.parse::<i64>() {
        Ok(number) if number.to_string() == text => number.into(),
        _ => text.into(),
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

/// A problem and its position in the text.
struct Diagnostic {
    span: Option<Range<usize>>,
    invalid: Invalid,
}

impl Diagnostic {
    fn new(span: Option<Range<usize>>, invalid: Invalid) -> Self {
        Self { span, invalid }
    }

    /// Returns the number of the problem's line, from 1.
    fn line(&self, text: &str) -> usize {
        let Some(span) = &self.span else {
            return 1;
        };
        let before = text.get(..span.start).unwrap_or_default();
        before.matches('\n').count() + 1
    }
}

impl From<TomlError> for Diagnostic {
    fn from(problem: TomlError) -> Self {
        let message = problem.message().trim_end();
        let invalid = Invalid::new(message.replace('\n', ", "));
        Self::new(problem.span(), invalid)
    }
}

fn read(text: &str) -> Result<ConfigFile, Diagnostic> {
    let document = Document::parse(text)?;
    let mut config = ConfigFile::default();
    let top = document.as_item();
    let known = ["profile", "profiles"];
    for (key, item) in entries("the file", top, &known)? {
        if key.get() == "profile" {
            let name = scalar(key, item)?;
            let name = profile_name(&name, item.span())?;
            config.profile = Some(name);
            continue;
        }
        for (key, item) in entries(key, item, &[])? {
            let name = profile_name(key.get(), key.span())?;
            let values = read_profile(&name, item)?;
            config.profiles.insert(name, values);
        }
    }
    Ok(config)
}

fn read_profile(name: &str, item: &Item) -> Result<Values, Diagnostic> {
    let mut values = Values::default();
    for (key, item) in entries(name, item, Values::NAMES)? {
        let text = scalar(key, item)?;
        if let Err(invalid) = values.set(key.get(), &text) {
            let shown = without_password(&text);
            let invalid = invalid.named(format!("{key} `{shown}`"));
            return Err(Diagnostic::new(item.span(), invalid));
        }
    }
    Ok(values)
}

/// A name in a table, and what it names.
type Entry<'i> = (&'i Key, &'i Item);

/// Returns the content of a table, if all its names are known.
fn entries<'i>(
    name: impl std::fmt::Display,
    item: &'i Item,
    known: &[&str],
) -> Result<Vec<Entry<'i>>, Diagnostic> {
    let Some(table) = item.as_table_like() else {
        let invalid = Invalid::new(format!("`{name}` is not a table"));
        return Err(Diagnostic::new(item.span(), invalid));
    };
    let mut entries = Vec::new();
    for (name, item) in table.iter() {
        let Some(key) = table.key(name) else {
            continue;
        };
        if !known.is_empty() && !known.contains(&name) {
            return Err(unknown(key, known));
        }
        entries.push((key, item));
    }
    Ok(entries)
}

/// Returns the problem of a name that is not known where it stands.
fn unknown(key: &Key, known: &[&str]) -> Diagnostic {
    let name = key.get();
    let others = known.iter().copied();
    let hint = if Values::NAMES.contains(&name) {
        "put it below `[profiles.default]`".to_owned()
    } else if let Some(meant) = did_you_mean(name, others) {
        meant
    } else {
        let known = known.join(", ");
        format!("the settings are {known}")
    };
    let problem = format!("no setting `{name}`");
    let invalid = Invalid::new(problem).hint(hint);
    Diagnostic::new(key.span(), invalid)
}

fn profile_name(name: &str, span: Option<Range<usize>>) -> Result<String, Diagnostic> {
    match name.parse::<Profile>() {
        Ok(profile) => Ok(profile.0),
        Err(invalid) => {
            let named = invalid.named(format!("`{name}`"));
            Err(Diagnostic::new(span, named))
        }
    }
}

fn scalar(key: &Key, item: &Item) -> Result<String, Diagnostic> {
    let text = match item.as_value() {
        Some(Value::String(text)) => text.value().clone(),
        Some(Value::Integer(number)) => number.value().to_string(),
        Some(Value::Boolean(truth)) => truth.value().to_string(),
        _ => {
            let problem = format!("{key} is not text, a number, true or false");
            let invalid = Invalid::new(problem);
            return Err(Diagnostic::new(item.span(), invalid));
        }
    };
    Ok(text)
}
