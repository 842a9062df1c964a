//! Where the API key comes from: `PETSTORE_API_KEY` over the file that `PETSTORE_API_KEY_FILE`
//! names over the one that `auth login` stored. There is no option: others can read arguments.
//!
//! A stored key goes only to the service that it was stored for.

use std::fmt;
use std::path::{Path, PathBuf};

use petstore_client::Url;
use toml_edit::{DocumentMut, value};

use super::keyring;
use super::precedence::{Settings, require_unicode};
use crate::env::{Dirs, Env};
use crate::error::{CliError, Kind, os_text};
use crate::escape;
use crate::files;

const KEY: &str = "PETSTORE_API_KEY";
const KEY_FILE: &str = "PETSTORE_API_KEY_FILE";

/// A key, and where it comes from.
pub(crate) struct Credential {
    pub(crate) key: String,
    pub(crate) source: KeySource,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    Variable,
    /// The file that a variable names.
    File(PathBuf),
    /// The file that `auth login` wrote.
    Stored(PathBuf),
    /// The system's keyring, as that file says.
    Keyring(PathBuf),
}

impl KeySource {
    /// Returns the source as messages name it.
    pub(crate) fn shown(&self, env: &Env) -> String {
        match self {
            Self::Variable => KEY.to_owned(),
            Self::File(path) | Self::Stored(path) => env.shown(path),
            Self::Keyring(_) => "the system's keyring".to_owned(),
        }
    }

    /// Returns what to do about a key that the service refuses.
    pub(crate) fn fix(&self, settings: &Settings) -> String {
        match self {
            Self::Variable => format!("set {KEY} to a valid key"),
            Self::File(_) => format!("put a valid key into the file that {KEY_FILE} names"),
            _ => format!("`petstore auth login{}` stores another", settings.profile_option()),
        }
    }
}

/// Finds the key for the service that the settings name; `None` where there is none.
pub(crate) fn find(settings: &Settings, env: &Env) -> Result<Option<Credential>, CliError> {
    require_unicode(KEY, env)?;
    require_unicode(KEY_FILE, env)?;
    if let Some(key) = env.var(KEY) {
        return Ok(Some(Credential { key: key.to_owned(), source: KeySource::Variable }));
    }
    if let Some(path) = env.var(KEY_FILE).map(PathBuf::from) {
        let key = read_private(&path, env)?.ok_or_else(|| {
            let path = env.shown(&path);
            CliError::new(Kind::Key, format!("cannot read {path}: no such file (from {KEY_FILE})"))
        })?;
        let key = key.trim_end_matches(['\r', '\n']).to_owned();
        return Ok(Some(Credential { key, source: KeySource::File(path) }));
    }
    stored(settings, env)
}

/// The same, where there must be one.
pub(crate) fn require(settings: &Settings, env: &Env) -> Result<Credential, CliError> {
    if let Some(credential) = find(settings, env)? {
        return Ok(credential);
    }
    let origin = Url::parse(&settings.base_url()?).map(|url| url.origin().ascii_serialization());
    let service = origin.map_or_else(|_| String::new(), |origin| format!(" for {origin}"));
    let source = settings.source("base_url");
    let option = settings.profile_option();
    Err(CliError::new(Kind::Key, format!("no API key{service}{source}"))
        .hint(format!("`petstore auth login{option}`")))
}

/// Returns where the key of a profile is stored.
pub(crate) fn path(dirs: &Dirs, profile: &str) -> Result<PathBuf, CliError> {
    let folder = dirs.config.as_ref().ok_or_else(|| {
        CliError::new(Kind::Config, "there is no folder to store a key in")
            .hint("set HOME or XDG_CONFIG_HOME, or use PETSTORE_API_KEY")
    })?;
    Ok(folder.join("keys").join(profile))
}

