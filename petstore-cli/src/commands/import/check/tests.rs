//! Tests of the verdicts about unknown rows.

use std::collections::HashSet;
use std::time::{Duration, SystemTime};

use petstore_client::{NewPet, Pet, PetStatus};
use serde_json::json;

use super::super::journal::{Checked, IdWindow, Record, RowState, Run, State};
use super::super::rows::{Place, Row};
use super::cluster::{content, has_any, is_equal};
use super::matching::{Matching, Verdict};
use super::summary;

fn rows(names: &[&str]) -> Vec<Row> {
    let row = |name: &&str| Row::new(Place::Line(1), NewPet::new(*name, 7));
    names.iter().map(row).collect()
}

/// A journal whose rows were sent shortly after each other, with these ids in the responses.
fn journal(ids: &[Option<i64>]) -> State {
    let sent: Vec<_> = ids.iter().map(|id| (0, *id)).collect();
    journal_of(&sent)
}

/// A journal whose rows were sent in these milliseconds, with these ids in the responses.
fn journal_of(sent: &[(u64, Option<i64>)]) -> State {
    let mut state = State::default();
    state.apply(Record::Run(Run {
        pid: 7,
        started: SystemTime::UNIX_EPOCH,
        boot: None,
        base_url: String::new(),
        limit: Duration::from_secs(30),
        rows: sent.len(),
        files: Vec::new(),
        damaged: Vec::new(),
    }));
    for (row, (at, id)) in sent.iter().enumerate() {
        let (at, rows) = (*at, vec![row]);
        state.apply(Record::Sent {
            at,
            rows: rows.clone(),
        });
        state.apply(match id {
            Some(id) => Record::Rows(RowState::Created(*id), rows),
            None => Record::Lost { at, rows },
        });
    }
    state
}

fn pet(id: i64, name: &str) -> Pet {
    NewPet::new(name, 7).into_pet(id)
}

/// Matches rows with listed pets. The list also has the pets that the journal knows.
fn verdict(names: &[&str], ids: &[Option<i64>], pets: &[Pet]) -> Verdict {
    let (rows, state) = (rows(names), journal(ids));
    let mut matching = Matching::new(&rows, &state);
    for (name, id) in names.iter().zip(ids) {
        if let Some(id) = id {
            matching.add(&pet(*id, name));
        }
    }
    pets.iter().for_each(|pet| matching.add(pet));
    matching.finish(None)
}

fn found(pets: &[(usize, i64)]) -> Verdict {
    Verdict {
        checked: Checked {
            found: pets.to_vec(),
            ..Checked::default()
        },
        ..Verdict::default()
    }
}

fn not_found(rows: &[usize]) -> Verdict {
    Verdict {
        checked: Checked {
            not_found: rows.to_vec(),
            ..Checked::default()
        },
        ..Verdict::default()
    }
}

fn uncertain(rows: &[(usize, &[i64])]) -> Verdict {
    let uncertain = rows.iter().map(|(row, pets)| (*row, pets.to_vec()));
    Verdict {
        checked: Checked {
            uncertain: uncertain.collect(),
            ..Checked::default()
        },
        ..Verdict::default()
    }
}

#[test]
fn a_pet_in_the_window_with_the_content_of_the_row_is_its_own() {
    let ids = [Some(5), None];
    assert_eq!(verdict(&["a", "b"], &ids, &[pet(6, "b")]), found(&[(1, 6)]));
    // The service had other pets before.
    let pets = [pet(2, "x"), pet(6, "b")];
    assert_eq!(verdict(&["a", "b"], &ids, &pets), found(&[(1, 6)]));
    assert_eq!(verdict(&["a", "b"], &ids, &[]), not_found(&[1]));
}

#[test]
fn rows_with_equal_content_are_counted() {
    let (names, ids) = (["a", "b", "b", "b"], [Some(5), None, None, None]);
    let expected = Verdict {
        checked: Checked {
            found: vec![(1, 6), (2, 7)],
            not_found: vec![3],
            uncertain: vec![],
        },
        ..Verdict::default()
    };
    let pets = [pet(7, "b"), pet(6, "b"), pet(6, "b")];
    assert_eq!(verdict(&names, &ids, &pets), expected);
}

