//! `repeated-post` and `repeated-error`: requests that are sent again though that does harm, or is in
//! vain.

use std::{collections::VecDeque, time::Duration};

use http::Method;
use serde::Deserialize;

use super::{Judgement, Offence};
use crate::{
    exchange::Moment,
    operation::Operation,
    report::{
        finding::{EvidenceRequest, Role},
        observed::{ObservedExchange, REACTION},
        rule::Rule,
        units::seconds,
    },
};

/// How many POSTs of unknown outcome are remembered, and for how long.
const MAX_POSTS: usize = 64;
const POST_MEMORY: Duration = Duration::from_secs(5 * 60);
/// How many times in a row the same request may be refused, and how far apart these are.
const MAX_REFUSALS: usize = 5;
const REFUSAL_GAP: Duration = Duration::from_secs(30);

/// What of one client's requests must not, or need not, be repeated.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    posts: VecDeque<UnknownPost>,
    refused: Option<Refused>,
}

/// A POST of which the client can't know whether it was carried out.
#[derive(Debug)]
struct UnknownPost {
    fingerprint: u64,
    connections: Vec<u64>,
    request: EvidenceRequest,
    /// When a list was answered that the client asked for since.
    looked: Option<Moment>,
}

/// The same request, refused several times in a row.
#[derive(Debug)]
struct Refused {
    fingerprint: u64,
    requests: Vec<EvidenceRequest>,
}

impl Repeats {
    pub(super) fn judge(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        if exchange.method == Method::POST {
            self.judge_post(exchange, found);
        } else if exchange.operation == Some(Operation::ListPets)
            && exchange.method == Method::GET
            && exchange.answer() == Some(200)
        {
            self.note_list(exchange);
        }
        self.judge_refusal(exchange, found);
    }

    fn judge_post(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        let mut connections = vec![exchange.connection];
        if !self.posts.is_empty() {
            let now = &exchange.arrived;
            self.posts.retain(|post| now.gap_since(&post.request.ended) <= POST_MEMORY);
            let fingerprint = exchange.fingerprint();
            let place = self
                .posts
                .iter()
                .rposition(|post| post.fingerprint == fingerprint && post.is_repeated_by(exchange));
            if let Some(post) = place.and_then(|place| self.posts.remove(place)) {
                let has_looked = post.looked.is_some_and(|looked| looked.order < now.order);
                if !has_looked {
                    found.push(Judgement::Offence(post.offence(exchange)));
                }
                connections.extend(post.connections.iter().take(MAX_POSTS));
            }
        }
        if is_unknown(exchange) {
            if self.posts.len() == MAX_POSTS {
                self.posts.pop_front();
            }
            self.posts.push_back(UnknownPost {
                fingerprint: exchange.fingerprint(),
                connections,
                request: exchange.as_evidence(Role::Cause),
                looked: None,
            });
        }
    }

    /// Notes that the client looked what there is. A list that held the very animal that was added
    /// excuses nothing.
    fn note_list(&mut self, exchange: &ObservedExchange) {
        #[derive(Deserialize)]
        struct Listed {
            id: i64,
        }
        if self.posts.is_empty() {
            return;
        }
        let listed: Vec<Listed> = serde_json::from_slice(&exchange.reply_body).unwrap_or_default();
        for post in &mut self.posts {
            let held_it = post.request.added.is_some_and(|id| listed.iter().any(|it| it.id == id));
            if post.looked.is_none()
                && post.request.ended.order < exchange.arrived.order
                && !held_it
            {
                post.looked = Some(exchange.ended);
            }
        }
    }

    fn judge_refusal(&mut self, exchange: &ObservedExchange, found: &mut Vec<Judgement>) {
        if !exchange.answer().is_some_and(is_final_refusal) {
            self.refused = None;
            return;
        }
        let fingerprint = exchange.fingerprint();
        let request = exchange.as_evidence(Role::Offence);
        let goes_on = |refused: &&mut Refused| {
            let last = refused.requests.last();
            refused.fingerprint == fingerprint
                && last.is_some_and(|it| exchange.arrived.gap_since(&it.ended) <= REFUSAL_GAP)
        };
        let Some(refused) = self.refused.as_mut().filter(goes_on) else {
            self.refused = Some(Refused { fingerprint, requests: vec![request] });
            return;
        };
        let began = refused.requests[0].number;
        let has_grown = refused.requests.len() >= MAX_REFUSALS;
        if has_grown {
            // The first ones are evidence already.
            refused.requests.remove(1);
        }
        refused.requests.push(request);
        if refused.requests.len() < MAX_REFUSALS {
            return;
        }
        let status = exchange.status.unwrap_or_default();
        let causes = if has_grown { Vec::new() } else { refused.requests.clone() };
        let text = format!(
            "{} {} was refused at least {MAX_REFUSALS} times in a row, at last with {status}",
            exchange.method,
            exchange.path()
        );
        let offence = Offence::new(Rule::RepeatedError, began, text);
        found.push(Judgement::Offence(Offence { goes_on: has_grown, causes, ..offence }));
    }
}

impl UnknownPost {
    /// Whether a request was certainly sent after this one had ended.
    fn is_repeated_by(&self, exchange: &ObservedExchange) -> bool {
        let ended = &self.request.ended;
        let has_reacted = exchange.arrived.gap_since(ended) >= REACTION;
        let is_on_row = self.connections.contains(&exchange.connection) && !exchange.is_multiplexed;
        let is_on_new = exchange.opened.order > ended.order && !exchange.is_parallel;
        ended.order < exchange.arrived.order && (is_on_row || is_on_new || has_reacted)
    }

    fn offence(&self, exchange: &ObservedExchange) -> Offence {
        let wait = exchange.arrived.gap_since(&self.request.ended);
        let added: Vec<i64> = [self.request.added, exchange.added].into_iter().flatten().collect();
        let outcome = match added[..] {
            [first, second] => format!("; the animals {first} and {second} are one, added twice"),
            [id] => format!("; animal {id} was added once"),
            _ => "; neither added an animal".to_owned(),
        };
        let answer =
            self.request.status.map_or("no answer".to_owned(), |status| status.to_string());
        let text = format!(
            "the same POST {} ({} bytes) was sent again {} after {answer} (#{}), without a GET /pets \
             that was answered in between{outcome}",
            exchange.path(),
            exchange.body.length,
            seconds(wait),
            self.request.number,
        );
        let offence = Offence::new(Rule::RepeatedPost, exchange.number, text);
        Offence { causes: vec![self.request.clone()], by: Some(wait), added, ..offence }
    }
}

/// Whether the client can't know what became of a POST.
fn is_unknown(exchange: &ObservedExchange) -> bool {
    match exchange.answer() {
        None | Some(500 | 502 | 504 | 506..) => true,
        // It says that the request was not carried out: it is judged only if that is wrong.
        Some(503) => exchange.retry_after.is_none() && exchange.added.is_some(),
        Some(_) => false,
    }
}

/// Whether a status refuses the request for good: sent unchanged, it is refused again.
const fn is_final_refusal(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 404 | 408 | 409 | 425 | 429)
}
