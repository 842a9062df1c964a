//! Tests of imports and exports: each row is created once, whatever happens.

use std::time::{Duration, UNIX_EPOCH};

use insta::assert_snapshot;
use petstore_mock::{Clock, Effect, MockServer, Operation, Plan, Seed, SeedPet};
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
        let builder = MockServer::builder()
            .key("import-key", plan)
            .seed(Seed::none())
            .clock(clock);
        Self {
            server: builder.start().await.unwrap(),
            folder: TempDir::new().unwrap(),
        }
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

    /// Runs a command line in which DIR is the folder. Transcripts show the folder as HOME.
    pub(super) async fn run(&self, line: &str) -> Ran {
        self.run_with(|petstore| petstore, line).await
    }

    pub(super) async fn run_with(&self, set: impl FnOnce(Petstore) -> Petstore, line: &str) -> Ran {
        let folder = self.folder.path();
        let line = line.replace("DIR", folder.to_str().unwrap());
        set(Petstore::at(&self.server, "import-key").home(folder))
            .run(&line)
            .await
    }

    /// Runs an import, and checks its summary and exit code.
    pub(super) async fn expect(&self, line: &str, summary: [usize; 5], code: u8) -> Ran {
        let ran = self.run(line).await;
        assert_eq!(
            (ran.summary(), ran.code),
            (summary, code),
            "{line}: {}",
            ran.stderr
        );
        ran
    }

    /// Returns the number of `POST` requests that the server received.
    pub(super) fn sent(&self) -> usize {
        self.server.requests(Operation::CreatePet).len()
    }

    /// Returns the names of the server's pets.
    pub(super) async fn names(&self) -> Vec<String> {
        let ran = self.run("pets export --fields name -o csv").await;
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let mut names: Vec<_> = ran.stdout.lines().skip(1).map(ToOwned::to_owned).collect();
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

/// Returns the names after these rows were imported.
fn all(count: usize) -> Vec<String> {
    let mut names: Vec<_> = (1..=count).map(|row| format!("pet {row}")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_was_exported_can_be_imported_in_every_format() {
    let names = [
        "Rex",
        "",
        " a,\"b\"\n;c\t",
        "=1+1",
        "yes",
        "\u{1b}[2J\u{202e}",
        "犬 🐕",
        "null",
        "007",
    ];
    let seed = names
        .iter()
        .enumerate()
        .fold(Seed::new(), |seed, (row, name)| {
            let pet = SeedPet::new(*name, i64::try_from(row).unwrap() - 3);
            seed.pet(if row % 2 == 0 {
                pet.with_status(petstore_mock::PetStatus::Sold)
            } else {
                pet
            })
        });
    let source = MockServer::builder().seed(seed).start().await.unwrap();
    for format in ["ndjson", "json", "csv"] {
        let line = format!("pets export -o {format}");
        let exported = Petstore::at(&source, "enterprise-key").run(&line).await;
        let scene = Scene::new().await;
        let import = |petstore: Petstore| petstore.stdin(&exported.stdout);
        let ran = scene.run_with(import, "pets import").await;
        assert_eq!(ran.summary(), [9, 9, 0, 0, 0], "{format}: {}", ran.stderr);
        let line = format!("pets export -o {format} --fields name,categoryId,status");
        let there = Petstore::at(&source, "enterprise-key").run(&line).await;
        let mut back: Vec<_> = scene
            .run(&line)
            .await
            .stdout
            .lines()
            .map(sortable)
            .collect();
        let mut there: Vec<_> = there.stdout.lines().map(sortable).collect();
        back.sort();
        there.sort();
        assert_eq!(back, there, "{format}");
    }
}

/// A line of JSON without its trailing comma.
fn sortable(line: &str) -> String {
    line.trim_end_matches(',').to_owned()
}

#[tokio::test]
async fn complains_of_every_row_before_the_first_is_sent() {
    let scene = Scene::new().await;
    scene.write(
        "pets.csv",
        "name,categoryId,status\nRex,7,sold\nTom,x,gone\n",
    );
    assert_snapshot!(scene.run("pets import DIR/pets.csv").await.transcript(), @"
    --- stderr
    error: 1 row of HOME/pets.csv is invalid; nothing was sent
      line 3, categoryId: `x` is not a whole number
      line 3, status: `gone` is not available, pending or sold
    hint: correct the input and run the command again
    --- exit 2
    ");
    assert_eq!(scene.sent(), 0);
}

#[tokio::test]
async fn a_second_run_sends_nothing() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(40));
    assert_eq!(
        scene.run("pets import DIR/pets.ndjson").await.summary(),
        [40, 40, 0, 0, 0]
    );
    assert_eq!(scene.names().await, all(40));
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson -o json").await.transcript(), @r#"
    --- stdout
    {
      "file": "HOME/pets.ndjson",
      "rows": 40,
      "complete": true,
      "run": {
        "created": 0,
        "found": 0,
        "rejected": 0,
        "unknown": 0
      },
      "total": {
        "created": 40,
        "rejected": 0,
        "unknown": 0,
        "uncertain": 0,
        "left": 0
      },
      "uncertain": [],
      "journal": "HOME/pets.ndjson.petstore-journal",
      "rejects": null,
      "unknownFile": null,
      "createdFile": null,
      "forecast": null
    }
    --- stderr
    note: nothing to send; HOME/pets.ndjson was imported before (2026-11-21T10:00:00Z)
    note: 40 of 40 rows created
    --- exit 0
    "#);
    assert_eq!(scene.sent(), 40);
    let journal = scene.read("pets.ndjson.petstore-journal");
    assert!(!journal.contains("import-key"), "{journal}");
    #[cfg(unix)]
    {
        let file = std::fs::metadata(scene.path("pets.ndjson.petstore-journal")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.permissions());
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn rejected_rows_are_written_with_reasons_to_correct() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n\"b\nb\",2\nc,3\n");
    let refusing = scene
        .server
        .faults()
        .on(Operation::CreatePet)
        .nth(2)
        .status(400);
    let ran = scene
        .run("pets import DIR/pets.csv --rejects DIR/no.csv --concurrency 1")
        .await;
    assert_eq!(refusing.hits(), 1);
    assert_snapshot!(ran.transcript(), @"
    --- stdout
    3	2	1	0	0	2	0	1	0	false	0
    --- stderr
    note: 2 of 3 rows created, 1 rejected
    error: 1 row was rejected
      rejected rows are in HOME/no.csv
    --- exit 8
    ");
    assert_snapshot!(scene.read("no.csv"), @r#"
    name,categoryId,reason
    "b
    b",2,400 bad_request: injected by petstore-mock
    "#);
    drop(refusing);
    scene
        .expect("pets import DIR/no.csv", [1, 1, 0, 0, 0], 0)
        .await;
    scene.write("pets.csv", "name,categoryId\na,1\nB,2\nc,3\n");
    scene
        .expect("pets import DIR/pets.csv", [3, 3, 0, 0, 0], 0)
        .await;
    let pets = scene.server.pets().all();
    assert_eq!(
        pets.iter().map(|pet| &*pet.name).collect::<Vec<_>>(),
        ["a", "c", "b\nb", "B"]
    );
    assert_eq!(scene.sent(), 5);
}

#[tokio::test(start_paused = true)]
async fn stops_at_a_distant_limit_and_continues_after_it() {
    let scene = Scene::at(Clock::runtime(noon()), Plan::Free).await;
    scene.write("pets.ndjson", &rows(100));
    let import = "pets import DIR/pets.ndjson --max-wait 0";
    let ran = scene.expect(import, [100, 60, 0, 0, 40], 7).await;
    let hint = "pets.ndjson --max-wait 0` continues then; `--max-wait 2m` waits for it\n";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
    let past_reset = Duration::from_secs(62);
    tokio::time::sleep(past_reset).await;
    scene.expect(import, [100, 100, 0, 0, 0], 0).await;
    assert_eq!(scene.sent(), 100);
    tokio::time::sleep(past_reset).await;
    assert_eq!(scene.names().await, all(100));
}

#[tokio::test]
async fn stops_when_the_service_is_down_and_continues_when_it_is_back() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(30));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let down = format!("http://{nobody}/v1");
    let journal = "--journal DIR/j --concurrency 2";
    let line = format!("pets import DIR/pets.ndjson {journal} --retry-for 0 --base-url {down}");
    scene.expect(&line, [30, 0, 0, 0, 30], 6).await;
    // For the journal, this is another service.
    let ran = scene
        .run(&format!("pets import DIR/pets.ndjson {journal}"))
        .await;
    assert!(
        ran.stderr.contains(" was imported to http://"),
        "{}",
        ran.stderr
    );
    assert_eq!((ran.code, scene.sent()), (2, 0));
}

#[tokio::test]
async fn appended_rows_go_on_and_a_changed_row_is_named() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    assert_eq!(scene.run("pets import DIR/pets.ndjson").await.code, 0);
    scene.write("pets.ndjson", &rows(5));
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson -o table").await.transcript(), @"
    --- stdout
    ROWS      THIS RUN  TOTAL
    created          3      5
    rejected         0      0
    unknown          0      0
    left                    0
    --- stderr
    note: 3 rows were appended since the last run
    --- exit 0
    ");
    assert_eq!(scene.sent(), 5);
    let changed = rows(6).replace("\"pet 2\"", "\"Rex\"");
    scene.write("pets.ndjson", &changed);
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson").await.transcript(), @"
    --- stderr
    error: HOME/pets.ndjson line 2 has changed since it was created as pet 2
    hint: undo the change; new pets go at the end of the file
    --- exit 2
    ");
    scene.write("pets.ndjson", &rows(1));
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson").await.transcript(), @"
    --- stderr
    error: row 2 of HOME/pets.ndjson is missing since it was created as pet 2
    hint: undo the change; new pets go at the end of the file
    --- exit 2
    ");
    // If the first line is removed, no row is at its place. A copy under another name would create
    // the pets again.
    let imported = rows(5);
    let (_, others) = imported.split_once('\n').unwrap();
    scene.write("pets.ndjson", others);
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson").await.transcript(), @"
    --- stderr
    error: 4 rows of HOME/pets.ndjson moved since the last import
    hint: undo the change; under another name, pets that exist would be created again
    --- exit 2
    ");
    let (_, last) = imported.trim_end().rsplit_once('\n').unwrap();
    scene.write("pets.ndjson", last);
    let ran = scene.run("pets import DIR/pets.ndjson").await;
    let problem = "error: 1 row of HOME/pets.ndjson moved since the last import\n";
    assert!(ran.stderr.starts_with(problem), "{}", ran.stderr);
    scene.write("pets.ndjson", "{\"name\":\"Rex\",\"categoryId\":9}");
    assert_snapshot!(scene.run("pets import DIR/pets.ndjson").await.transcript(), @"
    --- stderr
    error: HOME/pets.ndjson is not the file of its journal: none of its rows match
    hint: import the new file under another name
    --- exit 2
    ");
    assert_eq!(scene.sent(), 5);
}

#[tokio::test]
async fn an_input_without_a_path_counts_each_run_separately() {
    let scene = Scene::new().await;
    for _ in 0..2 {
        let ran = scene
            .run_with(|petstore| petstore.stdin(&rows(3)), "pets import -o json")
            .await;
        let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(
            (&summary["run"]["created"], ran.code),
            (&3.into(), 0),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("no journal for standard input"),
            "{}",
            ran.stderr
        );
    }
    assert_eq!(scene.sent(), 6);
    let journal = "pets import --journal DIR/j -o json";
    for expected in [3, 0] {
        let ran = scene
            .run_with(|petstore| petstore.stdin(&rows(3)), journal)
            .await;
        let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(summary["run"]["created"], expected, "{}", ran.stderr);
        assert_eq!(summary["total"]["created"], 3);
    }
    assert_eq!(scene.sent(), 9);
}

#[tokio::test]
async fn a_journal_that_is_in_use_or_another_file_stops_the_import() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(2));
    let journal = std::fs::File::create(scene.path("pets.ndjson.petstore-journal")).unwrap();
    journal.lock().unwrap();
    scene.write("letter", "Dear Ada,\nthe second line");
    for (line, problem) in [
        (
            "pets import DIR/pets.ndjson",
            "another process is using the journal HOME/pets.ndjson.petstore-journal\n",
        ),
        (
            "pets import DIR/pets.ndjson --journal DIR/letter",
            "is not a journal of an import",
        ),
    ] {
        let ran = scene.run(line).await;
        assert!(ran.stderr.contains(problem), "{}", ran.stderr);
        assert_eq!((ran.code, scene.sent()), (2, 0));
    }
    assert_eq!(scene.read("letter"), "Dear Ada,\nthe second line");
}

