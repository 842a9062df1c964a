//! `repeated-post` and `repeated-error`: rules about repeats that do harm or fail again.

use std::{collections::VecDeque, time::Duration};

use http::Method;
use serde::Deserialize;

use super::{
    finding::{Evidence, Ruling},
    request::{JudgedRequest, Role, push_bounded, seconds},
    rule::Rule,
};
use crate::{
    exchange::{Moment, Record},
    operation::Operation,
};

/// The maximum number of remembered POSTs with unknown outcome, and for how long.
const MAX_POSTS: usize = 64;
const POST_MEMORY: Duration = Duration::from_secs(5 * 60);
/// The number of consecutive refusals of the same request for a finding, and their maximum
/// distance.
const MAX_REFUSALS: usize = 5;
const REFUSAL_GAP: Duration = Duration::from_secs(30);

/// The requests that a client must not or need not repeat.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    posts: VecDeque<UnknownPost>,
    refused: Vec<JudgedRequest>,
}

/// A POST with an unknown outcome for the client.
#[derive(Debug)]
struct UnknownPost {
    request: JudgedRequest,
    is_repeated: bool,
    /// When the client received a list since.
    list_answered: Option<Moment>,
}

/// A pet in a list.
#[derive(Deserialize)]
struct ListedPet {
    id: i64,
}

impl Repeats {
    pub(super) fn judge(&mut self, record: &Record, request: &JudgedRequest, found: &mut Ruling) {
        let is_list = record.arrival.operation == Some(Operation::ListPets);
        if request.method == Method::POST {
            self.judge_post(record.body.length, request, found);
        } else if is_list && request.method == Method::GET && request.status == Some(200) {
            self.note_list(&record.reply_body.start, request);
        }
        self.judge_refusal(request, found);
    }

    fn judge_post(&mut self, length: u64, request: &JudgedRequest, found: &mut Ruling) {
        let now = &request.arrived;
        self.posts
            .retain(|post| now.gap_since(&post.request.ended) <= POST_MEMORY);
        let is_same = |post: &UnknownPost| post.request.fingerprint == request.fingerprint;
        let is_on_row = !request.is_multiplexed
            && self
                .posts
                .iter()
                .any(|it| is_same(it) && it.request.connection == request.connection);
        let repeated = self.posts.iter_mut().rev().find(|post| {
            let is_before = post.request.ended.order < now.order;
            let is_certain = is_on_row || request.follows(&post.request);
            !post.is_repeated && is_same(post) && is_before && is_certain
        });
        if let Some(post) = repeated {
            post.is_repeated = true;
            if post.list_answered.is_none_or(|list| list.order > now.order) {
                found.add(
                    Rule::RepeatedPost,
                    repeated_post(&post.request, length, request),
                );
            }
        }
        if is_unknown(request) {
            let request = request.with_role(Role::Cause);
            let post = UnknownPost {
                request,
                is_repeated: false,
                list_answered: None,
            };
            push_bounded(&mut self.posts, post, MAX_POSTS);
        }
    }

    /// Records that the client listed the pets. A list that contains the created pet excuses
    /// nothing.
    fn note_list(&mut self, list: &[u8], request: &JudgedRequest) {
        if self.posts.is_empty() {
            return;
        }
        let listed: Vec<ListedPet> = serde_json::from_slice(list).unwrap_or_default();
        for post in &mut self.posts {
            let shows_it = listed.iter().any(|pet| post.request.added == Some(pet.id));
            if post.request.ended.order < request.arrived.order && !shows_it {
                post.list_answered.get_or_insert(request.ended);
            }
        }
    }

    fn judge_refusal(&mut self, request: &JudgedRequest, found: &mut Ruling) {
        let goes_on = self.refused.last().is_some_and(|last| {
            last.fingerprint == request.fingerprint
                && request.arrived.gap_since(&last.ended) <= REFUSAL_GAP
        });
        let Some(status) = request.status.filter(|status| is_final_refusal(*status)) else {
            self.refused.clear();
            return;
        };
        if !goes_on {
            self.refused.clear();
        }
        self.refused.push(request.clone());
        if self.refused.len() < MAX_REFUSALS {
            return;
        }
        let name = request.name();
        let text = format!(
            "{name} was refused at least {MAX_REFUSALS} times in a row, at last with {status}"
        );
        let evidence = Evidence::new(self.refused[0].number, request, text);
        found.add(
            Rule::RepeatedError,
            evidence.show(self.refused.iter().cloned()),
        );
        // The first request identifies the series, and the last one shows whether it continues.
        self.refused.drain(1..2);
    }
}

/// Returns the evidence of a POST that was sent again.
fn repeated_post(first: &JudgedRequest, length: u64, request: &JudgedRequest) -> Evidence {
    let wait = request.arrived.gap_since(&first.ended);
    let added: Vec<i64> = [first.added, request.added].into_iter().flatten().collect();
    let outcome = match added[..] {
        [first, second] => format!("the pets {first} and {second} are duplicates"),
        [id] => format!("pet {id} was created once"),
        _ => "neither created a pet".to_owned(),
    };
    let answer = first
        .status
        .map_or("no response".to_owned(), |status| status.to_string());
    let text = format!(
        "the same {} ({length} bytes) was sent again {} after {answer} (#{}), without a GET /pets \
         that was answered in between; {outcome}",
        request.name(),
        seconds(wait),
        first.number,
    );
    let evidence = Evidence::new(request.number, request, text).show([first.clone()]);
    Evidence {
        by: Some(wait),
        added,
        ..evidence
    }
}

/// Whether the client cannot know the outcome of a POST.
fn is_unknown(request: &JudgedRequest) -> bool {
    match request.status {
        None | Some(500 | 502 | 504 | 506..) => true,
        // The status says that the request was not processed. It is judged only if that is wrong.
        Some(503) => request.retry_after.is_none() && request.added.is_some(),
        Some(_) => false,
    }
}

/// Whether a status means that an unchanged request would be refused again.
const fn is_final_refusal(status: u16) -> bool {
    matches!(status, 400..=499) && !matches!(status, 404 | 408 | 409 | 425 | 429)
}

#[cfg(test)]
mod tests {
    use super::super::corpus::judge;
    use super::*;

    #[test]
    fn a_series_of_refusals_takes_a_bounded_part_of_the_memory() {
        let lines = (0..5)
            .map(|n| format!("{n}+0.003 1 GET /v1/pets 401"))
            .collect::<Vec<_>>();
        let report = judge(lines.iter().map(String::as_str));
        let request = &report.findings().next().unwrap().evidence[0].requests[4];
        let mut repeats = Repeats::default();
        for _ in 0..100 {
            repeats.judge_refusal(request, &mut Ruling::default());
            assert!(repeats.refused.len() < MAX_REFUSALS);
        }
    }
}
