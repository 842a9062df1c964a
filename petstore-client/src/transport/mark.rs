//! Whether a request was sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The mark of a request that says whether the service may have received it: an extension of the
/// request. [`Error::may_have_been_processed`](crate::Error::may_have_been_processed) depends on it.
///
/// A transport that hands the request on to [`Builtin`](super::Builtin) has nothing to do. One that sends
/// the request itself takes the mark, and sets it before the first byte leaves. Without that, the request
/// counts as sent from the start.
///
/// | the attempt ends | `Builtin`, also wrapped | own transport with the mark | without |
/// |---|---|---|---|
/// | while it still connects (a time limit) | not sent | not sent | may have been processed |
/// | because the connection is refused | not sent | not sent | not sent |
/// | because it breaks before the response | may have been processed | the same | the same |
/// | because the response is cut off | may have been processed | the same | the same |
///
/// A transport may send a request more than once. If one of them was sent and marked, the service may have
/// processed it, even if the last connection was refused.
///
/// ```
/// use petstore_client::Bytes;
/// use petstore_client::transport::{SendMark, Transport, TransportError};
///
/// # async fn connect() -> Result<(), TransportError> { Ok(()) }
/// # async fn exchange(_: http::Request<Bytes>) -> Result<http::Response<Bytes>, TransportError> {
/// #     Ok(http::Response::default())
/// # }
/// struct Own;
///
/// impl Transport for Own {
///     async fn send(
///         &self,
///         mut request: http::Request<Bytes>,
///     ) -> Result<http::Response<Bytes>, TransportError> {
///         let mark = SendMark::take(&mut request);
///         connect().await?;
///         mark.sent();
///         exchange(request).await
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SendMark(Arc<AtomicU8>);

const NOT_SENT: u8 = 0;
const SENT: u8 = 1;
/// Handed to a transport that has not taken the mark.
const UNKNOWN: u8 = 2;

impl SendMark {
    pub(crate) fn not_sent() -> Self {
        Self(Arc::new(AtomicU8::new(NOT_SENT)))
    }

    /// Takes the mark of a request. From now on, the request counts as not sent until
    /// [`sent`](Self::sent) is called.
    #[must_use = "the mark must be set before the request is sent"]
    pub fn take<B>(request: &mut http::Request<B>) -> Self {
        match request.extensions_mut().remove::<Self>() {
            Some(mark) => {
                // A request of an earlier attempt may have been sent.
                let _ =
                    mark.0
                        .compare_exchange(UNKNOWN, NOT_SENT, Ordering::AcqRel, Ordering::Acquire);
                mark
            }
            None => Self::not_sent(),
        }
    }

    /// Records that the service may receive the request from now on.
    pub fn sent(&self) {
        self.0.store(SENT, Ordering::Release);
    }

    /// Hands the mark to a transport that may ignore it.
    pub(super) fn hand_out(&self) -> Self {
        let _ = self
            .0
            .compare_exchange(NOT_SENT, UNKNOWN, Ordering::AcqRel, Ordering::Acquire);
        self.clone()
    }

    /// Returns whether the service may have received the request.
    pub(crate) fn may_be_sent(&self) -> bool {
        self.0.load(Ordering::Acquire) != NOT_SENT
    }

    /// Returns whether a transport has recorded that it sent the request.
    pub(super) fn is_sent(&self) -> bool {
        self.0.load(Ordering::Acquire) == SENT
    }

    /// Prepares the mark for the next attempt.
    pub(crate) fn reset(&self) {
        self.0.store(NOT_SENT, Ordering::Release);
    }
}