#[tokio::test]
async fn files_that_would_replace_each_other_are_refused() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n");
    for (options, problem) in [
        (
            "--rejects DIR/pets.csv.petstore-journal",
            "the journal and `--rejects`",
        ),
        (
            "--journal DIR/j --unknown-file DIR/./j",
            "the journal and `--unknown-file`",
        ),
        (
            "--rejects DIR/r --unknown-file DIR/./r",
            "`--rejects` and `--unknown-file`",
        ),
    ] {
        for dry_run in ["", "--dry-run"] {
            let ran = scene
                .run(&format!("pets import DIR/pets.csv {options} {dry_run}"))
                .await;
            let error = format!("error: {problem} are the same file\n");
            assert!(ran.stderr.starts_with(&error), "{}", ran.stderr);
            assert_eq!((ran.code, scene.sent()), (2, 0));
        }
    }
    scene
        .expect(
            "pets import DIR/pets.csv --rejects /dev/null --unknown-file /dev/null",
            [1, 1, 0, 0, 0],
            0,
        )
        .await;
}

#[tokio::test]
#[cfg(unix)]
async fn a_journal_that_is_removed_during_the_import_is_reported() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(200));
    let remove = async {
        while scene.sent() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        std::fs::remove_file(scene.path("pets.ndjson.petstore-journal")).unwrap();
    };
    let import = scene.run("pets import DIR/pets.ndjson --concurrency 1");
    let (ran, ()) = tokio::join!(import, remove);
    assert_eq!(
        (ran.summary(), ran.code),
        ([200, 200, 0, 0, 0], 0),
        "{}",
        ran.stderr
    );
    let expected = "warning: the journal was removed during the import; another run sends all rows \
                    again\nnote: 200 of 200 rows created\n";
    assert_eq!(ran.stderr, expected);
}

