//! Where the API key comes from: `PETSTORE_API_KEY` over the file that `PETSTORE_API_KEY_FILE`
//! names over the one that `auth login` wrote. There is no flag: others can read arguments.
//!
//! A key that was stored goes only to the service that it was stored for.

use std::fmt;
use std::path::{Path, PathBuf};

use petstore_client::Url;
use toml_edit::{DocumentMut, value};

use crate::env::{Dirs, Env};
use crate::error::CliError;
use crate::exit::Exit;
use crate::files;
use crate::keyring;
use crate::settings::{Settings, not_garbled};

const KEY: &str = "PETSTORE_API_KEY";
const KEY_FILE: &str = "PETSTORE_API_KEY_FILE";

/// A key, and where it is from.
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// Where a key is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Variable,
    /// The file that a variable names.
    File(PathBuf),
    /// The file that `auth login` wrote.
    Stored(PathBuf),
    /// The system's keyring, as that file says.
    Keyring(PathBuf),
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("source", &self.source).finish_non_exhaustive()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable => f.write_str(KEY),
            Self::File(path) => write!(f, "{} ({KEY_FILE})", path.display()),
            Self::Stored(path) => write!(f, "{}", path.display()),
            Self::Keyring(path) => write!(f, "the system's keyring ({})", path.display()),
        }
    }
}

/// Finds the key for the service that the settings name; `None` where there is none.
pub(crate) fn find(settings: &Settings, env: &Env) -> Result<Option<Key>, CliError> {
    not_garbled(KEY, env)?;
    not_garbled(KEY_FILE, env)?;
    if let Some(text) = env.var(KEY) {
        return Ok(Some(Key { text: text.to_owned(), source: Source::Variable }));
    }
    if let Some(path) = env.var(KEY_FILE).map(PathBuf::from) {
        let named = |error: CliError| error.hint(format!("{KEY_FILE} names it"));
        let text = guarded(&path).map_err(named)?.ok_or_else(|| {
            let problem = format!("there is no file {}, which {KEY_FILE} names", path.display());
            CliError::new(Exit::Config, problem)
        })?;
        let text = text.trim_end_matches(['\r', '\n']).to_owned();
        return Ok(Some(Key { text, source: Source::File(path) }));
    }
    stored(settings, env)
}

/// The same, where there must be one.
pub(crate) fn need(settings: &Settings, env: &Env) -> Result<Key, CliError> {
    find(settings, env)?.ok_or_else(|| {
        CliError::new(Exit::Config, "no API key is set")
            .hint("set PETSTORE_API_KEY; there is no flag, since others can read arguments")
            .hint("`petstore auth login` keeps one")
            .hint("`petstore --mock …` runs any command without a key")
    })
}

/// Returns where the key of a profile is kept.
pub(crate) fn path(dirs: &Dirs, profile: &str) -> Result<PathBuf, CliError> {
    let folder = dirs.config.as_ref().ok_or_else(|| {
        CliError::new(Exit::Config, "there is no folder to keep a key in")
            .hint("set HOME or XDG_CONFIG_HOME, or use PETSTORE_API_KEY")
    })?;
    Ok(folder.join("keys").join(format!("{profile}.toml")))
}

/// Keeps a key for a profile and a service, readable by nobody else: in a file, or in the system's
/// keyring with a file that says so.
pub(crate) fn store(
    path: &Path,
    base_url: &str,
    key: &str,
    in_keyring: bool,
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
        CliError::new(Exit::Internal, format!("could not write {}: {problem}", path.display()))
    })
}

/// Forgets what was kept, in the keyring too; says whether there was anything.
pub(crate) fn forget(path: &Path) -> Result<bool, CliError> {
    if let Some(Kept { base_url, key: None }) =
        files::read(path).ok().flatten().and_then(|text| Kept::read(&text))
    {
        keyring::remove(&account(path, &base_url))?;
    }
    files::remove(path).map_err(|problem| {
        CliError::new(Exit::Internal, format!("could not remove {}: {problem}", path.display()))
    })
}

/// Returns what the keyring calls a key.
fn account(path: &Path, base_url: &str) -> String {
    let profile = path.file_stem().unwrap_or_default().to_string_lossy();
    format!("{profile} at {base_url}")
}

/// What a file of `auth login` says.
struct Kept {
    base_url: String,
    /// `None` where it is in the keyring.
    key: Option<String>,
}

impl Kept {
    fn read(text: &str) -> Option<Self> {
        let document: DocumentMut = text.parse().ok()?;
        let field = |name: &str| document.get(name)?.as_str().map(str::to_owned);
        let key = field("key");
        let in_keyring = document.get("keyring").and_then(toml_edit::Item::as_bool);
        let is_kept = key.is_some() || in_keyring == Some(true);
        Some(Self { base_url: field("base_url").filter(|_| is_kept)?, key })
    }
}

fn stored(settings: &Settings, env: &Env) -> Result<Option<Key>, CliError> {
    let Ok(path) = path(&env.dirs, &settings.profile.0) else { return Ok(None) };
    let Some(text) = guarded(&path)? else { return Ok(None) };
    // What is wrong in there is not repeated: it may be the key.
    let Kept { base_url: home, key } = Kept::read(&text).ok_or_else(|| {
        CliError::new(Exit::Config, format!("{} holds no key", path.display()))
            .hint("`petstore auth login` writes it anew")
    })?;
    let base_url = settings.base_url()?;
    if !same_service(&home, base_url) {
        let problem = format!("the key of profile `{}` is for {home}", settings.profile.0);
        return Err(CliError::new(Exit::Config, format!("{problem}, and not for {base_url}"))
            .hint(
                "`petstore auth login` keeps one for this service; `--profile` chooses another",
            ));
    }
    Ok(Some(match key {
        Some(text) => Key { text, source: Source::Stored(path) },
        None => Key { text: keyring::find(&account(&path, &home))?, source: Source::Keyring(path) },
    }))
}

/// Returns whether two base URLs lead to the same scheme, host and port.
fn same_service(one: &str, other: &str) -> bool {
    match (Url::parse(one), Url::parse(other)) {
        (Ok(one), Ok(other)) => one.origin() == other.origin(),
        _ => one == other,
    }
}

/// Reads a file that must be nobody else's to read; `None` where there is none.
fn guarded(path: &Path) -> Result<Option<String>, CliError> {
    let problem = |problem: std::io::Error| {
        CliError::new(Exit::Config, format!("could not read {}: {problem}", path.display()))
    };
    let Some(text) = files::read(path).map_err(problem)? else { return Ok(None) };
    match files::open_to_others(path).map_err(problem)? {
        None => Ok(Some(text)),
        Some(mode) => {
            let problem = format!("{} is open to others (mode {mode:04o})", path.display());
            let mend = format!("`chmod 600 {}` mends it", files::quoted(path));
            Err(CliError::new(Exit::Config, problem).hint(mend))
        }
    }
}
