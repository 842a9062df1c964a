//! The store of shared rate limits that the settings name.

use std::io;
use std::path::{Path, PathBuf};

#[cfg(feature = "redis")]
use petstore_client::limits::RedisStore;
use petstore_client::limits::{FileStore, Limits};

use super::trace::not_shared;
use crate::env::{Dirs, System};
use crate::error::{CliError, Result};
use crate::files;
use crate::settings::{Settings, StoreAddress};
use crate::ui::Ui;

/// Returns rate limits that are shared through the store that the settings name. The client's first
/// request opens the store.
pub(crate) fn shared_limits(settings: &Settings, system: &System, ui: &Ui) -> Result<Limits> {
    match settings.values().limits_store() {
        StoreAddress::Off => Ok(Limits::new()),
        StoreAddress::File => match folder(system.dirs()) {
            Some(folder) => Ok(Limits::new().store(FileStore::new(folder))),
            None => {
                let hint = "set HOME or XDG_STATE_HOME";
                not_shared(ui, "there is no folder for them", hint);
                Ok(Limits::new())
            }
        },
        #[cfg(feature = "redis")]
        StoreAddress::Redis(url) => Ok(Limits::new().store(redis(&url, settings)?)),
        #[cfg(not(feature = "redis"))]
        StoreAddress::Redis(_) => Err(CliError::internal("the setting refuses Redis")),
    }
}

#[cfg(feature = "redis")]
fn redis(url: &str, settings: &Settings) -> Result<RedisStore> {
    RedisStore::new(url).map_err(|problem| {
        let source = settings.source("limits_store");
        let problem = format!("the limits store is invalid: {problem}{source}");
        let hint = "give an address such as redis://HOST:6379";
        CliError::config(problem).hint(hint)
    })
}

/// Returns the folder of the shared rate limits: the first place that only this user can write. If
/// there is none, it is the usual place, so that the store says what is wrong there.
fn folder(dirs: &Dirs) -> Option<PathBuf> {
    let state = dirs.state.as_ref().map(|folder| folder.join("limits"));
    let places = [state, dirs.temporary.clone()];
    let mut places = places.into_iter().flatten().peekable();
    let usual = places.peek().cloned();
    places.find(|folder| check(folder).is_ok()).or(usual)
}

/// Creates a folder if it is missing. Checks that this user can write in it, and nobody else can: in
/// the folder for temporary files, anybody can create a folder, or a link, with its name.
fn check(folder: &Path) -> io::Result<()> {
    files::create_private(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;

        let data = std::fs::symlink_metadata(folder)?;
        let user = rustix::process::geteuid().as_raw();
        if data.uid() != user || !data.is_dir() || data.mode() & 0o022 != 0 {
            return Err(io::Error::other("others can write there"));
        }
    }
    tempfile::NamedTempFile::new_in(folder)?.close()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let temporary = home.path().join("temporary");
        let elsewhere = home.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &temporary).unwrap();
        assert!(check(&temporary).is_err());
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
        for (mode, is_used) in [(0o777, false), (0o770, false), (0o755, true), (0o700, true)] {
            std::fs::set_permissions(&elsewhere, Permissions::from_mode(mode)).unwrap();
            assert_eq!(check(&elsewhere).is_ok(), is_used, "{mode:o}");
        }
    }
}
