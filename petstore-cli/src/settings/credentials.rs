//! The source of the API key: `PETSTORE_API_KEY`, else the file in `PETSTORE_API_KEY_FILE`, else
//! the key that `auth login` stored. No option takes it, because other users can read arguments.
//!
//! A stored key is sent only to the service for which it was stored.

use std::path::{Path, PathBuf};

use petstore_client::Url;
use toml_edit::{DocumentMut, value};

use super::precedence::{Settings, unicode};
use crate::env::{Dirs, Env};
use crate::error::{CliError, Kind};
use crate::escape;
use crate::files;

const KEY: &str = "PETSTORE_API_KEY";
const KEY_FILE: &str = "PETSTORE_API_KEY_FILE";

/// An API key.
pub(crate) struct Credential {
    pub(crate) key: String,
    /// The source: a variable or a file.
    pub(crate) source: String,
    /// The hint if the service refuses it.
    pub(crate) fix: String,
}

/// Returns the key for the service in the settings, if any.
pub(crate) fn find(settings: &Settings, env: &Env) -> Result<Option<Credential>, CliError> {
    if let Some(key) = unicode(KEY, env)? {
        let fix = format!("set {KEY} to a valid key");
        let key = without_end(key).to_owned();
        return Ok(Some(Credential {
            key,
            source: KEY.to_owned(),
            fix,
        }));
    }
    if let Some(path) = unicode(KEY_FILE, env)?.map(Path::new) {
        let source = env.shown(path);
        let key = read_private(path, env)?.ok_or_else(|| {
            let problem = format!("cannot read {source}: no such file (from {KEY_FILE})");
            CliError::new(Kind::Key, problem)
        })?;
        let key = without_end(&key).to_owned();
        let fix = format!("put a valid key into the file that {KEY_FILE} names");
        return Ok(Some(Credential { key, source, fix }));
    }
    stored(settings, env)
}

/// Returns a key without the line break at the end of a file.
fn without_end(key: &str) -> &str {
    key.trim_end_matches(['\r', '\n'])
}

/// Returns the key, or an error if there is none.
pub(crate) fn require(settings: &Settings, env: &Env) -> Result<Credential, CliError> {
    if let Some(credential) = find(settings, env)? {
        return Ok(credential);
    }
    let service = settings.base_url()?.origin().ascii_serialization();
    let (source, option) = (settings.source("base_url"), settings.profile_option());
    Err(
        CliError::new(Kind::Key, format!("no API key for {service}{source}"))
            .hint(format!("`petstore auth login{option}`")),
    )
}

/// Returns the path of a profile's key.
pub(crate) fn path(dirs: &Dirs, profile: &str) -> Result<PathBuf, CliError> {
    let folder = dirs.config.as_ref().ok_or_else(|| {
        CliError::new(Kind::Config, "there is no folder to store a key in")
            .hint("set HOME or XDG_CONFIG_HOME, or use PETSTORE_API_KEY")
    })?;
    Ok(folder.join("keys").join(profile))
}

/// Stores a key for a service in a private file.
pub(crate) fn store(path: &Path, base_url: &Url, key: &str, env: &Env) -> Result<(), CliError> {
    let mut document = DocumentMut::new();
    document["base_url"] = value(base_url.as_str());
    document["key"] = value(key);
    let text = format!("# Written by `petstore auth login`. This is a secret.\n{document}");
    files::write(path, &text, env)
}

/// Returns the key that `auth login` stored for the profile, if it belongs to this service.
fn stored(settings: &Settings, env: &Env) -> Result<Option<Credential>, CliError> {
    let Ok(path) = path(&env.dirs, &settings.profile) else {
        return Ok(None);
    };
    let Some(text) = read_private(&path, env)? else {
        return Ok(None);
    };
    let (option, source) = (settings.profile_option(), env.shown(&path));
    let fields = text.parse::<DocumentMut>().ok().and_then(|document| {
        let field = |name: &str| document.get(name)?.as_str().map(str::to_owned);
        Some((
            Url::parse(&field("base_url")?).ok()?.origin(),
            field("key")?,
        ))
    });
    // The message omits the content, which may be the key.
    let (origin, key) = fields.ok_or_else(|| {
        CliError::new(Kind::Key, format!("{source} contains no key"))
            .hint(format!("`petstore auth login{option}` replaces it"))
    })?;
    let base_url = settings.base_url()?;
    if origin != base_url.origin() {
        let [home, other] = [origin, base_url.origin()].map(|origin| origin.ascii_serialization());
        let problem = format!("the key was stored for {home}, not for {other}");
        return Err(CliError::new(Kind::Key, problem).hint(format!(
            "`petstore auth login{option} --base-url {base_url}`"
        )));
    }
    let fix = format!("`petstore auth login{option}` stores another key");
    Ok(Some(Credential { key, source, fix }))
}

/// Reads a private file; `None` if it does not exist. Fails if others can read it.
fn read_private(path: &Path, env: &Env) -> Result<Option<String>, CliError> {
    let Some(text) = files::read(path, Kind::Key, env)? else {
        return Ok(None);
    };
    let shown = env.shown(path);
    let mode = files::open_to_others(path)
        .map_err(|problem| CliError::io(Kind::Key, format!("cannot read {shown}"), &problem))?;
    let Some(mode) = mode else {
        return Ok(Some(text));
    };
    let quoted = match shown.strip_prefix("~/") {
        Some(below) => format!("~/{}", escape::shell(below)),
        None => escape::shell(&shown),
    };
    let problem = format!("others can read the key in {shown} (mode {mode:04o})");
    Err(CliError::new(Kind::Key, problem).hint(format!("`chmod 600 {quoted}`")))
}
