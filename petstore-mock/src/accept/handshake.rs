//! What comes before HTTP where the server speaks TLS: a handshake that is over in time, and a word to
//! whoever does not begin one.

use tokio::{io::AsyncWriteExt, net::TcpStream, sync::watch};

use super::{connection::Terms, farewell, refusal, wire::Transport};
use crate::{
    alarm,
    error::{ApiError, ErrorCode},
    tls::Tls,
};

/// What every TLS connection begins with: a record of the handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

/// Returns what HTTP is spoken on; nothing where the client does not get as far as that, or the server
/// stops before.
pub(super) async fn secure(
    stream: TcpStream,
    tls: &Tls,
    terms: &Terms,
    stop: &mut watch::Receiver<bool>,
) -> Option<Box<dyn Transport>> {
    let limit = terms.limits.head;
    tokio::select! {
        secured = shake_hands(stream, tls, terms) => secured,
        () = alarm::ring_after(limit), if !limit.is_zero() => None,
        _ = stop.wait_for(|stop| *stop) => None,
    }
}

async fn shake_hands(
    mut stream: TcpStream,
    tls: &Tls,
    terms: &Terms,
) -> Option<Box<dyn Transport>> {
    let mut first = [0];
    stream.peek(&mut first).await.ok().filter(|read| *read > 0)?;
    if first[0] == HANDSHAKE {
        // Who does not trust the server has been told of it by an alert, as far as that is possible.
        return Some(Box::new(tls.accept(stream).await.ok()?));
    }
    let error = ApiError::new(ErrorCode::BadRequest, "this port speaks TLS: use https");
    // It may have left already.
    let _ = stream.write_all(&refusal::written(&terms.front, error)).await;
    farewell::linger(Box::new(stream), terms.limits.body).await;
    None
}
