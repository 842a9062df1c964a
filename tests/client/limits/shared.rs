//! Tests of limits that processes share through files. Clients that use different names of the
//! folder simulate processes, because clients of one process share a limiter anyway.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use petstore_client::http::StatusCode;
use petstore_client::limits::{FileStore, Limits, RedisStore};
use petstore_client::test_util::{self, FakeService};
use petstore_client::{Client, ClientBuilder, RequestOptions};
use petstore_mock::{MockServer, Plan, RateHeaders};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, sleep_until};

use crate::client::kit::{KEY, answer, millis, mock, no_pets, once, secs};
use crate::client::service::{self, MINUTE, keep_busy, refused};
use crate::client::wire::{Act, Wire};

async fn free() -> MockServer {
    // More than any test has in flight.
    let builder = mock(KEY, Plan::Free).senders(60);
    builder.start().await.unwrap()
}

/// Returns another name of a folder for each number.
fn another_name(folder: &Path, number: usize) -> PathBuf {
    let back = Path::new("..").join(folder.file_name().unwrap());
    (0..number).fold(folder.to_owned(), |path, _| path.join(&back))
}

fn patient() -> RequestOptions {
    RequestOptions::new().max_wait(secs(600)).timeout(secs(900))
}

fn hasty() -> RequestOptions {
    RequestOptions::new().max_wait(Duration::ZERO)
}

/// A client that simulates another process.
pub(super) fn process(base: &str, folder: &TempDir, number: usize) -> ClientBuilder {
    Client::builder(base)
        .api_key(KEY)
        .options(&patient())
        .limits(limits(folder, number))
}

/// The limits of a client that simulates another process.
fn limits(folder: &TempDir, number: usize) -> Limits {
    Limits::new().store(FileStore::new(another_name(folder.path(), number)))
}

/// Returns the files that the store has made.
fn files(folder: &TempDir) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|it| it == "limits"))
        .collect()
}

