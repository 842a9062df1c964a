//! The unfinished file of an export. It has the rows so far, and a mark file beside it says where
//! to continue. The file gets its final name when it is complete.

use std::fs::{File, TryLockError};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use petstore_client::PetStatus;
use petstore_client::url::Url;
use serde::{Deserialize, Serialize};

use crate::env::System;
use crate::error::{CliError, Kind, Result};
use crate::files;

/// What an export writes. A later command continues the export only if this is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Selection {
    pub(super) base_url: String,
    pub(super) status: Option<PetStatus>,
    pub(super) format: String,
    pub(super) fields: Option<Vec<String>>,
}

/// Where an export continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) selection: Selection,
    /// The URL of the next page.
    pub(super) next: String,
    pub(super) columns: Vec<String>,
    pub(super) pets: usize,
    pub(super) pages: usize,
    /// The size of the file up to this page.
    pub(super) size: u64,
}

impl Mark {
    /// Returns the URL of the next page, if it is on the service's host. The file could contain
    /// anything, and the key must not go to another host.
    pub(super) fn next_page(&self, base_url: &Url) -> Option<Url> {
        let next = Url::parse(&self.next).ok()?;
        if next.origin() != base_url.origin() {
            return None;
        }
        Some(next)
    }
}

/// The unfinished file, locked against other processes.
pub(super) struct PartFile {
    target: PathBuf,
    part: PathBuf,
    mark: PathBuf,
    /// The path at which the next mark is written first. It is always the same, so a killed command
    /// leaves no further file.
    new_mark: PathBuf,
    file: File,
}

impl PartFile {
    /// Opens the unfinished file of a target, or creates it.
    pub(super) fn open(target: &Path, system: &System) -> Result<Self> {
        if let Ok(data) = target.metadata()
            && !data.is_file()
        {
            return Err(not_a_file(target, system));
        }
        // If the target is a link, the link stays.
        let target = match target.canonicalize() {
            Ok(target) => target,
            Err(_) => target.to_owned(),
        };
        if let Some(folder) = target.parent()
            && !folder.as_os_str().is_empty()
            && !folder.is_dir()
        {
            let (file, folder) = (system.shown(&target), system.shown(folder));
            let problem = format!("cannot write {file}: there is no folder {folder}");
            return Err(CliError::new(Kind::Usage, problem));
        }
        let part = beside(&target, "part");
        let failed = |problem| unwritable(&part, system, &problem);
        loop {
            let file = File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&part)
                .map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(busy(&target, system));
                }
                Err(TryLockError::Error(problem)) => {
                    return Err(failed(problem));
                }
            }
            // Another command may have completed and renamed the file while it was opened here.
            if is_at(&file, &part).map_err(failed)? {
                return Ok(Self {
                    mark: beside(&target, "mark"),
                    new_mark: beside(&target, "new-mark"),
                    target,
                    part,
                    file,
                });
            }
        }
    }

    /// Returns the file's name, for messages.
    pub(super) fn shown(&self, system: &System) -> String {
        system.shown(&self.part)
    }

    /// Returns a handle for writing, which continues at the end.
    pub(super) fn writer(&self, system: &System) -> Result<File> {
        match self.file.try_clone() {
            Ok(writer) => Ok(writer),
            Err(problem) => {
                let error = unwritable(&self.part, system, &problem);
                Err(error)
            }
        }
    }

    /// Returns where an interrupted export continues, and removes what was written after that
    /// place. If there is no usable mark, empties the file.
    pub(super) fn resume(
        &mut self,
        selection: &Selection,
        base_url: &Url,
        system: &System,
    ) -> Result<Option<Mark>> {
        let failed = |problem| unwritable(&self.part, system, &problem);
        let size = self.file.metadata().map_err(failed)?.len();
        let mark = self.usable_mark(size, base_url, system)?;
        let end = match &mark {
            Some(mark) if mark.selection != *selection => {
                return Err(self.of_another_export(system));
            }
            Some(mark) => mark.size,
            None => {
                // Otherwise it could fit the new rows later.
                self.remove_marks().map_err(failed)?;
                0
            }
        };
        self.file.set_len(end).map_err(failed)?;
        let end = SeekFrom::Start(end);
        self.file.seek(end).map_err(failed)?;
        Ok(mark)
    }

    /// Reads the mark, if it fits the size of the file and leads to the service's host.
    fn usable_mark(&self, size: u64, base_url: &Url, system: &System) -> Result<Option<Mark>> {
        let text = files::read(&self.mark, Kind::Input, system)?;
        let text = text.unwrap_or_default();
        let Ok(mark) = serde_json::from_str::<Mark>(&text) else {
            return Ok(None);
        };
        let has_next = mark.next_page(base_url).is_some();
        // A mark beside an empty file may be left from an export that was completed.
        match has_next && (1..=size).contains(&mark.size) {
            true => Ok(Some(mark)),
            false => Ok(None),
        }
    }

    fn of_another_export(&self, system: &System) -> CliError {
        let part = system.shown(&self.part);
        let problem = format!("{part} is the beginning of another export");
        let hint = format!("`rm {part}` lets this one start");
        CliError::usage(problem).hint(hint)
    }

    /// Records where to continue, after the rows before that place are safely on the disk.
    pub(super) fn save(&mut self, mut mark: Mark, system: &System) -> Result<()> {
        let failed = |problem| unwritable(&self.part, system, &problem);
        mark.size = self.file.stream_position().map_err(failed)?;
        self.file.sync_data().map_err(failed)?;
        let text = serde_json::to_string(&mark).map_err(CliError::internal)?;
        self.replace_mark(text.as_bytes()).map_err(failed)
    }

    fn replace_mark(&self, text: &[u8]) -> io::Result<()> {
        let mut file = File::create(&self.new_mark)?;
        file.write_all(text)?;
        file.sync_all()?;
        std::fs::rename(&self.new_mark, &self.mark)
    }

    /// Gives the complete file its final name.
    pub(super) fn complete(self, system: &System) -> Result<()> {
        let failed = |problem| unwritable(&self.target, system, &problem);
        self.file.sync_all().map_err(failed)?;
        files::remove(&self.new_mark).map_err(failed)?;
        std::fs::rename(&self.part, &self.target).map_err(failed)?;
        // Until the file has its name, the mark must stay: without it, the next command would start
        // over. If the mark cannot be removed, that command removes it.
        let _ = files::remove(&self.mark);
        Ok(())
    }

    /// Removes the file and its mark. Call it only if the file contains no row.
    pub(super) fn discard(self) {
        let _ = self.remove_marks();
        let _ = files::remove(&self.part);
    }

    fn remove_marks(&self) -> io::Result<()> {
        files::remove(&self.mark)?;
        files::remove(&self.new_mark)?;
        Ok(())
    }
}

