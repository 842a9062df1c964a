//! Tests of processes that start at about the same time and share a key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join_all;
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::kit::{KEY, millis, secs};
use crate::client::limits::shared::process;
use crate::client::service::{self, refused};

/// Counts the calls of processes that start at these times, in each of three minutes.
async fn use_of(starts: &[u64], per_minute: u32, tasks: usize) -> Vec<[u64; 3]> {
    let server = service::start_with(KEY.to_owned(), per_minute, millis(100)).await;
    let (folder, began) = (TempDir::new().unwrap(), Instant::now());
    let counts: Vec<_> = starts
        .iter()
        .map(|_| Arc::new([0, 0, 0].map(AtomicU64::new)))
        .collect();
    let work = starts.iter().enumerate().flat_map(|(number, start)| {
        let client = process(server.url(), &folder, number).build().unwrap();
        let counts = &counts[number];
        (0..tasks).map(move |_| {
            let (client, counts, start) = (client.clone(), Arc::clone(counts), *start);
            async move {
                sleep(millis(start)).await;
                while client.pets().list().await.is_ok() {
                    let minute = usize::try_from(began.elapsed().as_secs() / 60).unwrap();
                    counts[minute.min(2)].fetch_add(1, Ordering::Relaxed);
                }
            }
        })
    });
    let _stopped = timeout_at(began + secs(175), join_all(work)).await;
    assert_eq!(refused(&server), 0);
    let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
    counts
        .iter()
        .map(|counts| counts.each_ref().map(load))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn processes_that_start_together_soon_get_equal_parts() {
    for (starts, per_minute, tasks) in [
        (&[0; 4][..], 60, 1),
        (&[0; 8], 120, 4),
        (&[0, 600, 1_300, 1_900], 300, 16),
    ] {
        let used = use_of(starts, per_minute, tasks).await;
        for minute in 0..3 {
            let parts = used.iter().map(|used| used[minute]);
            let all: u64 = parts.clone().sum();
            let least = u64::from(per_minute) * 98 / 100;
            assert!(all >= least, "{minute}: {all} of {per_minute}: {used:?}");
            // In the first window, the first to come is the first served.
            let ratio = parts.clone().min().unwrap() as f64 / parts.max().unwrap() as f64;
            assert!(
                minute == 0 || ratio >= 0.8,
                "{minute}: {ratio:.2} of {used:?}"
            );
        }
    }
}
