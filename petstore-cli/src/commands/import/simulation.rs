//! A simulation of two imports with equal rows beside a service that loses requests and responses,
//! processes requests late, and cuts its list. The imports are killed, and their machine fails.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use petstore_client::url::Url;
use petstore_client::{NewPet, Pet, PetStatus};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::check::PetList;
use super::properties::check;
use super::records::{Record, Run, State};
use super::rows::{Digest, Row, Rows};

/// What may happen next.
#[derive(Debug, Clone)]
enum Event {
    /// An import records some rows as sent, without a sync.
    Announce(usize),
    /// The record is on the disk, and the rows are sent.
    SyncAndSend,
    /// The service processes a request.
    Process(Index),
    /// A request is lost on its way.
    Lose(Index),
    /// The oldest row in flight gets the response, if its request was processed.
    Respond,
    /// The oldest row in flight loses its connection. Its request may still be processed.
    Disconnect,
    /// The process is killed.
    Kill,
    /// The machine fails: what was not synced is lost from some byte on, or zero.
    PowerFailure(Index, bool),
    /// All rows are done, and the run ends.
    End,
    /// A new run leaves unknown rows alone.
    Skip,
    /// A new run checks unknown rows, with a list that may break off.
    Check(Option<Index>),
    /// A new run sends unknown rows again.
    Retry,
}

fn event() -> impl Strategy<Value = (bool, Event)> {
    let any = any::<Index>;
    let event = prop_oneof![
        6 => (1..4_usize).prop_map(Event::Announce),
        6 => Just(Event::SyncAndSend),
        8 => any().prop_map(Event::Process),
        2 => any().prop_map(Event::Lose),
        6 => Just(Event::Respond),
        2 => Just(Event::Disconnect),
        1 => Just(Event::Kill),
        1 => (any(), proptest::bool::ANY).prop_map(|(at, zeros)| Event::PowerFailure(at, zeros)),
        2 => Just(Event::End),
        1 => Just(Event::Skip),
        2 => proptest::option::of(any()).prop_map(Event::Check),
        1 => Just(Event::Retry),
    ];
    (proptest::bool::ANY, event)
}

/// A request that the service may still process.
#[derive(Clone)]
struct Request {
    import: usize,
    row: usize,
    run: usize,
}

#[derive(Default)]
struct Service {
    pets: Vec<Pet>,
    on_the_way: Vec<Request>,
}

impl Service {
    /// Creates the pet of a request, and returns its id. Without a status, the service chooses one
    /// for every other pet.
    fn create(&mut self, new: &NewPet) -> i64 {
        let number = i64::try_from(self.pets.len()).unwrap();
        // The ids rise and fall.
        let id = number ^ 5;
        let mut pet = new.clone().into_pet(id);
        if pet.status.is_none() && number % 2 == 0 {
            pet.status = Some(PetStatus::Available);
        }
        self.pets.push(pet);
        id
    }
}

/// A row in flight, and the id of its pet if the request was processed.
struct Flight {
    row: usize,
    run: usize,
    pet: Option<i64>,
}

struct Import {
    number: usize,
    rows: Rows,
    /// The bytes of the journal, and how many of them are synced.
    journal: Vec<u8>,
    synced: usize,
    /// What the journal says.
    state: State,
    is_running: bool,
    run: usize,
    announced: Vec<usize>,
    flights: Vec<Flight>,
    has_retried: bool,
    restless: bool,
}

impl Import {
    fn new(number: usize, rows: &str) -> Self {
        let rows = Rows::read("rows", rows.as_bytes().to_vec(), None).unwrap();
        Self {
            number,
            rows,
            journal: Vec::new(),
            synced: 0,
            state: State::default(),
            is_running: false,
            run: 0,
            announced: Vec::new(),
            flights: Vec::new(),
            has_retried: false,
            restless: false,
        }
    }

    /// Reads the journal, and cuts its unreadable end.
    fn read(&mut self) {
        self.state = State::default();
        if !self.journal.is_empty() {
            let (state, whole) = State::read("the journal", &self.journal).unwrap();
            self.journal.truncate(whole);
            self.state = state;
        }
    }

    fn write(&mut self, record: Record) {
        let lines = Record::lines(std::slice::from_ref(&record)).unwrap();
        self.journal.extend(lines);
        assert!(self.state.apply(record));
    }

