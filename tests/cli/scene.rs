//! A service and a folder for tests of imports.

use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

use petstore_mock::{Clock, MockServer, Operation, Plan, Seed};
use tempfile::TempDir;

use super::harness::{Petstore, Ran};
use super::hints::{Command, Hints, words};

/// A service that gets the rows.
pub(super) trait Service {
    /// A command for the service.
    fn petstore(&self) -> Petstore;
    /// The names of its pets.
    fn names(&self) -> Vec<String>;
}

impl Service for MockServer {
    fn petstore(&self) -> Petstore {
        Petstore::at(self, "import-key")
    }

    fn names(&self) -> Vec<String> {
        let pets = self.pets().all();
        pets.into_iter().map(|pet| pet.name).collect()
    }
}

/// An empty store, and a folder to work in.
pub(super) struct Scene<S> {
    pub(super) server: S,
    folder: TempDir,
    hints: RefCell<Hints>,
}

impl<S: Service> Scene<S> {
    pub(super) fn with(server: S) -> Self {
        Self {
            server,
            folder: TempDir::new().unwrap(),
            hints: RefCell::default(),
        }
    }

    fn home(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        self.note_input(name, text);
    }

    /// Notes rows that pets may come from.
    pub(super) fn note_input(&self, name: &str, text: &str) {
        self.hints.borrow_mut().input(name, text);
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a command line in which DIR is the folder. Transcripts show the folder as HOME.
    pub(super) async fn run(&self, line: &str) -> Ran {
        self.run_with(|petstore| petstore, line).await
    }

    pub(super) async fn run_with(&self, set: impl FnOnce(Petstore) -> Petstore, line: &str) -> Ran {
        self.run_command(set, line, None).await
    }

    async fn run_command(
        &self,
        set: impl FnOnce(Petstore) -> Petstore,
        line: &str,
        stdin: Option<&str>,
    ) -> Ran {
        let line = line.replace("DIR", self.home());
        let command = self.hints.borrow().command(&line, stdin, self.home());
        let ran = self.petstore(&command, set).await;
        self.hints.borrow_mut().take(&command, &ran, self.home());
        ran
    }

    async fn petstore(&self, command: &Command, set: impl FnOnce(Petstore) -> Petstore) -> Ran {
        let mut petstore = self.server.petstore().home(self.folder.path());
        if let Some(text) = &command.stdin {
            petstore = petstore.stdin(text);
        }
        set(petstore).run_words(&words(&command.line)).await
    }

    /// Runs an import, and checks its summary and exit code.
    pub(super) async fn expect(&self, line: &str, summary: [usize; 5], code: u8) -> Ran {
        let ran = self.run(line).await;
        ran.sums_up(summary, code);
        ran
    }

    /// Follows all hints that were printed, and those that they print, and counts the pets.
    pub(super) async fn follow_hints(&self) {
        loop {
            let next = self.hints.borrow_mut().next();
            let Some(command) = next else { return };
            let ran = self.petstore(&command, |petstore| petstore).await;
            let mut hints = self.hints.borrow_mut();
            hints.take(&command, &ran, self.home());
            hints.check(&command, &ran, &self.server.names());
        }
    }

    /// Returns the names of the service's pets, sorted.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = self.server.names();
        names.sort();
        names
    }
}

impl Scene<MockServer> {
    pub(super) async fn new() -> Self {
        let clock = Clock::frozen(UNIX_EPOCH + Duration::from_secs(1_767_225_600));
        Self::at(clock, Plan::enterprise(100_000, 1_000_000)).await
    }

    pub(super) async fn at(clock: Clock, plan: Plan) -> Self {
        let builder = MockServer::builder()
            .key("import-key", plan)
            .seed(Seed::none())
            .clock(clock);
        Self::with(builder.start().await.unwrap())
    }

    /// Imports rows from standard input.
    pub(super) async fn pipe(&self, text: &str, line: &str) -> Ran {
        self.note_input(&format!("input {}", self.sent()), text);
        self.run_command(|petstore| petstore, line, Some(text))
            .await
    }

    /// Returns the number of `POST` requests that the server received.
    pub(super) fn sent(&self) -> usize {
        self.server.requests(Operation::CreatePet).len()
    }
}

/// Returns rows with different names.
pub(super) fn rows(count: usize) -> String {
    (1..=count)
        .map(|row| format!("{{\"name\":\"pet {row}\",\"categoryId\":{row}}}\n"))
        .collect()
}
