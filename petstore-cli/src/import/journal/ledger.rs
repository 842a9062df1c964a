//! What a journal says of each row: a fold over its lines.

use super::entry::{Entry, Event, Header};

/// What is known of a row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is still to be sent.
    #[default]
    Todo,
    Created,
    Rejected(String),
    /// It was sent, or was about to be when the program ended.
    Unknown,
    Skipped,
}

/// What a journal holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) header: Header,
    pub(crate) fates: Vec<Fate>,
    /// How many bytes of it are whole lines: a last line that is torn was never acted upon.
    pub(super) whole: usize,
}

impl Ledger {
    pub(crate) fn new(header: Header) -> Self {
        let fates = vec![Fate::Todo; header.rows];
        Self { header, fates, whole: 0 }
    }

    /// Reads a journal; `None` where not even its first line is whole.
    ///
    /// # Errors
    ///
    /// The number of the line that is none of a journal's.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Self>, usize> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut lines = bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n');
        let first = match lines.next() {
            Some(first) if whole > 0 => first,
            // Of a foreign file no line may be thrown away.
            _ if bytes.is_empty() || b"{\"petstoreImport\":".starts_with(prefix(bytes)) => {
                return Ok(None);
            }
            _ => return Err(1),
        };
        let header: Header = serde_json::from_slice(first).map_err(|_| 1_usize)?;
        if header.petstore_import != Header::VERSION {
            return Err(1);
        }
        let mut ledger = Self { whole, ..Self::new(header) };
        for (place, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            let number = place + 2;
            let Entry { row, event } = serde_json::from_slice(line).map_err(|_| number)?;
            ledger.apply(row, event).ok_or(number)?;
        }
        Ok(Some(ledger))
    }

    /// Takes in what happened to a row; returns nothing if there is no such row.
    pub(crate) fn apply(&mut self, row: usize, event: Event) -> Option<()> {
        let fate = self.fates.get_mut(row)?;
        *fate = match event {
            Event::Sending | Event::Unknown(_) => Fate::Unknown,
            Event::Created(_) => Fate::Created,
            Event::Rejected(reason) => Fate::Rejected(reason),
            Event::Unsent => Fate::Todo,
            Event::Skipped => Fate::Skipped,
        };
        Some(())
    }

    /// Returns the rows that have a fate, counted from 0.
    pub(crate) fn with(&self, wanted: &Fate) -> Vec<usize> {
        let rows = self.fates.iter().enumerate();
        rows.filter(|(_, fate)| *fate == wanted).map(|(row, _)| row).collect()
    }

    pub(crate) fn count(&self, is: impl Fn(&Fate) -> bool) -> usize {
        self.fates.iter().filter(|fate| is(fate)).count()
    }
}

fn prefix(bytes: &[u8]) -> &[u8] {
    bytes.get(..18).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let (sha256, base_url) = ("00".to_owned(), "http://127.0.0.1/v1".to_owned());
        Header { petstore_import: 1, sha256, rows: 4, base_url }
    }

    fn journal(events: &[(usize, Event)]) -> Vec<u8> {
        let mut text = serde_json::to_string(&header()).unwrap() + "\n";
        for (row, event) in events {
            let entry = Entry { row: *row, event: event.clone() };
            text += &(serde_json::to_string(&entry).unwrap() + "\n");
        }
        text.into_bytes()
    }

    fn all() -> Vec<(usize, Event)> {
        vec![
            (0, Event::Sending),
            (1, Event::Sending),
            (0, Event::Created(7)),
            (2, Event::Sending),
            (1, Event::Rejected("bad".into())),
            (3, Event::Sending),
            (3, Event::Unsent),
        ]
    }

    #[test]
    fn folds_its_lines_into_the_fate_of_each_row() {
        let ledger = Ledger::read(&journal(&all())).unwrap().unwrap();
        let rejected = Fate::Rejected("bad".into());
        assert_eq!(ledger.fates, [Fate::Created, rejected, Fate::Unknown, Fate::Todo]);
        assert_eq!(ledger.with(&Fate::Unknown), [2]);
    }

    #[test]
    fn wherever_it_was_torn_a_row_that_was_sent_is_never_to_be_sent() {
        let whole = journal(&all());
        for length in 0..whole.len() {
            let Some(ledger) = Ledger::read(&whole[..length]).unwrap() else {
                assert!(length <= serde_json::to_string(&header()).unwrap().len());
                continue;
            };
            let text = String::from_utf8(whole[..length].to_vec()).unwrap();
            let began = |row: usize| {
                text.contains(&format!("{{\"row\":{row},\"sending\":null}}\n"))
                    || text.contains(&format!("{{\"row\":{row},\"Sending\":null}}\n"))
            };
            for row in [0, 1, 2] {
                assert_eq!(ledger.fates[row] == Fate::Todo, !began(row), "{length}: {text}");
            }
        }
    }

    #[test]
    fn says_which_line_is_none_of_its_own() {
        let mut bytes = journal(&all());
        assert_eq!(Ledger::read(b"hello\n"), Err(1));
        assert_eq!(Ledger::read(b"hello"), Err(1));
        assert_eq!(Ledger::read(b"{\"petstoreImport\":2}\n"), Err(1));
        assert_eq!(Ledger::read(b"{\"petst"), Ok(None));
        bytes.extend(b"{\"row\":9,\"Sending\":null}\n");
        assert_eq!(Ledger::read(&bytes), Err(9));
    }
}
