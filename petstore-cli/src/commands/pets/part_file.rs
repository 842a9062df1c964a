//! The unfinished file of an export. It has the rows so far. For NDJSON, a mark beside it says where
//! the next command continues. The file gets its name when it is complete.

use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use petstore_client::url::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::env::System;
use crate::error::{CliError, Result};
use crate::escape;
use crate::files;

/// Where an export continues: a line of the file beside it, of which the last one counts.
#[derive(Serialize, Deserialize)]
struct Mark {
    /// What the export writes. A later command continues only the same.
    selection: String,
    /// The URL of the next page.
    next: String,
    /// The size of the file up to this page.
    size: u64,
}

/// What an export has written.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) pets: usize,
    pub(super) ids: HashSet<i64>,
    /// The next page, unless it is the first one.
    pub(super) next: Option<Url>,
}

/// The unfinished file, locked against other processes.
pub(super) struct PartFile {
    file: File,
    target: PathBuf,
    /// The path of the target, as typed, for messages.
    shown: String,
    /// The path of the unfinished file, for messages.
    shown_part: String,
}

impl PartFile {
    /// Opens the unfinished file of a target, or creates it.
    pub(super) fn open(target: &Path, system: &System) -> Result<Self> {
        let shown = system.shown(target);
        if files::is_device(target) {
            let hint = match target.is_dir() {
                true => "name a file in it",
                false => "leave it out, and redirect the output: `pets export > FILE`",
            };
            return Err(CliError::usage(format!("{shown} is not a file")).hint(hint));
        }
        files::require_folder(target, system)?;
        // If the target is a link, the link stays.
        let target = match target.canonicalize() {
            Ok(file) if target.is_symlink() => file,
            _ => target.to_owned(),
        };
        let part = files::beside(&target, "part");
        match open_locked(&part) {
            Ok(file) => Ok(Self {
                file,
                target,
                shown,
                shown_part: system.shown(&part),
            }),
            Err(TryLockError::WouldBlock) => {
                let problem = format!("another command is exporting to {shown}");
                Err(CliError::usage(problem).hint("wait until it has ended"))
            }
            Err(TryLockError::Error(problem)) => Err(files::not_written(&shown, &problem)),
        }
    }

    /// Returns the command that removes the unfinished file.
    pub(super) fn removal(&self) -> String {
        format!("rm {}", escape::shell_path(&self.shown_part))
    }

    /// Returns a handle for writing.
    pub(super) fn writer(&self) -> Result<File> {
        self.done(self.file.try_clone())
    }

    /// Removes the rows of an earlier command.
    pub(super) fn start_over(&self) -> Result<()> {
        // A mark that stays could fit the new rows later.
        self.done(self.remove("mark"))?;
        self.done(self.file.set_len(0))
    }

    /// Finds where an earlier command of the same selection was interrupted, and removes what was
    /// written after that place.
    pub(super) fn resume(&mut self, selection: &str, base_url: &Url) -> Result<Written> {
        let size = self.done(self.file.metadata())?.len();
        let marks = std::fs::read_to_string(self.beside("mark")).unwrap_or_default();
        let last = marks
            .lines()
            .rev()
            .find_map(|mark| serde_json::from_str(mark).ok());
        // A mark beside an empty file may be left from an export that was completed.
        let Some(mark) = last.filter(|mark: &Mark| (1..=size).contains(&mark.size)) else {
            return self.start_over().map(|()| Written::default());
        };
        // The file could contain anything, and the key must not go to another host.
        let next = match Url::parse(&mark.next) {
            Ok(next) if next.origin() == base_url.origin() => next,
            _ => return self.start_over().map(|()| Written::default()),
        };
        if mark.selection != selection {
            let problem = format!("{} is the beginning of another export", self.shown_part);
            let hint = format!("`{}` lets this one start", self.removal());
            return Err(CliError::usage(problem).hint(hint));
        }
        self.done(self.file.set_len(mark.size))?;
        let mut earlier = self.done(read_rows(&self.file))?;
        earlier.next = Some(next);
        Ok(earlier)
    }

    /// Records where to continue, after the rows before that place are safely on the disk.
    pub(super) fn save(&mut self, selection: &str, next: &Url) -> Result<()> {
        let size = self.file.stream_position();
        let mark = Mark {
            selection: selection.to_owned(),
            next: next.to_string(),
            size: self.done(size)?,
        };
        let line = serde_json::to_string(&mark).map_err(CliError::internal)? + "\n";
        self.done(self.file.sync_data())?;
        let marks = File::options()
            .append(true)
            .create(true)
            .open(self.beside("mark"));
        self.done(marks.and_then(|mut marks| marks.write_all(line.as_bytes())))
    }

