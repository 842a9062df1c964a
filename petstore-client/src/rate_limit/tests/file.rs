//! Tests of the file store, as members on one machine use it.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::{Instant, advance, sleep};

use super::waiting::acquire;

use crate::rate_limit::quota::clock::LocalTime;
use crate::rate_limit::quota::policy::Policy;
use crate::rate_limit::shared::exchange::Host as _;
use crate::rate_limit::shared::member_limiter;
use crate::rate_limit::shared::slot::MemberId;
use crate::rate_limit::shared::store::{
    Change, LimitStore, RecordKey, SharedStore, StoreError, StoreTime,
};
use crate::rate_limit::shared::stores::file::FileStore;
use crate::rate_limit::time::TimeSource;

const PAGE: usize = 4_096;
/// Longer than every interval at which the store checks files and members again.
const CHECKED_AGAIN: Duration = Duration::from_secs(60);

fn key() -> RecordKey {
    RecordKey("key".to_owned())
}

/// Replaces the record as a member, and returns the one before.
async fn update(store: &FileStore, member: u64, new: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut before = Vec::new();
    let mut apply = |current: Option<&[u8]>, now: StoreTime| {
        assert!(now.since() > LocalTime(0));
        before = current.unwrap_or_default().to_vec();
        new.to_vec()
    };
    store
        .update(&key(), Change::new(MemberId(member), &mut apply))
        .await?;
    Ok(before)
}

async fn problem(store: &FileStore) -> String {
    update(store, 1, b"new").await.unwrap_err().to_string()
}

fn is_alive(store: &FileStore, member: u64) -> Option<bool> {
    store.is_alive(&key(), MemberId(member))
}

/// Returns the names of all files in a folder, in order.
fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the name of the only new record.
#[cfg(unix)]
fn record_name(names: &[String], before: &[String]) -> String {
    let mut new = names
        .iter()
        .filter(|name| name.ends_with(".limits") && !before.contains(name));
    let record = new.next().unwrap().clone();
    assert_eq!(new.next(), None);
    record
}

fn record_in(folder: &Path) -> PathBuf {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .into_iter()
        .find(|path| path.extension().is_some_and(|it| it == "limits"))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_record_fills_a_page_and_a_damaged_one_is_none() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("folder");
    let store = FileStore::new(&folder);
    assert_eq!(update(&store, 1, b"one").await.unwrap(), b"");
    assert_eq!(update(&store, 1, b"two").await.unwrap(), b"one");
    let path = record_in(&folder);
    let page = fs::read(&path).unwrap();
    let end = page.iter().rposition(|byte| *byte != 0).unwrap();
    assert_eq!((page.len(), &page[end - 2..=end]), (PAGE, &b"two"[..]));
    for damaged in [0, end] {
        let mut page = page.clone();
        page[damaged] ^= 1;
        fs::write(&path, page).unwrap();
        assert_eq!(update(&store, 1, b"two").await.unwrap(), b"", "{damaged}");
    }
    fs::write(&path, &page[..PAGE / 2]).unwrap();
    assert_eq!(
        update(&FileStore::new(&folder), 2, b"two").await.unwrap(),
        b""
    );
    assert_eq!(fs::metadata(&path).unwrap().len(), PAGE as u64);
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&folder).unwrap());
        assert_eq!(mode & 0o777, 0o700);
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_of_another_length_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = (folder.path().join("secret"), FileStore::new(folder.path()));
    fs::write(&path, [b'x'; 100]).unwrap();
    let secret = fs::File::open(&path).unwrap();
    secret.lock().unwrap();
    assert!(problem(&store).await.contains("holds the lock"));
    secret.unlock().unwrap();
    update(&store, 1, b"one").await.unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 64);
    assert!(
        !problem(&FileStore::new(path))
            .await
            .contains("holds the lock")
    );
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_waited_for_and_a_record_is_read_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path());
    update(&store, 1, b"one").await.unwrap();
    let record = fs::File::open(record_in(folder.path())).unwrap();
    record.lock().unwrap();
    let mut seen = Vec::new();
    let mut apply = |current: Option<&[u8]>, _: StoreTime| {
        seen = current.unwrap_or_default().to_vec();
        b"unlocked".to_vec()
    };
    store
        .update(&key(), Change::new(MemberId(1), &mut apply))
        .await
        .unwrap_err();
    assert_eq!(seen, b"one");
    let unlocked = async {
        sleep(Duration::from_millis(300)).await;
        record.unlock().unwrap();
    };
    let (before, ()) = tokio::join!(update(&store, 1, b"two"), unlocked);
    assert_eq!(before.unwrap(), b"one");
}

