//! Tests of limits that processes share through files. Clients that use different names of the
//! folder simulate processes, because clients of one process share a limiter anyway.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::rate_limit::{
    Change, FileStore, LimitStore, MemberId, RecordKey, StoreError, StoreTime,
};
use petstore_client::test_util::{self, FakeService};
use petstore_client::{Client, ClientBuilder, RequestOptions, StatusCode};
use petstore_mock::{MockServer, Plan, RateHeaders};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::client::kit::{KEY, START, answer, at, millis, mock, no_pets, secs};
use crate::client::logs::Logs;
use crate::client::wire::{Act, Wire};

async fn free() -> MockServer {
    mock(KEY, Plan::Free).start().await.unwrap()
}

/// A service whose quota a process has used up, and the folder with the record of that.
async fn used_up() -> (MockServer, TempDir) {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let client = process(server.url(), &folder, 0).build().unwrap();
    let calls = (0..60).map(|_| client.pets().list().send());
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    // By then, the process has written everything to the record.
    tokio::time::sleep(secs(3)).await;
    (server, folder)
}

/// Returns another name of a folder for each number.
fn another_name(folder: &Path, number: usize) -> PathBuf {
    let back = Path::new("..").join(folder.file_name().unwrap());
    (0..number).fold(folder.to_owned(), |path, _| path.join(&back))
}

/// A client that simulates another process.
pub(super) fn process(base: &str, folder: &TempDir, number: usize) -> ClientBuilder {
    let patient = RequestOptions::new().max_wait(secs(600)).timeout(secs(900));
    let folder = another_name(folder.path(), number);
    Client::builder(base)
        .api_key(KEY)
        .options(&patient)
        .shared_limits(FileStore::new(folder))
}

/// Returns the files with records.
fn records(folder: &TempDir) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|it| it == "limits"))
        .collect()
}

fn file(folder: &TempDir) -> PathBuf {
    records(folder).remove(0)
}

fn hasty() -> RequestOptions {
    RequestOptions::new().max_wait(Duration::ZERO)
}

