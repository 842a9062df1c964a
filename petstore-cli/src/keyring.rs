//! The system's keyring: Keychain, Credential Manager, or the Secret Service of a desktop. It may be
//! locked and ask its owner first, or not be there at all, so it is waited for some seconds only.

use crate::error::CliError;
use crate::exit::Exit;

/// Keeps a key.
pub(crate) fn store(account: &str, key: &str) -> Result<(), CliError> {
    let key = key.to_owned();
    imp::ask(account, move |entry| entry.set_password(&key))
}

/// Returns a key that was kept.
pub(crate) fn find(account: &str) -> Result<String, CliError> {
    imp::ask(account, imp::Entry::get_password)
}

/// Forgets a key.
pub(crate) fn remove(account: &str) -> Result<(), CliError> {
    imp::ask(account, imp::Entry::delete_credential)
}

fn unusable(problem: impl std::fmt::Display) -> CliError {
    let problem = format!("the system's keyring cannot be used: {problem}");
    CliError::new(Exit::Config, problem)
        .hint("`petstore auth login` without `--keyring` keeps the key in a file; PETSTORE_API_KEY needs neither")
}

#[cfg(feature = "keyring")]
mod imp {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    pub(super) use keyring::Entry;

    use super::{CliError, unusable};

    /// So long its owner has time to unlock it.
    const PATIENCE: Duration = Duration::from_secs(10);

    pub(super) fn ask<T: Send + 'static>(
        account: &str,
        work: impl FnOnce(&Entry) -> keyring::Result<T> + Send + 'static,
    ) -> Result<T, CliError> {
        let account = account.to_owned();
        let asked = within(PATIENCE, move || work(&Entry::new("petstore", &account)?));
        match asked {
            Some(answer) => answer.map_err(unusable),
            None => {
                let seconds = PATIENCE.as_secs();
                Err(unusable(format!("no answer within {seconds} s; is it locked?")))
            }
        }
    }

    /// Does what may never end, on a thread of its own, and waits no longer than that.
    fn within<T: Send + 'static>(
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (done, is_done) = mpsc::sync_channel(1);
        thread::spawn(move || done.send(work()));
        is_done.recv_timeout(patience).ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn what_never_ends_is_not_waited_for() {
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

    /// What cannot be there.
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
