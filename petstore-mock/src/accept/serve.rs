//! The accept loop: takes connections until told to stop, then waits for those there are. Dropping
//! it cuts them all.

use std::{io, time::Duration};

use tokio::{sync::watch, task::JoinSet};

use super::{
    Door,
    connection::{self, Terms},
};
use crate::{alarm, journal::Caller, limits::Limits, router::Front, tls::Tls};

/// How long to wait before accepting again where no connection of ours ends meanwhile.
const BACK_OFF: Duration = Duration::from_millis(100);

/// How many connections there may be beyond the limit, to be told that it is reached.
const MOST_BEYOND: usize = 64;

/// Serves until `stop` says so, and then until the last connection has ended.
pub(crate) async fn serve(
    door: &Door,
    front: Front,
    limits: Limits,
    tls: Option<Tls>,
    mut stop: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let mut numbers = 1..;
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            // Takes the remains of connections away as they end.
            Some(_) = connections.join_next() => continue,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        match accepted {
            Some(Ok((stream, peer))) => {
                let beyond = connections.len().checked_sub(limits.connections.max(1));
                // Closed at once: there must be an end to those that are told so, too.
                if beyond.is_some_and(|beyond| beyond >= MOST_BEYOND) {
                    continue;
                }
                let is_one_too_many = beyond.is_some();
                let connection = numbers.next().unwrap_or(u64::MAX);
                let opened = front.journal().moment(front.clock().since_epoch());
                let caller = Caller { peer: peer.ip(), connection, opened, nth: 0 };
                let (front, tls) = (front.clone(), tls.clone());
                let terms = Terms { caller, front, limits, tls, is_one_too_many };
                connections.spawn(connection::serve(stream, terms, stop.clone()));
            }
            Some(Err(error)) if is_of_one_connection(&error) => {}
            Some(Err(_)) => tokio::select! {
                () = room(&mut connections) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            },
            None => break,
        }
    }
    door.close();
    while connections.join_next().await.is_some() {}
}

/// Whether accepting failed because a connection broke while it waited: that is no reason to pause.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted)
}

/// Waits until accepting may succeed again. What it lacks is most likely a file descriptor: one is free
/// when a connection ends, or when whoever else in the process has it gives it back.
async fn room(connections: &mut JoinSet<()>) {
    tokio::select! {
        Some(_) = connections.join_next() => {}
        () = alarm::ring_after(BACK_OFF) => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[test]
    fn pauses_for_what_concerns_all_connections_only() {
        assert!(is_of_one_connection(&io::ErrorKind::ConnectionAborted.into()));
        let too_many_open_files = io::Error::from_raw_os_error(24);
        assert!(!is_of_one_connection(&too_many_open_files));
    }

    #[tokio::test]
    async fn waits_a_while_where_no_connection_can_end_and_not_for_ever() {
        let mut none = JoinSet::new();
        assert!(timeout(BACK_OFF / 4, room(&mut none)).await.is_err(), "it did not wait");
        assert!(timeout(BACK_OFF * 100, room(&mut none)).await.is_ok(), "it waits for ever");
        none.spawn(std::future::pending());
        assert!(timeout(BACK_OFF * 100, room(&mut none)).await.is_ok(), "it waits for ever");
    }

    #[tokio::test]
    async fn goes_on_as_soon_as_a_connection_ends() {
        let mut connections = JoinSet::new();
        connections.spawn(async {});
        room(&mut connections).await;
        assert!(connections.is_empty());
    }
}
