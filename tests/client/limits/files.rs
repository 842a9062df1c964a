//! Tests of the file through which processes share limits: damaged, deleted, locked, or of no use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use petstore_client::ErrorKind;
use petstore_client::http::StatusCode;
use petstore_client::limits::{FileStore, Limits};
use petstore_client::test_util::{self, FakeService};
use petstore_mock::MockServer;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::shared::{free, hasty, problem, process};
use crate::client::kit::{KEY, list_meta, list_with, millis, no_pets, once, secs};
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
        let client = process(server.url(), folder.path(), number)
            .build()
            .unwrap();
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
    let [empty, short, cut] = [0, 15, whole.len() - 1].map(|length| whole[..length].to_vec());
    let damaged = [empty, short, cut, flipped, huge, old];
    for (number, damaged) in damaged.into_iter().enumerate() {
        fs::write(&path, damaged).unwrap();
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
    let client = process(server.url(), &folder, 0).build().unwrap();
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
    let fake = FakeService::new(|_| test_util::json(StatusCode::OK, &[0; 0]));
    let mut clients = Vec::new();
    for number in 0..200 {
        let client = test_util::builder()
            .api_key(format!("key-{number}"))
            .transport(fake.clone())
            .limits(Limits::new().store(store.clone()));
        let client = client.build().unwrap();
        client.pets().list().await.unwrap();
        clients.push(client);
    }
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = open.flat_map(|entry| fs::read_link(entry.path()));
    let open = open.filter(|file| file.starts_with(folder.path())).count();
    assert!((1..=65).contains(&open), "{open} are open");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 200);
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn calls_go_on_without_a_folder_and_on_a_full_disk() {
    type Obstacle = fn(&Path);
    let obstacles: [(&str, Obstacle); 2] = [
        ("a file in the place of the folder", |file| {
            let folder = file.parent().unwrap();
            fs::remove_dir(folder).unwrap();
            fs::write(folder, "").unwrap();
        }),
        ("a full disk", |file| {
            std::os::unix::fs::symlink("/dev/full", file).unwrap();
        }),
    ];
    for (name, create) in obstacles {
        let (server, home) = (free().await, TempDir::new().unwrap());
        let folder = home.path().join("limits");
        let first = process(server.url(), &folder, 0).build().unwrap();
        first.pets().list().await.unwrap();
        first.limits().exchange().await;
        let file = only_file(&folder);
        fs::remove_file(&file).unwrap();
        create(&file);
        let client = process(server.url(), &folder, 1).build().unwrap();
        let start = Instant::now();
        for page in join_all((0..60).map(|_| client.pets().list().with_meta())).await {
            assert_eq!(page.unwrap().meta.attempts(), 1, "{name}");
        }
        assert!(problem(&client).is_some(), "{name}");
        let error = client.limits().forget().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store, "{name}: {error}");
        assert!(error.is_transient() && !error.may_have_been_processed());
        // Other processes may use the key, so the last requests of a minute are left to them.
        let took = start.elapsed();
        let expected = MINUTE..MINUTE + secs(10);
        assert!(expected.contains(&took), "{name}: {took:?}");
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
    let first = process(server.url(), folder.path(), 0).build().unwrap();
    let calls = (0..60).map(|_| first.pets().list().send());
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    first.limits().exchange().await;
    let locked = locked(&folder);
    tokio::spawn(async move {
        sleep(millis(500)).await;
        drop(locked);
    });
    let newcomer = process(server.url(), folder.path(), 1).build().unwrap();
    let error = list_with(&newcomer, &hasty()).await.unwrap_err();
    assert_eq!(
        error.attempts(),
        0,
        "it reads that nothing is left: {error}"
    );
    assert_eq!(problem(&newcomer), None);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_never_gives_the_lock_back_is_not_waited_for() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let client = process(server.url(), folder.path(), 0).build().unwrap();
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

/// Three processes that use a quota of 300 a minute for four minutes, while something happens to
/// their file. It may cost a refusal.
async fn work_while(name: &str, what: impl AsyncFnOnce(&MockServer, &Path)) {
    const WINDOWS: u32 = 4;

    let server = service::start_with(KEY.to_owned(), 300, millis(50)).await;
    let home = TempDir::new().unwrap();
    let folder = home.path().join("limits");
    let processes = [0, 1, 2].map(|n| process(server.url(), &folder, n).build().unwrap());
    let length = WINDOWS * MINUTE - secs(1);
    let work = join_all(processes.iter().map(|client| keep_busy(client, 8, length)));
    tokio::join!(work, what(&server, &folder));
    let (sent, refused) = (server.requests(..).len(), refused(&server));
    assert!(refused <= 1, "{name}: {refused} of {sent} were refused");
    assert!(sent * 100 >= 300 * 4 * 95, "{name}: only {sent} were sent");
    for client in &processes {
        assert_eq!(problem(client), None, "{name}");
    }
    server.report().assert_compliant();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_file_costs_at_most_one_refusal() {
    for seconds in [2, 65] {
        let delete = async |server: &MockServer, folder: &Path| {
            sleep(secs(seconds)).await;
            fs::remove_dir_all(folder).unwrap();
            // A new process makes the file again before the others do.
            let newcomer = process(server.url(), folder, 3).build().unwrap();
            newcomer.pets().list().await.unwrap();
        };
        work_while(&format!("deleted after {seconds} s"), delete).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_moved_away_and_back_costs_at_most_one_refusal() {
    work_while("away for 38 s", async |_, folder| {
        sleep(secs(2)).await;
        let (file, aside) = (only_file(folder), folder.with_extension("aside"));
        fs::rename(&file, &aside).unwrap();
        sleep(secs(38)).await;
        fs::rename(&aside, &file).unwrap();
    })
    .await;
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
    let client = process(&base, folder.as_ref(), 0).build().unwrap();
    let long = once().attempt_timeout(secs(600));
    let _lost = list_with(&client, &long).await;
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_probes_holds_up_nobody() {
    const PROCESS: &str = "client::limits::files::a_process_with_a_request_in_flight";

    let server = Wire::of(vec![Act::Stall(vec![]), no_pets()]);
    let folder = TempDir::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", PROCESS, "--ignored"])
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
    let client = process(&server.base(), folder.path(), 0).build().unwrap();
    // Another probe goes a second after the first one.
    let meta = list_meta(&client).await;
    assert_eq!((meta.attempts(), server.count()), (1, 2));
    assert!(meta.waited() < secs(60), "{:?}", meta.waited());
}