#[tokio::test]
async fn a_file_of_rows_that_cannot_be_created_stops_the_import() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n");
    let line = "pets import DIR/pets.csv --rejects DIR/pets.csv/no.csv";
    let ran = scene.run(line).await;
    assert!(
        ran.stderr.contains("cannot write HOME/pets.csv/no.csv: "),
        "{}",
        ran.stderr
    );
    assert_eq!((ran.code, scene.sent()), (1, 0));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_summary_appears_if_rejected_rows_cannot_be_written() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\n");
    let line = "pets import DIR/pets.csv --rejects /dev/full";
    let ran = scene.expect(line, [1, 1, 0, 0, 0], 1).await;
    assert!(
        ran.stderr.contains("\nerror: cannot write "),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn a_dry_run_plans_and_refuses_what_the_import_does() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\na,1\nb,2\nc,3\n");
    let faults = || scene.server.faults().on(Operation::CreatePet);
    let (_refused, _lost) = (
        faults().nth(2).status(400),
        faults().nth(3).apply(Effect::EmptyReply),
    );
    let import = "pets import DIR/pets.csv --concurrency 1";
    scene.expect(import, [3, 1, 1, 1, 0], 8).await;
    scene.write("pets.csv", "name,categoryId\na,1\nB,2\nc,3\nd,4\n");
    let retry = format!("{import} --unknown retry");
    scene
        .expect(&format!("{retry} --dry-run"), [4, 1, 0, 0, 3], 0)
        .await;
    scene.write("no.csv", "another import");
    for option in ["--rejects DIR/no.csv", "--base-url http://127.0.0.1:9/v1"] {
        let line = format!("{import} {option}");
        let (real, dry) = (
            scene.run(&line).await,
            scene.run(&format!("{line} --dry-run")).await,
        );
        assert_eq!((&dry.stderr, dry.code), (&real.stderr, 2));
    }
    scene.expect(&retry, [4, 4, 0, 0, 0], 0).await;
    assert_eq!(scene.sent(), 6);
}

