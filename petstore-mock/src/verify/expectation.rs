//! What is expected of a client before it begins, and checked at the end of a scope.

use std::{sync::Arc, thread};

use super::{Times, check_times};
use crate::{journal::Journal, pattern::Pattern};

/// That so many requests of a kind are to come from now on.
///
/// It is checked when this is dropped, unless the thread is panicking already, or by
/// [`verify`](Self::verify).
///
/// ```
/// # use petstore_mock::{MockServer, Operation};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), reqwest::Error> {
/// let server = MockServer::start().await;
/// let _one_list = server.expect(Operation::ListPets, 1);
/// let _no_pet = server.expect(Operation::CreatePet, 0);
/// reqwest::get(format!("{}/pets", server.url())).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "it is checked when it is dropped, which is at once unless it is kept"]
pub struct Expectation {
    journal: Arc<Journal>,
    pattern: Pattern,
    times: Times,
    /// The number of the last request before it was set.
    after: u64,
    is_checked: bool,
}

impl Expectation {
    pub(crate) fn new(journal: Arc<Journal>, pattern: Pattern, times: Times) -> Self {
        let after = journal.last_number();
        Self { journal, pattern, times, after, is_checked: false }
    }

    /// Checks it now.
    ///
    /// # Panics
    ///
    /// Where it does not hold, with what came instead.
    #[track_caller]
    pub fn verify(mut self) {
        self.check();
    }

    #[track_caller]
    #[expect(clippy::panic, reason = "that is what an assertion does")]
    fn check(&mut self) {
        self.is_checked = true;
        if let Err(text) = check_times(&self.journal, &self.pattern, self.times, self.after) {
            panic!("{text}");
        }
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        if !self.is_checked && !thread::panicking() {
            self.check();
        }
    }
}
