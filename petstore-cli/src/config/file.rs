//! Reads `config.toml`: profiles and their settings. What is not known is an error with its place,
//! since a setting that is silently not minded is worse than none.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item, TableLike};

use super::setting::Setting;
use crate::env::Dirs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::files;
use crate::flags::profile_name;
use crate::suggest::similar;

/// The settings of a profile, as text.
pub(crate) type Profile = BTreeMap<Setting, String>;

/// What the file says; nothing, where there is none.
#[derive(Debug, Default)]
pub(crate) struct Config {
    /// Where it is, or would be.
    pub(crate) path: Option<PathBuf>,
    /// The profile in use.
    pub(crate) profile: Option<String>,
    pub(crate) profiles: BTreeMap<String, Profile>,
}

/// What is wrong, and where.
struct Complaint {
    at: Option<Range<usize>>,
    problem: String,
    hint: Option<String>,
}

impl Complaint {
    fn new(at: Option<Range<usize>>, problem: impl Into<String>) -> Self {
        Self { at, problem: problem.into(), hint: None }
    }
}

impl Config {
    /// Returns where the file is, or would be.
    pub(crate) fn path(dirs: &Dirs) -> Option<PathBuf> {
        dirs.config.as_ref().map(|folder| folder.join("config.toml"))
    }

    /// Reads the file, if there is one.
    pub(crate) fn load(dirs: &Dirs) -> Result<Self, CliError> {
        let Some(path) = Self::path(dirs) else { return Ok(Self::default()) };
        let text = files::read(&path).map_err(|problem| {
            CliError::new(Exit::Config, format!("could not read {}: {problem}", path.display()))
        })?;
        let mut config = Self::parse(&path, text.as_deref().unwrap_or_default())?;
        config.path = Some(path);
        Ok(config)
    }

    /// Reads what a file holds, or would hold.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, CliError> {
        read(text).map_err(|Complaint { at, problem, hint }| {
            let place = at.map(|at| place(text, at.start)).unwrap_or_default();
            let error =
                CliError::new(Exit::Config, format!("{}{place}: {problem}", path.display()));
            hint.into_iter().fold(error, CliError::hint)
        })
    }
}

fn read(text: &str) -> Result<Config, Complaint> {
    let document = Document::parse(text)
        .map_err(|problem| Complaint::new(problem.span(), problem.message().to_owned()))?;
    let mut config = Config::default();
    for (name, at, item) in entries(document.as_table()) {
        match name {
            "profile" => config.profile = Some(chosen(item)?),
            "profiles" => {
                for (name, at, item) in entries(table(item, "profiles")?) {
                    profile_name(name).map_err(|problem| Complaint::new(at, problem))?;
                    config.profiles.insert(name.to_owned(), profile(table(item, name)?)?);
                }
            }
            unknown => return Err(unknown_key(unknown, at, &["profile", "profiles"])),
        }
    }
    Ok(config)
}

fn chosen(item: &Item) -> Result<String, Complaint> {
    let name = item.as_str().ok_or_else(|| Complaint::new(item.span(), "it is no text"))?;
    profile_name(name).map_err(|problem| Complaint::new(item.span(), problem))
}

fn profile(settings: &dyn TableLike) -> Result<Profile, Complaint> {
    let mut profile = Profile::new();
    for (name, at, item) in entries(settings) {
        let Some(&setting) = Setting::ALL.iter().find(|setting| setting.name() == name) else {
            let known: Vec<_> = Setting::ALL.iter().map(|setting| setting.name()).collect();
            return Err(unknown_key(name, at, &known));
        };
        let text = match item.as_value() {
            Some(toml_edit::Value::String(text)) => text.value().clone(),
            Some(toml_edit::Value::Integer(number)) => number.value().to_string(),
            Some(toml_edit::Value::Boolean(truth)) => truth.value().to_string(),
            _ => return Err(Complaint::new(item.span(), format!("{name} cannot be that"))),
        };
        let bad =
            |problem| Complaint::new(item.span(), format!("{name} cannot be that: {problem}"));
        setting.check(&text).map_err(bad)?;
        profile.insert(setting, text);
    }
    Ok(profile)
}

fn entries(table: &dyn TableLike) -> impl Iterator<Item = (&str, Option<Range<usize>>, &Item)> {
    table.iter().map(|(name, item)| {
        let at = table.key(name).and_then(toml_edit::Key::span);
        (name, at.or_else(|| item.span()), item)
    })
}

fn table<'i>(item: &'i Item, name: &str) -> Result<&'i dyn TableLike, Complaint> {
    let problem = || Complaint::new(item.span(), format!("`{name}` is no table"));
    item.as_table_like().ok_or_else(problem)
}

fn unknown_key(name: &str, at: Option<Range<usize>>, known: &[&str]) -> Complaint {
    let hint = match similar(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("what can stand here: {}", known.join(", ")),
    };
    Complaint { hint: Some(hint), ..Complaint::new(at, format!("there is no setting `{name}`")) }
}

/// Returns a place as `:LINE:COLUMN`, both from 1.
fn place(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    format!(":{line}:{column}")
}
