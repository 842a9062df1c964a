//! Runs a call, from its request to its response. Read [`retry_loop`] first.

mod attempt;
mod check;
mod limits;
mod observer;
mod progress;
mod record;
mod retry_loop;
mod running;
mod spans;
mod watch;

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::sleep;

use self::attempt::NetworkSender;
use self::limits::CallLimits;
use self::observer::Observer;
use self::progress::Rules;
use self::record::CallRecord;
use self::retry_loop::retry_loop;
pub(crate) use self::running::{RunningCall, report_unstarted};
use crate::client::Core;
use crate::error::Error;
use crate::request::Request;
use crate::response::{Meta, Response};

/// Runs a call. Keeps the record up to date, in case the call does not run to its end.
async fn run(
    core: Arc<Core>,
    request: Request,
    limits: CallLimits,
    record: Arc<CallRecord>,
) -> Result<Response<Bytes>, Error> {
    let rules = Rules {
        request: &request,
        limits: &limits,
        retries: &core.retries,
        closing: &core.closing,
    };
    let mut sender = NetworkSender::new(&core, &request, &limits, &record);
    let mut observer = Observer::new(&core.events, &request, &record);
    let in_flight = core.retries.begin_call(record.began());
    let result = retry_loop(
        rules,
        &core.credentials,
        &core.limiters,
        &mut sender,
        sleep,
        &mut observer,
    )
    .await;
    drop(in_flight);
    let result = result.map_err(|error| observer.complete(error));
    let deprecation = observer.ended(result.as_ref().map(|(response, _)| response));
    let stats = record.stats();
    let (response, redactor) = result?;
    let (head, body) = response.into_parts();
    let meta = Meta::new(
        request,
        head.status,
        head.headers,
        deprecation,
        stats,
        redactor,
    );
    Ok(Response::new(body, meta))
}
