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
/// A transport can answer a request without the service, for example from a cache. It takes the mark and
/// does not set it. Then the call uses no quota, and the client ignores the rate limits and the `Date` in
/// the headers of a success. The call still waits before, if the key's quotas are used up.
///
/// A transport may send a request more than once. If one attempt was sent and marked, the service
/// may have processed it, even if the connection of the last attempt was refused.
///
/// ```
/// use petstore_client::bytes::Bytes;
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
/// The attempt has ended before it was sent, and must not be sent any more.
const REVOKED: u8 = 3;

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
                mark.replace(UNKNOWN, NOT_SENT);
                mark
            }
            None => Self::not_sent(),
        }
    }

    /// Records that the service may receive the request from now on.
    pub fn sent(&self) {
        self.try_send();
    }

    /// Records that the request is sent now. Returns false if it must not be sent any more.
    pub(super) fn try_send(&self) -> bool {
        self.replace(UNKNOWN, SENT);
        self.replace(NOT_SENT, SENT);
        !self.is_revoked()
    }

    /// Hands the mark to a transport that may ignore it.
    pub(super) fn hand_out(&self) -> Self {
        self.replace(NOT_SENT, UNKNOWN);
        self.clone()
    }

    /// Ends the attempt. The built-in transport does not send the request any more. Returns whether the
    /// service may have received it.
    pub(crate) fn revoke(&self) -> bool {
        self.replace(NOT_SENT, REVOKED);
        self.may_be_sent()
    }

    /// Returns whether the service may have received the request.
    pub(crate) fn may_be_sent(&self) -> bool {
        matches!(self.0.load(Ordering::Acquire), SENT | UNKNOWN)
    }

    /// Returns whether a transport has recorded that it sent the request.
    pub(super) fn is_sent(&self) -> bool {
        self.0.load(Ordering::Acquire) == SENT
    }

    pub(super) fn is_revoked(&self) -> bool {
        self.0.load(Ordering::Acquire) == REVOKED
    }

    fn replace(&self, old: u8, new: u8) {
        let _ = self
            .0
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
    }
}