#[tokio::test]
async fn a_dry_run_needs_neither_a_key_nor_a_network() {
    let scene = Scene::new().await;
    scene.write("pets.ndjson", &rows(7));
    let line = format!("pets import {} --dry-run", scene.path("pets.ndjson"));
    let ran = Petstore::bare().run(&line).await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([7, 0, 0, 0, 7], 0),
        "{}",
        ran.stderr
    );
    assert!(!std::path::Path::new(&scene.path("pets.ndjson.petstore-journal")).exists());
}

#[tokio::test]
async fn a_refused_key_or_an_input_without_rows_ends_it_at_once() {
    let scene = Scene::new().await;
    let ran = scene.expect("pets import", [0, 0, 0, 0, 0], 0).await;
    assert!(
        ran.stderr.contains("note: standard input has no rows\n"),
        "{}",
        ran.stderr
    );
    scene.write("pets.ndjson", &rows(30));
    let line = format!("pets import {} --concurrency 1", scene.path("pets.ndjson"));
    let ran = Petstore::at(&scene.server, "wrong-key").run(&line).await;
    assert_eq!(
        (ran.summary(), ran.code),
        ([30, 0, 0, 0, 30], 3),
        "{}",
        ran.stderr
    );
    assert_eq!(scene.sent(), 1);
}

