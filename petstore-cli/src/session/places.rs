//! The folder of the shared rate limits: the first place that only this user can write.

use std::io;
use std::path::{Path, PathBuf};

use crate::env::{Dirs, System};
use crate::error::os_text;
use crate::escape;

/// The result of the search for a folder: the chosen one, and the rejected ones before it.
pub(super) struct Places {
    chosen: Option<PathBuf>,
    /// The places that come before the chosen one, in order.
    rejected: Vec<Rejected>,
}

/// A place that is not used, and why.
struct Rejected {
    folder: PathBuf,
    problem: Refusal,
}

enum Refusal {
    /// A file or folder in the way belongs to another user.
    Foreign(PathBuf),
    /// Other users can write in the folder, or it is a link.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix systems are asked"))]
    Unsafe,
    Unusable(io::Error),
}

impl Places {
    /// Looks for the first usable place: `limits` in the folder of the program's state, in the user's
    /// runtime folder, or in the user's folder for temporary files. Creates nothing in later places.
    pub(super) fn find(dirs: &Dirs) -> Self {
        let mut places = Self {
            chosen: None,
            rejected: Vec::new(),
        };
        if let Some(state) = &dirs.state {
            places.consider(state.join("limits"), check);
        }
        if let Some(runtime) = &dirs.runtime {
            places.consider(runtime.join("limits"), check);
        }
        if let Some(temporary) = &dirs.temporary {
            // In the folder for temporary files, anybody can create a folder, or a link, with this
            // name.
            let check = |folder: &Path| check_private(temporary).and_then(|()| check(folder));
            places.consider(temporary.join("limits"), check);
        }
        places
    }

    fn consider(&mut self, folder: PathBuf, check: impl FnOnce(&Path) -> Result<(), Refusal>) {
        if self.chosen.is_some() {
            return;
        }
        match check(&folder) {
            Ok(()) => self.chosen = Some(folder),
            Err(problem) => self.rejected.push(Rejected { folder, problem }),
        }
    }

    /// Returns the chosen folder. If none can be used, returns the first place.
    pub(super) fn folder(&self) -> Option<&Path> {
        let first = self.rejected.first().map(|place| &*place.folder);
        self.chosen.as_deref().or(first)
    }

    /// Returns why the first place is not used, if it was rejected.
    pub(super) fn reason(&self, system: &System) -> Option<String> {
        let Rejected { folder, problem } = self.rejected.first()?;
        let shown = system.shown(folder);
        Some(match problem {
            Refusal::Foreign(path) if path == folder => format!("{shown} is another user's"),
            Refusal::Foreign(path) => format!("{} is another user's", system.shown(path)),
            Refusal::Unsafe => format!("other users can write in {shown}, or it is a link"),
            Refusal::Unusable(error) => format!("cannot use {shown}: {}", os_text(error)),
        })
    }

    /// Returns the command that makes the first place usable, if there is one.
    pub(super) fn fix(&self, system: &System) -> Option<String> {
        match &self.rejected.first()?.problem {
            Refusal::Foreign(path) => {
                let path = escape::shell_path(&system.shown(path));
                Some(format!("`sudo chown -R \"$(id -u)\" {path}`"))
            }
            Refusal::Unsafe | Refusal::Unusable(_) => None,
        }
    }
}

/// Creates a folder if it is missing. Checks that this user can use it, and owns everything in it.
fn check(folder: &Path) -> Result<(), Refusal> {
    let made = create(folder);
    // If a folder on the path belongs to another user, that explains the failure.
    if let Some(foreign) = foreign_in(folder) {
        return Err(Refusal::Foreign(foreign));
    }
    made.and_then(|()| try_writing(folder)).map_err(|error| {
        let foreign = foreign_above(folder);
        match foreign {
            Some(foreign) if error.kind() == io::ErrorKind::PermissionDenied => {
                Refusal::Foreign(foreign)
            }
            _ => Refusal::Unusable(error),
        }
    })
}

