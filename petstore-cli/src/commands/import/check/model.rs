//! A model of several imports that use one service at the same time. There are other programs, lost
//! requests and responses, late requests, and ids and lists of every kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use petstore_client::{NewPet, Pet};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use serde_json::json;

use super::super::journal::{Record, RowState, Run, State};
use super::super::rows::{Place, Row};
use super::matching::{Matching, Verdict};

/// How long a request may take to arrive, in steps of a second.
const LIMIT: u64 = 4;
const CASES: u32 = 3_000;

/// How the service chooses ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ids {
    Rising,
    WithGaps,
    Falling,
    Random,
}

/// How the service lists pets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listing {
    Whole,
    Reversed,
    /// Some pets twice.
    Repeated,
    /// Some pets are missing, and the client knows that.
    Cut,
    /// The list looks complete, but lacks a pet of the import.
    Short,
}

/// Which pets the service adds a field to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    None,
    All,
    Some,
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Unanswered,
    Lost,
    /// Processed after this many seconds, without a response.
    Late(u64),
    /// The program is killed while the request is in flight, which is processed or not.
    Killed(bool),
}

/// What happens next: an import, another program, or a pause.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The number of the import, the fate of each request, and how many requests it sends at once.
    Send(usize, [Fate; 2], usize),
    /// Another program creates a pet with this name.
    Other(usize),
    Wait(u64),
    Delete(Index),
}

#[derive(Debug, Clone)]
struct World {
    ids: Ids,
    listing: Listing,
    added: Added,
    before: Vec<usize>,
    /// The names of each import's rows.
    imports: Vec<Vec<usize>>,
    events: Vec<Event>,
    random: Vec<i64>,
}

/// A pet: its id, its name, and the import and row that it belongs to.
type Made = (i64, usize, Option<(usize, usize)>);

/// The service.
#[derive(Debug, Default)]
struct Service {
    pets: Vec<Made>,
    made: usize,
    /// All ids that were ever assigned.
    given: BTreeSet<i64>,
    late: Vec<(u64, usize, (usize, usize))>,
    now: u64,
}

impl Service {
    fn create(&mut self, world: &World, name: usize, owner: Option<(usize, usize)>) -> i64 {
        let number = i64::try_from(self.made).unwrap();
        self.made += 1;
        let mut id = match world.ids {
            Ids::Rising => 100 + number,
            Ids::WithGaps => 100 + number * 7 + number % 3,
            Ids::Falling => 10_000 - number,
            Ids::Random => world.random[self.made % world.random.len()].wrapping_add(number),
        };
        while !self.given.insert(id) {
            id = id.wrapping_add(1);
        }
        self.pets.push((id, name, owner));
        id
    }

    fn advance(&mut self, world: &World, seconds: u64) {
        for _ in 0..seconds {
            self.now += 1;
            let late = std::mem::take(&mut self.late);
            for (at, name, owner) in late {
                if at <= self.now {
                    self.create(world, name, Some(owner));
                } else {
                    self.late.push((at, name, owner));
                }
            }
        }
    }

    /// Returns how many pets of a row exist.
    fn copies(&self, owner: (usize, usize)) -> usize {
        self.pets.iter().filter(|pet| pet.2 == Some(owner)).count()
    }
}

fn name(number: usize) -> String {
    format!("pet {number}")
}

/// Returns a pet as the service lists it.
fn listed(world: &World, id: i64, content: usize) -> Pet {
    let mut pet = NewPet::new(name(content), 7).into_pet(id);
    let is_added = match world.added {
        Added::None => false,
        Added::All => true,
        Added::Some => id % 2 == 0,
    };
    if is_added {
        pet.extra.insert("tags".to_owned(), json!(["new"]));
    }
    pet
}

fn run(now: u64, rows: usize) -> Record {
    Record::Run(Run {
        pid: 1,
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(now),
        boot: None,
        base_url: String::new(),
        limit: Duration::from_secs(LIMIT),
        rows,
        files: Vec::new(),
        damaged: Vec::new(),
    })
}

/// An import, as its journal knows it.
struct Import {
    number: usize,
    rows: Vec<Row>,
    state: State,
    is_stopped: bool,
}

impl Import {
    fn new(number: usize, names: &[usize]) -> Self {
        let row = |number: &usize| Row::new(Place::Line(1), NewPet::new(name(*number), 7));
        let mut state = State::default();
        state.resize(names.len());
        state.apply(run(0, names.len()));
        Self {
            number,
            rows: names.iter().map(row).collect(),
            state,
            is_stopped: false,
        }
    }

