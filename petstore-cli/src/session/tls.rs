//! Explains why a TLS connection was not possible.

use std::fmt::Display;

use petstore_client::Error;
#[cfg(feature = "rustls-errors")]
use rustls::{CertificateError, Error as TlsError};

use super::service::Service;
use super::words;
use crate::error::{Failure, Kind};

/// The hint if a certificate is not trusted.
const TRUST: &str = "`--ca-file FILE` trusts an authority";

/// Returns the message of a failed TLS connection.
pub(super) fn explain(error: &Error, service: &Service) -> Failure {
    #[cfg(feature = "rustls-errors")]
    if let Some(problem) = rustls_error(error)
        && let Some(failure) = known(problem, service)
    {
        return failure;
    }
    match words::causes(error).last() {
        Some(root) => no_connection(service, root),
        None => no_connection(service, ""),
    }
}

fn no_connection(service: &Service, reason: impl Display) -> Failure {
    let host = service.host();
    let message = format!("{host}: no secure connection: {reason}");
    Failure::new(Kind::Tls, message).hint(TRUST)
}

/// Returns the message of a failed TLS connection if the client uses the system's library. The
/// client then reports an ordinary connection error.
#[cfg(feature = "native-tls")]
pub(super) fn explain_native(error: &Error, service: &Service) -> Option<Failure> {
    for cause in words::causes(error).flat_map(words::with_inner) {
        if let Some(problem) = cause.downcast_ref::<native_tls::Error>() {
            return Some(no_connection(service, problem));
        }
    }
    None
}

#[cfg(not(feature = "native-tls"))]
pub(super) fn explain_native(_: &Error, _: &Service) -> Option<Failure> {
    None
}

/// Returns the message of a known problem.
#[cfg(feature = "rustls-errors")]
fn known(problem: &TlsError, service: &Service) -> Option<Failure> {
    match problem {
        TlsError::InvalidCertificate(problem) => bad_certificate(problem, service),
        TlsError::InvalidMessage(_) => Some(without_tls(service)),
        _ => None,
    }
}

#[cfg(feature = "rustls-errors")]
fn without_tls(service: &Service) -> Failure {
    let host = service.host();
    let message = format!("{host} does not speak TLS");
    let hint = format!("for a local service use http://{host}/v1");
    Failure::new(Kind::Tls, message).hint(hint)
}

#[cfg(feature = "rustls-errors")]
fn bad_certificate(problem: &CertificateError, service: &Service) -> Option<Failure> {
    use CertificateError as Bad;

    let text;
    let hint;
    match problem {
        Bad::UnknownIssuer => {
            text = "certificate from an unknown authority";
            hint = TRUST.to_owned();
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            let source = service.base_url_source();
            text = "the certificate is for another host";
            hint = format!("correct the base URL{source}");
        }
        Bad::Expired | Bad::ExpiredContext { .. } => {
            text = "the certificate has expired";
            hint = "check the clock of this machine".to_owned();
        }
        _ => return None,
    }
    let message = format!("{}: {text}", service.host());
    Some(Failure::new(Kind::Tls, message).hint(hint))
}

/// Returns the library's own error of a TLS connection.
#[cfg(feature = "rustls-errors")]
fn rustls_error(error: &Error) -> Option<&TlsError> {
    let mut last = None;
    for cause in words::causes(error) {
        if let Some(problem) = wrapped(cause) {
            last = Some(problem);
        }
    }
    last
}

/// Returns the library's error in one or more `io::Error`s.
#[cfg(feature = "rustls-errors")]
fn wrapped(cause: &words::Cause) -> Option<&TlsError> {
    let mut outer = cause.downcast_ref::<std::io::Error>()?;
    loop {
        let inner = outer.get_ref()?;
        match inner.downcast_ref() {
            Some(next) => outer = next,
            None => return inner.downcast_ref(),
        }
    }
}