#[tokio::test(start_paused = true)]
async fn two_keys_in_one_folder_and_one_key_in_two_folders_never_meet() {
    let small = Plan::enterprise(1, 1_000);
    let builder = MockServer::builder().key("one", small).key("two", small);
    let server = builder.start().await.unwrap();
    let (ours, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let call = async |key: &str, folder: &TempDir, number| {
        let folder = another_name(folder.path(), number);
        let builder = Client::builder(server.url()).api_key(key);
        let client = builder
            .shared_limits(FileStore::new(folder))
            .build()
            .unwrap();
        let sent = client.pets().list().options(&hasty()).send().await;
        sent.map_or_else(|error| error.attempts(), |page| page.meta().attempts())
    };
    assert_eq!(call("one", &ours, 0).await, 1);
    assert_eq!(
        call("one", &ours, 1).await,
        0,
        "the quota is known to be used up"
    );
    assert_eq!(call("two", &ours, 1).await, 1);
    // The other user's process learns from a refusal. It does not share that with our processes.
    assert_eq!(call("one", &theirs, 0).await, 1);
    assert_eq!((records(&ours).len(), records(&theirs).len()), (2, 1));
    let same = ours.path().join(file(&theirs).file_name().unwrap());
    assert!(!same.exists(), "names do not show which key it is");
}

#[tokio::test(start_paused = true)]
async fn a_part_kept_for_another_process_is_waited_for() {
    for max_wait in [0, 5] {
        let (server, folder) = (free().await, TempDir::new().unwrap());
        let clients = [0, 1].map(|n| process(server.url(), &folder, n).build().unwrap());
        for client in &clients {
            client.pets().list().await.unwrap();
        }
        // After this time, nothing is kept for processes that may be about to start.
        tokio::time::sleep(secs(3)).await;
        let start = Instant::now();
        let options = RequestOptions::new().max_wait(secs(max_wait));
        let calls = (0..64).map(|_| clients[0].pets().list().options(&options).send());
        let results = join_all(calls).await;
        let (done, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        // Half of the quota is reserved for the other process until near the end of the minute.
        assert!(
            (25..45).contains(&done.len()),
            "{max_wait}: {} done",
            done.len()
        );
        for error in failed.into_iter().filter_map(Result::err) {
            assert!(error.is_rate_limited() && error.attempts() == 0, "{error}");
            assert_eq!(error.retry_at(), Some(at(START + 60)));
        }
        let waited = start.elapsed().as_secs_f64() - max_wait as f64;
        assert!((0.0..1.0).contains(&waited), "{max_wait}: {waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_without_limits_does_not_lift_those_of_another() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let limited = process(server.url(), &folder, 0).build().unwrap();
    let unlimited = process(server.url(), &folder, 0).rate_limiting(false);
    let unlimited = unlimited.build().unwrap();
    let calls = join_all((0..100).map(|_| limited.pets().list().send()));
    let beside = async {
        for _ in 0..10 {
            unlimited.pets().list().await.unwrap();
            tokio::time::sleep(millis(10)).await;
        }
    };
    let (results, ()) = tokio::join!(calls, beside);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(limited.rate_limits().throttled, 0);
}

#[tokio::test(start_paused = true)]
async fn a_clients_share_holds_beside_one_with_the_whole_quota() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let small = process(server.url(), &folder, 0).quota_share(0.1);
    let (small, whole) = (small.build().unwrap(), process(server.url(), &folder, 0));
    let whole = whole.build().unwrap();
    let start = Instant::now();
    let calls = join_all((0..20).map(|_| small.pets().list().send()));
    let beside = async {
        for _ in 0..10 {
            whole.pets().list().await.unwrap();
            tokio::time::sleep(millis(10)).await;
        }
    };
    let (results, ()) = tokio::join!(calls, beside);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    // In each minute, it may send 6 of 60 requests.
    assert!(start.elapsed() > secs(120), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_one_process_received_holds_back_the_others() {
    let server = Wire::of(vec![answer(429, &[("Retry-After", "30")], ""), no_pets()]);
    let folder = TempDir::new().unwrap();
    let start = Instant::now();
    let first = process(&server.base(), &folder, 0).build().unwrap();
    first.pets().list().max_attempts(1).await.unwrap_err();
    let second = process(&server.base(), &folder, 1).build().unwrap();
    assert!(
        second.rate_limits().blocked.is_some(),
        "the client reads the record before its first call"
    );
    second.pets().list().await.unwrap();
    assert!(start.elapsed() >= millis(29_990), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_damaged_file_is_replaced() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let list = async |number| {
        let logs = Logs::capture();
        let client = process(server.url(), &folder, number).build().unwrap();
        client.pets().list().options(&hasty()).await.unwrap();
        logs.text().contains("is damaged")
    };
    assert!(!list(0).await);
    let path = file(&folder);
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[20] ^= 1;
    let huge = vec![b'x'; 1 << 20];
    let old = b"{\"version\":3,\"ledger\":{}}\n".to_vec();
    let lengths = [0, 1, 4, 9, 10, 11, 50, whole.len() - 1].map(|length| whole[..length].to_vec());
    for (number, garbage) in lengths.into_iter().chain([flipped, huge, old]).enumerate() {
        // A shorter file counts as new.
        let is_damaged = garbage.len() >= whole.len();
        fs::write(&path, garbage).unwrap();
        assert_eq!(list(number + 1).await, is_damaged, "{number}");
        assert_eq!(fs::read(&path).unwrap()[..4], whole[..4], "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_slow_with_the_file_is_waited_for() {
    let (server, folder) = used_up().await;
    for (number, path) in [file(&folder), folder.path().join("secret")]
        .into_iter()
        .enumerate()
    {
        let locked = fs::File::open(&path).unwrap();
        locked.lock().unwrap();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop(locked);
        });
        let newcomer = process(server.url(), &folder, number + 1).build().unwrap();
        let error = newcomer
            .pets()
            .list()
            .options(&hasty())
            .send()
            .await
            .unwrap_err();
        assert_eq!(
            error.attempts(),
            0,
            "it reads that the quota is used up: {error}"
        );
        assert_eq!(
            newcomer.rate_limits().shared.unwrap().problem,
            None,
            "{path:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_without_the_lock_goes_by_the_files_content() {
    let (server, folder) = used_up().await;
    let locked = fs::File::open(file(&folder)).unwrap();
    locked.lock().unwrap();
    let newcomer = process(server.url(), &folder, 1).build().unwrap();
    let error = newcomer
        .pets()
        .list()
        .options(&hasty())
        .send()
        .await
        .unwrap_err();
    assert_eq!(
        error.attempts(),
        0,
        "it reads that the quota is used up: {error}"
    );
    let problem = newcomer.rate_limits().shared.unwrap().problem.unwrap();
    assert!(problem.contains("holds the lock"), "{problem}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_record_is_written_again_by_a_process_that_knows_it() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let clients = [0, 1].map(|n| process(server.url(), &folder, n).build().unwrap());
    let calls = (0..60).map(|n| clients[n % 2].pets().list().send());
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    // By then, the members have reported everything.
    tokio::time::sleep(Duration::from_secs(3)).await;
    fs::remove_file(file(&folder)).unwrap();
    let waits = tokio::spawn(clients[0].pets().list().send());
    tokio::time::sleep(Duration::from_secs(3)).await;
    let third = process(server.url(), &folder, 2).build().unwrap();
    let error = third
        .pets()
        .list()
        .options(&hasty())
        .send()
        .await
        .unwrap_err();
    assert!(error.is_rate_limited() && error.attempts() == 0, "{error}");
    assert_eq!(waits.await.unwrap().unwrap().meta().attempts(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn the_file_holds_no_key_and_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let (server, folder) = (free().await, TempDir::new().unwrap());
    let secret = folder.path().join("secret");
    fs::write(&secret, "cut off").unwrap();
    let client = process(server.url(), &folder, 0).build().unwrap();
    client.pets().list().await.unwrap();
    assert_eq!(fs::metadata(secret).unwrap().len(), 64);
    let path = file(&folder);
    let contents = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    assert!(!contents.contains(KEY));
    assert!(!path.to_str().unwrap().contains(KEY));
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn few_files_stay_open_however_many_keys_there_are() {
    let folder = TempDir::new().unwrap();
    let store = Arc::new(FileStore::new(folder.path()));
    for number in 0..200 {
        let client = test_util::builder().api_key(format!("key-{number}").as_str());
        let client = client.transport(FakeService::new(|_| {
            test_util::json(StatusCode::OK, &[0; 0])
        }));
        let client = client.shared_limits(Arc::clone(&store)).build().unwrap();
        client.pets().list().await.unwrap();
    }
    let open = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(Result::ok);
    let is_ours = |file: &PathBuf| file.starts_with(folder.path());
    let open = open
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(is_ours)
        .count();
    // These are the file of the folder's secret, and two files for each of 64 keys.
    assert!(
        (1..=129).contains(&open),
        "{open} of {} are open",
        records(&folder).len()
    );
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn calls_go_on_without_a_folder_and_on_a_full_disk() {
    for is_full in [false, true] {
        let (server, folder) = (free().await, TempDir::new().unwrap());
        let mut client = process(server.url(), &folder, 1);
        if is_full {
            process(server.url(), &folder, 0)
                .build()
                .unwrap()
                .pets()
                .list()
                .await
                .unwrap();
            let path = file(&folder);
            fs::remove_file(&path).unwrap();
            std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        } else {
            fs::write(folder.path().join("file"), "").unwrap();
            client = client.shared_limits(FileStore::new(folder.path().join("file")));
        }
        let (client, start) = (client.build().unwrap(), Instant::now());
        let calls = join_all((0..60).map(|_| client.pets().list().send())).await;
        assert!(
            calls
                .iter()
                .all(|page| page.as_ref().unwrap().meta().attempts() == 1)
        );
        // Other processes may use the key, so the last requests are left to them: until shortly before
        // the end of the minute, or beside a process that the record shows, until the next one.
        let took = start.elapsed().as_secs();
        let least = if is_full { 59 } else { 54 };
        assert!((least..70).contains(&took), "{took} s, full: {is_full}");
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
        .shared_limits(FileStore::new(folder))
        .build()
        .unwrap();
    let _lost = client
        .pets()
        .list()
        .attempt_timeout(secs(1))
        .max_attempts(1)
        .await;
}

#[tokio::test]
async fn a_process_that_is_really_killed_holds_nobody_up_for_long() {
    let (server, folder) = (
        Wire::of(vec![Act::Stall(vec![]), no_pets()]),
        TempDir::new().unwrap(),
    );
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "client::limits::shared::a_process_with_a_request_in_flight",
            "--ignored",
        ])
        .env("SHARED_BASE", server.base())
        .env("SHARED_FOLDER", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while server.count() == 0 {
        assert_eq!(child.try_wait().unwrap(), None);
        tokio::task::yield_now().await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let client = process(&server.base(), &folder, 0).build().unwrap();
    // Its lease is over three seconds after it was sent.
    let page = client.pets().list().await.unwrap();
    assert_eq!((page.meta().attempts(), server.count()), (1, 2));
    assert!(
        page.meta().waited() < secs(60),
        "{:?}",
        page.meta().waited()
    );
}

#[tokio::test(start_paused = true)]
async fn requests_that_few_may_be_in_flight_follow_each_other_quickly() {
    let server = mock(KEY, Plan::enterprise(1_000_000, 1_000_000)).rate_headers(RateHeaders::Day);
    let (server, folder) = (server.start().await.unwrap(), TempDir::new().unwrap());
    let client = process(server.url(), &folder, 0).build().unwrap();
    let start = Instant::now();
    let tasks = (0..64).map(|_| async {
        for _ in 0..20 {
            client.pets().list().await.unwrap();
        }
    });
    join_all(tasks).await;
    // Five calls go at a time, because the minute's quota may be small. That makes 256 rounds.
    assert!(start.elapsed() < secs(20), "{:?}", start.elapsed());
    // No timers pile up.
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    assert!(tasks < 80, "{tasks} tasks");
}

#[tokio::test(start_paused = true)]
async fn a_program_can_tell_others_at_once_and_hear_of_them() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let clients = [0, 1].map(|n| process(server.url(), &folder, n).build().unwrap());
    let start = Instant::now();
    for left in [59, 58] {
        clients[0].pets().list().await.unwrap();
        clients[0].synchronize_rate_limits().await;
        let limits = clients[1].synchronize_rate_limits().await;
        assert_eq!(
            limits.windows.iter().map(|window| window.remaining).min(),
            Some(left)
        );
    }
    assert!(start.elapsed() < millis(5), "{:?}", start.elapsed());
}

/// A store whose updates take longer than a call may wait.
struct SlowStore(AtomicU32);

impl LimitStore for SlowStore {
    async fn update(&self, _: &RecordKey, mut change: Change<'_>) -> Result<(), StoreError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(secs(5)).await;
        change.apply(None, StoreTime::new(0, Duration::ZERO));
        Ok(())
    }

    async fn forget(&self, _: Option<&RecordKey>) -> Result<(), StoreError> {
        Ok(())
    }

    fn location(&self) -> Cow<'_, str> {
        "a slow store".into()
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_costs_a_second_and_a_pause_once_and_is_reported() {
    let (server, store) = (free().await, Arc::new(SlowStore(AtomicU32::new(0))));
    let builder = Client::builder(server.url())
        .api_key(KEY)
        .shared_limits(Arc::clone(&store));
    let client = builder.build().unwrap();
    // After its first request, a process that cannot see others counts them for three seconds.
    for (call, most) in [(1, 1_000), (2, 3_500), (3, 10)] {
        let start = Instant::now();
        client.pets().list().await.unwrap();
        assert!(
            start.elapsed() <= millis(most),
            "{call}: {:?}",
            start.elapsed()
        );
    }
    let shared = client.rate_limits().shared.unwrap();
    assert_eq!(shared.problem.as_deref(), Some("it does not answer"));
    tokio::time::sleep(secs(3)).await;
    client.pets().list().await.unwrap();
    assert!(store.0.load(Ordering::Relaxed) > 1, "it is tried again");
}

/// A store whose clock is ahead, and which counts the updates in progress.
#[derive(Clone)]
struct Counting {
    record: Arc<Mutex<Option<Vec<u8>>>>,
    now: Arc<AtomicU32>,
    most: Arc<AtomicU32>,
    start: Instant,
    member: usize,
}

impl LimitStore for Counting {
    async fn update(&self, _: &RecordKey, mut change: Change<'_>) -> Result<(), StoreError> {
        self.most.fetch_max(
            1 + self.now.fetch_add(1, Ordering::Relaxed),
            Ordering::Relaxed,
        );
        tokio::time::sleep(millis(20)).await;
        self.now.fetch_sub(1, Ordering::Relaxed);
        let mut record = self.record.lock().unwrap();
        let at = StoreTime::new(0, secs(3_600) + self.start.elapsed());
        *record = Some(change.apply(record.as_deref(), at));
        Ok(())
    }

    async fn forget(&self, _: Option<&RecordKey>) -> Result<(), StoreError> {
        Ok(())
    }

    fn location(&self) -> Cow<'_, str> {
        format!("member {} of {:p}", self.member, self.record).into()
    }
}

#[tokio::test(start_paused = true)]
async fn members_that_started_at_other_times_wait_for_the_same_reset() {
    let server = free().await;
    let (record, start) = (Arc::default(), Instant::now());
    let store = Counting {
        record,
        now: Arc::default(),
        most: Arc::default(),
        start,
        member: 0,
    };
    let client = |member| {
        let store = Counting {
            member,
            ..store.clone()
        };
        let patient = RequestOptions::new().max_wait(secs(600)).timeout(secs(900));
        let builder = Client::builder(server.url()).api_key(KEY).options(&patient);
        builder.shared_limits(store).build().unwrap()
    };
    let first = client(1);
    let calls = (0..60).map(|_| first.pets().list().send());
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(
        store.most.load(Ordering::Relaxed),
        1,
        "one update at a time"
    );
    first.synchronize_rate_limits().await;
    tokio::time::sleep_until(start + secs(30)).await;
    client(2).pets().list().await.unwrap();
    let at = start.elapsed().as_secs_f64();
    assert!((60.0..62.0).contains(&at), "{at}");
    assert!(server.report().is_compliant(), "{}", server.report());
}

/// A store of processes that end after one call.
#[derive(Clone)]
struct ShortLived {
    record: Arc<Mutex<Option<Vec<u8>>>>,
    /// Distinguishes the processes.
    number: usize,
    start: Instant,
    /// Whether it knows which processes run.
    can_tell: bool,
}

impl LimitStore for ShortLived {
    async fn update(&self, _: &RecordKey, mut change: Change<'_>) -> Result<(), StoreError> {
        let since = self.start.elapsed();
        let mut record = self.record.lock().unwrap();
        *record = Some(change.apply(record.as_deref(), StoreTime::new(0, since)));
        Ok(())
    }

    async fn forget(&self, _: Option<&RecordKey>) -> Result<(), StoreError> {
        Ok(())
    }

    fn location(&self) -> Cow<'_, str> {
        format!("process {} of {:p}", self.number, self.record).into()
    }

    fn is_alive(&self, _: &RecordKey, _: MemberId) -> Option<bool> {
        self.can_tell.then_some(false)
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reserved_for_processes_that_have_ended() {
    for can_tell in [true, false] {
        let server = free().await;
        let (record, start) = (Arc::default(), Instant::now());
        let store = ShortLived {
            record,
            number: 0,
            start,
            can_tell,
        };
        for number in 0..100 {
            if number == 50 {
                tokio::time::sleep(secs(60)).await;
            }
            let store = ShortLived {
                number,
                ..store.clone()
            };
            let builder = Client::builder(server.url())
                .api_key(KEY)
                .shared_limits(store);
            let client = builder.build().unwrap();
            let page = client.pets().list().options(&hasty()).await;
            assert_eq!(page.unwrap().meta().attempts(), 1, "{number}");
            if !can_tell {
                client.synchronize_rate_limits().await;
            }
        }
    }
}