/// Stores a key for a profile and a service: in a private file, or in the system's keyring with a
/// file that says so.
pub(crate) fn store(
    path: &Path,
    base_url: &str,
    key: &str,
    in_keyring: bool,
    env: &Env,
) -> Result<(), CliError> {
    let mut document = DocumentMut::new();
    document["base_url"] = value(base_url);
    let secret = if in_keyring {
        keyring::store(&account(path, base_url), key)?;
        document["keyring"] = value(true);
        "The key is in the system's keyring"
    } else {
        document["key"] = value(key);
        "This is a secret"
    };
    let text = format!("# Written by `petstore auth login`. {secret}.\n{document}");
    files::write(path, &text).map_err(|problem| {
        let problem = os_text(&problem);
        CliError::new(Kind::Internal, format!("cannot write {}: {problem}", env.shown(path)))
    })
}

/// Removes a stored key, from the keyring too; says whether there was one.
pub(crate) fn remove(path: &Path, env: &Env) -> Result<bool, CliError> {
    let stored = files::read(path).ok().flatten().and_then(|text| Stored::read(&text));
    if let Some(Stored { base_url, key: None }) = stored {
        keyring::remove(&account(path, &base_url))?;
    }
    files::remove(path).map_err(|problem| {
        let problem = os_text(&problem);
        CliError::new(Kind::Internal, format!("cannot remove {}: {problem}", env.shown(path)))
    })
}

/// Returns what the keyring calls a key.
fn account(path: &Path, base_url: &str) -> String {
    let profile = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{profile} at {base_url}")
}

/// The content of a file of `auth login`.
struct Stored {
    base_url: String,
    /// `None` where it is in the keyring.
    key: Option<String>,
}

impl Stored {
    fn read(text: &str) -> Option<Self> {
        let document: DocumentMut = text.parse().ok()?;
        let field = |name: &str| document.get(name)?.as_str().map(str::to_owned);
        let key = field("key");
        let in_keyring = document.get("keyring").and_then(toml_edit::Item::as_bool);
        let is_stored = key.is_some() || in_keyring == Some(true);
        Some(Self { base_url: field("base_url").filter(|_| is_stored)?, key })
    }
}

fn stored(settings: &Settings, env: &Env) -> Result<Option<Credential>, CliError> {
    let Ok(path) = path(&env.dirs, &settings.profile.0) else { return Ok(None) };
    let Some(text) = read_private(&path, env)? else { return Ok(None) };
    let option = settings.profile_option();
    // The content is not repeated: it may be the key.
    let Stored { base_url: home, key } = Stored::read(&text).ok_or_else(|| {
        CliError::new(Kind::Key, format!("{} holds no key", env.shown(&path)))
            .hint(format!("`petstore auth login{option}` writes it anew"))
    })?;
    let base_url = settings.base_url()?;
    let origin = |url: &str| Url::parse(url).map(|url| url.origin());
    if home != base_url && origin(&home) != origin(&base_url) {
        let service = |url: &str| {
            Url::parse(url).map_or(url.to_owned(), |url| url.origin().ascii_serialization())
        };
        let (home, other) = (service(&home), service(&base_url));
        return Err(CliError::new(
            Kind::Key,
            format!("the key was kept for {home}, not for {other}"),
        )
        .hint(format!("`petstore auth login{option} --base-url {base_url}`")));
    }
    Ok(Some(match key {
        Some(key) => Credential { key, source: KeySource::Stored(path) },
        None => {
            let key = keyring::find(&account(&path, &home))?;
            Credential { key, source: KeySource::Keyring(path) }
        }
    }))
}

/// Reads a file that nobody else may be able to read; `None` where there is none.
fn read_private(path: &Path, env: &Env) -> Result<Option<String>, CliError> {
    let problem = |problem: std::io::Error| {
        let problem = os_text(&problem);
        CliError::new(Kind::Key, format!("cannot read {}: {problem}", env.shown(path)))
    };
    let Some(text) = files::read(path).map_err(problem)? else { return Ok(None) };
    let Some(mode) = files::open_to_others(path).map_err(problem)? else { return Ok(Some(text)) };
    let shown = env.shown(path);
    let quoted = match shown.strip_prefix("~/") {
        Some(below) => format!("~/{}", escape::shell(below)),
        None => escape::shell(&shown),
    };
    let problem = format!("others can read the key in {shown} (mode {mode:04o})");
    Err(CliError::new(Kind::Key, problem).hint(format!("`chmod 600 {quoted}`")))
}
