//! The source of the API key: `PETSTORE_API_KEY`, else the file in `PETSTORE_API_KEY_FILE`, else
//! the `key_command` of the profile, else the key that `auth login` stored. No option takes it,
//! because other users can read arguments.
//!
//! A key of a profile is sent only to the service of that profile.

use std::path::{Path, PathBuf};

use petstore_client::url::Url;
use toml_edit::{DocumentMut, value};

use super::Values;
use super::config_file::ConfigFile;
use super::precedence::Settings;
use crate::env::{Dirs, System};
use crate::error::{CliError, Kind, Result};
use crate::escape;
use crate::files;

pub(crate) const KEY: &str = "PETSTORE_API_KEY";
pub(crate) const KEY_FILE: &str = "PETSTORE_API_KEY_FILE";

/// The first line of the file of a key.
const HEADER: &str = "# Written by `petstore auth login`. This is a secret.\n";

/// An API key, and where it comes from. The key is empty if a command prints it.
type Credential = (String, KeySource);

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// `PETSTORE_API_KEY`.
    Variable,
    /// The file that `PETSTORE_API_KEY_FILE` names.
    File(String),
    /// The command of a profile.
    Command(CommandSource),
    /// A file of `auth login`, and the command that replaces it.
    Stored { path: String, login: String },
    /// The terminal or standard input. Also used if no key is needed.
    Typed,
}

/// The `key_command` of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandSource {
    profile: String,
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
}

impl CommandSource {
    /// Returns the source in words, without the arguments.
    pub(crate) fn shown(&self) -> String {
        format!("key_command of profile {}", self.profile)
    }
}

impl KeySource {
    /// Returns the source in words: a variable, a file or a command.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Variable => KEY.to_owned(),
            Self::File(path) | Self::Stored { path, .. } => path.clone(),
            Self::Command(command) => command.shown(),
            Self::Typed => String::new(),
        }
    }

    /// Returns the hint if the service refuses the key.
    pub(crate) fn fix(&self) -> String {
        match self {
            Self::Variable => format!("set {KEY} to a valid key"),
            Self::File(_) => format!("put a valid key into the file that {KEY_FILE} names"),
            Self::Command(command) => format!("check what {} prints", command.shown()),
            Self::Stored { login, .. } => format!("{login} stores another key"),
            Self::Typed => "check it for typing errors and log in again".to_owned(),
        }
    }
}

/// Returns a key without the line break at the end of a file.
fn trimmed(text: &str) -> String {
    text.trim_end_matches(['\r', '\n']).to_owned()
}

/// Returns the key for the service in the settings, if any.
pub(crate) fn find(settings: &Settings, system: &System) -> Result<Option<Credential>> {
    if let Some(key) = system.unicode(KEY)? {
        return Ok(Some((trimmed(key), KeySource::Variable)));
    }
    if let Some(path) = system.unicode(KEY_FILE)? {
        return from_file(&system.path(path), system).map(Some);
    }
    if let Some(words) = settings.values().key_command() {
        return from_command(words, settings, system).map(Some);
    }
    stored(settings, system)
}

/// Returns whether a variable sets the key, so that no file of the program is needed.
pub(crate) fn is_in_variable(system: &System) -> bool {
    system.var(KEY).is_some() || system.var(KEY_FILE).is_some()
}

fn from_file(path: &Path, system: &System) -> Result<Credential> {
    let shown = system.shown(path);
    let read = read_private(path, system).and_then(|text| {
        text.ok_or_else(|| CliError::key(format!("cannot read {shown}: no such file")))
    });
    let text = read.map_err(|error| error.with_source(KEY_FILE))?;
    Ok((trimmed(&text), KeySource::File(shown)))
}

/// Returns the key, or an error if there is none.
pub(crate) fn require(settings: &Settings, system: &System) -> Result<Credential> {
    if let Some(credential) = find(settings, system)? {
        return Ok(credential);
    }
    let service = settings.base_url()?.origin().ascii_serialization();
    let source = settings.source("base_url");
    let login = settings.command("auth login");
    let problem = format!("no API key for {service}{source}");
    Err(CliError::key(problem).hint(format!("{login} stores one")))
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
    let Some(at) = key.chars().position(|c| !c.is_ascii_graphic()) else {
        return Ok(());
    };
    let what = match key.chars().nth(at) {
        Some(' ') => "a space",
        Some('\n' | '\r') => "a line break",
        Some(c) if c.is_ascii() => "a control character",
        _ => "a character that is not ASCII",
    };
    let hint = match key.get(..7) {
        Some(start) if start.eq_ignore_ascii_case("bearer ") => "leave out `Bearer`",
        _ => "a key has printable ASCII characters only, and no spaces",
    };
    let problem = format!("the API key has {what} at character {}{from}", at + 1);
    Err(CliError::key(problem).hint(hint))
}

