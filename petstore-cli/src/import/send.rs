//! Sends rows, some at a time, and writes down before and after each what becomes of it.

use std::io;

use futures_util::stream::{self, StreamExt as _};
use petstore_client::rate_limit::Priority;
use petstore_client::{Client, Error, RequestOptions};
use tokio::time::sleep;

use super::journal::{Event, Journal, Ledger};
use super::outcome::{self, Troubles};
use super::pace::{Bounds, Next};
use super::progress::Progress;
use super::row::Row;
use crate::report::Report;

/// What is needed to send rows.
pub(crate) struct Sending<'a> {
    pub(crate) client: &'a Client,
    pub(crate) journal: &'a Journal,
    pub(crate) rows: &'a [Row],
    pub(crate) bounds: Bounds,
    pub(crate) report: &'a Report,
}

/// Why no more rows are sent.
#[derive(Debug)]
pub(crate) enum Ended {
    /// There are none.
    Done,
    /// Others would fare no better.
    Failed(Error),
    /// The user wants it to end.
    Interrupted,
    /// What happens can't be written down any more.
    Journal(io::Error),
}

impl Sending<'_> {
    /// Sends the rows of these numbers until `stop` ends, and waits for those under way.
    pub(crate) async fn run(
        &self,
        todo: &[usize],
        ledger: &mut Ledger,
        stop: impl Future<Output = ()>,
    ) -> Ended {
        let mut progress = Progress::new(self.report, self.client, todo.len());
        let mut troubles = Troubles::default();
        let mut ended = None;
        let mut left = todo.iter().copied();
        let mut stop = std::pin::pin!(stop);
        let mut under_way = stream::FuturesUnordered::new();
        loop {
            let mut wait = None;
            if ended.is_none() && left.len() > 0 {
                let limits = self.client.rate_limits();
                match self.bounds.next(&limits, under_way.len(), progress.done > 0) {
                    Next::Send(some) => {
                        for row in left.by_ref().take(some) {
                            // As the journal has it, should this be the last that is heard of it.
                            let _ = ledger.apply(row, Event::Sending);
                            under_way.push(self.send(row));
                        }
                    }
                    Next::Wait(blocked) => {
                        self.report.blocked(blocked);
                        wait = Some(blocked.remaining);
                    }
                }
            }
            if under_way.is_empty() && (ended.is_some() || left.len() == 0) {
                return ended.unwrap_or(Ended::Done);
            }
            let next = tokio::select! {
                biased;
                () = &mut stop, if ended.is_none() => {
                    ended = Some(Ended::Interrupted);
                    if !under_way.is_empty() {
                        self.report.note("finishing what is under way; Ctrl-C again stops at once");
                    }
                    continue;
                }
                Some(next) = under_way.next() => next,
                () = sleep(wait.unwrap_or_default()), if wait.is_some() => continue,
                () = progress.tick() => continue,
            };
            match next {
                Err(error) => ended = Some(Ended::Journal(error)),
                Ok((row, event, verdict)) => {
                    progress.step();
                    // It is one of the ledger's rows: the table they come from is the same.
                    let _ = ledger.apply(row, event);
                    if let Some(error) = troubles.take_in(verdict) {
                        ended.get_or_insert(Ended::Failed(error));
                    }
                }
            }
        }
    }

    async fn send(&self, row: usize) -> io::Result<(usize, Event, outcome::Verdict)> {
        let Some(Row { pet, .. }) = self.rows.get(row) else {
            return Err(io::Error::other("the journal has more rows than the input"));
        };
        self.journal.note(row, Event::Sending).await?;
        let after_others = RequestOptions::new().priority(Priority::Low);
        let call = self.client.pets().create(pet).options(&after_others);
        let (event, verdict) = outcome::judge(call.await);
        self.journal.note(row, event.clone()).await?;
        Ok((row, event, verdict))
    }
}