#[test]
fn the_time_is_read_after_the_wait_for_another_update() {
    const WAIT: Duration = Duration::from_millis(50);
    let home = tempfile::tempdir().unwrap();
    let store = FileStore::new(home.path());
    let (began, begun) = std::sync::mpsc::channel();
    let time_of_update = |store: &FileStore, begin: &(dyn Fn() + Sync)| {
        let mut time = LocalTime(0);
        let mut apply = |_: Option<&[u8]>, now: StoreTime| {
            begin();
            time = now.since();
            b"new".to_vec()
        };
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let change = Change::new(MemberId(1), &mut apply);
        runtime.block_on(store.update(&key(), change)).unwrap();
        time
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            time_of_update(&store, &|| {
                began.send(()).unwrap();
                // The other thread waits in the meantime.
                let (_open, never) = std::sync::mpsc::channel::<()>();
                let _ = never.recv_timeout(WAIT);
            })
        });
        begun.recv().unwrap();
        let second = time_of_update(&store, &|| {});
        let first = first.join().unwrap();
        assert!(second.since(first) >= WAIT, "{first:?} {second:?}");
    });
}

#[tokio::test(start_paused = true)]
async fn the_files_of_the_least_used_key_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path());
    let keys: Vec<_> = (0..65)
        .map(|number| RecordKey(number.to_string()))
        .collect();
    for key in keys[..64].iter().chain([&keys[0], &keys[64]]) {
        let mut apply = |_: Option<&[u8]>, _: StoreTime| Vec::new();
        store
            .update(key, Change::new(MemberId(1), &mut apply))
            .await
            .unwrap();
        advance(Duration::from_millis(1)).await;
    }
    let closed = keys
        .iter()
        .filter(|key| store.is_alive(key, MemberId(1)).is_none());
    assert_eq!(closed.collect::<Vec<_>>(), [&keys[1]]);
}

#[tokio::test(start_paused = true)]
async fn a_member_is_alive_while_its_store_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = [1, 2].map(|_| FileStore::new(folder.path()));
    assert_eq!(is_alive(&one, 1), None, "nothing is open yet");
    update(&one, 1, b"one").await.unwrap();
    assert_eq!(update(&two, 2, b"two").await.unwrap(), b"one");
    update(&two, 3, b"two").await.unwrap();
    assert_eq!(
        [2, 3, 4].map(|member| is_alive(&one, member)),
        [false, true, false].map(Some)
    );
    drop(two);
    assert_eq!(is_alive(&one, 3), Some(true), "as it was");
    advance(CHECKED_AGAIN).await;
    assert_eq!(is_alive(&one, 3), Some(false));
    let start = Instant::now();
    update(&one, 1, b"one").await.unwrap();
    assert_eq!(
        start.elapsed(),
        Duration::ZERO,
        "a process does not wait for its own file"
    );
    assert_eq!(is_alive(&FileStore::new(folder.path()), 1), None);
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn files_that_were_deleted_are_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, other) = (FileStore::new(folder.path()), FileStore::new(folder.path()));
    update(&store, 1, b"one").await.unwrap();
    update(&other, 2, b"two").await.unwrap();
    let own = record_in(folder.path()).with_extension(format!("{:016x}", 1));
    fs::remove_file(&own).unwrap();
    advance(CHECKED_AGAIN).await;
    update(&store, 1, b"one").await.unwrap();
    assert_eq!(is_alive(&other, 1), Some(true));
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(update(&store, 1, b"one").await.unwrap(), b"");
    assert_eq!(is_alive(&store, 1), Some(true));
}

/// Something that a person or a script may do to a folder while processes use it.
#[cfg(unix)]
#[derive(Debug, Clone, Copy)]
enum Disturbance {
    DeletedFolder,
    DeletedSecret,
    DeletedRecord,
    MovedFolder,
    MovedBack,
    ReplacedFolder,
    ReplacedRecord,
}

#[cfg(unix)]
impl Disturbance {
    const ALL: &[Self] = &[
        Self::DeletedFolder,
        Self::DeletedSecret,
        Self::DeletedRecord,
        Self::MovedFolder,
        Self::MovedBack,
        Self::ReplacedFolder,
        Self::ReplacedRecord,
    ];

