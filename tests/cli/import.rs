//! Importing and exporting pets: each row once, whatever happens in between.

use std::time::{Duration, UNIX_EPOCH};

use insta::assert_snapshot;
use petstore_mock::{Clock, MockServer, Operation, Plan, Seed, SeedPet};
use tempfile::TempDir;

use super::harness::{Petstore, Ran, noon};

/// An empty store, and a folder to work in.
pub(super) struct Scene {
    pub(super) server: MockServer,
    folder: TempDir,
}

impl Scene {
    pub(super) async fn new() -> Self {
        Self::with(Plan::enterprise(100_000, 1_000_000)).await
    }

    async fn with(plan: Plan) -> Self {
        let clock = Clock::frozen(UNIX_EPOCH + Duration::from_secs(1_767_225_600));
        Self::at(clock, plan).await
    }

    pub(super) async fn at(clock: Clock, plan: Plan) -> Self {
        let builder = MockServer::builder().key("import-key", plan).seed(Seed::none()).clock(clock);
        Self { server: builder.start().await.unwrap(), folder: TempDir::new().unwrap() }
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Runs a command line in which DIR is the folder; it is called HOME in transcripts.
    pub(super) async fn run(&self, line: &str) -> Ran {
        self.run_with(|petstore| petstore, line).await
    }

    async fn run_with(&self, set: impl FnOnce(Petstore) -> Petstore, line: &str) -> Ran {
        let folder = self.folder.path();
        let line = line.replace("DIR", folder.to_str().unwrap());
        set(Petstore::at(&self.server, "import-key").home(folder)).run(&line).await
    }

    /// How many requests to add a pet the server had.
    pub(super) fn sent(&self) -> usize {
        self.server.requests(Operation::CreatePet).len()
    }

    /// The names of the pets that the server has.
    async fn names(&self) -> Vec<String> {
        let ran = self.run("pets export --fields name -o csv").await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let mut names: Vec<_> = ran.stdout.lines().skip(1).map(ToOwned::to_owned).collect();
        names.sort();
        names
    }
}

/// So many rows, each with a name of its own.
pub(super) fn rows(count: usize) -> String {
    (1..=count).map(|row| format!("{{\"name\":\"pet {row}\",\"categoryId\":{row}}}\n")).collect()
}

/// What `names` returns once these rows are there.
fn all(count: usize) -> Vec<String> {
    let mut names: Vec<_> = (1..=count).map(|row| format!("pet {row}")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_was_exported_can_be_imported_in_every_format() {
    let names =
        ["Rex", "", " a,\"b\"\n;c\t", "=1+1", "yes", "\u{1b}[2J\u{202e}", "犬 🐕", "null", "007"];
    let seed = names.iter().enumerate().fold(Seed::new(), |seed, (row, name)| {
        let pet = SeedPet::new(*name, i64::try_from(row).unwrap() - 3);
        seed.pet(if row % 2 == 0 { pet.with_status(petstore_mock::PetStatus::Sold) } else { pet })
    });
    let source = MockServer::builder().seed(seed).start().await.unwrap();
    for format in ["ndjson", "json", "csv"] {
        let line = format!("pets export -o {format}");
        let exported = Petstore::at(&source, "enterprise-key").run(&line).await;
        let scene = Scene::new().await;
        let import = |petstore: Petstore| petstore.stdin(&exported.stdout);
        let ran = scene.run_with(import, "pets import").await;
        assert_eq!(ran.stdout, "9\t9\t0\t0\t0\t0\n", "{format}: {}", ran.stderr);
        let line = format!("pets export -o {format} --fields name,categoryId,status");
        let there = Petstore::at(&source, "enterprise-key").run(&line).await;
        let mut back: Vec<_> = scene.run(&line).await.stdout.lines().map(sortable).collect();
        let mut there: Vec<_> = there.stdout.lines().map(sortable).collect();
        back.sort();
        there.sort();
        assert_eq!(back, there, "{format}");
    }
}

/// A line of JSON without the comma that depends on its place.
fn sortable(line: &str) -> String {
    line.trim_end_matches(',').to_owned()
}

#[tokio::test]
async fn complains_of_every_row_before_the_first_is_sent() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId,status\nRex,7,sold\nTom,x,gone\n");
    assert_snapshot!(scene.run("pets import DIR/pets.csv").await.transcript(), @"
    --- stderr
    error: HOME/pets.csv has 2 faults, and nothing was sent:
      line 3, column 2: `categoryId` must be a whole number of 64 bits, and is `x`
      line 3, column 3: `status` must be available, pending or sold, and is `gone`
    --- exit 2
    ");
    assert_eq!(scene.sent(), 0);
}

#[tokio::test]
async fn a_second_run_sends_nothing() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(40));
    assert_eq!(scene.run("pets import DIR/pets.ndjson").await.stdout, "40\t40\t0\t0\t0\t0\n");
    assert_eq!(scene.names().await, all(40));
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson -o json").await.transcript(), @r#"
    --- stdout
    {
      "rows": 40,
      "created": 40,
      "rejected": 0,
      "unknown": 0,
      "skipped": 0,
      "left": 0
    }
    --- stderr
    note: all rows were sent before: there is nothing to do
    --- exit 0
    "#);
    assert_eq!(scene.sent(), 40);
    let journal = scene.read("pets.ndjson.petstore-journal");
    assert!(!journal.contains("import-key"), "{journal}");
}

#[tokio::test]
async fn writes_rejected_rows_with_the_reason() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n\"b\nb\",2\nc,3\n");
    let refusing = scene.server.faults().on(Operation::CreatePet).nth(2).status(400);
    let ran = scene.run("pets import DIR/pets.csv --rejects DIR/no.csv --concurrency 1").await;
    assert_eq!(refusing.hits(), 1);
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    3	2	1	0	0	0
    --- stderr
    error: 2 of 3 rows were added (rejected: 1, of unknown fate: 0)
    hint: the rejected rows are in HOME/no.csv
    --- exit 8
    ");
    assert_snapshot!(scene.read("no.csv"), @r#"
    name,categoryId,"reason"
    "b
    b",2,"400: a fault that was set in this mock answers instead of the service"
    "#);
    // Mended, they can be imported.
    let again = scene.run("pets import DIR/no.csv").await;
    assert_eq!(again.stdout, "1\t1\t0\t0\t0\t0\n", "{}", again.stderr);
}

