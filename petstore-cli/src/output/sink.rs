//! Standard output, buffered. Handles share it; what is written arrives with a flush.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};

type Stream = BufWriter<Box<dyn Write + Send>>;

#[derive(Clone)]
pub(crate) struct Sink(Arc<Mutex<Stream>>);

impl Sink {
    pub(crate) fn new(stream: Box<dyn Write + Send>) -> Self {
        Self(Arc::new(Mutex::new(BufWriter::new(stream))))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Stream) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.with(Write::flush)
    }
}
