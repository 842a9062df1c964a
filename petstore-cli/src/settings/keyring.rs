//! The system's keyring: Keychain, Credential Manager, or the Secret Service of a desktop. It may be
//! locked and ask its owner first, or be missing, so its answer is awaited for some seconds only.

use crate::error::{CliError, Kind};

/// Stores a key.
pub(crate) fn store(account: &str, key: &str) -> Result<(), CliError> {
    let key = key.to_owned();
    imp::ask(account, move |entry| entry.set_password(&key))
}

/// Returns a stored key.
pub(crate) fn find(account: &str) -> Result<String, CliError> {
    imp::ask(account, imp::Entry::get_password)
}

/// Removes a key.
pub(crate) fn remove(account: &str) -> Result<(), CliError> {
    imp::ask(account, imp::Entry::delete_credential)
}

fn unusable(problem: impl std::fmt::Display) -> CliError {
    let problem = format!("the system's keyring cannot be used: {problem}");
    CliError::new(Kind::Config, problem)
        .hint("`petstore auth login` without `--keyring` stores the key in a file")
}

#[cfg(feature = "keyring")]
mod imp {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    pub(super) use keyring::Entry;

    use super::{CliError, unusable};

    /// The time for its owner to unlock it.
    const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

    pub(super) fn ask<T: Send + 'static>(
        account: &str,
        work: impl FnOnce(&Entry) -> keyring::Result<T> + Send + 'static,
    ) -> Result<T, CliError> {
        let account = account.to_owned();
        let asked = within(ANSWER_TIMEOUT, move || work(&Entry::new("petstore", &account)?));
        match asked {
            Some(answer) => answer.map_err(unusable),
            None => {
                let seconds = ANSWER_TIMEOUT.as_secs();
                Err(unusable(format!("no answer within {seconds} s; is it locked?")))
            }
        }
    }

    /// Does work that may never end on another thread, and waits no longer than the limit.
    fn within<T: Send + 'static>(
        timeout: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, is_done) = mpsc::sync_channel(1);
        thread::spawn(move || done.send(work()));
        is_done.recv_timeout(timeout).ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn work_that_never_ends_is_not_awaited() {
            let (never, ends) = mpsc::channel::<()>();
            assert_eq!(within(Duration::ZERO, move || ends.recv().is_ok()), None);
            drop(never);
            assert_eq!(within(Duration::MAX, || 7), Some(7));
        }
    }
}

#[cfg(not(feature = "keyring"))]
mod imp {
    use super::{CliError, unusable};

    /// An entry that cannot exist.
    pub(super) enum Entry {}

    impl Entry {
        pub(super) fn set_password(&self, _: &str) {
            match *self {}
        }

        pub(super) fn get_password(&self) -> String {
            match *self {}
        }

        pub(super) fn delete_credential(&self) {
            match *self {}
        }
    }

    pub(super) fn ask<T>(_: &str, _: impl FnOnce(&Entry) -> T) -> Result<T, CliError> {
        Err(unusable("this program was built without the feature `keyring`"))
    }
}