#[tokio::test]
async fn a_row_of_unknown_fate_is_not_sent_again_by_itself() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(4));
    let losing = scene.server.faults().on(Operation::CreatePet).nth(2).empty_reply();
    let ran = scene.run("pets import DIR/pets.ndjson --concurrency 1").await;
    assert_eq!(losing.hits(), 1);
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    4	3	0	1	0	0
    --- stderr
    error: 3 of 4 rows were added (rejected: 0, of unknown fate: 1)
    hint: `--unknown skip` lets rows of unknown fate be, `--unknown retry` sends them again
    --- exit 8
    ");
    assert_eq!((scene.sent(), scene.run("pets import DIR/pets.ndjson").await.code), (4, 8));
    assert_eq!(scene.sent(), 4);
    let skipped = scene.run("pets import DIR/pets.ndjson --unknown skip").await;
    assert_eq!((skipped.stdout.as_str(), skipped.code), ("4\t3\t0\t0\t1\t0\n", 0));
    assert_eq!(scene.sent(), 4);
}

#[tokio::test]
async fn a_row_of_unknown_fate_is_sent_again_where_that_is_wanted() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(4));
    let losing = scene.server.faults().on(Operation::CreatePet).nth(2).empty_reply();
    assert_eq!(scene.run("pets import DIR/pets.ndjson --concurrency 1").await.code, 8);
    drop(losing);
    let retried = scene.run("pets import DIR/pets.ndjson --unknown retry").await;
    assert_eq!((retried.stdout.as_str(), retried.code), ("4\t4\t0\t0\t0\t0\n", 0));
    assert_eq!(scene.sent(), 5);
}

