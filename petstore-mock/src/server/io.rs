//! The stream for hyper. It delays bytes and ends the connection for faults.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::state::{Shared, Transport};
use crate::fault::EndMode;

/// A stream that hyper uses. Dropping it returns the stream to the state of the connection.
pub(super) struct ConnectionIo {
    /// The stream, until this value is dropped.
    stream: Option<Box<dyn Transport>>,
    state: Shared,
}

impl ConnectionIo {
    pub(super) fn new(stream: Box<dyn Transport>, state: Shared) -> Self {
        Self {
            stream: Some(stream),
            state,
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut (dyn Transport + 'static)>> {
        let stream = self.stream.as_deref_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for ConnectionIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(context, buffer)
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let state = self.state.clone();
        let throttle = &mut state.lock().throttle;
        if let Some(throttle) = throttle {
            bytes = &bytes[..ready!(throttle.poll_allowance(context, bytes.len()))];
        }
        let written = ready!(self.stream()?.poll_write(context, bytes))?;
        if let Some(throttle) = throttle {
            throttle.wrote(written);
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.stream()?.poll_flush(context))?;
        match self.state.lock().end {
            // Everything before the end has been written, so the fault can end the connection.
            Some(EndMode::Reset | EndMode::Close) => {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
            Some(EndMode::Hang) | None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}

impl Drop for ConnectionIo {
    fn drop(&mut self) {
        self.state.lock().stream = self.stream.take();
    }
}
