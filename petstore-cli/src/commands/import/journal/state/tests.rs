//! Tests of the states that follow from a journal's records, whole or damaged.

use std::time::Duration;

use super::super::record::line;
use super::*;

const BOOT: &str = "this boot";

fn run(damaged: &[usize]) -> Record {
    Record::Run(Run {
        pid: 7,
        started: SystemTime::UNIX_EPOCH,
        boot: Some(BOOT.to_owned()),
        base_url: String::new(),
        limit: Duration::from_secs(30),
        rows: 0,
        files: Vec::new(),
        damaged: damaged.to_vec(),
    })
}

fn sent(rows: &[usize]) -> Record {
    Record::Sent {
        at: 0,
        rows: rows.to_vec(),
    }
}

fn records() -> Vec<Record> {
    vec![
        run(&[]),
        Record::Block {
            from: 0,
            digests: vec![1, 2, 3, 4],
        },
        sent(&[0]),
        Record::Rows(RowState::Created(7), vec![0]),
        sent(&[1, 2]),
        Record::Rows(RowState::Rejected("bad".into()), vec![1]),
        sent(&[3]),
        Record::Rows(RowState::Announced, vec![3]),
    ]
}

fn bytes(records: &[Record]) -> Vec<u8> {
    let lines: String = records.iter().map(|record| line(record).unwrap()).collect();
    [HEADER, lines.as_bytes()].concat()
}

fn read(content: &[u8], boot: &str) -> Option<State> {
    State::read(&[content, &[0; 9]].concat(), Some(boot))
}

fn states(content: &[u8], boot: &str) -> Vec<RowState> {
    read(content, boot).unwrap().rows
}

#[test]
fn folds_its_records_into_the_state_of_each_row() {
    let state = read(&bytes(&records()), BOOT).unwrap();
    let rejected = RowState::Rejected("bad".into());
    assert_eq!(
        state.rows,
        [
            RowState::Created(7),
            rejected,
            RowState::Unknown,
            RowState::Left
        ]
    );
    assert_eq!(
        (state.history.lowest(), state.digests[1]),
        (Some(7), Some(2))
    );
    assert!(state.damaged.is_empty() && !state.is_cut && !state.is_truncated);
}

#[test]
fn names_a_damaged_line() {
    let content = String::from_utf8(bytes(&records()))
        .unwrap()
        .replacen("[1,2,3,4]", "[1]", 1);
    let state = read(content.as_bytes(), BOOT).unwrap();
    assert_eq!((state.damaged, state.lines), (vec![3], 9));
}

#[test]
fn a_row_is_left_after_a_kill_only_if_it_was_not_sent() {
    let whole = bytes(&records());
    for length in 0..=whole.len() {
        let Some(state) = read(&whole[..length], BOOT) else {
            panic!("{length}")
        };
        let lines = whole[..length]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        assert_eq!(state.lines, lines);
        let sent: Vec<usize> = records()[..lines.saturating_sub(1)]
            .iter()
            .flat_map(|record| match record {
                Record::Sent { rows, .. } => rows.clone(),
                _ => Vec::new(),
            })
            .filter(|row| *row != 3)
            .collect();
        for row in 0..3 {
            let is_left = state.rows.get(row).is_none_or(RowState::is_left);
            assert!(!is_left || !sent.contains(&row), "{length} {row}");
            assert!(
                is_left || state.is_cut || sent.contains(&row),
                "{length} {row}"
            );
        }
        assert_eq!(
            state.is_cut,
            length > 0 && whole[length - 1] != b'\n',
            "{length}"
        );
    }
}

