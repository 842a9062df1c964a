//! Explains why a TLS connection was not possible.

use petstore_client::Error as ClientError;

use super::service::Service;
use super::words::causes;
use crate::error::{Failure, Kind};

/// The hint if a certificate is not trusted.
const TRUST: &str = "`--ca-file FILE` trusts an authority";

/// Returns the message of a failed TLS connection.
pub(super) fn explain(error: &ClientError, service: &Service) -> Failure {
    #[cfg(feature = "rustls-errors")]
    if let Some(failure) = rustls_error(error).and_then(|problem| known(problem, service)) {
        return failure;
    }
    let root = causes(error).last().map(ToString::to_string);
    let root = root.unwrap_or_default();
    let message = format!("{}: no secure connection: {root}", service.host());
    Failure::new(Kind::Tls, message).hint(TRUST)
}

/// Returns the message of a failed TLS connection if the client uses the system's library. The
/// client then reports an ordinary connection error.
#[cfg(feature = "native-tls")]
pub(super) fn explain_native(error: &ClientError, service: &Service) -> Option<Failure> {
    let mut all = causes(error).flat_map(super::words::with_inner);
    let problem = all.find_map(|cause| cause.downcast_ref::<native_tls::Error>())?;
    let message = format!("{}: no secure connection: {problem}", service.host());
    Some(Failure::new(Kind::Tls, message).hint(TRUST))
}

#[cfg(not(feature = "native-tls"))]
pub(super) fn explain_native(_: &ClientError, _: &Service) -> Option<Failure> {
    None
}

/// Returns the message of a known problem.
#[cfg(feature = "rustls-errors")]
fn known(problem: &rustls::Error, service: &Service) -> Option<Failure> {
    let host = service.host();
    match problem {
        rustls::Error::InvalidCertificate(problem) => bad_certificate(problem, service),
        rustls::Error::InvalidMessage(_) => {
            let message = format!("{host} does not speak TLS");
            let hint = format!("for a local service use http://{host}/v1");
            Some(Failure::new(Kind::Tls, message).hint(hint))
        }
        _ => None,
    }
}

#[cfg(feature = "rustls-errors")]
fn bad_certificate(problem: &rustls::CertificateError, service: &Service) -> Option<Failure> {
    use rustls::CertificateError as Bad;

    let host = service.host();
    let failure = |text: &str| Failure::new(Kind::Tls, format!("{host}: {text}"));
    match problem {
        Bad::UnknownIssuer => {
            let failure = failure("certificate from an unknown authority");
            Some(failure.hint(TRUST))
        }
        Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
            let source = service.base_url_source();
            let failure = failure("the certificate is for another host");
            Some(failure.hint(format!("correct the base URL{source}")))
        }
        Bad::Expired | Bad::ExpiredContext { .. } => {
            let failure = failure("the certificate has expired");
            Some(failure.hint("check the clock of this machine"))
        }
        _ => None,
    }
}

/// Returns the library's own error of a TLS connection.
#[cfg(feature = "rustls-errors")]
fn rustls_error(error: &ClientError) -> Option<&rustls::Error> {
    causes(error).filter_map(wrapped).last()
}

/// Returns the library's error in one or more `io::Error`s.
#[cfg(feature = "rustls-errors")]
fn wrapped<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let mut outer = cause.downcast_ref::<std::io::Error>()?;
    loop {
        let inner = outer.get_ref()?;
        match inner.downcast_ref() {
            Some(next) => outer = next,
            None => return inner.downcast_ref(),
        }
    }
}