    async fn happen(self, folder: &Path) {
        let aside = folder.with_extension("aside");
        match self {
            Self::DeletedFolder => fs::remove_dir_all(folder).unwrap(),
            Self::DeletedSecret => fs::remove_file(folder.join("secret")).unwrap(),
            Self::DeletedRecord => fs::remove_file(record_in(folder)).unwrap(),
            Self::MovedFolder => fs::rename(folder, &aside).unwrap(),
            Self::MovedBack => {
                fs::rename(folder, &aside).unwrap();
                update(&FileStore::new(folder), 7, b"meanwhile")
                    .await
                    .unwrap();
                fs::remove_dir_all(folder).unwrap();
                fs::rename(&aside, folder).unwrap();
            }
            Self::ReplacedFolder => {
                fs::rename(folder, &aside).unwrap();
                update(&FileStore::new(folder), 7, b"theirs").await.unwrap();
            }
            Self::ReplacedRecord => {
                let record = record_in(folder);
                let copy = record.with_extension("copy");
                fs::copy(&record, &copy).unwrap();
                fs::rename(&copy, &record).unwrap();
            }
        }
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn members_stay_together_whatever_happens_to_their_folder() {
    for disturbance in Disturbance::ALL {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("folder");
        let [one, two] = [1, 2].map(|_| FileStore::new(&folder));
        update(&one, 1, b"one").await.unwrap();
        update(&two, 2, b"two").await.unwrap();
        disturbance.happen(&folder).await;
        // A new process may create the folder before a member notices that it is gone.
        let newcomer = FileStore::new(&folder);
        update(&newcomer, 3, b"three").await.unwrap();
        let stores = [(&one, 1), (&two, 2), (&newcomer, 3), (&one, 1)];
        let mut before = b"three".to_vec();
        for (store, member) in stores {
            let record = format!("{disturbance:?} {member}").into_bytes();
            let found = update(store, member, &record).await.unwrap();
            assert_eq!(
                String::from_utf8_lossy(&found),
                String::from_utf8_lossy(&before),
                "{disturbance:?}"
            );
            before = record;
        }
        for member in [1, 2, 3] {
            assert_eq!(is_alive(&newcomer, member), Some(true), "{disturbance:?}");
        }
    }
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn a_member_in_a_replaced_folder_is_not_taken_for_dead() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("folder");
    let [one, two] = [1, 2].map(|_| FileStore::new(&folder));
    update(&one, 1, b"one").await.unwrap();
    update(&two, 2, b"two").await.unwrap();
    fs::remove_dir_all(&folder).unwrap();
    update(&one, 1, b"one").await.unwrap();
    assert_eq!(is_alive(&one, 2), None);
    assert_eq!(is_alive(&one, 1), Some(true));
    advance(CHECKED_AGAIN).await;
    assert_eq!(is_alive(&one, 2), Some(false));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_leaves_and_one_that_ends_leave_no_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let files = || names_in(folder.path()).len();
    let [one, two] = [1, 2].map(|_| FileStore::new(folder.path()));
    update(&one, 1, b"one").await.unwrap();
    update(&two, 2, b"two").await.unwrap();
    assert_eq!(files(), 4, "secret, record and two members");
    one.has_left(&key(), MemberId(9));
    assert_eq!(files(), 4, "another member");
    one.has_left(&key(), MemberId(1));
    assert_eq!(files(), 3);
    update(&one, 1, b"back").await.unwrap();
    assert_eq!((files(), is_alive(&two, 1)), (4, Some(true)));
    update(&one, 11, b"another").await.unwrap();
    assert_eq!((files(), is_alive(&two, 1)), (4, Some(true)), "as it was");
    advance(CHECKED_AGAIN).await;
    assert_eq!(is_alive(&two, 1), Some(false));
    // This is like a killed process: the record no longer contains it, and no member checks it.
    drop(two);
    assert_eq!(files(), 4);
    update(&FileStore::new(folder.path()), 3, b"three")
        .await
        .unwrap();
    assert_eq!(files(), 4, "two's file is gone, three's is new");
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn files_that_are_old_and_unused_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let hex = |digit: &str| digit.repeat(32);
    let member = "0123456789abcdef";
    let day = Duration::from_secs(24 * 3600);
    let mut kept = vec!["secret".to_owned()];
    let used = fs::File::create(folder.path().join(format!("{}.limits", hex("e")))).unwrap();
    used.lock().unwrap();
    for (name, age, is_kept) in [
        (format!("{}.limits", hex("a")), day, true),
        (format!("{}.{member}", hex("a")), day, true),
        (format!("{}.limits", hex("b")), 2 * day, false),
        (format!("{}.{member}", hex("b")), 2 * day, false),
        (format!("{}.limits", hex("e")), 2 * day, true),
        ("notes.txt".to_owned(), 2 * day, true),
        (format!("{}.0123", hex("b")), 2 * day, true),
        (format!("{}.0123456789abcdeg", hex("b")), 2 * day, true),
    ] {
        let path = folder.path().join(&name);
        let file = fs::File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path);
        let written = crate::clock::wall() - age;
        file.unwrap().set_modified(written).unwrap();
        if is_kept {
            kept.push(name);
        }
    }
    let store = FileStore::new(folder.path());
    update(&store, 1, b"one").await.unwrap();
    let record = record_name(&names_in(folder.path()), &kept);
    kept.extend([record.clone(), record.replace("limits", "0000000000000001")]);
    kept.sort();
    assert_eq!(names_in(folder.path()), kept);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_is_an_error() {
    use rustix::fs::{CWD, Mode, mkfifoat};

    for is_secret in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        update(&FileStore::new(folder.path()), 1, b"one")
            .await
            .unwrap();
        let path = match is_secret {
            true => folder.path().join("secret"),
            false => record_in(folder.path()),
        };
        fs::remove_file(&path).unwrap();
        // The program `mkfifo` would be a child process. Until it runs, it would hold copies of the
        // locks of the tests beside this one.
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR).unwrap();
        let problem = problem(&FileStore::new(folder.path())).await;
        assert!(problem.ends_with("is a pipe, and not a file"), "{problem}");
    }
}