    /// Gives the complete file its final name.
    pub(super) fn complete(self) -> Result<()> {
        self.done(self.file.sync_all())?;
        self.done(std::fs::rename(self.beside("part"), &self.target))?;
        // Until the file has its name, the mark must stay: without it, the next command would start
        // over. If the mark cannot be removed, that command removes it.
        let _ = self.remove("mark");
        Ok(())
    }

    /// Removes the file and its mark.
    pub(super) fn discard(self) {
        let _ = self.remove("mark");
        let _ = self.remove("part");
    }

    fn remove(&self, what: &str) -> io::Result<()> {
        match std::fs::remove_file(self.beside(what)) {
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn beside(&self, what: &str) -> PathBuf {
        files::beside(&self.target, what)
    }

    fn done<T>(&self, result: io::Result<T>) -> Result<T> {
        result.map_err(|problem| files::not_written(&self.shown, &problem))
    }
}

/// Opens and locks a file, or creates it. Before it is locked, another command may have completed
/// it. Then it has another name, and the next file is opened.
fn open_locked(path: &Path) -> Result<File, TryLockError> {
    loop {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(TryLockError::Error)?;
        file.try_lock()?;
        if is_at(&file, path).map_err(TryLockError::Error)? {
            return Ok(file);
        }
    }
}

/// Returns whether an open file still has a path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let own = file.metadata()?;
    match path.metadata() {
        Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// On other systems, only an existing path can be told.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}

/// Counts the rows of a file, and reads their ids. Ends at the end of the file.
fn read_rows(mut file: &File) -> io::Result<Written> {
    file.seek(SeekFrom::Start(0))?;
    let mut earlier = Written::default();
    for line in BufReader::new(file).lines() {
        earlier.pets += 1;
        let row: Value = serde_json::from_str(&line?).unwrap_or_default();
        earlier.ids.extend(row["id"].as_i64());
    }
    file.seek(SeekFrom::End(0))?;
    Ok(earlier)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::SystemTime;

    use super::*;
    use crate::env::Dirs;

    /// A folder for an export.
    struct Scene {
        folder: tempfile::TempDir,
        base_url: Url,
    }

    impl Scene {
        fn new() -> Self {
            Self {
                folder: tempfile::tempdir().unwrap(),
                base_url: Url::parse("http://localhost/v1").unwrap(),
            }
        }

        fn target(&self) -> PathBuf {
            self.folder.path().join("pets.ndjson")
        }

        fn next(&self) -> Url {
            self.base_url.join("/v1/pets?page=2").unwrap()
        }

        /// Opens the file. Returns it with the number of pets after which it continues.
        fn resume(&self) -> (PartFile, usize) {
            let now = || SystemTime::UNIX_EPOCH;
            let system = System::new(HashMap::new(), Dirs::default(), now, None);
            let mut part = PartFile::open(&self.target(), &system).unwrap();
            let earlier = part.resume("all pets", &self.base_url).unwrap();
            assert_eq!(earlier.next.is_some(), earlier.pets > 0);
            (part, earlier.pets)
        }
    }

    #[test]
    fn a_file_that_does_not_get_its_final_name_can_continue() {
        let scene = Scene::new();
        let (mut part, _) = scene.resume();
        part.file.write_all(b"{\"id\":7}\n").unwrap();
        part.save("all pets", &scene.next()).unwrap();
        // A file cannot get the name of a folder.
        std::fs::create_dir(scene.target()).unwrap();
        part.complete().unwrap_err();
        std::fs::remove_dir(scene.target()).unwrap();
        let (part, pets) = scene.resume();
        assert_eq!(pets, 1);
        part.complete().unwrap();
        let left = std::fs::read_dir(scene.folder.path()).unwrap().count();
        assert_eq!(left, 1, "only the file is left");
    }

    #[test]
    #[cfg(unix)]
    fn a_completed_file_is_not_taken_for_the_unfinished_one() {
        let scene = Scene::new();
        let (part, _) = scene.resume();
        let path = part.beside("part");
        assert!(is_at(&part.file, &path).unwrap());
        let late = File::open(&path).unwrap();
        part.complete().unwrap();
        assert!(!is_at(&late, &path).unwrap());
        // A third command may have begun.
        let _third = scene.resume();
        assert!(!is_at(&late, &path).unwrap());
    }

    #[test]
    fn a_mark_that_a_complete_export_left_is_removed() {
        let scene = Scene::new();
        for size in [0, 2] {
            let left = files::beside(&scene.target(), "mark");
            let mark = Mark {
                selection: "all pets".to_owned(),
                next: scene.next().to_string(),
                size,
            };
            std::fs::write(&left, serde_json::to_vec(&mark).unwrap()).unwrap();
            let (_, pets) = scene.resume();
            assert_eq!((pets, left.exists()), (0, false));
        }
    }
}
