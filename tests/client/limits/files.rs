//! Tests of the file through which processes share limits: damaged, deleted, locked, or of no use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use petstore_client::Client;
use petstore_client::http::StatusCode;
use petstore_client::limits::{FileStore, Limits};
use petstore_client::test_util::{self, FakeService};
use petstore_mock::MockServer;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, sleep_until};

use super::shared::{another_name, free, hasty, problem, process};
use crate::client::kit::{KEY, list_with, millis, no_pets, once, secs};
use crate::client::service::{self, MINUTE, keep_busy, refused};
use crate::client::wire::{Act, Wire};

/// Returns the only file in a folder.
fn only_file(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[tokio::test(start_paused = true)]
async fn a_damaged_file_is_replaced() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let list = async |number| {
        let client = process(server.url(), &folder, number).build().unwrap();
        list_with(&client, &hasty()).await.unwrap();
        let limits = client.limits().exchange().await;
        assert_eq!(limits.shared.unwrap().problem, None, "{number}");
    };
    list(0).await;
    let path = only_file(folder.path());
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[20] ^= 1;
    let huge = vec![b'x'; 2 << 20];
    let old = b"{\"version\":3,\"ledger\":{}}\n".to_vec();
    let lengths = [0, 15, 16, whole.len() - 1];
    let truncated = lengths.map(|length| whole[..length].to_vec());
    for (number, garbage) in truncated
        .into_iter()
        .chain([flipped, huge, old])
        .enumerate()
    {
        fs::write(&path, garbage).unwrap();
        list(number + 1).await;
        assert_eq!(fs::read(&path).unwrap()[..4], whole[..4], "{number}");
    }
    assert_eq!(refused(&server), 0);
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_holds_no_key_and_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let (server, home) = (free().await, TempDir::new().unwrap());
    let folder = home.path().join("new");
    let client = Client::builder(server.url()).api_key(KEY);
    let client = client
        .limits(Limits::new().store(FileStore::new(&folder)))
        .build()
        .unwrap();
    client.pets().list().await.unwrap();
    client.limits().exchange().await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let path = only_file(&folder);
    assert_eq!(mode(&path), 0o600);
    let contents = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    assert!(!contents.contains(KEY));
    assert!(!path.to_str().unwrap().contains(KEY));
    // Other files in the folder are left alone.
    let other = folder.join("another.limits");
    fs::write(&other, "not ours").unwrap();
    client.limits().forget().await.unwrap();
    assert_eq!(fs::read(&other).unwrap(), b"not ours");
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn few_files_stay_open_however_many_keys_there_are() {
    let folder = TempDir::new().unwrap();
    let store = FileStore::new(folder.path());
    let mut clients = Vec::new();
    for number in 0..200 {
        let client = test_util::builder().api_key(format!("key-{number}").as_str());
        let client = client.transport(FakeService::new(|_| {
            test_util::json(StatusCode::OK, &[0; 0])
        }));
        let client = client
            .limits(Limits::new().store(store.clone()))
            .build()
            .unwrap();
        client.pets().list().await.unwrap();
        clients.push(client);
    }
    let open = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(Result::ok);
    let is_ours = |file: &PathBuf| file.starts_with(folder.path());
    let open = open
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(is_ours)
        .count();
    assert!((1..=65).contains(&open), "{open} are open");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 200);
}

/// Puts an obstacle in the place of a key's file.
#[cfg(target_os = "linux")]
type Obstacle = fn(&Path);

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn calls_go_on_without_a_folder_and_on_a_full_disk() {
    let obstacles: [(&str, Obstacle); 3] = [
        ("a file in the place of the folder", |file| {
            let folder = file.parent().unwrap();
            fs::remove_dir(folder).unwrap();
            fs::write(folder, "").unwrap();
        }),
        ("a full disk", |file| {
            std::os::unix::fs::symlink("/dev/full", file).unwrap();
        }),
        ("a pipe", |file| {
            let is_made = Command::new("mkfifo").arg(file).status().unwrap();
            assert!(is_made.success());
        }),
    ];
    for (name, create) in obstacles {
        let (server, home) = (free().await, TempDir::new().unwrap());
        let folder = home.path().join("limits");
        let client = |number| {
            let store = FileStore::new(another_name(&folder, number));
            let client = process(server.url(), &home, number).limits(Limits::new().store(store));
            client.build().unwrap()
        };
        let first = client(0);
        first.pets().list().await.unwrap();
        first.limits().exchange().await;
        let file = only_file(&folder);
        fs::remove_file(&file).unwrap();
        create(&file);
        let client = client(1);
        let start = Instant::now();
        let calls = join_all((0..60).map(|_| client.pets().list().with_meta())).await;
        let attempts = calls
            .iter()
            .map(|page| page.as_ref().unwrap().meta.attempts());
        assert!(attempts.into_iter().all(|attempts| attempts == 1));
        assert!(problem(&client).is_some(), "{name}");
        // Other processes may use the key, so the last requests of a minute are left to them.
        let took = start.elapsed();
        assert!(
            (MINUTE..MINUTE + secs(10)).contains(&took),
            "{name}: {took:?}"
        );
    }
}

/// Locks the file of the only key.
fn locked(folder: &TempDir) -> fs::File {
    let locked = fs::File::open(only_file(folder.path())).unwrap();
    locked.lock().unwrap();
    locked
}

