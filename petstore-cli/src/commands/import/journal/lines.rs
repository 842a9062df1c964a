//! The file of a journal: lines, and zeros after them, which show that its end is not cut off.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::sync::Arc;

/// The number of zeros after the last line when the file is extended.
const ZEROS: u64 = 4_096;

/// Writes lines, and keeps zeros after them.
pub(super) struct Lines {
    file: Arc<File>,
    /// The end of the last line.
    end: u64,
    /// The length of the file.
    length: u64,
    /// Whether an incomplete line follows the last one.
    has_rest: bool,
}

impl Lines {
    /// Continues a file whose lines end at `end`. It has `length` bytes, and perhaps an incomplete line.
    pub(super) fn new(file: Arc<File>, end: u64, length: u64, has_rest: bool) -> Self {
        Self {
            file,
            end,
            length,
            has_rest,
        }
    }

    /// Extends the file, and removes an incomplete line. The file ends with zeros at every moment.
    fn extend(&mut self, length: u64) -> io::Result<()> {
        let mut file = &*self.file;
        let end = SeekFrom::Start(self.end);
        file.set_len(length)?;
        file.seek(end)?;
        if self.has_rest {
            io::copy(&mut io::repeat(0).take(length - self.end), &mut file)?;
            file.seek(end)?;
        }
        (self.has_rest, self.length) = (false, length);
        Ok(())
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.end + bytes.len() as u64;
        if self.has_rest || end >= self.length {
            self.extend(end + ZEROS)?;
        }
        if let Err(error) = (&*self.file).write_all(bytes) {
            // If the incomplete line stayed, the next run would take it for a power failure.
            self.has_rest = true;
            let _ = self.extend(self.length);
            return Err(error);
        }
        self.end = end;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_stand_behind_each_line_and_half_a_line_goes() {
        let mut name = tempfile::NamedTempFile::new().unwrap();
        name.write_all(b"one\nhalf a line\0").unwrap();
        let file = Arc::new(name.reopen().unwrap());
        (&*file).seek(SeekFrom::End(0)).unwrap();
        let mut lines = Lines {
            file,
            end: 4,
            length: 16,
            has_rest: true,
        };
        let mut expected = b"one\n".to_vec();
        let mut write = |lines: &mut Lines| {
            lines.write_all(b"a line\n").unwrap();
            expected.extend_from_slice(b"a line\n");
            let bytes = std::fs::read(name.path()).unwrap();
            assert_eq!((bytes.len() as u64, lines.has_rest), (lines.length, false));
            let (content, zeros) = bytes.split_at(expected.len());
            assert_eq!(content, expected);
            assert!(!zeros.is_empty() && zeros.iter().all(|byte| *byte == 0));
        };
        (0..1_000).for_each(|_| write(&mut lines));
        lines.extend(lines.end + 7).unwrap();
        write(&mut lines); // This line ends exactly at the end of the file.
    }

    #[test]
    fn half_a_line_that_cannot_be_removed_is_removed_later() {
        let name = tempfile::NamedTempFile::new().unwrap();
        let read_only = Arc::new(File::open(name.path()).unwrap());
        let mut lines = Lines {
            file: read_only,
            end: 0,
            length: 100,
            has_rest: false,
        };
        lines.write_all(b"a line\n").unwrap_err();
        assert!(lines.has_rest && lines.end == 0);
    }
}