/// Returns the command that prints the key. It is run later. Refuses one that others could have
/// written, and another service than that of the profile.
fn from_command(words: &[String], settings: &Settings, system: &System) -> Result<Credential> {
    let profile = settings.profile();
    let source = match words {
        [program, arguments @ ..] if !program.is_empty() => CommandSource {
            profile: profile.to_owned(),
            program: program.clone(),
            arguments: arguments.to_vec(),
        },
        _ => {
            let problem = format!("key_command of profile {profile} is empty");
            let hint = "give a program and its arguments: [\"pass\", \"show\", \"petstore\"]";
            return Err(CliError::config(problem).hint(hint));
        }
    };
    if cfg!(windows) && is_script(&source.program) {
        let shown = source.shown();
        let problem = format!("{shown} is a script, which Windows runs in a shell");
        return Err(CliError::config(problem).hint("name a program (.exe)"));
    }
    // Whoever can write the folder can replace the file.
    let file = ConfigFile::path(system.dirs());
    for path in file.iter().flat_map(|file| [files::folder(file), file]) {
        if files::is_writable_by_others(path).unwrap_or(true) {
            let shown = system.shown(path);
            let problem = format!("others can write {shown}, so its key_command is not run");
            let hint = format!("`chmod go-w {}`", escape::shell_path(&shown));
            return Err(CliError::config(problem).hint(hint));
        }
    }
    let own = settings.profile_values().and_then(Values::base_url);
    let Some(own) = own.and_then(|text| Url::parse(text).ok()) else {
        let problem = format!("profile {profile} has a key_command, but no base_url");
        let hint = format!("add base_url below `[profiles.{profile}]`");
        return Err(CliError::config(problem).hint(hint));
    };
    let base_url = settings.base_url()?;
    if own.origin() != base_url.origin() {
        return Err(of_another_service(&own, &base_url, &source.shown()));
    }
    Ok((String::new(), KeySource::Command(source)))
}

/// Returns whether Windows runs a file with `cmd.exe`, which parses quotes in another way.
fn is_script(program: &str) -> bool {
    let end = Path::new(program).extension();
    end.is_some_and(|end| end.eq_ignore_ascii_case("bat") || end.eq_ignore_ascii_case("cmd"))
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
    files::write(path, format!("{HEADER}{document}"), system)
}

/// Returns the key that `auth login` stored for the profile, if it belongs to this service.
fn stored(settings: &Settings, system: &System) -> Result<Option<Credential>> {
    let Ok(path) = path(system.dirs(), settings.profile()) else {
        return Ok(None);
    };
    let Some(text) = read_private(&path, system)? else {
        return Ok(None);
    };
    let login = settings.command("auth login");
    let path = system.shown(&path);
    let Some((home, key)) = read_stored(&text) else {
        // The content may be the key.
        let hint = format!("{login} replaces it");
        return Err(CliError::key(format!("{path} contains no key")).hint(hint));
    };
    let base_url = settings.base_url()?;
    if home.origin() != base_url.origin() {
        return Err(of_another_service(&home, &base_url, "the stored key"));
    }
    Ok(Some((key, KeySource::Stored { path, login })))
}

/// Returns the error for a key that belongs to the service `home`. Its hint keeps that key.
fn of_another_service(home: &Url, base_url: &Url, what: &str) -> CliError {
    let home = home.origin().ascii_serialization();
    let other = base_url.origin().ascii_serialization();
    let problem = format!("{what} is for {home}, not for {other}");
    let base_url = escape::shell(base_url.as_str());
    let hint = format!("`petstore auth login --profile NAME --base-url {base_url}`");
    CliError::key(problem).hint(hint)
}

/// Returns the service and the key in the text of a stored key.
fn read_stored(text: &str) -> Option<(Url, String)> {
    let document: DocumentMut = text.parse().ok()?;
    let base_url = Url::parse(document.get("base_url")?.as_str()?).ok()?;
    let key = document.get("key")?.as_str()?;
    Some((base_url, key.to_owned()))
}

/// Reads a private file; `None` if it does not exist. Fails if others can read it.
fn read_private(path: &Path, system: &System) -> Result<Option<String>> {
    let Some(text) = files::read(path, Kind::Key, system)? else {
        return Ok(None);
    };
    let shown = system.shown(path);
    let open = files::open_to_others(path)
        .map_err(|problem| CliError::io(Kind::Key, format!("cannot read {shown}"), &problem))?;
    let Some(mode) = open else {
        return Ok(Some(text));
    };
    let problem = format!("others can read the key in {shown} (mode {mode:04o})");
    let hint = format!("`chmod 600 {}`", escape::shell_path(&shown));
    Err(CliError::key(problem).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_by_their_names() {
        for script in ["key.bat", "KEY.CMD"] {
            assert!(is_script(script), "{script}");
        }
        for program in ["op", "op.exe", "./key.sh", "bat"] {
            assert!(!is_script(program), "{program}");
        }
    }
}
