//! The stream for hyper. It records activity, delays bytes for faults, and removes hyper's own
//! refusals, which have no body.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::state::{Shared, Transport};
use crate::{fault::EndMode, http::ErrorCode};

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
}

fn stream(
    stream: &mut Option<Box<dyn Transport>>,
) -> io::Result<Pin<&mut (dyn Transport + 'static)>> {
    stream
        .as_deref_mut()
        .map(Pin::new)
        .ok_or_else(|| io::ErrorKind::NotConnected.into())
}

impl AsyncRead for ConnectionIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(stream(&mut self.stream)?.poll_read(context, buffer))?;
        self.state.lock().received(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ConnectionIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let mut state = this.state.lock();
        if state.is_idle()
            && !state.is_http2
            && let Some((before, code)) = refusal_of_hyper(bytes)
        {
            if before == 0 {
                state.refused = Some(code);
                return Poll::Ready(Ok(bytes.len()));
            }
            bytes = &bytes[..before];
        }
        if let Some(throttle) = &mut state.throttle {
            bytes = &bytes[..ready!(throttle.poll_allowance(context, bytes.len()))];
        }
        let written = stream(&mut this.stream)?.poll_write(context, bytes);
        state.wrote(written.is_ready());
        if let (Some(throttle), Poll::Ready(Ok(written))) = (&mut state.throttle, &written) {
            throttle.wrote(*written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = stream(&mut self.stream)?.poll_flush(context);
        let mut state = self.state.lock();
        // TLS buffers written bytes, so only a flush shows whether the client reads.
        state.wrote(flushed.is_ready());
        ready!(flushed)?;
        match state.end {
            // Everything before the end has been written, so the fault can end the connection.
            Some(EndMode::Reset | EndMode::Close) => {
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
            Some(EndMode::Hang) | None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The stream stays open while a refusal still has to be written.
        if self.state.lock().refused.is_some() {
            return Poll::Ready(Ok(()));
        }
        stream(&mut self.stream)?.poll_shutdown(context)
    }
}

impl Drop for ConnectionIo {
    fn drop(&mut self) {
        self.state.lock().stream = self.stream.take();
    }
}

/// Finds hyper's own refusal at the end of the written bytes: its start and its error. It has no
/// body and, unlike the mock's responses, no `Date`.
fn refusal_of_hyper(bytes: &[u8]) -> Option<(usize, ErrorCode)> {
    let rest = bytes.strip_suffix(b"\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")?;
    let begin = b"HTTP/1.1 4";
    let at = rest
        .windows(begin.len())
        .rposition(|window| window == begin)?;
    let line = &rest[at..];
    if line.contains(&b'\r') {
        return None;
    }
    let code = match &line[9..] {
        [b'4', b'1', b'4', ..] => ErrorCode::UriTooLong,
        [b'4', b'3', b'1', ..] => ErrorCode::HeadersTooLarge,
        _ => ErrorCode::BadRequest,
    };
    Some((at, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hypers_own_refusals_also_after_responses() {
        let refusal =
            b"HTTP/1.1 414 URI Too Long\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(refusal_of_hyper(refusal), Some((0, ErrorCode::UriTooLong)));
        let two = [
            &b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7"[..],
            refusal,
        ]
        .concat();
        assert_eq!(refusal_of_hyper(&two), Some((39, ErrorCode::UriTooLong)));
        for other in [
            &b"HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n"[..],
            b"HTTP/1.1 404 Not Found\r\ndate: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
            b"",
        ] {
            assert_eq!(refusal_of_hyper(other), None, "{}", other.escape_ascii());
        }
    }
}
