//! The source of the API key: `PETSTORE_API_KEY`, else the file in `PETSTORE_API_KEY_FILE`, else
//! the key that `auth login` stored. No option takes it, because other users can read arguments.
//!
//! A stored key is sent only to the service for which it was stored.

use std::path::{Path, PathBuf};

use petstore_client::url::Url;
use toml_edit::{DocumentMut, value};

use super::precedence::Settings;
use crate::env::{Dirs, System};
use crate::error::{CliError, Kind, Result};
use crate::escape;
use crate::files;

pub(crate) const KEY: &str = "PETSTORE_API_KEY";
pub(crate) const KEY_FILE: &str = "PETSTORE_API_KEY_FILE";

/// The first line of the file of a key.
const HEADER: &str = "# Written by `petstore auth login`. This is a secret.\n";

/// An API key and where it comes from.
pub(crate) struct Credential {
    key: String,
    source: KeySource,
}

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// `PETSTORE_API_KEY`.
    Variable,
    /// The file that `PETSTORE_API_KEY_FILE` names.
    File(String),
    /// A file of `auth login`, and the option that selects its profile.
    Stored { path: String, option: String },
    /// The terminal or standard input. Also used if no key is needed.
    Typed,
}

impl KeySource {
    /// Returns the source in words: a variable or a file.
    pub(crate) fn shown(&self) -> &str {
        match self {
            Self::Variable => KEY,
            Self::File(path) | Self::Stored { path, .. } => path,
            Self::Typed => "",
        }
    }

    /// Returns the source after a semicolon, for a message: `; from PETSTORE_API_KEY`.
    pub(crate) fn from(&self) -> String {
        match self {
            Self::Variable | Self::File(_) => format!("; from {}", self.shown()),
            Self::Stored { .. } | Self::Typed => String::new(),
        }
    }

    /// Returns the hint if the service refuses the key.
    pub(crate) fn fix(&self) -> String {
        match self {
            Self::Variable => format!("set {KEY} to a valid key"),
            Self::File(_) => format!("put a valid key into the file that {KEY_FILE} names"),
            Self::Stored { option, .. } => {
                format!("`petstore auth login{option}` stores another key")
            }
            Self::Typed => "check it for typing errors and log in again".to_owned(),
        }
    }
}

impl Credential {
    /// Creates a credential. Leaves out the line break at the end of a file.
    fn new(text: &str, source: KeySource) -> Self {
        let key = text.trim_end_matches(['\r', '\n']);
        Self {
            key: key.to_owned(),
            source,
        }
    }

    pub(crate) fn source(&self) -> &KeySource {
        &self.source
    }

    /// Returns the key and its source.
    pub(crate) fn into_parts(self) -> (String, KeySource) {
        (self.key, self.source)
    }
}

/// Returns the key for the service in the settings, if any.
pub(crate) fn find(settings: &Settings, system: &System) -> Result<Option<Credential>> {
    if let Some(key) = system.unicode(KEY)? {
        let source = KeySource::Variable;
        let credential = Credential::new(key, source);
        return Ok(Some(credential));
    }
    if let Some(path) = system.unicode(KEY_FILE)? {
        let credential = from_file(Path::new(path), system)?;
        return Ok(Some(credential));
    }
    stored(settings, system)
}

/// Returns whether a variable sets the key, so that no file of the program is needed.
pub(crate) fn is_in_variable(system: &System) -> bool {
    system.var(KEY).is_some() || system.var(KEY_FILE).is_some()
}

fn from_file(path: &Path, system: &System) -> Result<Credential> {
    let shown = system.shown(path);
    let Some(text) = read_private(path, system)? else {
        let problem = format!("cannot read {shown}: no such file (from {KEY_FILE})");
        return Err(CliError::key(problem));
    };
    let source = KeySource::File(shown);
    Ok(Credential::new(&text, source))
}

/// Returns the key, or an error if there is none.
pub(crate) fn require(settings: &Settings, system: &System) -> Result<Credential> {
    if let Some(credential) = find(settings, system)? {
        return Ok(credential);
    }
    let service = settings.base_url()?.origin().ascii_serialization();
    let source = settings.source("base_url");
    let option = settings.profile_option();
    let problem = format!("no API key for {service}{source}");
    let hint = format!("`petstore auth login{option}`");
    Err(CliError::key(problem).hint(hint))
}