    fn sync(&mut self) {
        self.synced = self.journal.len();
    }

    fn unknown(&self) -> Vec<usize> {
        self.state.unknown().map(|(row, _)| row).collect()
    }

    fn digest(&self, row: usize) -> Digest {
        self.rows.all()[row].digest().unwrap()
    }

    fn stop(&mut self) {
        self.is_running = false;
        self.announced.clear();
        self.flights.clear();
    }

    /// Begins a run, as the program does.
    fn begin(&mut self) {
        let before = self.state.clone();
        self.read();
        assert_eq!(self.state, before, "what was written is read");
        self.restless = !self.state.restless().is_zero();
        self.run += 1;
        self.is_running = true;
        let base_url = Url::parse("http://x/v1").unwrap();
        let run = Run::new(&base_url, Duration::from_secs(30), String::new());
        self.write(Record::Run(run));
        self.sync();
    }

    fn announce(&mut self, most: usize) {
        if !self.is_running || !self.announced.is_empty() {
            return;
        }
        let rows = 0..self.rows.all().len();
        let left = rows.filter(|row| self.state.is_unsent(*row));
        self.announced = left.take(most).collect();
        let rows = self.announced.iter().map(|row| (*row, self.digest(*row)));
        self.write(Record::Sent(rows.collect()));
    }

    fn send(&mut self, service: &mut Service) {
        if self.announced.is_empty() {
            return;
        }
        self.sync();
        for row in std::mem::take(&mut self.announced) {
            service.on_the_way.push(Request {
                import: self.number,
                row,
                run: self.run,
            });
            self.flights.push(Flight {
                row,
                run: self.run,
                pet: None,
            });
        }
    }

    fn respond(&mut self) {
        if let Some(&Flight {
            row,
            run,
            pet: Some(id),
        }) = self.flights.first()
        {
            assert_eq!(run, self.run);
            self.flights.remove(0);
            self.write(Record::Created(row, id));
        }
    }

    fn disconnect(&mut self) {
        if !self.flights.is_empty() {
            let row = self.flights.remove(0).row;
            self.write(Record::Unknown(row, "the connection was lost".to_owned()));
        }
    }

    fn end(&mut self, service: &Service) {
        let is_quiet = !service.on_the_way.iter().any(|it| it.import == self.number);
        if self.is_running && self.announced.is_empty() && self.flights.is_empty() {
            // What this run has sent has arrived. What earlier runs have sent may not have.
            let own = |request: &Request| request.import == self.number && request.run == self.run;
            if service.on_the_way.iter().any(own) {
                return;
            }
            if !self.restless || is_quiet {
                self.write(Record::End(String::new()));
            }
            self.sync();
            self.stop();
        }
    }

    /// Lists the pets, and records what the list says about the unknown rows.
    fn check(
        &mut self,
        service: &mut Service,
        breaks_off: Option<&Index>,
    ) -> Result<(), TestCaseError> {
        if self.restless {
            // The check waits until every request has arrived or is lost.
            service
                .on_the_way
                .retain(|request| request.import != self.number);
        }
        let taken = std::collections::HashSet::new();
        let mut list = PetList::new(self.rows.all(), &self.state, &taken);
        let end = breaks_off.map_or(service.pets.len(), |at| at.index(service.pets.len() + 1));
        list.add_page(&service.pets[..end], false);
        if breaks_off.is_some() {
            list.doubt(|| "it broke off".to_owned());
        }
        let verdict = list.finish();
        let is_complete = verdict.doubt.is_none();
        for (row, id) in verdict.found {
            self.write(Record::Found(row, id));
        }
        if is_complete {
            self.write(Record::Unsent(verdict.missing));
            let unknown = self.unknown();
            prop_assert!(unknown.is_empty(), "{unknown:?} are unknown after a check");
        }
        Ok(())
    }
}

/// Two files with equal rows, some of them without a status.
const ROWS: [&str; 2] = [
    "name,categoryId,status\nA,1,sold\nA,1,\nA,1,sold\nB,1,\nA,2,\nA,1,\n",
    "name,categoryId,status\nA,1,\nB,1,\nA,1,sold\nC,1,pending\n",
];

