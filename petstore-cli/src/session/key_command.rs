//! Runs the command that prints the API key: `key_command` of a profile.

use std::collections::HashMap;
use std::ffi::OsString;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use petstore_client::auth::ApiKeyProvider;
use petstore_client::{ApiKey, BoxError};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::env::System;
use crate::error::os_text;
use crate::escape;
use crate::settings::credentials::{self, CommandSource, KeySource};
use crate::status::Activity;
use crate::time;
use crate::ui::Ui;

/// Somebody may have to type a password.
const LIMIT_AT_TERMINAL: Duration = Duration::from_secs(60);
const LIMIT: Duration = Duration::from_secs(10);

/// The maximum length of the output. Any key is shorter.
const MAX_OUTPUT: usize = 8 * 1024;

/// A command and the key that it printed, which clones share. The command runs once, and again after
/// a 401. Its errors are sentences.
#[derive(Clone)]
pub(crate) struct KeyCommand {
    source: CommandSource,
    vars: HashMap<String, OsString>,
    limit: Duration,
    ui: Ui,
    key: Arc<Mutex<Option<String>>>,
}

impl KeyCommand {
    pub(crate) fn new(source: CommandSource, system: &System, ui: &Ui) -> Self {
        let limit = match ui.screen().is_terminal() {
            true => LIMIT_AT_TERMINAL,
            false => LIMIT,
        };
        Self {
            source,
            vars: system.os_vars().clone(),
            limit,
            ui: ui.clone(),
            key: Arc::default(),
        }
    }

    /// Returns the key. Runs the command if it has not run yet, or if the service rejected its key.
    pub(crate) async fn key(&self, rejected: Option<&ApiKey>) -> Result<String, String> {
        let mut key = self.key.lock().await;
        if let Some(key) = &*key
            && rejected != Some(&ApiKey::new(key.as_str()))
        {
            return Ok(key.clone());
        }
        let name = self.source.shown();
        self.ui
            .set_activity(Some(Activity::new(format!("reading {name}"))));
        let printed = self.run().await;
        self.ui.set_activity(None);
        match printed {
            Ok(printed) => Ok(key.insert(printed).clone()),
            Err(problem) => Err(format!("{name} {problem}")),
        }
    }

    async fn run(&self) -> Result<String, String> {
        let program = &self.source.program;
        let child = Command::new(program)
            .args(&self.source.arguments)
            .env_clear()
            .envs(&self.vars)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let child = child.map_err(|problem| {
            let program = escape::line(program);
            format!("cannot start `{program}`: {}", os_text(&problem))
        })?;
        let Ok(output) = tokio::time::timeout(self.limit, child.wait_with_output()).await else {
            return Err(format!("took longer than {}", time::duration(self.limit)));
        };
        self.key_in(&output.map_err(|problem| format!("failed: {problem}"))?)
    }

    fn key_in(&self, output: &Output) -> Result<String, String> {
        let text = String::from_utf8_lossy(&output.stdout);
        // A command that fails may have printed the key already, and repeat it in its messages.
        for line in text.lines() {
            self.ui.hide(line);
        }
        if output.status.success() {
            return only_line(&text);
        }
        let problem = match output.status.code() {
            Some(code) => format!("ended with exit code {code}"),
            None => "was ended by a signal".to_owned(),
        };
        let messages = String::from_utf8_lossy(&output.stderr);
        match escape::start(messages.trim()) {
            messages if messages.is_empty() => Err(problem),
            messages => Err(format!("{problem}: {messages}")),
        }
    }
}

/// Returns the key: the only line of the output. The messages omit what was printed.
fn only_line(output: &str) -> Result<String, String> {
    if output.len() > MAX_OUTPUT {
        return Err("printed more than 8 KiB".to_owned());
    }
    let key = output.strip_suffix('\n').unwrap_or(output);
    let key = key.strip_suffix('\r').unwrap_or(key);
    if key.is_empty() {
        return Err("printed nothing".to_owned());
    }
    if key.contains('\n') {
        return Err("printed more than one line".to_owned());
    }
    match credentials::check(key, &KeySource::Typed) {
        Ok(()) => Ok(key.to_owned()),
        Err(_) => Err("printed a key that contains a space or a non-ASCII character".to_owned()),
    }
}

impl ApiKeyProvider for KeyCommand {
    async fn api_key(&self, rejected: Option<&ApiKey>) -> Result<ApiKey, BoxError> {
        Ok(ApiKey::new(self.key(rejected).await?))
    }
}