/// Updates the record, which takes this time.
async fn update_within(store: &FileStore, length: Duration) {
    let mut apply = |_: Option<&[u8]>, _: StoreTime| {
        // The clock moves when this is polled.
        let mut context = Context::from_waker(Waker::noop());
        let _ = pin!(advance(length)).poll(&mut context);
        Vec::new()
    };
    let change = Change::new(MemberId(1), &mut apply);
    store.update(&key(), change).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slow_file_system_is_left_alone_for_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::new(folder.path());
    // The second slow update in a row counts.
    for length in [101, 100, 101, 101] {
        update_within(&store, Duration::from_millis(length)).await;
    }
    for _ in 0..10 {
        assert_eq!(problem(&store).await, "its file system is slow");
        advance(Duration::from_secs(1)).await;
    }
    update(&store, 1, b"one").await.unwrap();
}

#[tokio::test]
async fn forgetting_all_empties_the_folder() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("folder");
    let store = FileStore::new(&folder);
    assert_eq!(store.location(), folder.to_string_lossy());
    store.forget(None).await.unwrap();
    store.forget(Some(&key())).await.unwrap();
    update(&store, 1, b"one").await.unwrap();
    store.forget(Some(&key())).await.unwrap();
    assert_eq!(names_in(&folder).len(), 2, "secret and member");
    update(&store, 1, b"two").await.unwrap();
    fs::write(folder.join("notes.txt"), "not ours").unwrap();
    store.forget(None).await.unwrap();
    assert_eq!(names_in(&folder), ["notes.txt"]);
    assert_eq!(update(&store, 1, b"one").await.unwrap(), b"");
    fs::create_dir(folder.join("folder.limits")).unwrap();
    store.forget(None).await.unwrap_err();
    FileStore::new(folder.join("notes.txt"))
        .forget(None)
        .await
        .unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_fork_shares_the_limits_under_a_number_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let store: SharedStore = Arc::new(FileStore::new(folder.path()));
    let key = HeaderValue::from_static("Bearer key");
    let origin = "https://petstore.example";
    let limiter = member_limiter::create(TimeSource::default(), &store, origin, &key);
    let send = async || {
        let permit = limiter.acquire(acquire(), |_| {}).await.unwrap();
        permit.observe(StatusCode::OK, &HeaderMap::new());
    };
    let member = || limiter.access(|member, _, _| member.id());
    send().await;
    let parent = member();
    limiter.access(|_, progress, _| progress.set_forked());
    send().await;
    assert_ne!(member(), parent);
    let shared = limiter.view(&Policy::default()).shared.unwrap();
    assert_eq!(shared.problem, None);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_leaves_removes_its_file_but_not_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::new(folder.path()));
    update(&store, 1, b"one").await.unwrap();
    let both = names_in(folder.path());
    LimitStore::has_left(&store, &key(), MemberId(1));
    let left = names_in(folder.path());
    assert_eq!(left.len() + 1, both.len(), "{left:?} {both:?}");
    assert_eq!(update(&store, 1, b"two").await.unwrap(), b"one");
    assert_eq!(names_in(folder.path()).len(), both.len());
    store.close();
    assert_eq!(names_in(folder.path()), left);
    let other = FileStore::new("elsewhere");
    assert_eq!(LimitStore::time_limit(&store), other.time_limit());
}
