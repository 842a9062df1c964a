//! A server and a folder for tests of imports.

use std::time::{Duration, UNIX_EPOCH};

use petstore_mock::{Clock, MockServer, Operation, Plan, Seed};
use tempfile::TempDir;

use super::harness::{Petstore, Ran};
use super::hints::Hints;

/// An empty store, and a folder to work in.
pub(super) struct Scene {
    pub(super) server: MockServer,
    folder: TempDir,
    hints: Hints,
}

impl Scene {
    pub(super) async fn new() -> Self {
        let clock = Clock::frozen(UNIX_EPOCH + Duration::from_secs(1_767_225_600));
        Self::at(clock, Plan::enterprise(100_000, 1_000_000)).await
    }

    pub(super) async fn at(clock: Clock, plan: Plan) -> Self {
        let builder = MockServer::builder()
            .key("import-key", plan)
            .seed(Seed::none())
            .clock(clock);
        Self {
            server: builder.start().await.unwrap(),
            folder: TempDir::new().unwrap(),
            hints: Hints::default(),
        }
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        self.hints.input(name, text);
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a command line in which DIR is the folder. Transcripts show the folder as HOME.
    pub(super) async fn run(&self, line: &str) -> Ran {
        self.run_with(|petstore| petstore, line).await
    }

    pub(super) async fn run_with(&self, set: impl FnOnce(Petstore) -> Petstore, line: &str) -> Ran {
        let folder = self.folder.path();
        let line = line.replace("DIR", folder.to_str().unwrap());
        let petstore = Petstore::at(&self.server, "import-key").home(folder);
        let ran = set(petstore).run(&line).await;
        self.hints.take(&line, &ran, folder.to_str().unwrap());
        ran
    }

    /// Imports rows from standard input.
    pub(super) async fn pipe(&self, text: &str, line: &str) -> Ran {
        let number = self.sent();
        self.hints.input(&format!("input {number}"), text);
        self.run_with(|petstore| petstore.stdin(text), line).await
    }

    /// Runs an import, and checks its summary and exit code.
    pub(super) async fn expect(&self, line: &str, summary: [usize; 5], code: u8) -> Ran {
        let ran = self.run(line).await;
        let what = format!("{line}: {}", ran.stderr);
        assert_eq!((ran.summary(), ran.code), (summary, code), "{what}");
        ran
    }

    /// Follows all hints that were printed, and those that they print, and counts the pets.
    pub(super) async fn follow_hints(&self) {
        while let Some(words) = self.hints.next() {
            let home = self.folder.path();
            let petstore = Petstore::at(&self.server, "import-key").home(home);
            let ran = petstore.run_words(&words).await;
            self.hints
                .take(&words.join(" "), &ran, home.to_str().unwrap());
            let pets = self.server.pets().all();
            self.hints.check(pets.iter().map(|pet| &*pet.name));
        }
    }

    /// Returns the number of `POST` requests that the server received.
    pub(super) fn sent(&self) -> usize {
        self.server.requests(Operation::CreatePet).len()
    }

    /// Returns the names of the server's pets.
    pub(super) fn names(&self) -> Vec<String> {
        let pets = self.server.pets().all();
        let mut names: Vec<_> = pets.iter().map(|pet| pet.name.clone()).collect();
        names.sort();
        names
    }
}

/// Returns rows with different names.
pub(super) fn rows(count: usize) -> String {
    (1..=count)
        .map(|row| format!("{{\"name\":\"pet {row}\",\"categoryId\":{row}}}\n"))
        .collect()
}