fn create(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Creates a file in a folder, and removes it.
fn try_writing(folder: &Path) -> io::Result<()> {
    tempfile::NamedTempFile::new_in(folder)?.close()
}

/// Creates a folder if it is missing. Checks that it belongs to this user, and that nobody else can
/// access it.
#[cfg(unix)]
fn check_private(folder: &Path) -> Result<(), Refusal> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};

    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Refusal::Unusable(error));
        }
        _ => {}
    }
    let data = std::fs::symlink_metadata(folder).map_err(Refusal::Unusable)?;
    if data.uid() != user() {
        return Err(Refusal::Foreign(folder.to_owned()));
    }
    if !data.is_dir() || data.mode() & 0o077 != 0 {
        return Err(Refusal::Unsafe);
    }
    Ok(())
}

/// On other systems, the temporary folder belongs to the user.
#[cfg(not(unix))]
fn check_private(folder: &Path) -> Result<(), Refusal> {
    create(folder).map_err(Refusal::Unusable)
}

/// Returns the folder, or a file in it, if it belongs to another user. Root is checked too, because
/// files that root created in a user's folder would be unusable for that user.
#[cfg(unix)]
fn foreign_in(folder: &Path) -> Option<PathBuf> {
    if is_foreign(folder) {
        return Some(foreign_above(folder).unwrap_or_else(|| folder.to_owned()));
    }
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        if is_foreign(&entry.path()) {
            return Some(folder.to_owned());
        }
    }
    None
}

#[cfg(not(unix))]
fn foreign_in(_: &Path) -> Option<PathBuf> {
    None
}

/// Returns the outermost parent of a folder that belongs to another user and is inside a folder of
/// this user.
#[cfg(unix)]
fn foreign_above(folder: &Path) -> Option<PathBuf> {
    let mut outermost = None;
    for path in folder.ancestors().filter(|path| path.exists()) {
        if !is_foreign(path) {
            return outermost;
        }
        outermost = Some(path.to_owned());
    }
    None
}

#[cfg(not(unix))]
fn foreign_above(_: &Path) -> Option<PathBuf> {
    None
}

#[cfg(unix)]
fn is_foreign(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::symlink_metadata(path).is_ok_and(|data| !data.is_symlink() && data.uid() != user())
}

#[cfg(unix)]
fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn find(dirs: &Dirs) -> (Option<PathBuf>, usize) {
        let places = Places::find(dirs);
        (places.chosen, places.rejected.len())
    }

    fn dirs(home: &Path) -> Dirs {
        Dirs {
            state: Some(home.join("state")),
            runtime: Some(home.join("runtime")),
            temporary: Some(home.join("temporary")),
            ..Dirs::default()
        }
    }

    #[test]
    fn the_first_usable_place_is_chosen() {
        let home = tempfile::tempdir().unwrap();
        let dirs = dirs(home.path());
        for (number, name) in ["state", "runtime", "temporary"].into_iter().enumerate() {
            let place = home.path().join(name);
            assert_eq!(find(&dirs), (Some(place.join("limits")), number));
            let tried = std::fs::read_dir(home.path()).unwrap().count();
            assert_eq!(tried, number + 1, "nothing is created in later places");
            std::fs::remove_dir_all(&place).unwrap();
            std::fs::write(&place, "a file in its place").unwrap();
        }
        assert_eq!(find(&dirs), (None, 3));
        let places = Places::find(&dirs);
        assert_eq!(places.folder(), Some(&*home.path().join("state/limits")));
        assert_eq!(find(&Dirs::default()), (None, 0));
    }

    #[test]
    fn an_unsafe_temporary_folder_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let temporary = home.path().join("temporary");
        let dirs = Dirs {
            temporary: Some(temporary.clone()),
            ..Dirs::default()
        };
        let elsewhere = home.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, &temporary).unwrap();
        assert_eq!(find(&dirs), (None, 1));
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
        std::fs::remove_file(&temporary).unwrap();
        std::fs::create_dir(&temporary).unwrap();
        for (mode, is_used) in [(0o777, false), (0o750, false), (0o700, true)] {
            std::fs::set_permissions(&temporary, Permissions::from_mode(mode)).unwrap();
            assert_eq!(find(&dirs).0.is_some(), is_used, "{mode:o}");
        }
    }
}
