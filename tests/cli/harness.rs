//! Runs `petstore` in process, and records its output.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use petstore_cli::{Dirs, Env, Signal, Stream};
use petstore_mock::{Clock, MockServer, Plan, Seed};
use tempfile::TempDir;
use wiremock::matchers::any;
use wiremock::{Mock, ResponseTemplate};

const STORE: &str = "PETSTORE_LIMITS_STORE";

/// The time on every clock of these tests: 2026-11-21, 10:00:00 UTC.
pub(super) fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_255_200)
}

/// Starts a service with a key. Its clock stands still.
pub(super) async fn serve(key: &str, plan: Plan) -> MockServer {
    let builder = MockServer::builder().key(key, plan);
    builder.clock(Clock::frozen(noon())).start().await.unwrap()
}

/// Starts a service with the key `k`, whose clock follows that of the runtime.
pub(super) async fn serve_over_time(plan: Plan) -> MockServer {
    let builder = MockServer::builder().key("k", plan);
    builder.clock(Clock::runtime(noon())).start().await.unwrap()
}

/// Starts a service with the key `k` and this content.
pub(super) async fn stocked(seed: Seed) -> MockServer {
    let builder = MockServer::builder().key("k", Plan::Business);
    builder.seed(seed).start().await.unwrap()
}

/// Starts a server that gives the same answer to every request.
pub(super) async fn answering(answer: ResponseTemplate) -> wiremock::MockServer {
    let server = wiremock::MockServer::start().await;
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

/// Returns a home folder with a config.toml.
pub(super) fn home_with(config: &str) -> TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join("config")).unwrap();
    std::fs::write(home.path().join("config/config.toml"), config).unwrap();
    home
}

/// A command to run.
pub(crate) struct Petstore {
    env: Env,
    home: Option<String>,
    out: Sink,
    err: Sink,
}

/// The result of a command.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: u8,
}

impl Petstore {
    /// A command without configuration, with piped streams.
    pub(super) fn bare() -> Self {
        let (out, err) = (Sink::default(), Sink::default());
        let piped = |sink: &Sink| Stream {
            writer: Box::new(sink.clone()),
            is_terminal: false,
        };
        let env = Env {
            args: Vec::new(),
            vars: HashMap::new(),
            stdin: Box::new(io::empty()),
            stdin_is_terminal: false,
            stdout: piped(&out),
            stderr: piped(&err),
            prompt: None,
            dirs: Dirs::default(),
            now: noon,
            width: None,
            signals: Box::pin(futures_util::stream::pending()),
        };
        let home = None;
        let bare = Self {
            env,
            home,
            out,
            err,
        };
        bare.var("LANG", "C.UTF-8").var("TZ", "UTC")
    }

    /// A command for a server, with a key.
    pub(crate) fn at(server: &MockServer, key: &str) -> Self {
        Self::with(server.url(), key)
    }

    /// A command with a base URL and a key. It shares rate limits with no other.
    pub(crate) fn with(base_url: &str, key: &str) -> Self {
        Self::bare()
            .var("PETSTORE_BASE_URL", base_url)
            .var("PETSTORE_API_KEY", key)
            .var(STORE, "off")
    }

    pub(super) fn var(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let value = value.as_ref().to_owned();
        self.env.vars.insert(name.to_owned(), value);
        self
    }

    /// Uses a folder as the home folder, which transcripts show as HOME. Rate limits are shared there.
    pub(super) fn home(mut self, folder: &Path) -> Self {
        self.env.vars.remove(STORE);
        self.env.dirs = Dirs {
            config: Some(folder.join("config")),
            state: Some(folder.join("state")),
            ..Dirs::default()
        };
        self.home = Some(folder.to_str().unwrap().to_owned());
        self
    }

    /// Answers the prompt for a secret.
    pub(super) fn answer(mut self, secret: &str) -> Self {
        let secret = secret.to_owned();
        self.env.prompt = Some(Box::new(|_| Ok(secret)));
        self
    }

    pub(super) fn width(mut self, columns: u16) -> Self {
        self.env.width = Some(columns);
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.env.stdin = Box::new(io::Cursor::new(text.to_owned()));
        self
    }

    pub(super) fn terminal(mut self) -> Self {
        self.env.stdout.is_terminal = true;
        self
    }

    pub(super) fn stderr_terminal(mut self) -> Self {
        self.env.stderr.is_terminal = true;
        self
    }

