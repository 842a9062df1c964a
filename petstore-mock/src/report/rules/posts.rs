//! `repeated-post`: a `POST` sent again although the first one may have been applied.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use http::Method;
use serde::Deserialize;

use crate::{
    exchange::{Moment, Record},
    operation::Operation,
    report::{
        breach::{Breach, Ruling, Series},
        facts::Facts,
        rule::Rule,
        rules::doubt::{Doubt, is_soon},
        text::seconds,
    },
};

/// The maximum number of remembered POSTs with unknown outcome, and for how long.
const MAX_POSTS: usize = 64;
const MEMORY: Duration = Duration::from_secs(5 * 60);

/// The POSTs of a client whose outcomes the client cannot know.
#[derive(Debug, Default)]
pub(in crate::report) struct Posts(VecDeque<UnknownPost>);

#[derive(Debug)]
struct UnknownPost {
    request: Arc<Facts>,
    is_repeated: bool,
    /// The repeat, if it came in the first moments.
    doubt: Doubt,
    /// When the client received a list that lacks the pet.
    checked: Option<Moment>,
    /// The number of a list that contains the pet.
    listed_by: Option<u64>,
}

/// A pet in a list.
#[derive(Deserialize)]
struct ListedPet {
    id: i64,
}

impl Posts {
    /// Whether no request is remembered.
    pub(in crate::report) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of remembered requests.
    pub(in crate::report) fn remembered(&self) -> usize {
        self.0.iter().map(|post| 1 + post.doubt.remembered()).sum()
    }

    pub(in crate::report) fn judge(
        &mut self,
        record: &Record,
        request: &Arc<Facts>,
        found: &mut Ruling,
    ) {
        for post in &mut self.0 {
            post.resolve_doubt(request, found);
        }
        if request.method() == Method::POST {
            self.judge_post(request, found);
        } else if !self.0.is_empty()
            && record.arrival.operation == Some(Operation::ListPets)
            && request.method() == Method::GET
            && request.status() == Some(200)
        {
            self.note_list(&record.reply_body.start, request);
        }
    }

    /// Adds what is found if no further request follows.
    pub(in crate::report) fn complete(&self, found: &mut Ruling) {
        for post in &self.0 {
            post.doubt.complete(Rule::RepeatedPost, found);
        }
    }

    /// Returns how long until [`Self::complete`] is certain, if it is not yet.
    pub(in crate::report) fn undecided(&self, now: &Moment) -> Option<Duration> {
        let posts = self.0.iter();
        let left = posts.map(|post| post.doubt.undecided(post.request.ended(), now));
        left.max().filter(|left| !left.is_zero())
    }

    fn judge_post(&mut self, request: &Arc<Facts>, found: &mut Ruling) {
        let now = request.arrived();
        self.0
            .retain(|post| now.gap_since(post.request.ended()) <= MEMORY);
        let repeated = self.0.iter_mut().rev().find(|post| {
            let earlier = &post.request;
            !post.is_repeated && request.is_same_as(earlier) && request.follows(earlier)
        });
        if let Some(post) = repeated {
            post.is_repeated = true;
            if post.checked.is_none_or(|list| now.is_before(&list)) {
                let breach = post.breach(request);
                post.add(breach, request, found);
            }
        }
        if is_unknown(request) {
            if self.0.len() == MAX_POSTS
                && let Some(oldest) = self.0.pop_front()
            {
                oldest.doubt.complete(Rule::RepeatedPost, found);
            }
            self.0.push_back(UnknownPost {
                request: Arc::clone(request),
                is_repeated: false,
                doubt: Doubt::default(),
                checked: None,
                listed_by: None,
            });
        }
    }

    /// Records that the client listed the pets. Once a list has contained the created pet, no list
    /// excuses the repeat: it may be another page.
    fn note_list(&mut self, list: &[u8], request: &Facts) {
        let listed: Vec<ListedPet> = serde_json::from_slice(list).unwrap_or_default();
        for post in &mut self.0 {
            if request.arrived().is_before(post.request.ended()) {
                continue;
            }
            if listed
                .iter()
                .any(|pet| post.request.added() == Some(pet.id))
            {
                post.listed_by = Some(request.number());
                post.checked = None;
            } else if post.listed_by.is_none() {
                post.checked.get_or_insert(*request.ended());
            }
        }
    }
}

impl UnknownPost {
    /// Adds the breach of a repeat. It stays doubtful if the repeat came in the first moments.
    fn add(&mut self, breach: Breach, request: &Facts, found: &mut Ruling) {
        if is_soon(request, self.request.ended()) {
            self.doubt.keep(breach);
        } else {
            found.add(Rule::RepeatedPost, breach);
        }
    }

    /// Decides about a doubtful repeat. If it is let go, another worker sent it.
    fn resolve_doubt(&mut self, request: &Facts, found: &mut Ruling) {
        let ended = self.request.ended();
        if self
            .doubt
            .resolve(ended, Rule::RepeatedPost, request, found)
        {
            self.is_repeated = false;
        }
    }

    fn breach(&self, request: &Arc<Facts>) -> Breach {
        let first = &self.request;
        let wait = request.arrived().gap_since(first.ended());
        let answer = match first.status() {
            Some(status) => status.to_string(),
            None => "no response".to_owned(),
        };
        let checked = match self.listed_by {
            Some(list) => format!("although GET /pets had listed the pet (#{list})"),
            None => "without checking GET /pets first".to_owned(),
        };
        let added: Vec<i64> = [first.added(), request.added()]
            .into_iter()
            .flatten()
            .collect();
        let outcome = match added[..] {
            [first, second] => format!("the pets {first} and {second} are duplicates"),
            [id] => format!("pet {id} was created once"),
            _ => "neither created a pet".to_owned(),
        };
        let text = format!(
            "the same {} was sent again {} after {answer} (#{}), {checked}; {outcome}",
            request.name(),
            seconds(wait),
            first.number(),
        );
        let mut series = Series::after(first);
        series.push(request);
        let mut breach = Breach::new(request.number(), text, series);
        breach.by = Some(wait);
        breach.added = added;
        breach
    }
}

/// Whether the client cannot know the outcome of a POST.
fn is_unknown(request: &Facts) -> bool {
    match request.status() {
        None | Some(500 | 502 | 504 | 506..) => true,
        // A 503 says that the request was not processed. The rule judges it only if that is wrong.
        Some(503) => request.retry_after().is_none() && request.added().is_some(),
        Some(_) => false,
    }
}
