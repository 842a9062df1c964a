//! Runs the command that prints the API key: `key_command` of a profile.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use petstore_client::auth::ApiKeyProvider;
use petstore_client::{ApiKey, BoxError};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::env::System;
use crate::escape;
use crate::settings::credentials::{self, CommandSource, KeySource};
use crate::status::Activity;
use crate::time;
use crate::ui::Ui;

/// Somebody may have to type a password.
const LIMIT_AT_TERMINAL: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(10);

/// The maximum length of the output. Any key is shorter.
const MAX_OUTPUT: u64 = 8 * 1024;

/// The maximum number of characters of the command's messages that are shown.
const MAX_SHOWN: usize = 300;

/// Why a `key_command` gave no key.
#[derive(Debug)]
pub(super) struct KeyCommandError(String);

impl std::fmt::Display for KeyCommandError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyCommandError {}

/// A command and the key that it printed. The command runs once, and again after a 401.
pub(super) struct KeyCommand {
    source: CommandSource,
    vars: Vec<(String, OsString)>,
    limit: Duration,
    ui: Ui,
    key: Mutex<Option<String>>,
}

impl KeyCommand {
    pub(super) fn new(source: CommandSource, system: &System, ui: &Ui) -> Self {
        let limit = match ui.screen().is_terminal() {
            true => LIMIT_AT_TERMINAL,
            false => LIMIT,
        };
        Self {
            source,
            vars: system
                .os_vars()
                .map(|(name, value)| (name.to_owned(), value.clone()))
                .collect(),
            limit,
            ui: ui.clone(),
            key: Mutex::default(),
        }
    }

    /// Returns the key. Runs the command if it has not run yet, or if the service rejected its key.
    pub(super) async fn key(&self, rejected: Option<&ApiKey>) -> Result<String, KeyCommandError> {
        let mut key = self.key.lock().await;
        if let Some(key) = &*key
            && rejected != Some(&ApiKey::new(key.as_str()))
        {
            return Ok(key.clone());
        }
        let activity = Activity::reading(&self.source.shown());
        self.ui.set_activity(Some(activity));
        let printed = self.run().await;
        self.ui.set_activity(None);
        Ok(key.insert(printed?).clone())
    }

    async fn run(&self) -> Result<String, KeyCommandError> {
        let mut child = self.start()?;
        let output = read(child.stdout.take());
        let messages = read(child.stderr.take());
        let ended = async { tokio::join!(output, messages, child.wait()) };
        let Ok((output, messages, status)) = tokio::time::timeout(self.limit, ended).await else {
            let limit = time::duration(self.limit);
            return Err(self.error(&format!("took longer than {limit}")));
        };
        // A command that fails may have printed the key already, and repeat it in its messages.
        for line in output.lines() {
            self.ui.hide(line);
        }
        match status {
            Ok(status) if status.success() => self.only_line(&output),
            Ok(status) => {
                let problem = ended_with(status);
                Err(match shortened(&messages) {
                    messages if messages.is_empty() => self.error(&problem),
                    messages => self.error(&format!("{problem}: {messages}")),
                })
            }
            Err(problem) => Err(self.error(&format!("failed: {problem}"))),
        }
    }

    fn start(&self) -> Result<Child, KeyCommandError> {
        let program = self.source.program();
        let mut command = Command::new(program);
        command
            .args(self.source.arguments())
            .env_clear()
            .envs(self.vars.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command.spawn().map_err(|problem| {
            let problem = crate::error::os_text(&problem);
            self.error(&format!(
                "cannot start `{}`: {problem}",
                escape::line(program)
            ))
        })
    }

    /// Returns the only line of the output. The messages omit what was printed.
    fn only_line(&self, output: &str) -> Result<String, KeyCommandError> {
        if output.len() as u64 > MAX_OUTPUT {
            return Err(self.error("printed more than 8 KiB"));
        }
        let key = output.strip_suffix('\n').unwrap_or(output);
        let key = key.strip_suffix('\r').unwrap_or(key);
        match key {
            "" => Err(self.error("printed no key")),
            key if key.contains('\n') => Err(self.error("printed more than one line")),
            key => match credentials::check(key, &KeySource::Typed) {
                Ok(()) => Ok(key.to_owned()),
                Err(_) => Err(self.error("printed something that is no key")),
            },
        }
    }

    fn error(&self, problem: &str) -> KeyCommandError {
        KeyCommandError(format!("{} {problem}", self.source.shown()))
    }
}

/// Gives the key to a client.
pub(super) struct CommandKeys(pub(super) Arc<KeyCommand>);

impl ApiKeyProvider for CommandKeys {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        Ok(ApiKey::new(self.0.key(rejected).await?))
    }
}

/// Reads slightly more than the maximum. The rest is dropped, so that the command does not wait.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else {
        return String::new();
    };
    let mut bytes = Vec::new();
    let _ = (&mut stream)
        .take(MAX_OUTPUT + 1)
        .read_to_end(&mut bytes)
        .await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

fn ended_with(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "was ended by a signal".to_owned(),
    }
}

/// Returns the first characters of a command's messages, on one line.
fn shortened(messages: &str) -> String {
    let start: String = messages.trim().chars().take(MAX_SHOWN).collect();
    escape::line(&start).into_owned()
}