#[test]
fn a_kill_between_two_pages_makes_no_row_unknown() {
    let content = |filler: usize| {
        let Record::Run(run) = run(&[]) else {
            unreachable!()
        };
        let run = Run {
            base_url: "x".repeat(filler),
            ..run
        };
        let block = Record::Block {
            from: 0,
            digests: vec![1, 2, 3],
        };
        bytes(&[Record::Run(run), block, sent(&[0])])
    };
    let created = line(&Record::Rows(RowState::Created(7), vec![0])).unwrap();
    for written in 1..created.len() {
        let filler = PAGE - content(0).len() - written;
        let interrupted = [&*content(filler), &created.as_bytes()[..written]].concat();
        assert_eq!(read(&interrupted, BOOT).unwrap().unknown(), [0]);
        for filler in [filler + 1, filler - PAGE / 2] {
            let damaged = [&*content(filler), &created.as_bytes()[..written]].concat();
            assert_eq!(read(&damaged, BOOT).unwrap().unknown(), [0, 1, 2]);
        }
    }
}

#[test]
fn once_its_end_is_cut_off_no_row_without_an_outcome_is_left() {
    let whole = bytes(&records());
    for length in 1..=whole.len() {
        let mut state = State::read(&whole[..length], Some(BOOT)).unwrap();
        state.resize(5);
        assert!(
            state.is_truncated && !state.rows.iter().any(RowState::is_left),
            "{length}"
        );
    }
}

#[test]
fn announced_rows_without_an_outcome_are_unknown() {
    let whole = bytes(&records()[..4]);
    let unknown = || RowState::Unknown;
    let expected = [RowState::Created(7), unknown(), unknown(), unknown()];
    assert_eq!(states(&whole, "another boot"), expected);
    let left = [
        RowState::Created(7),
        RowState::Left,
        RowState::Left,
        RowState::Left,
    ];
    assert_eq!(states(&whole, BOOT), left);
    let ended = bytes(&[&records()[..4], &[Record::End]].concat());
    assert_eq!(states(&ended, "another boot"), left);
}

#[test]
fn rows_near_a_damaged_line_are_unknown_until_it_is_handled() {
    let whole = bytes(&records());
    for (at, bit) in (0..whole.len()).flat_map(|at| [(at, 1), (at, 0x20)]) {
        let mut damaged = whole.clone();
        damaged[at] ^= bit;
        let number = whole[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let Some(state) = read(&damaged, BOOT) else {
            assert_eq!(number, 1, "without its first line it is not a journal");
            continue;
        };
        assert!(!state.damaged.is_empty() || state.is_cut, "{at}");
        for row in 0..3 {
            let is_left = state.rows.get(row).is_none_or(RowState::is_left);
            // If the announcement is damaged, only rows with records are known.
            assert!(!is_left || number == 3, "{at}: {row}");
        }
        if !state.is_cut {
            damaged.extend(line(&run(&state.damaged)).unwrap().bytes());
            assert_eq!(read(&damaged, BOOT).unwrap().damaged, [0; 0], "{at}");
            damaged.extend(b"more\n");
            assert_eq!(read(&damaged, BOOT).unwrap().damaged.len(), 1, "{at}");
        }
    }
}

#[test]
fn a_foreign_file_is_not_a_journal() {
    for foreign in [
        "hello\n",
        "hello",
        "journal of petstore pets import, version 2\n",
    ] {
        assert_eq!(State::read(foreign.as_bytes(), None), None, "{foreign}");
    }
}

#[test]
fn announced_rows_not_sent_are_left_for_the_next_run() {
    let first = [
        run(&[]),
        Record::Block {
            from: 0,
            digests: vec![1, 2, 3],
        },
    ];
    let state = |between: &[u8]| {
        let bytes = [
            &*bytes(&first),
            between,
            line(&run(&[])).unwrap().as_bytes(),
        ]
        .concat();
        State::read(&bytes, Some("another boot")).unwrap()
    };
    assert_eq!(state(b"").rows, vec![RowState::Left; 3]);
    assert_eq!(state(b"").digests, [Some(1), Some(2), Some(3)]);
    assert_eq!(state(b"damaged\n").rows, vec![RowState::Unknown; 3]);
}
