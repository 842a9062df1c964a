//! TLS. Each server creates a certificate authority at its start, with one certificate. The private
//! keys are stored nowhere, so whoever trusts the authority trusts this server only.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer},
    },
    server::TlsStream,
};

use super::state::Transport;
use crate::clock::Clock;

type Stream = Box<dyn Transport>;

/// The first byte of every TLS connection: a handshake record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

impl Transport for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// The validity of the certificates: longer than any test takes. Some clients refuse certificates
/// for more than 398 days.
const VALID: Duration = DAY.saturating_mul(365);

#[derive(Clone)]
pub(super) struct Tls {
    authority: Arc<str>,
    acceptor: TlsAcceptor,
}

impl Tls {
    /// Creates an authority, and a certificate for localhost, the loopback addresses and this
    /// address.
    pub(super) fn new(addr: IpAddr) -> io::Result<Self> {
        let (authority, certificate, key) = certificates(addr).map_err(io::Error::other)?;
        let config = config(certificate, key).map_err(io::Error::other)?;
        Ok(Self {
            authority: authority.into(),
            acceptor: Arc::new(config).into(),
        })
    }

    /// Returns the authority's certificate, as PEM.
    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Accepts a TLS connection. Returns the stream as an error if the client does not start a
    /// handshake, and `None` if the handshake fails.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<Result<Stream, Stream>> {
        let mut first = [0];
        stream
            .peek(&mut first)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        if first[0] != HANDSHAKE {
            return Some(Err(Box::new(stream)));
        }
        // If the handshake fails, rustls sends an alert if it can.
        let stream = self.acceptor.accept(stream).await.ok()?;
        Some(Ok(Box::new(stream)))
    }
}

type Certificates = (String, CertificateDer<'static>, PrivateKeyDer<'static>);

fn certificates(addr: IpAddr) -> Result<Certificates, rcgen::Error> {
    let mut authority = params("petstore-mock authority", &[])?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;

    let names = ["localhost", "127.0.0.1", "::1", &addr.to_string()].map(str::to_owned);
    let mut server = params("petstore-mock", &names)?;
    server.use_authority_key_identifier_extension = true;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &authority)?;
    Ok((authority.pem(), certificate.der().clone(), key.into()))
}

fn params(name: &str, names: &[String]) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name);
    // Clients compare the validity with the real time, and not with the mock's clock.
    let now = Clock::system().now();
    params.not_before = (now - DAY).into();
    params.not_after = (now + VALID).into();
    Ok(params)
}

fn config(
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
