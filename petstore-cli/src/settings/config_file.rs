//! `config.toml`: profiles and their settings. An unknown name is an error with its line, since a
//! setting that is silently ignored is worse than none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use toml_edit::{Document, DocumentMut, Item, Table, TableLike, Value};

use super::Values;
use crate::env::{Dirs, Env};
use crate::error::{CliError, Invalid, Kind, os_text};
use crate::files;
use crate::suggest::similar;

/// The name of a profile, which names a file too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile(pub(crate) String);

impl FromStr for Profile {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
            let hint = "a profile has up to 64 letters, digits, `-` and `_`";
            return Err(Invalid::new("is not the name of a profile").hint(hint));
        }
        Ok(Self(text.to_owned()))
    }
}

/// The content of the file; nothing where there is none.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    /// The profile in use.
    pub(crate) profile: Option<String>,
    pub(crate) profiles: BTreeMap<String, Values>,
}

/// What is wrong, and where.
struct Diagnostic {
    at: Option<Range<usize>>,
    invalid: Invalid,
}

impl ConfigFile {
    /// Returns where the file is, or would be.
    pub(crate) fn path(dirs: &Dirs) -> Option<PathBuf> {
        dirs.config.as_ref().map(|folder| folder.join("config.toml"))
    }

    /// Reads the file, if there is one.
    pub(crate) fn load(env: &Env) -> Result<Self, CliError> {
        let Some(path) = Self::path(&env.dirs) else { return Ok(Self::default()) };
        let name = env.shown(&path);
        let text = files::read(&path).map_err(|problem| {
            CliError::new(Kind::Config, format!("cannot read {name}: {}", os_text(&problem)))
        })?;
        Self::parse(&name, text.as_deref().unwrap_or_default())
    }

    fn parse(name: &str, text: &str) -> Result<Self, CliError> {
        read(text).map_err(|Diagnostic { at, invalid }| {
            let before = at.and_then(|at| text.get(..at.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            invalid.of(Kind::Config, format!("{name} line {line}:"))
        })
    }

    /// Changes the file, and leaves comments, order and layout as they are.
    pub(crate) fn edit(env: &Env, change: impl FnOnce(&mut DocumentMut)) -> Result<(), CliError> {
        Self::load(env)?;
        let path = Self::path(&env.dirs).ok_or_else(no_folder)?;
        let failed = |problem: String| {
            CliError::new(Kind::Internal, format!("cannot write {}: {problem}", env.shown(&path)))
        };
        let text = files::read(&path).map_err(|problem| failed(os_text(&problem)))?;
        let document = text.unwrap_or_default().parse::<DocumentMut>();
        let mut document = document.map_err(|problem| failed(problem.to_string()))?;
        change(&mut document);
        let text = document.to_string();
        Self::parse(&env.shown(&path), &text)?;
        files::write(&path, &text).map_err(|problem| failed(os_text(&problem)))
    }
}

pub(crate) fn no_folder() -> CliError {
    CliError::new(Kind::Config, "there is no folder for the configuration")
        .hint("set HOME or XDG_CONFIG_HOME; variables such as PETSTORE_BASE_URL need no folder")
}

/// Chooses the profile that is used where none is named.
pub(crate) fn set_profile(document: &mut DocumentMut, name: &str) {
    put(document.as_table_mut(), "profile", name.into());
}

/// Sets a value of a profile; the text was checked.
pub(crate) fn set_value(document: &mut DocumentMut, profile: &str, name: &str, text: &str) {
    let number = text.parse::<i64>().map(Value::from);
    let value = number.or_else(|_| text.parse::<bool>().map(Value::from));
    if let Some(settings) = profile_table(document, profile) {
        put(settings, name, value.unwrap_or_else(|_| text.into()));
    }
}

/// Removes a value of a profile; says whether it was there.
pub(crate) fn unset_value(document: &mut DocumentMut, profile: &str, name: &str) -> bool {
    profile_table(document, profile).is_some_and(|settings| settings.remove(name).is_some())
}

/// Returns a profile's table, made where there is none.
fn profile_table<'d>(document: &'d mut DocumentMut, name: &str) -> Option<&'d mut dyn TableLike> {
    let mut unnamed = Table::new();
    unnamed.set_implicit(true);
    let profiles = document.as_table_mut().entry("profiles").or_insert(unnamed.into());
    let profiles = profiles.as_table_like_mut()?;
    profiles.entry(name).or_insert(Item::Table(Table::new())).as_table_like_mut()
}

/// Puts a value where another may stand, whose comments stay.
fn put(table: &mut dyn TableLike, name: &str, mut value: Value) {
    if let Some(old) = table.get(name).and_then(Item::as_value) {
        *value.decor_mut() = old.decor().clone();
    }
    match table.get_mut(name) {
        Some(item) => *item = Item::Value(value),
        None => drop(table.insert(name, Item::Value(value))),
    }
}

fn read(text: &str) -> Result<ConfigFile, Diagnostic> {
    let document = Document::parse(text).map_err(|problem| Diagnostic {
        at: problem.span(),
        invalid: Invalid::new(problem.message().trim_end().replace('\n', ", ")),
    })?;
    let mut config = ConfigFile::default();
    for (name, at, item) in entries(document.as_table()) {
        match name {
            "profile" => {
                let name = item.as_str().unwrap_or_default();
                config.profile = Some(profile_name(name, item.span())?);
            }
            "profiles" => {
                for (name, at, item) in entries(table(item, name)?) {
                    let values = values(table(item, name)?)?;
                    config.profiles.insert(profile_name(name, at)?, values);
                }
            }
            unknown => return Err(unknown_name(unknown, at, &["profile", "profiles"])),
        }
    }
    Ok(config)
}

fn profile_name(name: &str, at: Option<Range<usize>>) -> Result<String, Diagnostic> {
    let Profile(name) = name.parse().map_err(|invalid: Invalid| Diagnostic {
        at,
        invalid: Invalid { problem: format!("`{name}` {}", invalid.problem), ..invalid },
    })?;
    Ok(name)
}

fn values(settings: &dyn TableLike) -> Result<Values, Diagnostic> {
    let mut values = Values::default();
    for (name, at, item) in entries(settings) {
        if !Values::NAMES.contains(&name) {
            return Err(unknown_name(name, at, Values::NAMES));
        }
        let text = match item.as_value() {
            Some(Value::String(text)) => text.value().clone(),
            Some(Value::Integer(number)) => number.value().to_string(),
            Some(Value::Boolean(truth)) => truth.value().to_string(),
            _ => String::new(),
        };
        values.set(name, &text).map_err(|invalid| Diagnostic {
            at: item.span(),
            invalid: Invalid { problem: format!("{name} `{text}` {}", invalid.problem), ..invalid },
        })?;
    }
    Ok(values)
}

fn entries(table: &dyn TableLike) -> impl Iterator<Item = (&str, Option<Range<usize>>, &Item)> {
    table.iter().map(|(name, item)| {
        let at = table.key(name).and_then(toml_edit::Key::span);
        (name, at.or_else(|| item.span()), item)
    })
}

fn table<'i>(item: &'i Item, name: &str) -> Result<&'i dyn TableLike, Diagnostic> {
    let invalid = || Invalid::new(format!("`{name}` is not a table"));
    item.as_table_like().ok_or_else(|| Diagnostic { at: item.span(), invalid: invalid() })
}

fn unknown_name(name: &str, at: Option<Range<usize>>, known: &[&str]) -> Diagnostic {
    let hint = match similar(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are {}", known.join(", ")),
    };
    Diagnostic { at, invalid: Invalid::new(format!("no setting `{name}`")).hint(hint) }
}
