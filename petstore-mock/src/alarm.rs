//! A wait in real time, whatever the time of the runtime does. A paused runtime jumps to its next timer
//! as soon as it is idle, so a timer of tokio's would ring at once there, and move the tests' time with
//! it. The mock's own time is left to `clock`.

use std::{io, sync::mpsc, thread, time::Duration};

use tokio::sync::oneshot;

/// Waits this long on a thread of its own, which ends early if the wait is dropped.
///
/// For what is rare: the back-off of the accept loop, and the end of a server.
pub(crate) async fn ring_after(wait: Duration) {
    // Without a thread the runtime's timer is the next best.
    match start(wait) {
        // The bell rings or its thread is gone: in both cases the wait is over.
        Ok((rung, _hold)) => drop(rung.await),
        Err(_) => tokio::time::sleep(wait).await,
    }
}

/// Returns what ends when the time is over, and what ends the thread when it is dropped.
fn start(wait: Duration) -> io::Result<(oneshot::Receiver<()>, mpsc::Sender<()>)> {
    let (hold, held) = mpsc::channel::<()>();
    let (ring, rung) = oneshot::channel();
    thread::Builder::new().name("petstore-mock-alarm".to_owned()).spawn(move || {
        // Nothing is ever sent: this ends with the time or with the sender.
        let _ = held.recv_timeout(wait);
        // Nobody listens where the wait was dropped.
        let _ = ring.send(());
    })?;
    Ok((rung, hold))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn paused_time_neither_shortens_it_nor_is_moved_by_it() {
        let before = tokio::time::Instant::now();
        ring_after(Duration::from_millis(1)).await;
        assert_eq!(before.elapsed(), Duration::ZERO);
        let jump = tokio::time::timeout(
            Duration::from_secs(86_400),
            ring_after(Duration::from_secs(86_400)),
        );
        assert!(jump.await.is_err(), "the runtime's day is over at once, the real one is not");
    }

    #[test]
    fn its_thread_ends_when_the_wait_is_dropped() {
        let (rung, hold) = start(Duration::from_secs(86_400)).unwrap();
        drop(hold);
        assert_eq!(rung.blocking_recv(), Ok(()));
    }
}
