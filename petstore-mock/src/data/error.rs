//! Why a data file can't be used. It is left as it is then.

use std::io;

/// Why a data file can't be used; the file is left as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system does not let it be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Another server has it open.
    #[error("another petstore-mock is using it: stop that one, or choose another file")]
    InUse,
    /// It is no data file of this mock's.
    #[error("it is no data file of petstore-mock, and is left as it is: choose another file")]
    Foreign,
    /// It was written by a version whose form of data is another one.
    #[error(
        "a later petstore-mock has written it, in form {0}: use that one, or choose another file"
    )]
    Later(i64),
    /// It was one, but something is wrong with it.
    #[error("it is damaged, and is left as it is ({0}): put back a copy, or choose another file")]
    Damaged(String),
}