#[tokio::test(start_paused = true)]
async fn a_process_that_holds_the_lock_is_waited_for() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let first = process(server.url(), &folder, 0).build().unwrap();
    let calls = (0..60).map(|_| first.pets().list().send());
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    first.limits().exchange().await;
    let locked = locked(&folder);
    tokio::spawn(async move {
        sleep(millis(500)).await;
        drop(locked);
    });
    let newcomer = process(server.url(), &folder, 1).build().unwrap();
    let list = newcomer.pets().list().options(&hasty());
    let error = list.send().await.unwrap_err();
    let expected = "it reads that the quota is used up";
    assert_eq!(error.attempts(), 0, "{expected}: {error}");
    assert_eq!(problem(&newcomer), None);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_never_gives_the_lock_back_is_not_waited_for() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let client = process(server.url(), &folder, 0).build().unwrap();
    client.pets().list().await.unwrap();
    client.limits().exchange().await;
    let locked = locked(&folder);
    let start = Instant::now();
    for _ in 0..10 {
        client.pets().list().await.unwrap();
    }
    assert!(start.elapsed() < secs(2), "{:?}", start.elapsed());
    let why = problem(&client).unwrap();
    assert!(why.contains("holds the lock"), "{why}");
    drop(locked);
    sleep(secs(3)).await;
    client.pets().list().await.unwrap();
    sleep(secs(1)).await;
    assert_eq!(problem(&client), None);
}

/// Three processes that use a quota of 300 a minute for four minutes, while something happens to their file.
struct Fleet {
    home: TempDir,
    server: MockServer,
    start: Instant,
    clients: Vec<Client>,
}

const WINDOWS: u32 = 4;

impl Fleet {
    async fn start() -> Self {
        let server = service::start_with(KEY.to_owned(), 300, millis(50)).await;
        let home = TempDir::new().unwrap();
        let clients = (0..3).map(|number| {
            let folder = another_name(home.path(), number).join("limits");
            process(server.url(), &home, number)
                .limits(Limits::new().store(FileStore::new(folder)))
                .build()
                .unwrap()
        });
        Self {
            clients: clients.collect(),
            home,
            server,
            start: Instant::now(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("limits")
    }

    /// Lets the processes work while something happens. It may cost a refusal.
    async fn work_while(&self, name: &str, what: impl Future<Output = ()>) {
        let length = WINDOWS * MINUTE - secs(1);
        let work = self
            .clients
            .iter()
            .map(|client| keep_busy(client, 8, length));
        tokio::join!(join_all(work), what);
        let sent = self.server.requests(..).len();
        let refused = refused(&self.server);
        assert!(refused <= 1, "{name}: {refused} of {sent} were refused");
        let all = usize::try_from(300 * WINDOWS).unwrap();
        assert!(sent * 100 >= all * 95, "{name}: {sent} of {all}");
        for client in &self.clients {
            assert_eq!(problem(client), None);
        }
        self.server.report().assert_compliant();
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_file_costs_at_most_one_refusal() {
    for seconds in [2, 65] {
        let fleet = Fleet::start().await;
        let delete = async {
            sleep_until(fleet.start + secs(seconds)).await;
            fs::remove_dir_all(fleet.folder()).unwrap();
            // A new process makes the file again before the others do.
            let newcomer = process(fleet.server.url(), &fleet.home, 3);
            let folder = another_name(fleet.home.path(), 3).join("limits");
            let newcomer = newcomer.limits(Limits::new().store(FileStore::new(folder)));
            newcomer.build().unwrap().pets().list().await.unwrap();
        };
        let name = format!("deleted after {seconds} s");
        fleet.work_while(&name, delete).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_moved_away_and_back_costs_at_most_one_refusal() {
    for (away, back) in [(2, 40), (61, 62)] {
        let fleet = Fleet::start().await;
        let aside = fleet.home.path().join("aside");
        let move_it = async {
            sleep_until(fleet.start + secs(away)).await;
            let file = only_file(&fleet.folder());
            fs::rename(&file, &aside).unwrap();
            sleep_until(fleet.start + secs(back)).await;
            fs::rename(&aside, &file).unwrap();
        };
        let name = format!("away after {away} s, back after {back} s");
        fleet.work_while(&name, move_it).await;
    }
}

#[tokio::test]
#[ignore = "what the next test kills, as a process of its own"]
#[expect(
    clippy::disallowed_methods,
    reason = "the test passes its input in a variable"
)]
async fn a_process_with_a_request_in_flight() {
    let [Ok(base), Ok(folder)] = ["SHARED_BASE", "SHARED_FOLDER"].map(std::env::var) else {
        return;
    };
    let client = Client::builder(base)
        .api_key(KEY)
        .limits(Limits::new().store(FileStore::new(folder)))
        .build()
        .unwrap();
    let _lost = client
        .pets()
        .list()
        .options(&once().attempt_timeout(secs(600)))
        .await;
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_probes_holds_up_nobody() {
    let (server, folder) = (
        Wire::of(vec![Act::Stall(vec![]), no_pets()]),
        TempDir::new().unwrap(),
    );
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "client::limits::files::a_process_with_a_request_in_flight",
            "--ignored",
        ])
        .env("SHARED_BASE", server.base())
        .env("SHARED_FOLDER", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while server.count() == 0 {
        assert_eq!(child.try_wait().unwrap(), None);
        sleep(millis(10)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let client = process(&server.base(), &folder, 0).build().unwrap();
    // Another probe goes a second after the first one.
    let page = client.pets().list().with_meta().await.unwrap();
    assert_eq!((page.meta.attempts(), server.count()), (1, 2));
    let waited = page.meta.waited();
    assert!(waited < secs(60), "{waited:?}");
}