#[test]
fn another_pet_in_the_window_makes_only_its_match_uncertain() {
    let (names, ids) = (["a", "b", "c"], [Some(5), None, None]);
    let expected = Verdict {
        checked: Checked {
            found: vec![],
            not_found: vec![2],
            uncertain: vec![(1, vec![6])],
        },
        ..Verdict::default()
    };
    assert_eq!(verdict(&names, &ids, &[pet(6, "b"), pet(9, "x")]), expected);
    // More pets than rows.
    let two = uncertain(&[(1, &[6, 7])]);
    let pets = [pet(6, "b"), pet(7, "b")];
    assert_eq!(verdict(&["a", "b"], &[Some(5), None], &pets), two);
    // The response to the first row was lost, so its window is open below.
    let first = verdict(&["b", "c"], &[None, Some(8)], &[pet(1, "x"), pet(7, "b")]);
    assert_eq!(first, uncertain(&[(0, &[7])]));
}

#[test]
fn a_copy_of_one_row_makes_the_match_of_another_uncertain() {
    // Somebody else creates pets like those of this import, so that pet 7 may be theirs too.
    let pets = [pet(5, "b"), pet(6, "b"), pet(7, "c")];
    let both = uncertain(&[(0, &[5, 6]), (1, &[7])]);
    assert_eq!(verdict(&["b", "c"], &[None, None], &pets), both);
}

#[test]
fn at_most_ten_pets_are_named_for_a_row() {
    let pets: Vec<_> = (1..=12).map(|id| pet(id, "b")).collect();
    let ids: Vec<_> = (1..=10).collect();
    assert_eq!(verdict(&["b"], &[None], &pets), uncertain(&[(0, &ids)]));
}

#[test]
fn a_second_import_of_the_same_rows_makes_matches_uncertain() {
    let mut names: Vec<_> = vec!["a"; 16];
    names.extend(["b", "c"]);
    let mut ids: Vec<_> = (1..17).map(Some).collect();
    ids.extend([None, Some(18)]);
    let own = pet(17, "b");
    assert_eq!(
        verdict(&names, &ids, std::slice::from_ref(&own)),
        found(&[(16, 17)])
    );
    // Its id is below that of the first row, so this pet is older than the import.
    let pets = [own.clone(), pet(0, "c")];
    assert_eq!(verdict(&names, &ids, &pets), found(&[(16, 17)]));
    assert_eq!(
        verdict(&names, &ids, &[own, pet(20, "c")]),
        uncertain(&[(16, &[17])])
    );
}

#[test]
fn one_pet_too_many_makes_a_row_uncertain_even_if_ids_rise() {
    let mut names: Vec<_> = vec!["a"; 16];
    names.push("b");
    let mut ids: Vec<_> = (1..17).map(Some).collect();
    ids.push(None);
    let pets = [pet(17, "b"), pet(18, "b")];
    assert_eq!(verdict(&names, &ids, &pets), uncertain(&[(16, &[17, 18])]));
}

#[test]
fn a_later_pet_with_another_name_says_nothing_about_a_row() {
    let mut names: Vec<_> = vec!["a"; 16];
    names.extend(["b", "c"]);
    let rows = rows(&names);
    let mut sent: Vec<_> = (1..17).map(|id| (0, Some(id))).collect();
    // The last row is sent when the request of the row before it can no longer arrive.
    sent.extend([(0, None), (90_000, Some(18))]);
    let state = journal_of(&sent);
    let mut matching = Matching::new(&rows, &state);
    (1..17).for_each(|id| matching.add(&pet(id, "a")));
    matching.add(&pet(17, "b"));
    matching.add(&pet(18, "c"));
    matching.add(&pet(20, "x"));
    assert_eq!(matching.finish(None), found(&[(16, 17)]));
}

#[test]
fn ids_of_one_machine_of_two_show_no_order() {
    // The other machine assigns lower ids, and has created the pet of the last row.
    let mut names: Vec<_> = vec!["a"; 9];
    names.push("b");
    let mut ids: Vec<_> = (1_001..1_010).map(Some).collect();
    ids.push(None);
    assert_eq!(
        verdict(&names, &ids, &[pet(17, "b")]),
        uncertain(&[(9, &[17])])
    );
}

#[test]
fn ids_that_fall_leave_no_window() {
    let (names, ids) = (["a", "b", "c"], [Some(9), None, Some(7)]);
    assert_eq!(verdict(&names, &ids, &[pet(8, "b")]), found(&[(1, 8)]));
    assert_eq!(verdict(&names, &ids, &[pet(1, "b")]), found(&[(1, 1)]));
    let pets = [pet(8, "b"), pet(1, "x")];
    assert_eq!(verdict(&names, &ids, &pets), uncertain(&[(1, &[8])]));
}

#[test]
fn an_equal_pet_elsewhere_makes_a_row_uncertain_at_first() {
    let (names, ids) = (["a", "b"], [Some(5), None]);
    assert_eq!(
        verdict(&names, &ids, &[pet(3, "b")]),
        uncertain(&[(1, &[3])])
    );
    let mut names: Vec<_> = vec!["a"; 16];
    names.push("b");
    let mut ids: Vec<_> = (10..26).map(Some).collect();
    ids.push(None);
    assert_eq!(verdict(&names, &ids, &[pet(3, "b")]), not_found(&[16]));
}

