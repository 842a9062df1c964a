//! TLS. Each server creates a certificate authority at its start, with one certificate. The private
//! keys are stored nowhere, so whoever trusts the authority trusts this server only.

use std::{error::Error, net::IpAddr, sync::Arc, time::Duration};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring},
    server::TlsStream,
};

use super::state::Transport;
use crate::clock::Clock;

impl Transport for TlsStream<TcpStream> {
    fn socket(&self) -> &TcpStream {
        self.get_ref().0
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// The validity of the certificates: longer than any test takes. Some clients refuse certificates
/// for more than 398 days.
const VALID: Duration = DAY.saturating_mul(365);

/// Creates an authority, and an acceptor with its certificate for localhost, the loopback addresses
/// and this address. Returns the authority's certificate, as PEM, and the acceptor.
pub(super) fn create(addr: IpAddr) -> Result<(String, TlsAcceptor), Box<dyn Error + Send + Sync>> {
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

    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((authority.pem(), Arc::new(config).into()))
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
