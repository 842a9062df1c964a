//! Members that go on while their folder is deleted, moved or replaced. Clients that use different
//! names of the folder simulate processes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use petstore_client::rate_limit::FileStore;
use petstore_client::{Client, RequestOptions};
use petstore_mock::{MockServer, Plan};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::client::kit::{KEY, millis, mock, secs};

const LIMIT: u32 = 300;
const WINDOWS: u32 = 4;
const TASKS: usize = 8;
/// The members of a fleet, and how many requests each has sent.
struct Fleet {
    home: TempDir,
    server: MockServer,
    start: Instant,
    members: Vec<Arc<Member>>,
    tasks: JoinSet<()>,
    may_be_refused: u64,
}

struct Member {
    client: Client,
    sent: AtomicU32,
}

impl Fleet {
    async fn new() -> Self {
        let plan = Plan::enterprise(LIMIT, 1_000_000);
        Self {
            home: TempDir::new().unwrap(),
            server: mock(KEY, plan).start().await.unwrap(),
            start: Instant::now(),
            members: Vec::new(),
            tasks: JoinSet::new(),
            may_be_refused: 0,
        }
    }

    fn folder(&self) -> PathBuf {
        self.home.path().join("limits")
    }

    /// Starts a simulated process that sends as many requests as allowed in all windows.
    fn join(&mut self) {
        let patient = RequestOptions::new().max_wait(secs(600)).timeout(secs(900));
        let another_name = (0..self.members.len()).fold(self.home.path().to_owned(), |path, _| {
            path.join("..").join(self.home.path().file_name().unwrap())
        });
        let client = Client::builder(self.server.url())
            .api_key(KEY)
            .options(&patient)
            .shared_limits(FileStore::new(another_name.join("limits")))
            .build()
            .unwrap();
        let sent = AtomicU32::new(0);
        let member = Arc::new(Member { client, sent });
        self.members.push(Arc::clone(&member));
        let end = self.start + secs(60) * WINDOWS - secs(1);
        for _ in 0..TASKS {
            let member = Arc::clone(&member);
            self.tasks.spawn(async move {
                while Instant::now() < end {
                    let call = member.client.pets().list().limit(1).send();
                    match tokio::time::timeout_at(end, call).await {
                        Ok(page) => drop(page.unwrap()),
                        Err(_) => return,
                    }
                    member.sent.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    }

    async fn at(&self, seconds: u64) {
        sleep_until(self.start + secs(seconds)).await;
    }

    /// Asserts that at most `may_be_refused` requests were refused, and that the first `equal`
    /// members got equal parts.
    async fn finish(mut self, equal: usize, what: &str) {
        while let Some(task) = self.tasks.join_next().await {
            task.unwrap();
        }
        let sent: Vec<_> = self
            .members
            .iter()
            .map(|member| member.sent.load(Ordering::Relaxed))
            .collect();
        let refused: u64 = self
            .members
            .iter()
            .map(|member| member.client.rate_limits().throttled)
            .sum();
        assert!(refused <= self.may_be_refused, "{what}: {sent:?} {refused}");
        let most = sent[..equal].iter().max().unwrap();
        let least = sent[..equal].iter().min().unwrap();
        assert!(least * 10 >= most * 8, "{what}: {sent:?}");
        let all: u32 = sent.iter().sum();
        assert!(all >= LIMIT * WINDOWS * 95 / 100, "{what}: {sent:?}");
        for member in &self.members {
            let shared = member.client.rate_limits().shared.unwrap();
            assert_eq!(shared.problem, None, "{what}");
        }
        self.server.report().assert_compliant();
    }
}

async fn three() -> Fleet {
    let mut fleet = Fleet::new().await;
    for _ in 0..3 {
        fleet.join();
    }
    fleet
}

/// Returns the file of the only record in a folder.
fn record(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "limits"))
        .unwrap()
}

fn aside(folder: &Path) -> PathBuf {
    folder.with_extension("aside")
}

#[tokio::test(start_paused = true)]
async fn a_deleted_folder_does_not_split_the_members() {
    for seconds in [2, 65, 90] {
        let mut fleet = three().await;
        fleet.at(seconds).await;
        fs::remove_dir_all(fleet.folder()).unwrap();
        // The new process creates the folder again before the others notice, and does not know the
        // quota. If that is used up, its first request is refused.
        fleet.join();
        fleet.may_be_refused = 1;
        fleet.finish(3, &format!("deleted after {seconds} s")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_folder_deleted_repeatedly_does_not_split_the_members() {
    let fleet = three().await;
    for tenth in 0..200 {
        tokio::time::sleep_until(fleet.start + millis(61_000 + 100 * tenth)).await;
        let _ = fs::remove_dir_all(fleet.folder());
    }
    fleet.finish(3, "deleted 200 times").await;
}

#[tokio::test(start_paused = true)]
async fn a_replaced_folder_does_not_split_the_members() {
    let old = three().await;
    old.at(1).await;
    fs::create_dir(aside(&old.folder())).unwrap();
    old.at(61).await;
    let other = old.home.path().join("other");
    fs::rename(old.folder(), other).unwrap();
    fs::rename(aside(&old.folder()), old.folder()).unwrap();
    old.finish(3, "replaced").await;
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_moved_away_and_back_says_nothing_new() {
    for (away, back) in [(1, 3), (2, 40), (20, 50), (61, 62), (65, 100), (90, 170)] {
        let fleet = three().await;
        fleet.at(away).await;
        let record = record(&fleet.folder());
        fs::rename(&record, aside(&record)).unwrap();
        fleet.at(back).await;
        fs::rename(aside(&record), &record).unwrap();
        let what = format!("away after {away} s, back after {back} s");
        fleet.finish(3, &what).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_folder_that_is_moved_away_and_back_says_nothing_new() {
    for (away, back) in [(2, 40), (61, 62), (90, 170)] {
        let fleet = three().await;
        fleet.at(away).await;
        fs::rename(fleet.folder(), aside(&fleet.folder())).unwrap();
        fleet.at(back).await;
        // The members may not have written a new folder yet.
        let _ = fs::remove_dir_all(fleet.folder());
        fs::rename(aside(&fleet.folder()), fleet.folder()).unwrap();
        let what = format!("away after {away} s, back after {back} s");
        fleet.finish(3, &what).await;
    }
}