#[test]
fn a_pet_that_was_changed_keeps_its_row_from_being_sent_again() {
    let (names, ids) = (["a", "b"], [Some(5), None]);
    let sold = |mut pet: Pet| {
        pet.extra.insert("owner".to_owned(), json!("Ada"));
        pet
    };
    let pets = [sold(pet(6, "b"))];
    assert_eq!(verdict(&names, &ids, &pets), uncertain(&[(1, &[6])]));
}

#[test]
fn a_changed_pet_keeps_the_only_id_of_its_rows_window() {
    let sold = NewPet::new("b", 7).with_status(PetStatus::Sold);
    let rows = [NewPet::new("a", 7), sold, NewPet::new("c", 7)];
    let rows = rows.map(|pet| Row::new(Place::Line(1), pet));
    let state = journal_of(&[(0, Some(5)), (0, None), (90_000, Some(7))]);
    let mut matching = Matching::new(&rows, &state);
    let pending = NewPet::new("b", 7).with_status(PetStatus::Pending);
    for pet in [pet(5, "a"), pending.into_pet(6), pet(7, "c")] {
        matching.add(&pet);
    }
    assert_eq!(matching.finish(None), uncertain(&[(1, &[6])]));
}

#[test]
fn the_end_of_a_list_is_doubted_only_while_a_row_stays_unknown() {
    let why = || Some("the list broke off".to_owned());
    let doubt = |ids: &[Option<i64>], pets: &[Pet]| {
        let (rows, state) = (rows(&["a", "b"]), journal(ids));
        let mut matching = Matching::new(&rows, &state);
        pets.iter().for_each(|pet| matching.add(pet));
        matching.finish(why()).doubt
    };
    let whole = [pet(5, "a"), pet(6, "b")];
    assert_eq!(doubt(&[Some(5), Some(6)], &whole), None);
    // The row is uncertain, or nothing is known about it.
    assert_eq!(doubt(&[Some(5), None], &whole), why());
    assert_eq!(doubt(&[Some(5), None], &whole[..1]), why());
}

#[test]
fn fields_that_the_service_adds_to_each_pet_are_no_difference() {
    let rows = rows(&["a", "b"]);
    let state = journal(&[Some(5), None]);
    let tagged = |id, name: &str, field: &str| {
        let mut pet = NewPet::new(name, 7)
            .with_status(PetStatus::Available)
            .into_pet(id);
        pet.extra.insert(field.to_owned(), json!(id));
        pet
    };
    let verdict = |field| {
        let mut matching = Matching::new(&rows, &state);
        matching.add(&tagged(5, "a", "created"));
        matching.add(&tagged(6, "b", field));
        matching.finish(None)
    };
    assert_eq!(verdict("created"), found(&[(1, 6)]));
    assert_eq!(verdict("chip"), uncertain(&[(1, &[6])]));
    // The order of the fields does not matter.
    let mut matching = Matching::new(&rows, &state);
    for (id, name, fields) in [(5, "a", ["chip", "owner"]), (6, "b", ["owner", "chip"])] {
        let mut pet = NewPet::new(name, 7).into_pet(id);
        for field in fields {
            pet.extra.insert(field.to_owned(), json!(id));
        }
        matching.add(&pet);
    }
    assert_eq!(matching.finish(None), found(&[(1, 6)]));
}

#[test]
fn a_row_without_a_status_gets_what_other_rows_leave() {
    let row = |pet| Row::new(Place::Line(1), pet);
    let sold = NewPet::new("a", 7).with_status(PetStatus::Sold);
    let rows = [NewPet::new("a", 7), sold, NewPet::new("a", 7)].map(row);
    let state = journal(&[None; 3]);
    let verdict = |pets: i64| {
        let mut matching = Matching::new(&rows, &state);
        let sold = NewPet::new("a", 7).with_status(PetStatus::Sold);
        (1..=pets).for_each(|id| matching.add(&sold.clone().into_pet(id)));
        matching.finish(None).checked
    };
    assert_eq!(verdict(3).found.len(), 3);
    // It is not known which of the three does not exist.
    assert_eq!(verdict(2).uncertain.len(), 3);
    assert_eq!(verdict(0).not_found.len(), 3);
}

