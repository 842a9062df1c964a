//! A socket that is closed gently. Where a request was answered before all of its body was read (a
//! 413, say), closing at once would reset the connection, and the client might lose the answer it
//! has not read yet (RFC 9112, section 9.6). So the rest is read and thrown away first.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// How much of an unwanted body is thrown away before the connection is cut after all.
const PATIENCE: usize = 64 * 1024 * 1024;

/// A stream that, once it is shut down, reads on where `unread` says so.
#[derive(Debug)]
pub(super) struct Lingering {
    stream: TcpStream,
    /// Whether the last request was answered with its body unread.
    unread: Arc<AtomicBool>,
    write_is_shut: bool,
    patience: usize,
}

impl Lingering {
    pub(super) fn new(stream: TcpStream, unread: Arc<AtomicBool>) -> Self {
        Self { stream, unread, write_is_shut: false, patience: PATIENCE }
    }
}

impl AsyncRead for Lingering {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if !this.write_is_shut {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
            this.write_is_shut = true;
        }
        let mut scratch = [0; 16 * 1024];
        while this.unread.load(Ordering::Relaxed) && this.patience > 0 {
            let mut buffer = ReadBuf::new(&mut scratch);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer))?;
            match buffer.filled().len() {
                0 => break,
                read => this.patience = this.patience.saturating_sub(read),
            }
        }
        Poll::Ready(Ok(()))
    }
}
