//! Runs `petstore` in process, and records its output.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use petstore_cli::{Dirs, Env, Signal, Stream};
use petstore_mock::{MockServer, Plan};
use tempfile::TempDir;
use wiremock::matchers::any;
use wiremock::{Mock, ResponseTemplate};

/// The time on every clock of these tests: 2026-11-21, 10:00:00 UTC.
pub(super) fn noon() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_255_200)
}

/// Starts a service with a key.
pub(super) async fn serve(key: &str, plan: Plan) -> MockServer {
    let builder = MockServer::builder().key(key, plan);
    builder.start().await.unwrap()
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
    vars: Vec<(String, OsString)>,
    width: Option<u16>,
    stdin: Vec<u8>,
    terminal: bool,
    stderr_terminal: bool,
    interrupted_after: Option<Duration>,
    home: Option<String>,
    answer: Option<io::Result<String>>,
    stdout: Option<Box<dyn Write + Send>>,
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
        Self {
            vars: [("LANG", "C.UTF-8"), ("TZ", "UTC")]
                .map(|(name, value)| (name.to_owned(), value.into()))
                .into(),
            width: None,
            stdin: vec![],
            terminal: false,
            stderr_terminal: false,
            interrupted_after: None,
            home: None,
            answer: None,
            stdout: None,
        }
    }

    /// A command for a server, with a key.
    pub(crate) fn at(server: &MockServer, key: &str) -> Self {
        Self::with(server.url(), key)
    }

    /// A command with a base URL and a key.
    pub(crate) fn with(base_url: &str, key: &str) -> Self {
        Self::bare()
            .var("PETSTORE_BASE_URL", base_url)
            .var("PETSTORE_API_KEY", key)
    }

    pub(super) fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.push((name.to_owned(), value.into()));
        self
    }

    /// Sets a variable to invalid UTF-8.
    #[cfg(unix)]
    pub(super) fn garbled(mut self, name: &str) -> Self {
        use std::os::unix::ffi::OsStringExt as _;

        self.vars
            .push((name.to_owned(), OsString::from_vec(vec![0xff])));
        self
    }

    /// Uses a folder as the home folder, which transcripts show as HOME.
    pub(super) fn home(mut self, folder: &Path) -> Self {
        self.home = Some(folder.to_str().unwrap().to_owned());
        self
    }

    /// Answers the prompt for a secret.
    pub(super) fn answer(mut self, secret: &str) -> Self {
        self.answer = Some(Ok(secret.to_owned()));
        self
    }

    /// Presses Ctrl-C at the prompt for a secret.
    pub(super) fn ctrl_c_at_the_question(mut self) -> Self {
        self.answer = Some(Err(io::ErrorKind::Interrupted.into()));
        self
    }

    pub(super) fn width(mut self, columns: u16) -> Self {
        self.width = Some(columns);
        self
    }

    pub(crate) fn stdin(mut self, text: &str) -> Self {
        self.stdin = text.into();
        self
    }

    pub(super) fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    pub(super) fn stderr_terminal(mut self) -> Self {
        self.stderr_terminal = true;
        self
    }

    /// Presses Ctrl-C after some seconds.
    pub(super) fn interrupted_after(mut self, seconds: u64) -> Self {
        self.interrupted_after = Some(Duration::from_secs(seconds));
        self
    }

    /// Presses Ctrl-C, which reaches the command just after the end of its input.
    pub(super) fn interrupted_with_its_input(mut self) -> Self {
        self.interrupted_after = Some(Duration::from_millis(1));
        self
    }

    pub(super) fn stdout(mut self, writer: impl Write + Send + 'static) -> Self {
        self.stdout = Some(Box::new(writer));
        self
    }

    /// Runs a command line; words are separated by spaces.
    pub(crate) async fn run(self, line: &str) -> Ran {
        self.run_words(&line.split_whitespace().collect::<Vec<_>>())
            .await
    }

    pub(super) async fn run_words(self, words: &[impl AsRef<OsStr>]) -> Ran {
        let (out, err) = (Sink::default(), Sink::default());
        let writer = self.stdout.unwrap_or_else(|| Box::new(out.clone()));
        let interrupted_after = self.interrupted_after;
        let dirs = self.home.as_ref().map(|home| Dirs {
            config: Some(Path::new(home).join("config")),
            state: Some(Path::new(home).join("state")),
            ..Dirs::default()
        });
        let env = Env {
            args: std::iter::once(OsStr::new("petstore"))
                .chain(words.iter().map(AsRef::as_ref))
                .map(Into::into)
                .collect(),
            vars: self.vars.into_iter().collect(),
            stdin: Box::new(io::Cursor::new(self.stdin)),
            stdin_is_terminal: false,
            stdout: Stream {
                writer,
                is_terminal: self.terminal,
            },
            stderr: Stream {
                writer: Box::new(err.clone()),
                is_terminal: self.stderr_terminal,
            },
            prompt: self
                .answer
                .map(|answer| Box::new(move |_: &str| answer) as _),
            dirs: dirs.unwrap_or_default(),
            now: noon,
            width: self.width,
            signals: Box::pin(futures_util::stream::once(async move {
                match interrupted_after {
                    Some(delay) => tokio::time::sleep(delay).await,
                    None => std::future::pending().await,
                }
                Signal::Interrupt
            })),
        };
        let code = petstore_cli::run(env).await;
        let shown = |sink: &Sink| match &self.home {
            Some(home) => sink.text().replace(home, "HOME"),
            None => sink.text(),
        };
        Ran {
            stdout: shown(&out),
            stderr: shown(&err),
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
        let _ = writeln!(
            text,
            "$ petstore {line}\n{}\n",
            start().run(line).await.transcript()
        );
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