fn file(folder: &TempDir) -> PathBuf {
    let files = files(folder);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn problem(client: &Client) -> Option<String> {
    client.limits().snapshot().shared.unwrap().problem
}

#[tokio::test(start_paused = true)]
async fn two_keys_in_one_folder_and_one_key_in_two_folders_never_meet() {
    let small = Plan::enterprise(1, 1_000);
    let server = mock("one", small).key("two", small).start().await.unwrap();
    let (ours, theirs) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let attempts = async |key: &str, folder: &TempDir, number| {
        let client = process(server.url(), folder, number).api_key(key);
        let client = client.build().unwrap();
        let sent = client.pets().list().options(&hasty()).with_meta().await;
        let attempts = sent.map_or_else(|error| error.attempts(), |page| page.meta.attempts());
        client.limits().exchange().await;
        attempts
    };
    assert_eq!(attempts("one", &ours, 0).await, 1);
    assert_eq!(
        attempts("one", &ours, 1).await,
        0,
        "the quota is known to be used up"
    );
    assert_eq!(attempts("two", &ours, 1).await, 1);
    // The other user's process learns from a refusal. It does not share that with our processes.
    assert_eq!(attempts("one", &theirs, 0).await, 1);
    assert_eq!((files(&ours).len(), files(&theirs).len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_one_process_received_holds_back_the_others() {
    let server = Wire::of(vec![answer(429, &[("Retry-After", "30")], ""), no_pets()]);
    let folder = TempDir::new().unwrap();
    let start = Instant::now();
    let first = process(&server.base(), &folder, 0).build().unwrap();
    first.pets().list().options(&once()).await.unwrap_err();
    sleep(secs(1)).await;
    let second = process(&server.base(), &folder, 1).build().unwrap();
    assert!(
        second.limits().snapshot().blocked.is_some(),
        "the client reads the file before its first call"
    );
    second.pets().list().await.unwrap();
    assert!(start.elapsed() >= millis(29_990), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_starts_later_waits_for_the_same_reset() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let start = Instant::now();
    let first = process(server.url(), &folder, 0).build().unwrap();
    let calls = (0..60).map(|_| first.pets().list().send());
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    sleep_until(start + secs(30)).await;
    let second = process(server.url(), &folder, 1).build().unwrap();
    second.pets().list().await.unwrap();
    let at = start.elapsed().as_secs_f64();
    assert!((60.0..62.5).contains(&at), "{at}");
    server.report().assert_compliant();
}

#[tokio::test(start_paused = true)]
async fn short_commands_in_a_row_never_wait_for_each_other() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    for number in 0..100 {
        if number == 50 {
            sleep(secs(62)).await;
        }
        let command = process(server.url(), &folder, number).build().unwrap();
        let page = command.pets().list().options(&hasty()).with_meta().await;
        assert_eq!(page.unwrap().meta.attempts(), 1, "{number}");
        command.limits().exchange().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_can_tell_others_at_once_and_hear_of_them() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let clients = [0, 1].map(|n| process(server.url(), &folder, n).build().unwrap());
    let start = Instant::now();
    for left in [59, 58] {
        clients[0].pets().list().await.unwrap();
        clients[0].limits().exchange().await;
        let limits = clients[1].limits().exchange().await;
        assert_eq!(
            limits.windows.iter().map(|window| window.remaining).min(),
            Some(left)
        );
    }
    assert!(start.elapsed() < millis(5), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_limits_that_are_shown_after_a_call_include_its_response() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let client = process(server.url(), &folder, 0).build().unwrap();
    for left in [59, 58, 57] {
        client.pets().list().await.unwrap();
        let limits = client.limits().snapshot();
        let remaining = limits.windows.iter().map(|window| window.remaining).min();
        assert_eq!((remaining, limits.in_flight), (Some(left), 0), "{limits:?}");
    }
    let server = Wire::of(vec![answer(429, &[("Retry-After", "30")], "")]);
    let client = process(&server.base(), &folder, 0).build().unwrap();
    client.pets().list().options(&once()).await.unwrap_err();
    let limits = client.limits().snapshot();
    assert!(
        limits.blocked.is_some() && limits.throttled == 1,
        "{limits:?}"
    );
}

/// Returns how long the first calls of a new key take.
async fn first_calls(plan: Plan, calls: usize, tasks: usize, folder: Option<&TempDir>) -> Duration {
    let server = mock(KEY, plan).start().await.unwrap();
    server.faults().on_all().delay(millis(20)).detach();
    let client = Client::builder(server.url())
        .api_key(KEY)
        .options(&patient());
    let client = match folder {
        Some(folder) => client.limits(Limits::new().store(FileStore::new(folder.path()))),
        None => client,
    };
    let client = client.build().unwrap();
    let took = service::work(&client, tasks, calls, MINUTE).await;
    assert_eq!(refused(&server), 0);
    took
}

#[tokio::test(start_paused = true)]
async fn a_lone_process_with_a_file_waits_for_nobody() {
    for (plan, calls) in [(Plan::Free, 50), (Plan::Business, 300)] {
        for tasks in [1, 16] {
            let folder = TempDir::new().unwrap();
            let without = first_calls(plan, calls, tasks, None).await;
            let with = first_calls(plan, calls, tasks, Some(&folder)).await;
            assert!(
                with < 2 * without + millis(500),
                "{calls} calls from {tasks} tasks: {with:?}, and {without:?} without a file"
            );
        }
    }
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
async fn a_client_without_limits_does_not_lift_those_of_another() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let limited = process(server.url(), &folder, 0).build().unwrap();
    let unlimited = process(server.url(), &folder, 0).limits(limits(&folder, 0).enabled(false));
    let unlimited = unlimited.build().unwrap();
    let calls = join_all((0..100).map(|_| limited.pets().list().send()));
    let beside = async {
        for _ in 0..10 {
            unlimited.pets().list().await.unwrap();
            sleep(millis(10)).await;
        }
    };
    let (results, ()) = tokio::join!(calls, beside);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(refused(&server), 0);
}

#[tokio::test(start_paused = true)]
async fn a_clients_share_holds_beside_one_with_the_whole_quota() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let small = process(server.url(), &folder, 0).limits(limits(&folder, 0).share(0.1));
    let small = small.build().unwrap();
    let whole = process(server.url(), &folder, 0).build().unwrap();
    let start = Instant::now();
    let calls = join_all((0..20).map(|_| small.pets().list().send()));
    let beside = async {
        for _ in 0..10 {
            whole.pets().list().await.unwrap();
            sleep(millis(10)).await;
        }
    };
    let (results, ()) = tokio::join!(calls, beside);
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    // In each minute, it may send 6 of 60 requests.
    assert!(start.elapsed() > secs(120), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_damaged_file_is_replaced() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let list = async |number| {
        let client = process(server.url(), &folder, number).build().unwrap();
        client.pets().list().options(&hasty()).await.unwrap();
        let limits = client.limits().exchange().await;
        assert_eq!(limits.shared.unwrap().problem, None, "{number}");
    };
    list(0).await;
    let path = file(&folder);
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[20] ^= 1;
    let huge = vec![b'x'; 2 << 20];
    let old = b"{\"version\":3,\"ledger\":{}}\n".to_vec();
    let lengths = [0, 1, 4, 9, 15, 16, 17, 50, whole.len() - 1];
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
    let mut files = fs::read_dir(&folder).unwrap();
    let path = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none(), "there is one file");
    assert_eq!(mode(&path), 0o600);
    let contents = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
    assert!(!contents.contains(KEY));
    assert!(!path.to_str().unwrap().contains(KEY));
}

#[tokio::test]
async fn other_files_in_the_folder_are_left_alone() {
    let (server, folder) = (free().await, TempDir::new().unwrap());
    let others = ["notes.txt", "secret", "another.limits"].map(|name| folder.path().join(name));
    for path in &others {
        fs::write(path, "not ours").unwrap();
    }
    let client = process(server.url(), &folder, 0).build().unwrap();
    client.pets().list().await.unwrap();
    client.limits().forget().await.unwrap();
    for path in &others {
        assert_eq!(fs::read(path).unwrap(), b"not ours", "{path:?}");
    }
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
    let all = files(&folder).len();
    assert!((1..=65).contains(&open), "{open} of {all} are open");
    assert_eq!(all, 200);
}

/// What keeps a process from using its file.
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy)]
enum Obstacle {
    /// There is a file in the place of the folder.
    NoFolder,
    FullDisk,
    Pipe,
}

#[cfg(target_os = "linux")]
impl Obstacle {
    /// Returns the folder with the obstacle. `file` is the file of the key in that folder.
    async fn create(self, server: &MockServer, home: &TempDir) -> PathBuf {
        if let Self::NoFolder = self {
            let folder = home.path().join("file");
            fs::write(&folder, "").unwrap();
            return folder;
        }
        let first = process(server.url(), home, 0).build().unwrap();
        first.pets().list().await.unwrap();
        first.limits().exchange().await;
        let file = file(home);
        fs::remove_file(&file).unwrap();
        match self {
            Self::Pipe => {
                let is_made = Command::new("mkfifo").arg(&file).status().unwrap();
                assert!(is_made.success());
            }
            _ => std::os::unix::fs::symlink("/dev/full", &file).unwrap(),
        }
        another_name(home.path(), 1)
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(start_paused = true)]
async fn calls_go_on_without_a_folder_and_on_a_full_disk() {
    for obstacle in [Obstacle::NoFolder, Obstacle::FullDisk, Obstacle::Pipe] {
        let (server, home) = (free().await, TempDir::new().unwrap());
        let folder = obstacle.create(&server, &home).await;
        let client =
            process(server.url(), &home, 1).limits(Limits::new().store(FileStore::new(folder)));
        let client = client.build().unwrap();
        let start = Instant::now();
        let calls = join_all((0..60).map(|_| client.pets().list().with_meta())).await;
        let attempts = calls
            .iter()
            .map(|page| page.as_ref().unwrap().meta.attempts());
        assert!(attempts.into_iter().all(|attempts| attempts == 1));
        assert!(problem(&client).is_some(), "{obstacle:?}");
        // Other processes may use the key, so the last requests of a minute are left to them.
        let took = start.elapsed();
        assert!(
            (MINUTE..MINUTE + secs(10)).contains(&took),
            "{obstacle:?}: {took:?}"
        );
    }
}

/// Locks the file of the only key.
fn locked(folder: &TempDir) -> fs::File {
    let locked = fs::File::open(file(folder)).unwrap();
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

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_costs_one_wait_and_is_reported() {
    let server = free().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = RedisStore::new(&format!("redis://{}", silent.local_addr().unwrap())).unwrap();
    let client = Client::builder(server.url())
        .api_key(KEY)
        .limits(Limits::new().store(store))
        .build()
        .unwrap();
    for (call, most) in [(1, 3_100), (2, 10), (3, 10)] {
        let start = Instant::now();
        // The time until the store has answered or failed does not count as a wait.
        client.pets().list().options(&hasty()).await.unwrap();
        let took = start.elapsed();
        assert!(took <= millis(most), "{call}: {took:?}");
    }
    assert!(problem(&client).is_some());
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

    fn file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.folder()).unwrap();
        files.next().unwrap().unwrap().path()
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
async fn a_file_deleted_20_times_costs_at_most_one_refusal() {
    for pause in [100, 7_000] {
        let fleet = Fleet::start().await;
        let delete = async {
            for number in 1..=20 {
                sleep_until(fleet.start + secs(30) + millis(pause * number)).await;
                let _ = fs::remove_dir_all(fleet.folder());
            }
        };
        fleet.work_while(&format!("each {pause} ms"), delete).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_that_is_moved_away_and_back_costs_at_most_one_refusal() {
    for (away, back) in [(2, 40), (61, 62)] {
        let fleet = Fleet::start().await;
        let aside = fleet.home.path().join("aside");
        let move_it = async {
            sleep_until(fleet.start + secs(away)).await;
            let file = fleet.file();
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