/// Returns the path of a file next to a target: `pets.csv.petstore-part`.
fn beside(target: &Path, what: &str) -> PathBuf {
    let mut path = target.as_os_str().to_owned();
    path.push(".petstore-");
    path.push(what);
    path.into()
}

fn not_a_file(target: &Path, system: &System) -> CliError {
    let shown = system.shown(target);
    let problem = format!("{shown} is not a file");
    let hint = match target.is_dir() {
        true => "name a file in it",
        false => "leave it out, and redirect the output: `petstore pets export > FILE`",
    };
    CliError::usage(problem).hint(hint)
}

fn busy(target: &Path, system: &System) -> CliError {
    let target = system.shown(target);
    let problem = format!("another command is exporting to {target}");
    let hint = "wait until it has ended";
    CliError::usage(problem).hint(hint)
}

fn unwritable(path: &Path, system: &System, problem: &io::Error) -> CliError {
    let action = format!("cannot write {}", system.shown(path));
    CliError::io(Kind::Internal, action, problem)
}

/// Returns whether an open file still has this path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let open = file.metadata()?;
    match path.metadata() {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// On other systems, an open file cannot be moved or replaced.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::SystemTime;

    use super::*;
    use crate::env::Dirs;

    fn mark(size: u64) -> Mark {
        Mark {
            selection: Selection {
                base_url: "http://localhost/v1".to_owned(),
                status: None,
                format: "tsv".to_owned(),
                fields: None,
            },
            next: "http://localhost/v1/pets?page=2".to_owned(),
            columns: vec!["id".to_owned()],
            pets: 1,
            pages: 1,
            size,
        }
    }

    /// A folder for an export.
    struct Scene {
        folder: tempfile::TempDir,
        system: System,
    }

    impl Scene {
        fn new() -> Self {
            let now = || SystemTime::UNIX_EPOCH;
            Self {
                folder: tempfile::tempdir().unwrap(),
                system: System::new(HashMap::new(), Dirs::default(), now, None),
            }
        }

        fn target(&self) -> PathBuf {
            self.folder.path().join("pets.tsv")
        }

        /// Opens the file. Returns it with the size up to which it continues.
        fn resume(&self) -> (PartFile, Option<u64>) {
            let mut part = PartFile::open(&self.target(), &self.system).unwrap();
            let selection = mark(0).selection;
            let base_url = Url::parse(&selection.base_url).unwrap();
            let mark = part.resume(&selection, &base_url, &self.system).unwrap();
            (part, mark.map(|mark| mark.size))
        }
    }

    #[test]
    fn a_file_that_does_not_get_its_final_name_can_continue() {
        let scene = Scene::new();
        let (mut part, _) = scene.resume();
        part.file.write_all(b"7\n").unwrap();
        part.save(mark(0), &scene.system).unwrap();
        // A file cannot get the name of a folder.
        std::fs::create_dir(scene.target()).unwrap();
        part.complete(&scene.system).unwrap_err();
        std::fs::remove_dir(scene.target()).unwrap();
        let (part, size) = scene.resume();
        assert_eq!(size, Some(2));
        part.complete(&scene.system).unwrap();
        let left = std::fs::read_dir(scene.folder.path()).unwrap().count();
        assert_eq!(left, 1, "only the file is left");
    }

    #[test]
    fn a_mark_that_a_complete_export_left_is_removed() {
        let scene = Scene::new();
        for size in [0, 2] {
            let left = beside(&scene.target(), "mark");
            std::fs::write(&left, serde_json::to_string(&mark(size)).unwrap()).unwrap();
            let (_, size) = scene.resume();
            assert_eq!((size, left.exists()), (None, false));
        }
    }
}
