//! Runs the command that prints the API key: `key_command` of a profile.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::process::{Output, Stdio};
use std::sync::Arc;
use std::time::Duration;

use petstore_client::auth::ApiKeyProvider;
use petstore_client::{ApiKey, BoxError};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

use crate::env::System;
use crate::error::os_text;
use crate::escape;
use crate::settings::credentials::{self, CommandSource, KeySource};
use crate::settings::secrets::MASK;
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
        let Ok(output) = tokio::time::timeout(self.limit, output(child)).await else {
            return Err(format!("took longer than {}", time::duration(self.limit)));
        };
        self.key_in(&output.map_err(|problem| format!("failed: {problem}"))?)
    }

    fn key_in(&self, output: &Output) -> Result<String, String> {
        let text = String::from_utf8_lossy(&output.stdout);
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
        let messages = without_words(&messages, &text);
        match escape::start(messages.trim()) {
            messages if messages.is_empty() => Err(problem),
            messages => Err(format!("{problem}: {messages}")),
        }
    }
}

/// Reads what a command prints until it ends. A program that it leaves running, such as an agent, may
/// keep the streams open.
async fn output(mut child: Child) -> io::Result<Output> {
    const REST: Duration = Duration::from_millis(100);

    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let reading = async { tokio::join!(read(out, &mut stdout), read(err, &mut stderr)) };
    let ending = async {
        let _ = child.wait().await;
        tokio::time::sleep(REST).await;
    };
    tokio::select! {
        _ = reading => {}
        () = ending => {}
    }
    let status = child.wait().await?;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

async fn read(stream: Option<impl AsyncRead + Unpin>, bytes: &mut Vec<u8>) {
    if let Some(mut stream) = stream {
        // What was read before an error counts.
        let _ = stream.read_to_end(bytes).await;
    }
}

/// Hides in the messages of a command what it printed: it may have printed the key before it failed.
fn without_words(messages: &str, printed: &str) -> String {
    const MIN_LENGTH: usize = 4;

    let parts = printed.split(|c: char| c.is_whitespace() || "=:,\"'".contains(c));
    let mut words: Vec<_> = printed.lines().map(str::trim).collect();
    words.extend(printed.split_whitespace().chain(parts));
    words.retain(|word| word.len() >= MIN_LENGTH);
    // A word may contain another one.
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    let hide = |text: String, word: &str| text.replace(word, MASK);
    words.into_iter().fold(messages.to_owned(), hide)
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