#[test]
fn a_pet_goes_to_the_row_whose_status_it_has() {
    let checked = |rows: [NewPet; 2], pets: &[Pet]| {
        let rows = rows.map(|pet| Row::new(Place::Line(1), pet));
        let state = journal(&[None; 2]);
        let mut matching = Matching::new(&rows, &state);
        pets.iter().for_each(|pet| matching.add(pet));
        matching.finish(None).checked
    };
    let any = || NewPet::new("a", 7);
    let sold = || any().with_status(PetStatus::Sold);
    let pending = || any().with_status(PetStatus::Pending);
    let both = [sold().into_pet(1), any().into_pet(2)];
    assert_eq!(checked([any(), sold()], &both).found, [(0, 2), (1, 1)]);
    let one = checked([pending(), sold()], &[sold().into_pet(1)]);
    assert_eq!((one.found, one.not_found), (vec![(1, 1)], vec![0]));
}

#[test]
fn each_field_of_a_pet_is_compared() {
    let sent = NewPet::new("a", 7)
        .with_status(PetStatus::Sold)
        .with_field("chip", 9);
    let listed = content(&sent);
    let none = HashSet::new();
    assert!(is_equal(&listed, &listed, &none));
    for name in listed.keys() {
        let mut other = listed.clone();
        other[name] = json!("another");
        assert!(!is_equal(&listed, &other, &none), "{name}");
        other.remove(name);
        assert!(!is_equal(&listed, &other, &none), "{name}");
    }
    let mut more = listed.clone();
    more.insert("owner".to_owned(), json!("Ada"));
    assert!(!is_equal(&listed, &more, &none));
}

#[test]
fn a_list_that_lacks_a_pet_of_the_import_is_no_evidence() {
    let rows = rows(&["a", "b", "c"]);
    let state = journal(&[Some(5), None, None]);
    let listed = |pets: &[Pet]| {
        let mut matching = Matching::new(&rows, &state);
        pets.iter().for_each(|pet| matching.add(pet));
        matching.finish(None)
    };
    let verdict = listed(&[pet(6, "b")]);
    let expected = "pet 5 of this import is not in the list";
    assert_eq!(verdict.doubt.as_deref(), Some(expected));
    assert_eq!(verdict.checked.uncertain, [(1, vec![6])]);
    assert_eq!(
        (verdict.undecided, verdict.checked.not_found),
        (1, Vec::new())
    );
    // The service started its ids again from the beginning.
    let verdict = listed(&[pet(5, "x"), pet(6, "b")]);
    let expected = "pet 5 of this import has another content now";
    assert_eq!(verdict.doubt.as_deref(), Some(expected));
}

#[test]
fn a_check_says_how_many_rows_have_which_outcome() {
    let say = |created: usize, missing: usize, unsure: usize, undecided: usize| {
        let unsure_rows = (0..unsure).map(|row| (row, vec![1]));
        let checked = Checked {
            found: (0..created).map(|row| (row, 1)).collect(),
            not_found: (0..missing).collect(),
            uncertain: unsure_rows.collect(),
        };
        let verdict = Verdict {
            checked,
            undecided,
            doubt: None,
        };
        summary(&verdict, created + missing + unsure + undecided)
    };
    let all = [
        (say(1, 0, 0, 0), "the unknown row was created"),
        (say(2, 0, 0, 0), "all 2 unknown rows were created"),
        (
            say(0, 1, 0, 0),
            "the unknown row was not created; sending it",
        ),
        (
            say(0, 3, 0, 0),
            "none of the 3 unknown rows was created; sending them",
        ),
        (say(0, 0, 0, 1), "the unknown row stays unknown"),
        (say(0, 0, 0, 2), "all 2 unknown rows stay unknown"),
        (say(0, 0, 1, 0), "the unknown row is uncertain"),
        (say(0, 0, 2, 0), "all 2 unknown rows are uncertain"),
        (
            say(0, 0, 1, 1),
            "of 2 unknown rows, 1 is uncertain; 1 stays unknown",
        ),
        (
            say(1, 2, 0, 0),
            "of 3 unknown rows, 1 was created; 2 were not, and will be sent",
        ),
        (
            say(2, 0, 0, 1),
            "of 3 unknown rows, 2 were created; 1 stays unknown",
        ),
        (
            say(0, 1, 2, 0),
            "of 3 unknown rows, 1 was not, and will be sent; 2 are uncertain",
        ),
    ];
    for (said, expected) in all {
        assert_eq!(said, expected);
    }
}

#[test]
fn a_range_of_ids_includes_its_ends_and_may_be_empty() {
    let ids = [5].into();
    let has = |above, below| has_any(&ids, IdWindow::between(Some(above), Some(below)));
    assert!(has(4, 6) && has(4, 9) && has(1, 6));
    assert!(!has(5, 9) && !has(1, 5));
    assert!(!has(4, 5), "no id is between two neighbours");
}
