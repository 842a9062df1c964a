//! The thread that writes: from changes that wait to a commit, to the store in memory, to those who
//! wait.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc},
    thread::{self, JoinHandle},
};

use redb::Database;
use tokio::sync::oneshot;

use super::{DataError, file, tables::Tables};
use crate::store::{Change, ChangeError, Store};

/// No more changes than these go into one commit, so that the first of them does not wait for ever.
const MOST: usize = 10_000;

type Outcome = Result<Option<i64>, ChangeError>;

struct Job {
    change: Change,
    done: oneshot::Sender<Outcome>,
}

/// A data file that is open.
#[derive(Debug)]
pub(crate) struct Data {
    /// Nothing once it is closed.
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<()>,
}

impl Data {
    /// Opens a file, or makes one that holds `first`; returns what it holds, too.
    ///
    /// # Errors
    ///
    /// Where the file can't be used; it is left as it is then.
    pub(crate) async fn open(
        path: PathBuf,
        first: Store,
    ) -> Result<(Self, Arc<Mutex<Store>>), DataError> {
        let (jobs, waiting) = mpsc::channel();
        let (tell, told) = oneshot::channel();
        let work = move || match file::open(&path, first) {
            Ok((db, store)) => {
                let store = Arc::new(Mutex::new(store));
                // Who does not wait for it any more has dropped the queue too.
                let _ = tell.send(Ok(Arc::clone(&store)));
                run(&db, &store, &waiting);
            }
            Err(error) => drop(tell.send(Err(error))),
        };
        let thread = thread::Builder::new().name("petstore-mock-data".to_owned()).spawn(work)?;
        let store = told
            .await
            .unwrap_or_else(|_| Err(DataError::Damaged("the database has panicked".to_owned())))?;
        Ok((Self { open: Mutex::new(Some(Open { jobs, thread })) }, store))
    }

    /// Makes a change in the file and in memory, and returns when it is made in both.
    pub(crate) async fn change(&self, change: Change) -> Outcome {
        let stopped = || ChangeError::Unsaved("it is closed".to_owned());
        let (done, is_done) = oneshot::channel();
        {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let jobs = &open.as_ref().ok_or_else(stopped)?.jobs;
            jobs.send(Job { change, done }).map_err(|_| stopped())?;
        }
        is_done.await.unwrap_or_else(|_| Err(stopped()))
    }

    /// Writes what waits, and closes the file: another server can open it when this returns.
    pub(crate) fn close(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Open { jobs, thread }) = open {
            drop(jobs);
            // It has ended all the same where it panicked.
            let _ = thread.join();
        }
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.close();
    }
}

/// Makes changes until nobody can ask for one any more.
fn run(db: &Database, store: &Mutex<Store>, waiting: &mpsc::Receiver<Job>) {
    while let Ok(first) = waiting.recv() {
        let (mut changes, mut askers) = (Vec::new(), Vec::new());
        for Job { change, done } in [first].into_iter().chain(waiting.try_iter().take(MOST)) {
            changes.push(change);
            askers.push(done);
        }
        let outcomes = commit(db, store, changes).unwrap_or_else(|error| {
            let unsaved = ChangeError::Unsaved(error.to_string());
            askers.iter().map(|_| Err(unsaved.clone())).collect()
        });
        for (asker, outcome) in askers.into_iter().zip(outcomes) {
            // Nobody waits where the client has left; the change is made all the same.
            let _ = asker.send(outcome);
        }
    }
}

/// Makes all changes, first in the file and then in memory, or none of them.
fn commit(
    db: &Database,
    store: &Mutex<Store>,
    changes: Vec<Change>,
) -> Result<Vec<Outcome>, redb::Error> {
    let lock = || store.lock().unwrap_or_else(PoisonError::into_inner);
    let mut writing = db.begin_write()?;
    // So that a file whose last commit is not whole is known to be damaged; else it might just as well
    // have been killed in the middle of it, and the commit before would be taken.
    writing.set_two_phase_commit(true);
    let mut tables = Tables::open(&writing, lock().last_id())?;
    let mut settled = Vec::with_capacity(changes.len());
    for change in changes {
        settled.push(tables.apply(change)?);
    }
    tables.finish()?;
    writing.commit()?;
    let mut store = lock();
    Ok(settled.into_iter().map(|change| store.apply(change?)).collect())
}