struct World {
    service: Service,
    imports: [Import; 2],
}

impl World {
    fn apply(&mut self, second: bool, event: &Event) -> Result<(), TestCaseError> {
        let service = &mut self.service;
        let import = &mut self.imports[usize::from(second)];
        match event {
            Event::Announce(most) => import.announce(*most),
            Event::SyncAndSend => import.send(service),
            Event::Process(at) => self.process(*at),
            Event::Lose(at) => {
                if !service.on_the_way.is_empty() {
                    let at = at.index(service.on_the_way.len());
                    service.on_the_way.remove(at);
                }
            }
            Event::Respond => import.respond(),
            Event::Disconnect => import.disconnect(),
            Event::Kill => import.stop(),
            Event::PowerFailure(at, zeros) => {
                let lost = at.index(import.journal.len() - import.synced + 1);
                let whole = import.synced + lost;
                match zeros {
                    true => import.journal[whole..].fill(0),
                    false => import.journal.truncate(whole),
                }
                import.stop();
                import.read();
            }
            Event::End => import.end(service),
            Event::Skip | Event::Check(_) | Event::Retry if import.is_running => {}
            Event::Skip => import.begin(),
            Event::Check(breaks_off) => {
                import.begin();
                import.check(service, breaks_off.as_ref())?;
            }
            Event::Retry => {
                import.begin();
                let unknown = import.unknown();
                import.has_retried |= !unknown.is_empty();
                import.write(Record::Unsent(unknown));
            }
        }
        self.examine()
    }

    fn process(&mut self, at: Index) {
        if self.service.on_the_way.is_empty() {
            return;
        }
        let at = at.index(self.service.on_the_way.len());
        let request = self.service.on_the_way.remove(at);
        let import = &mut self.imports[request.import];
        let id = self
            .service
            .create(import.rows.all()[request.row].pet().unwrap());
        let mut flights = import.flights.iter_mut();
        if let Some(flight) = flights.find(|it| (it.row, it.run) == (request.row, request.run)) {
            flight.pet = Some(id);
        }
    }

    fn examine(&self) -> Result<(), TestCaseError> {
        let pets: BTreeMap<_, _> = self.service.pets.iter().map(|pet| (pet.id, pet)).collect();
        for import in &self.imports {
            let mut taken = BTreeSet::new();
            for (row, id) in import.state.pets() {
                let row = &import.rows.all()[row];
                prop_assert!(taken.insert(id), "pet {id} is taken twice");
                let (pet, row) = (pets[&id], row.pet().unwrap());
                let is_like = (&pet.name, pet.category_id) == (&row.name, row.category_id)
                    && (row.status.is_none() || row.status == pet.status);
                prop_assert!(is_like, "{row:?} counts as {pet:?}");
            }
        }
        if self.imports.iter().any(|import| import.has_retried) {
            return Ok(());
        }
        // No content is created more often than the files have it, with or without its status.
        for pet in &self.service.pets {
            let count = |with_status: bool| {
                let is_like = |name: &str, category_id: i64, status: &Option<PetStatus>| {
                    name == pet.name
                        && category_id == pet.category_id
                        && (!with_status || *status == pet.status)
                };
                let rows = self.imports.iter().flat_map(|import| import.rows.all());
                let rows = rows.filter_map(Row::pet);
                let rows = rows.filter(|row| is_like(&row.name, row.category_id, &row.status));
                let pets = self.service.pets.iter();
                let pets = pets.filter(|it| is_like(&it.name, it.category_id, &it.status));
                (pets.count(), rows.count())
            };
            let (pets, rows) = count(false);
            prop_assert!(pets <= rows, "{pet:?} was created too often");
            if pet.status == Some(PetStatus::Sold) {
                let (pets, rows) = count(true);
                prop_assert!(pets <= rows, "{pet:?} was created too often");
            }
        }
        Ok(())
    }
}

#[test]
fn no_interleaving_of_two_imports_creates_a_row_twice() {
    check(vec(event(), 1..80), 51, |events| {
        let mut world = World {
            service: Service::default(),
            imports: [Import::new(0, ROWS[0]), Import::new(1, ROWS[1])],
        };
        for (second, event) in &events {
            world.apply(*second, event)?;
        }
        Ok(())
    });
}
