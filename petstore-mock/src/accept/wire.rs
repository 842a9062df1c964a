//! The stream as hyper sees it: it notes what happens on it, and lets hyper's own refusals have a body.
//! How long things may take is left to `link`, and the end of the stream to `farewell`.

use std::{
    fmt, io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

use super::{link::Link, refusal};
#[cfg(feature = "tls")]
use crate::tls::Encrypted;
use crate::{error::ErrorCode, router::Front};

/// A stream that ends in a socket.
pub(super) trait Transport: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {
    fn socket(&self) -> &TcpStream;
}

impl Transport for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

#[cfg(feature = "tls")]
impl Transport for Encrypted {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Where a wire leaves its stream when hyper has done with it.
pub(super) type Slot = Arc<Mutex<Option<Box<dyn Transport>>>>;

/// A stream on its way through hyper.
#[derive(Debug)]
pub(super) struct Wire {
    /// Always there: only dropping takes it.
    stream: Option<Box<dyn Transport>>,
    after: Slot,
    link: Arc<Link>,
    front: Front,
    /// What is left to write of an answer in place of hyper's own; empty once it is written.
    instead: Option<Bytes>,
}

impl Wire {
    pub(super) fn new(
        stream: Box<dyn Transport>,
        after: Slot,
        link: Arc<Link>,
        front: Front,
    ) -> Self {
        Self { stream: Some(stream), after, link, front, instead: None }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut (dyn Transport + 'static)>> {
        self.stream.as_deref_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn poll_write_some(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let allowed = ready!(self.link.stage().poll_allowance(context, bytes.len()));
        let written = self.stream()?.poll_write(context, &bytes[..allowed]);
        self.link.wrote(written.is_ready());
        if let Poll::Ready(Ok(written)) = written {
            self.link.stage().wrote(written);
        }
        written
    }

    /// Writes a whole answer of the mock's.
    fn poll_write_instead(
        &mut self,
        context: &mut Context<'_>,
        code: ErrorCode,
    ) -> Poll<io::Result<()>> {
        let mut rest = self.instead.take().unwrap_or_else(|| refusal::answer(&self.front, code));
        self.link.leave_unread();
        while !rest.is_empty() {
            let written = self.poll_write_some(context, &rest);
            if let Poll::Ready(Ok(written)) = written {
                rest.advance(written);
            } else {
                self.instead = Some(rest);
                return written.map_ok(|_| ());
            }
        }
        self.instead = Some(rest);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.link.is_late() {
            // Then, as if the client had closed the connection: to hyper there is nothing to answer.
            return self.poll_write_instead(context, ErrorCode::RequestTimeout);
        }
        let before = buffer.filled().len();
        ready!(self.stream()?.poll_read(context, buffer))?;
        self.link.received(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Some((before, code)) = refusal::of_hyper(bytes) else {
            return self.poll_write_some(context, bytes);
        };
        if before > 0 {
            return self.poll_write_some(context, &bytes[..before]);
        }
        ready!(self.poll_write_instead(context, code))?;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.stream()?.poll_flush(context);
        // TLS takes what is written into a buffer of its own first.
        self.link.wrote(flushed.is_ready());
        ready!(flushed)?;
        self.link.stage().flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(context)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        *self.after.lock().unwrap_or_else(PoisonError::into_inner) = self.stream.take();
    }
}