#[tokio::test]
async fn an_export_that_may_not_be_complete_does_not_end_with_0() {
    let server = MockServer::builder()
        .paging(false)
        .seed(Seed::default())
        .start()
        .await
        .unwrap();
    let whole = Petstore::at(&server, "pro-key").run("pets export").await;
    assert_eq!((whole.stdout.lines().count(), whole.code), (25, 0));
    let many = (0..100).fold(Seed::new(), |seed, row| seed.pet(SeedPet::new("x", row)));
    let server = MockServer::builder()
        .paging(false)
        .seed(many)
        .start()
        .await
        .unwrap();
    let cut = Petstore::at(&server, "pro-key").run("pets export").await;
    assert_eq!(
        (cut.stdout.lines().count(), cut.code),
        (100, 8),
        "{}",
        cut.stderr
    );
}

#[tokio::test]
#[cfg(unix)]
async fn a_link_to_a_file_shares_its_journal() {
    let scene = Scene::new().await;
    scene.write("pets.csv", "name,categoryId\nRex,7\n");
    std::os::unix::fs::symlink(scene.path("pets.csv"), scene.path("link.csv")).unwrap();
    assert_eq!(scene.run("pets import DIR/pets.csv").await.code, 0);
    assert_eq!(scene.run("pets import DIR/link.csv").await.code, 0);
    assert_eq!(scene.server.pets().len(), 1);
}