    pub(super) fn stdout(mut self, writer: impl Write + Send + 'static) -> Self {
        self.env.stdout.writer = Box::new(writer);
        self
    }

    /// Presses Ctrl-C after this time.
    pub(super) fn interrupted_after(mut self, delay: Duration) -> Self {
        self.env.signals = Box::pin(futures_util::stream::once(async move {
            tokio::time::sleep(delay).await;
            Signal::Interrupt
        }));
        self
    }

    /// Runs a command line; words are separated by spaces.
    pub(crate) async fn run(self, line: &str) -> Ran {
        let words: Vec<_> = line.split_whitespace().collect();
        self.run_words(&words).await
    }

    pub(super) async fn run_words(mut self, words: &[impl AsRef<OsStr>]) -> Ran {
        self.env.args = vec!["petstore".into()];
        self.env.args.extend(words.iter().map(Into::into));
        let code = petstore_cli::run(self.env).await;
        let shown = |sink: &Sink| match &self.home {
            Some(home) => sink.text().replace(home, "HOME"),
            None => sink.text(),
        };
        Ran {
            stdout: shown(&self.out),
            stderr: shown(&self.err),
            code,
        }
    }
}

impl Ran {
    /// Checks what a command printed that succeeded.
    #[track_caller]
    pub(super) fn printed(&self, stdout: &str) {
        assert_eq!((&*self.stdout, self.code), (stdout, 0), "{}", self.stderr);
    }

    /// Checks the exit code.
    #[track_caller]
    pub(super) fn ended(&self, code: u8) {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
    }

    /// Checks a part of standard output.
    #[track_caller]
    pub(super) fn shows(&self, part: &str) {
        assert!(self.stdout.contains(part), "{}", self.stdout);
    }

    /// Checks a part of standard error.
    #[track_caller]
    pub(super) fn says(&self, part: &str) {
        assert!(self.stderr.contains(part), "{}", self.stderr);
    }

    /// Checks all of standard error, and the exit code.
    #[track_caller]
    pub(super) fn said(&self, stderr: &str, code: u8) {
        assert_eq!((&*self.stderr, self.code), (stderr, code));
    }

    /// Checks that standard error lacks a text.
    #[track_caller]
    pub(super) fn never_says(&self, part: &str) {
        assert!(!self.stderr.contains(part), "{}", self.stderr);
    }

    /// Checks the summary of an import, and the exit code.
    #[track_caller]
    pub(super) fn sums_up(&self, summary: [usize; 5], code: u8) {
        let found = (self.summary(), self.code);
        assert_eq!(found, (summary, code), "{}", self.stderr);
    }

    /// The sentence that sums up an import, such as `2 of 3 rows created, 1 found`: all, created or
    /// found, rejected, unknown and remaining rows.
    pub(super) fn summary(&self) -> [usize; 5] {
        let mut lines = self.stderr.lines().rev();
        let is_sum = |line: &&str| line.contains(" row created") || line.contains(" rows created");
        let sentence = lines
            .find(is_sum)
            .unwrap_or_else(|| panic!("{}", self.stderr));
        let words: Vec<_> = sentence
            .split(' ')
            .map(|word| word.trim_matches(','))
            .collect();
        let number = |name: &str, before: usize| {
            let at = words.iter().position(|word| *word == name);
            at.map_or(0, |at| words[at - before].parse().unwrap())
        };
        [
            number("created", 2),
            number("created", 4) + number("found", 1),
            number("rejected", 1),
            number("unknown", 1),
            number("left", 1),
        ]
    }

    /// The transcript, with masked ports and visible escapes.
    pub(super) fn transcript(&self) -> String {
        let mut text = String::new();
        for (name, stream) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !stream.is_empty() {
                let _ = writeln!(text, "--- {name}\n{}", stream.trim_end());
            }
        }
        let _ = write!(text, "--- exit {}", self.code);
        port_hidden(&text.replace('\u{1b}', "␛"))
    }
}

/// Types several lines, and returns what a terminal would show.
pub(super) async fn session(start: impl Fn() -> Petstore, lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let shown = start().run(line).await.transcript();
        let _ = writeln!(text, "$ petstore {line}\n{shown}\n");
    }
    text
}

fn port_hidden(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("127.0.0.1:") {
        out += before;
        out += "127.0.0.1:PORT";
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out + rest
}

/// A stream that records what is written.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
