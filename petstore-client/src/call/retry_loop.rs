//! The retry loop: authorize, acquire a permit, send, decide, wait, repeat.
//!
//! All decisions are made by the arguments: the credentials, the limiter and the retry policy. The
//! observer records what happens. The loop itself knows neither sockets nor events.

use std::sync::Arc;
use std::time::Duration;

use super::observer::Observer;
use super::progress::{Progress, Rules};
use crate::auth::{Credential, Credentials};
use crate::clock;
use crate::error::Error;
use crate::rate_limit::{ClientLimiters, Limiter, Permit};
use crate::retry::RetryDecision;

/// After a longer wait, the call asks the key provider again: the key may have rotated.
const REAUTHORIZE_AFTER: Duration = Duration::from_secs(5);

/// Sends one attempt of a call.
pub(super) trait Sender {
    /// A success.
    type Answer;

    /// Sends the request once, in an attempt that the observer knows. Uses up the permit. Returns a
    /// complete error for anything other than a success.
    fn send(
        &mut self,
        credential: &Credential,
        limiter: &Arc<Limiter>,
        permit: Permit,
        observer: &mut Observer<'_>,
    ) -> impl Future<Output = Result<Self::Answer, Error>> + Send;
}

/// Sends a request as often as the rules allow.
pub(super) async fn retry_loop<S: Sender, F: Future<Output = ()>>(
    rules: Rules<'_>,
    credentials: &Credentials,
    limiters: &ClientLimiters,
    sender: &mut S,
    sleep: impl Fn(Duration) -> F,
    observer: &mut Observer<'_>,
) -> Result<S::Answer, Error> {
    let limits = rules.limits;
    let mut progress = Progress::new(rules);
    let mut schedule = rules.retries.schedule();
    let mut replacement = None;
    loop {
        let is_replacement = replacement.is_some();
        let credential = match replacement.take() {
            Some(credential) => credential,
            None => rules.in_time(credentials.get()).await?,
        };
        let limiter = limiters.get(&credential.authorization);
        let acquiring = progress.acquire(&limiter, observer);
        let (permit, waited) = rules.closing.unless_closed(acquiring).await?;
        if waited > REAUTHORIZE_AFTER && credential.may_rotate() && !is_replacement {
            // The provider may be slow. Without the permit, other calls do not have to wait for it.
            permit.not_sent();
            replacement = Some(rules.in_time(credentials.get()).await?);
            continue;
        }
        let sent = clock::now();
        if sent >= limits.deadline() {
            permit.not_sent();
            return Err(limits.timed_out(false));
        }
        let in_flight = match rules.closing.send() {
            Ok(in_flight) => in_flight,
            Err(closed) => {
                permit.not_sent();
                return Err(closed);
            }
        };
        observer.begin_attempt(sent);
        let result = sender.send(&credential, &limiter, permit, observer).await;
        drop(in_flight);
        let error = match result {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match rules.retries.decide(&error, rules.request) {
            RetryDecision::Fail => return Err(error),
            RetryDecision::Acquire => {
                if let Err(error) = progress.check_block(error) {
                    observer.exhausted(&error);
                    return Err(error);
                }
            }
            RetryDecision::BackOff => {
                let Some(delay) = progress.delay(&error, schedule.next()) else {
                    observer.exhausted(&error);
                    return Err(error);
                };
                observer.retrying(&error, delay);
                let waiting = async {
                    sleep(delay).await;
                    Ok(())
                };
                rules.closing.unless_closed(waiting).await?;
                observer.waited(delay);
            }
            RetryDecision::Reauthorize => {
                if !progress.may_reauthorize() {
                    return Err(error);
                }
                let other = credentials.replace(&credential, sent);
                replacement = rules.in_time(other).await?;
                if replacement.is_none() {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
