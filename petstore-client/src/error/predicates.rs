//! What kind of failure it is, as questions that go on holding when more kinds are told apart.

use http::StatusCode;

use super::{Error, Kind, Limit};

impl Error {
    /// Returns whether the client's own settings are at fault, such as its base URL or its key.
    #[must_use]
    pub fn is_config(&self) -> bool {
        matches!(self.kind(), Kind::Config { .. })
    }

    /// Returns whether the request itself is at fault: an argument out of range, which is not
    /// even sent, or an answer 400, 413, 415 or 422.
    #[must_use]
    pub fn is_invalid_request(&self) -> bool {
        matches!(self.kind(), Kind::InvalidRequest(_))
            || matches!(self.status().map(|s| s.as_u16()), Some(400 | 413 | 415 | 422))
                && self.is_service()
    }

    /// Returns whether the key is missing or was not accepted (401), or none could be had.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        matches!(self.kind(), Kind::Key(_)) || self.answered(StatusCode::UNAUTHORIZED)
    }

    /// Returns whether the service has no such thing (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.answered(StatusCode::NOT_FOUND)
    }

    /// Returns whether the operation has been removed (410).
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.answered(StatusCode::GONE)
    }

    /// Returns whether a rate limit or a ban ended the call: refused (429), or held back for
    /// longer than the call may wait. [`retry_at`](Self::retry_at) says when to come again.
    #[must_use]
    pub fn is_rate_limited(&self) -> bool {
        matches!(self.kind(), Kind::RateLimited { .. })
    }

    /// Returns whether no connection came about: refused, no such host, or a failed TLS handshake.
    #[must_use]
    pub fn is_connect(&self) -> bool {
        matches!(
            self.kind(),
            Kind::Connect { .. } | Kind::Tls { .. } | Kind::Timeout { limit: Limit::Connect, .. }
        )
    }

    /// Returns whether the TLS handshake failed, for a certificate that is not trusted for one. It
    /// would fail again, so it is not tried again. Only told apart with rustls.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self.kind(), Kind::Tls { .. })
    }

    /// Returns whether a time limit ran out: for connecting, for an attempt, or for the call.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self.kind() {
            Kind::Timeout { .. } => true,
            // A limit of the HTTP client that the program brought along.
            Kind::Interrupted(error) => error.is_timeout(),
            _ => false,
        }
    }

    /// Returns whether the connection broke while a response was awaited or read.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        matches!(self.kind(), Kind::Interrupted(error) if !error.is_timeout())
    }

    /// Returns whether a successful response had a body that is not what the operation returns.
    /// [`decode_path`](Self::decode_path) says where.
    #[must_use]
    pub fn is_decode(&self) -> bool {
        matches!(self.kind(), Kind::Decode { .. })
    }

    /// Returns whether the response was larger than the client accepts.
    #[must_use]
    pub fn is_body_too_large(&self) -> bool {
        matches!(self.kind(), Kind::BodyTooLarge { .. })
    }

    /// Returns whether a link to the next page leads elsewhere or round in circles.
    #[must_use]
    pub fn is_paging(&self) -> bool {
        matches!(self.kind(), Kind::Paging(_))
    }

    /// Returns whether the service answered, and not with success.
    #[must_use]
    pub fn is_service(&self) -> bool {
        self.fault().is_some()
    }

    /// Returns whether the fault is the service's own (any 5xx).
    #[must_use]
    pub fn is_server_error(&self) -> bool {
        self.fault().is_some_and(|f| f.status.is_server_error())
    }

    fn answered(&self, status: StatusCode) -> bool {
        self.fault().is_some_and(|f| f.status == status)
    }
}