    /// Sends the next rows at once.
    fn send(&mut self, world: &World, service: &mut Service, fates: &[Fate]) {
        if self.is_stopped {
            self.is_stopped = false;
            let unknown = self.state.unknown();
            self.state.apply(Record::Rows(RowState::Unknown, unknown));
            self.state.apply(run(service.now, self.rows.len()));
        }
        let mut left = self.state.rows_where(RowState::is_left);
        left.truncate(fates.len());
        let at = service.now * 1_000;
        self.state.apply(Record::Sent {
            at,
            rows: left.clone(),
        });
        let mut outcomes = Vec::new();
        for (row, fate) in left.into_iter().zip(fates) {
            let owner = (self.number, row);
            let content = world.imports[self.number][row];
            let lost = Record::Lost {
                at,
                rows: vec![row],
            };
            match fate {
                Fate::Answered => {
                    let id = service.create(world, content, Some(owner));
                    outcomes.push(Record::Rows(RowState::Created(id), vec![row]));
                }
                Fate::Unanswered => {
                    service.create(world, content, Some(owner));
                    outcomes.push(lost);
                }
                Fate::Lost => outcomes.push(lost),
                Fate::Late(after) => {
                    service.late.push((service.now + after, content, owner));
                    outcomes.push(lost);
                }
                Fate::Killed(is_processed) => {
                    if *is_processed {
                        service.create(world, content, Some(owner));
                    }
                    self.is_stopped = true;
                }
            }
        }
        if !self.is_stopped {
            outcomes
                .into_iter()
                .for_each(|record| self.state.apply(record));
        }
    }

    /// Returns the ids in the responses.
    fn known(&self) -> Vec<i64> {
        let rows = self.state.rows().iter();
        let ids = rows.filter_map(|row| match row {
            RowState::Created(id) => Some(*id),
            _ => None,
        });
        ids.collect()
    }

    fn check(&self, world: &World, service: &Service) -> Verdict {
        let mut matching = Matching::new(&self.rows, &self.state);
        let mut pets = service.pets.clone();
        match world.listing {
            Listing::Whole => {}
            Listing::Reversed => pets.reverse(),
            Listing::Repeated => pets.extend(service.pets.iter().step_by(2)),
            Listing::Cut => pets.truncate(pets.len() / 2),
            Listing::Short => {
                let known = self.known();
                pets.retain(|pet| Some(&pet.0) != known.first());
            }
        }
        for (id, content, _) in pets {
            matching.add(&listed(world, id, content));
        }
        let gap = (world.listing == Listing::Cut).then(|| "cut".to_owned());
        matching.finish(gap)
    }
}

/// Runs all events, and compares each import's verdict on its unknown rows with the truth.
fn happen(world: &World) -> Result<(), TestCaseError> {
    let mut service = Service::default();
    for name in &world.before {
        service.create(world, *name, None);
    }
    let numbers = 0..world.imports.len();
    let mut imports: Vec<_> = numbers
        .map(|number| Import::new(number, &world.imports[number]))
        .collect();
    let (mut has_deleted, mut senders) = (false, BTreeSet::new());
    for event in &world.events {
        match event {
            Event::Send(number, fates, count) => {
                let number = number % imports.len();
                senders.insert(number);
                imports[number].send(world, &mut service, &fates[..*count]);
            }
            Event::Other(name) => {
                senders.insert(usize::MAX);
                service.create(world, *name, None);
            }
            Event::Wait(seconds) => service.advance(world, *seconds),
            Event::Delete(index) if !service.pets.is_empty() => {
                has_deleted = true;
                let at = index.index(service.pets.len());
                service.pets.remove(at);
            }
            Event::Delete(_) => {}
        }
    }
    // The check is a separate run, after all late requests have arrived.
    service.advance(world, LIMIT);
    let is_alone = senders.len() <= 1 && !has_deleted;
    for import in &mut imports {
        let unknown = import.state.unknown();
        import.state.apply(Record::Rows(RowState::Unknown, unknown));
        import.state.apply(run(service.now, import.rows.len()));
        let verdict = import.check(world, &service);
        judge(world, &service, import, &verdict, is_alone)?;
    }
    Ok(())
}

