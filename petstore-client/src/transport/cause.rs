//! Why a connection or a response failed, by the types of the errors below.

use std::borrow::Cow;
use std::io::ErrorKind;
use std::{fmt, io, iter};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::wire::redact::printable;

/// The maximum number of characters of another library's text in a message.
const MAX_SHOWN: usize = 200;

/// The numbers of the system's errors for too many open files, in the process and in the system.
const TOO_MANY_FILES: &[i32] = if cfg!(windows) { &[10_024] } else { &[24, 23] };

type Cause = dyn std::error::Error + 'static;

/// Returns an error and those below it, the outermost first. An `io::Error` does not name the error
/// that it wraps as its source.
fn causes(error: &Cause) -> impl Iterator<Item = &Cause> {
    iter::successors(Some(error), |cause| below(*cause))
}

fn below(cause: &Cause) -> Option<&Cause> {
    match cause
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        Some(inner) => Some(inner),
        None => cause.source(),
    }
}

/// Returns the first error of a type.
fn find<T: std::error::Error + 'static>(error: &Cause) -> Option<&T> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Returns whether the system refused to open another socket.
pub(super) fn is_out_of_files(error: &Cause) -> bool {
    let number = |cause: &Cause| cause.downcast_ref::<io::Error>()?.raw_os_error();
    causes(error)
        .filter_map(number)
        .any(|number| TOO_MANY_FILES.contains(&number))
}

/// Returns why a connection could not be opened.
pub(super) fn of_connection(error: &Cause) -> Option<&'static str> {
    if find::<Unresolved>(error).is_some() {
        return Some("the host name cannot be resolved");
    }
    let system = |cause: &Cause| Some(cause.downcast_ref::<io::Error>()?.kind());
    causes(error)
        .filter_map(system)
        .find_map(|kind| match kind {
            ErrorKind::ConnectionRefused => Some("connection refused"),
            ErrorKind::NetworkUnreachable => Some("network unreachable"),
            ErrorKind::HostUnreachable => Some("host unreachable"),
            ErrorKind::TimedOut => Some("the network did not respond"),
            ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::UnexpectedEof => Some("the other side closed the connection"),
            _ => None,
        })
}

/// Returns why a TLS handshake failed, if it did.
pub(super) fn of_handshake(error: &Cause) -> Option<Cow<'static, str>> {
    #[cfg(any(feature = "rustls", feature = "rustls-no-provider"))]
    if let Some(problem) = find::<rustls::Error>(error) {
        return Some(of_rustls(problem));
    }
    #[cfg(feature = "native-tls")]
    if let Some(problem) = find::<native_tls::Error>(error) {
        return Some(printable(&problem.to_string(), MAX_SHOWN).into());
    }
    let _ = error;
    None
}

#[cfg(any(feature = "rustls", feature = "rustls-no-provider"))]
fn of_rustls(problem: &rustls::Error) -> Cow<'static, str> {
    use rustls::CertificateError as Bad;
    use rustls::Error::{InvalidCertificate, InvalidMessage};

    let text = match problem {
        InvalidMessage(_) => "the server does not speak TLS",
        InvalidCertificate(Bad::UnknownIssuer) => "the certificate is from an unknown authority",
        InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            "the certificate is for another host"
        }
        InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            "the certificate has expired, or this machine's clock is wrong"
        }
        other => return printable(&other.to_string(), MAX_SHOWN).into(),
    };
    text.into()
}

/// Returns what kept a response from arriving completely.
pub(super) fn of_response(error: &Cause) -> Option<Cow<'static, str>> {
    const CLOSED: &str = "the service closed the connection before the response";
    const CUT_OFF: &str = "the response is cut off: the service closed the connection";
    const RESET: &str = "the service reset the connection";

    let malformed = |problem: &dyn fmt::Display| {
        let text = printable(&problem.to_string(), MAX_SHOWN);
        Some(format!("malformed response: {text}").into())
    };
    for cause in causes(error) {
        match cause.downcast_ref::<hyper::Error>() {
            Some(http) if http.is_incomplete_message() => return Some(CLOSED.into()),
            Some(http) if http.is_parse() => return malformed(http),
            _ => {}
        }
        let Some(broken) = cause.downcast_ref::<io::Error>() else {
            continue;
        };
        match broken.kind() {
            ErrorKind::UnexpectedEof => return Some(CUT_OFF.into()),
            ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
                return Some(RESET.into());
            }
            ErrorKind::InvalidData | ErrorKind::InvalidInput => return malformed(broken),
            _ => {}
        }
    }
    None
}

/// Looks up host names with the system's resolver. A failed lookup and a failed connection are both an
/// `io::Error`, so this one wraps the former in its own type.
pub(super) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            match tokio::net::lookup_host((name.as_str(), 0)).await {
                Ok(addresses) => Ok(Box::new(addresses.collect::<Vec<_>>().into_iter()) as Addrs),
                Err(error) => Err(Unresolved(error).into()),
            }
        })
    }
}

/// A host name could not be looked up.
#[derive(Debug, thiserror::Error)]
#[error("the host name cannot be resolved")]
struct Unresolved(#[source] io::Error);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_open_files_are_found_however_deep() {
        let number = TOO_MANY_FILES[0];
        let plain = io::Error::from_raw_os_error(number);
        assert!(is_out_of_files(&plain));
        assert!(is_out_of_files(&io::Error::other(io::Error::other(plain))));
        assert!(!is_out_of_files(&io::Error::from(
            ErrorKind::ConnectionRefused
        )));
    }

    #[cfg(any(feature = "rustls", feature = "rustls-no-provider"))]
    #[test]
    fn a_refused_certificate_says_why() {
        use rustls::CertificateError as Bad;

        let said = |problem: rustls::Error| {
            // The connection wraps rustls's error twice.
            of_handshake(&io::Error::other(io::Error::other(problem))).unwrap()
        };
        for (problem, expected) in [
            (
                Bad::UnknownIssuer,
                "the certificate is from an unknown authority",
            ),
            (Bad::NotValidForName, "the certificate is for another host"),
            (
                Bad::Expired,
                "the certificate has expired, or this machine's clock is wrong",
            ),
        ] {
            assert_eq!(said(rustls::Error::InvalidCertificate(problem)), expected);
        }
        assert_eq!(
            said(rustls::Error::HandshakeNotComplete),
            "handshake not complete"
        );
        assert_eq!(of_handshake(&io::Error::other("no handshake")), None);
    }
}