/// Checks that a key can be sent in a header (RFC 6750). The message omits the key.
pub(crate) fn check(key: &str, source: &KeySource) -> Result<()> {
    let from = match source {
        KeySource::Typed => String::new(),
        source => format!(" (from {})", source.shown()),
    };
    if key.is_empty() {
        let problem = format!("the API key is empty{from}");
        return Err(CliError::key(problem).hint(source.fix()));
    }
    for (number, c) in (1..).zip(key.chars()) {
        if c.is_ascii_graphic() {
            continue;
        }
        let what = kind_of(c);
        let place = format!("at character {number}{from}");
        let problem = format!("the API key has {what} {place}");
        let hint = hint_for(key);
        return Err(CliError::key(problem).hint(hint));
    }
    Ok(())
}

/// Describes a character that a key cannot have.
fn kind_of(c: char) -> &'static str {
    match c {
        ' ' => "a space",
        '\n' | '\r' => "a line break",
        c if c.is_ascii() => "a control character",
        _ => "a character that is not ASCII",
    }
}

/// Returns the hint for a key with a wrong character.
fn hint_for(key: &str) -> &'static str {
    match key.get(..7) {
        Some(start) if start.eq_ignore_ascii_case("bearer ") => "leave out `Bearer`",
        _ => "a key has printable ASCII characters only, and no spaces",
    }
}

/// Returns the path of a profile's key.
pub(crate) fn path(dirs: &Dirs, profile: &str) -> Result<PathBuf> {
    let Some(folder) = &dirs.config else {
        let problem = "there is no folder to store a key in";
        let hint = "set HOME or XDG_CONFIG_HOME, or use PETSTORE_API_KEY";
        return Err(CliError::config(problem).hint(hint));
    };
    Ok(folder.join("keys").join(profile))
}

/// Stores a key for a service in a private file.
pub(crate) fn store(path: &Path, base_url: &Url, key: &str, system: &System) -> Result<()> {
    let mut document = DocumentMut::new();
    document["base_url"] = value(base_url.as_str());
    document["key"] = value(key);
    let mut text = HEADER.to_owned();
    text += &document.to_string();
    files::write(path, &text, system)
}

/// Returns the key that `auth login` stored for the profile, if it belongs to this service.
fn stored(settings: &Settings, system: &System) -> Result<Option<Credential>> {
    let Ok(path) = path(system.dirs(), settings.profile()) else {
        return Ok(None);
    };
    let Some(text) = read_private(&path, system)? else {
        return Ok(None);
    };
    let option = settings.profile_option();
    let shown = system.shown(&path);
    let Some((home, key)) = read_stored(&text) else {
        return Err(without_key(&shown, &option));
    };
    let base_url = settings.base_url()?;
    let is_at_home = home.origin() == base_url.origin();
    if !is_at_home {
        return Err(of_another_service(&home, &base_url, &option));
    }
    let source = KeySource::Stored {
        path: shown,
        option,
    };
    Ok(Some(Credential { key, source }))
}

/// Returns the error for a file without a key. Omits the content, which may be the key.
fn without_key(shown: &str, option: &str) -> CliError {
    let problem = format!("{shown} contains no key");
    let hint = format!("`petstore auth login{option}` replaces it");
    CliError::key(problem).hint(hint)
}

/// Returns the error for a stored key that belongs to the service `home`.
fn of_another_service(home: &Url, base_url: &Url, option: &str) -> CliError {
    let home = home.origin().ascii_serialization();
    let other = base_url.origin().ascii_serialization();
    let problem = format!("the key was stored for {home}, not for {other}");
    let hint = format!("`petstore auth login{option} --base-url {base_url}`");
    CliError::key(problem).hint(hint)
}

/// Returns the service and the key in the text of a stored key.
fn read_stored(text: &str) -> Option<(Url, String)> {
    let document: DocumentMut = text.parse().ok()?;
    let base_url = document.get("base_url")?.as_str()?;
    let base_url = Url::parse(base_url).ok()?;
    let key = document.get("key")?.as_str()?;
    Some((base_url, key.to_owned()))
}

/// Reads a private file; `None` if it does not exist. Fails if others can read it.
fn read_private(path: &Path, system: &System) -> Result<Option<String>> {
    let Some(text) = files::read(path, Kind::Key, system)? else {
        return Ok(None);
    };
    let shown = system.shown(path);
    match files::open_to_others(path) {
        Ok(None) => Ok(Some(text)),
        Ok(Some(mode)) => Err(readable(&shown, mode)),
        Err(problem) => {
            let action = format!("cannot read {shown}");
            Err(CliError::io(Kind::Key, action, &problem))
        }
    }
}

/// Returns the error for a key that others can read.
fn readable(shown: &str, mode: u32) -> CliError {
    let quoted = escape::shell_path(shown);
    let mode = format!("mode {mode:04o}");
    let problem = format!("others can read the key in {shown} ({mode})");
    let hint = format!("`chmod 600 {quoted}`");
    CliError::key(problem).hint(hint)
}