/// Compares the verdict with the truth.
fn judge(
    world: &World,
    service: &Service,
    import: &Import,
    verdict: &Verdict,
    is_alone: bool,
) -> Result<(), TestCaseError> {
    let names = &world.imports[import.number];
    let checked = &verdict.checked;
    // Rows with equal content are interchangeable, so their numbers count.
    let mut not_found: BTreeMap<usize, usize> = BTreeMap::new();
    for row in &checked.not_found {
        *not_found.entry(names[*row]).or_default() += 1;
    }
    let unknown = import.state.unknown();
    for (content, sent_again) in not_found {
        let same: Vec<_> = unknown
            .iter()
            .filter(|row| names[**row] == content)
            .collect();
        let existing = same
            .iter()
            .filter(|row| service.copies((import.number, ***row)) > 0);
        prop_assert!(
            existing.count() + sent_again <= same.len(),
            "{:?}: rows like {} would exist twice",
            verdict,
            content
        );
    }
    if world.listing == Listing::Short && !import.known().is_empty() {
        prop_assert!(checked.found.is_empty() && checked.not_found.is_empty());
    }
    for (row, id) in &checked.found {
        let content = names[*row];
        let pet = service.pets.iter().find(|pet| pet.0 == *id);
        let is_own = pet.is_some_and(|(_, name, owner)| {
            *name == content && owner.is_some_and(|owner| owner.0 == import.number)
        });
        prop_assert!(
            is_own || is_alike(world, service, import, *row),
            "{:?}: row {} is not pet {}",
            verdict,
            row,
            id
        );
    }
    let is_rising = matches!(world.ids, Ids::Rising | Ids::WithGaps);
    let is_whole = !matches!(world.listing, Listing::Cut | Listing::Short);
    // An older pet may look like that of the first row.
    let is_new = world.before.is_empty();
    // A field that only some pets have may come from others.
    let is_plain = match world.added {
        Added::None => true,
        Added::All => !import.known().is_empty(),
        Added::Some => false,
    };
    if is_alone && is_rising && is_whole && is_new && is_plain {
        let undecided = checked.uncertain.len() + verdict.undecided;
        prop_assert_eq!(undecided, 0, "{:?}", verdict);
    }
    Ok(())
}

/// Returns whether a stranger's pet cannot be told from the import's own. That is so if all pets
/// that others created in the meantime are equal to an unknown row.
fn is_alike(world: &World, service: &Service, import: &Import, row: usize) -> bool {
    let names = &world.imports[import.number];
    let unknown: BTreeSet<_> = import
        .state
        .unknown()
        .iter()
        .map(|row| names[*row])
        .collect();
    let around = import.state.windows().around(row);
    service.pets.iter().all(|(id, name, owner)| {
        let is_own = owner.is_some_and(|owner| owner.0 == import.number);
        let is_far = *id < around.first() || *id > around.last();
        is_own || is_far || unknown.contains(name)
    })
}

fn worlds(alone: bool) -> impl Strategy<Value = World> {
    let fate = prop_oneof![
        6 => Just(Fate::Answered),
        2 => Just(Fate::Unanswered),
        2 => Just(Fate::Lost),
        1 => (1..=LIMIT).prop_map(Fate::Late),
        1 => any::<bool>().prop_map(Fate::Killed),
    ];
    let send = (0..3_usize, [fate.clone(), fate], 1..=2_usize)
        .prop_map(|(number, fates, count)| Event::Send(number, fates, count));
    let event = if alone {
        prop_oneof![8 => send, 2 => (1..9_u64).prop_map(Event::Wait)].boxed()
    } else {
        prop_oneof![
            12 => send,
            2 => (0..6_usize).prop_map(Event::Other),
            3 => (1..9_u64).prop_map(Event::Wait),
            1 => any::<Index>().prop_map(Event::Delete),
        ]
        .boxed()
    };
    let ids = select(vec![Ids::Rising, Ids::WithGaps, Ids::Falling, Ids::Random]);
    let listing = select(vec![
        Listing::Whole,
        Listing::Whole,
        Listing::Reversed,
        Listing::Repeated,
        Listing::Cut,
        Listing::Short,
    ]);
    let imports = if alone { 1..=1 } else { 1..=3_usize };
    let added = select(vec![Added::None, Added::None, Added::All, Added::Some]);
    (
        ids,
        listing,
        added,
        vec(0..6_usize, 0..4),
        vec(vec(0..6_usize, 3..14), imports),
        vec(event, 1..40),
        vec(any::<i64>(), 20),
    )
        .prop_map(
            |(ids, listing, added, before, imports, events, random)| World {
                ids,
                listing,
                added,
                before,
                imports,
                events,
                random,
            },
        )
}

fn check<S: Strategy>(
    strategy: S,
    cases: u32,
    seed: u64,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..Config::default()
    };
    match TestRunner::new(config).run(&strategy, test) {
        Ok(()) => {}
        Err(TestError::Fail(why, case)) => panic!("{why}\nin the smallest case found: {case:#?}"),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_check_in_company_doubles_no_row_and_claims_no_other_pet() {
    check(worlds(false), CASES, 51, |world| happen(&world));
}

#[test]
fn a_check_alone_finds_out_about_every_row_if_ids_rise() {
    check(worlds(true), CASES, 52, |world| happen(&world));
}

/// The same with other seeds: `cargo test -p petstore-cli --lib check::model -- --ignored`.
#[test]
#[ignore = "takes minutes"]
fn checks_in_a_hundred_times_as_many_worlds() {
    for seed in 0..100 {
        check(worlds(seed % 2 == 0), CASES, seed, |world| happen(&world));
    }
}
