//! Opening a data file, or making one. What is found is looked at in memory first: opening a database
//! may write to it, and what can't be used is to be left as it is.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read},
    ops::Bound,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use redb::{
    Database, DatabaseError, StorageBackend, StorageError,
    backends::{FileBackend, InMemoryBackend},
};

use super::{
    DataError,
    tables::{self, Tables},
};
use crate::store::{Change, Store};

/// What every file of the database begins with.
const MAGIC: &[u8] = b"redb\x1a\x0a\xa9\x0d\x0a";

/// All pets are in memory anyway.
const CACHE: usize = 8 * 1024 * 1024;

/// Opens the file and returns what it holds; a new one holds `first`.
pub(super) fn open(path: &Path, first: Store) -> Result<(Database, Store), DataError> {
    let found = match find(path) {
        Ok(file) => look(file)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let store = match found {
        Some(store) => store,
        None => begin(path, first)?,
    };
    let db = Database::builder().set_cache_size(CACHE).open(path).map_err(refused)?;
    Ok((db, store))
}

fn find(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Returns what a file holds, nothing if it is empty, without writing to it.
fn look(mut file: File) -> Result<Option<Store>, DataError> {
    let lock = FileBackend::new(file.try_clone()?).map_err(refused)?;
    let all = (Bound::Unbounded, Bound::Unbounded);
    // Where files can't be locked, the database says so when it is opened.
    if matches!(lock.try_lock_range(all.0, all.1), Ok(false)) {
        return Err(DataError::InUse);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if !bytes.starts_with(MAGIC) {
        return Err(DataError::Foreign);
    }
    let copy = InMemoryBackend::new();
    copy.set_len(bytes.len() as u64)?;
    copy.write(0, &bytes)?;
    drop(bytes);
    // Built for debugging, the database panics at what no file of its own holds.
    let looked = catch_unwind(AssertUnwindSafe(|| {
        let db = Database::builder()
            .set_cache_size(CACHE)
            .set_check_integrity_on_open(true)
            .create_with_backend(copy)
            .map_err(found)?;
        // Never nothing: it would have been made so.
        tables::read(&db)?
            .ok_or_else(|| DataError::Damaged("it holds nothing".to_owned()))
            .map(Some)
    }));
    looked.unwrap_or_else(|_| Err(DataError::Damaged("its pages contradict each other".to_owned())))
}

/// Makes a file that holds `first` and returns what it holds. It appears whole or not at all: one that
/// is there but holds nothing is damaged.
fn begin(path: &Path, first: Store) -> Result<Store, DataError> {
    let beside = beside(path);
    let made = make(&beside, first.clone()).and_then(|()| publish(&beside, path));
    // It is gone already where it was renamed.
    let _ = fs::remove_file(&beside);
    match made {
        Ok(()) => Ok(first),
        // Another server was faster, and goes on with its own.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            look(find(path)?)?.ok_or(DataError::InUse)
        }
        Err(error) => Err(error.into()),
    }
}

fn make(path: &Path, first: Store) -> io::Result<()> {
    // A name of this process's own, left over from one that had its number.
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let db = Database::builder().set_cache_size(CACHE).create(path).map_err(in_io)?;
    let mut writing = db.begin_write().map_err(in_io)?;
    writing.set_two_phase_commit(true);
    let mut tables = Tables::open(&writing, 0).map_err(in_io)?;
    // It replaces nothing, so that nothing can stand against it.
    let _ = tables.apply(Change::Replace(Box::new(first))).map_err(in_io)?;
    tables.finish().map_err(in_io)?;
    writing.commit().map_err(in_io)
}

/// Gives the file its name, in place of an empty file, but never of one that came meanwhile.
fn publish(beside: &Path, path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        return fs::rename(beside, path);
    }
    match fs::hard_link(beside, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => fs::rename(beside, path),
        linked => linked,
    }
}

/// A name in the same folder, since only within a file system it can be given to another, and one of
/// this thread's own.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{}.{:?}.tmp", std::process::id(), std::thread::current().id()));
    name.into()
}

fn in_io(error: impl Into<redb::Error>) -> io::Error {
    match error.into() {
        redb::Error::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// What is wrong with a copy in memory, which can be read and locked for sure.
fn found(error: DatabaseError) -> DataError {
    match error {
        DatabaseError::UpgradeRequired(_) => DataError::Foreign,
        other => DataError::Damaged(other.to_string()),
    }
}

fn refused(error: DatabaseError) -> DataError {
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            DataError::InUse
        }
        DatabaseError::Storage(StorageError::Io(error)) => DataError::Io(error),
        other => DataError::Damaged(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NewPet, Pet};

    fn pets(store: &Store) -> Vec<Pet> {
        store.pets().to_vec()
    }

    #[test]
    fn a_damaged_byte_is_found_or_of_no_consequence_and_the_file_is_left_as_it_is() {
        let path = std::env::temp_dir().join(format!("petstore-mock-{}.bytes", std::process::id()));
        let new = |id| NewPet { name: format!("pet {id}"), category_id: 7, status: None };
        let pet = |id| Pet::new(id, new(id));
        let first = Store::new((1..=200).map(pet).collect(), vec![]);
        drop(open(&path, first.clone()).unwrap());
        let whole = std::fs::read(&path).unwrap();
        // What is zero is hardly ever used.
        let used: Vec<_> = (0..whole.len()).filter(|place| whole[*place] != 0).collect();
        let mut found = 0;
        for &place in used.iter().step_by(used.len() / 200) {
            let mut bytes = whole.clone();
            bytes[place] ^= 0x55;
            std::fs::write(&path, &bytes).unwrap();
            match look(File::open(&path).unwrap()) {
                Ok(store) => assert_eq!(pets(&store.unwrap()), pets(&first), "byte {place}"),
                Err(_) => found += 1,
            }
            assert!(std::fs::read(&path).unwrap() == bytes, "byte {place}");
        }
        assert!(found > 20, "{found}");
        std::fs::remove_file(path).unwrap();
    }
}