#[tokio::test(start_paused = true)]
async fn stops_at_a_limit_that_is_too_far_off_and_goes_on_after_it() {
    let scene = Scene::at(Clock::runtime(noon()), Plan::Free).await;
    scene.write("pets.ndjson", &rows(100));
    let ran = scene.run("pets import DIR/pets.ndjson --max-wait 0").await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("100\t60\t0\t0\t0\t40\n", 7), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: `petstore pets import "), "{}", ran.stderr);
    tokio::time::sleep(Duration::from_secs(60)).await;
    let ran = scene.run("pets import DIR/pets.ndjson --max-wait 0").await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("100\t100\t0\t0\t0\t0\n", 0), "{}", ran.stderr);
    assert_eq!(scene.sent(), 100);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(scene.names().await, all(100));
}

#[tokio::test]
async fn stops_where_the_service_is_gone_and_goes_on_when_it_is_back() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(30));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let down = format!("http://{nobody}/v1");
    let journal = "--journal DIR/j --concurrency 2";
    let line = format!("pets import DIR/pets.ndjson {journal} --base-url {down}");
    let ran = scene.run(&line).await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("30\t0\t0\t0\t0\t30\n", 6), "{}", ran.stderr);
    // It is another service as far as the journal knows.
    let ran = scene.run(&format!("pets import DIR/pets.ndjson {journal}")).await;
    assert!(ran.stderr.contains("is of an import to http://"), "{}", ran.stderr);
    assert_eq!((ran.code, scene.sent()), (2, 0));
}

#[tokio::test]
async fn notices_a_file_that_has_changed() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    assert_eq!(scene.run("pets import DIR/pets.ndjson").await.code, 0);
    scene.write("pets.ndjson", &rows(3));
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson").await.transcript(), @"
    --- stderr
    error: HOME/pets.ndjson has changed since its import began, as HOME/pets.ndjson.petstore-journal tells
    hint: to import it from its first row on, which may add pets twice, remove HOME/pets.ndjson.petstore-journal or name another with `--journal FILE`
    --- exit 2
    ");
    assert_eq!(scene.sent(), 2);
}

#[tokio::test]
async fn a_second_import_of_the_same_file_is_told_of_the_first() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    let journal = std::fs::File::create(scene.path("pets.ndjson.petstore-journal")).unwrap();
    journal.lock().unwrap();
    let ran = scene.run("pets import DIR/pets.ndjson").await;
    assert!(ran.stderr.contains("another import of this file is under way"), "{}", ran.stderr);
    assert_eq!((ran.code, scene.sent()), (2, 0));
}

#[tokio::test]
async fn a_foreign_file_is_not_overwritten() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    scene.write("letter", "Dear Ada,\nthe second line");
    let ran = scene.run("pets import DIR/pets.ndjson --journal DIR/letter").await;
    assert!(ran.stderr.contains("it is no journal of an import"), "{}", ran.stderr);
    assert_eq!((ran.code, scene.sent()), (2, 0));
    assert_eq!(scene.read("letter"), "Dear Ada,\nthe second line");
}

#[tokio::test]
async fn a_dry_run_needs_neither_a_key_nor_a_network() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(7));
    let line = format!("pets import {} --dry-run", scene.path("pets.ndjson"));
    let ran = Petstore::bare().run(&line).await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("7\t0\t0\t0\t0\t7\n", 0), "{}", ran.stderr);
    assert!(!std::path::Path::new(&scene.path("pets.ndjson.petstore-journal")).exists());
}

#[tokio::test]
async fn an_input_without_rows_is_told_of() {
    let ran = Scene::new().await.run("pets import").await;
    assert_eq!(ran.stderr, "note: standard input has no rows\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("0\t0\t0\t0\t0\t0\n", 0));
}

#[tokio::test]
async fn a_key_that_is_refused_stops_it_at_once() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(30));
    let line = format!("pets import {} --concurrency 1", scene.path("pets.ndjson"));
    let ran = Petstore::at(&scene.server, "wrong-key").run(&line).await;
    assert_eq!((ran.stdout.as_str(), ran.code), ("30\t0\t0\t0\t0\t30\n", 3), "{}", ran.stderr);
    assert_eq!(scene.sent(), 1);
}

#[tokio::test]
async fn an_export_that_may_not_be_complete_does_not_end_with_0() {
    let server = MockServer::builder().paging(false).seed(Seed::default()).start().await.unwrap();
    let whole = Petstore::at(&server, "pro-key").run("pets export").await;
    assert_eq!((whole.stdout.lines().count(), whole.code), (25, 0));
    let many = (0..100).fold(Seed::new(), |seed, row| seed.pet(SeedPet::new("x", row)));
    let server = MockServer::builder().paging(false).seed(many).start().await.unwrap();
    let cut = Petstore::at(&server, "pro-key").run("pets export").await;
    assert_eq!((cut.stdout.lines().count(), cut.code), (100, 8), "{}", cut.stderr);
}
