//! The place in a listing where the next page begins, as it travels in a URL. It names the last pet
//! of a page, so it stays right while pets are added; which pets follow is left to `store`.
//!
//! It is scrambled and carries a check, not to hide anything, but so that nobody builds one: a real
//! service's cursor can't be built either.

/// Any odd number far from a pattern will do.
const MASK: u64 = 0x9e37_79b9_7f4a_7c15;

/// The digits of the id, and of the check.
const DIGITS: (usize, usize) = (16, 4);

/// Returns the cursor of the page that begins after the pet `id`.
pub(crate) fn encode(id: i64) -> String {
    let scrambled = id.cast_unsigned() ^ MASK;
    format!("{scrambled:016x}{:04x}", check(scrambled))
}

/// Returns the id of the pet a cursor names, or nothing if it was not made here.
pub(crate) fn decode(cursor: &str) -> Option<i64> {
    let lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if cursor.len() != DIGITS.0 + DIGITS.1 || !cursor.bytes().all(lower_hex) {
        return None;
    }
    let (scrambled, sum) = cursor.split_at(DIGITS.0);
    let scrambled = u64::from_str_radix(scrambled, 16).ok()?;
    let sum = u64::from_str_radix(sum, 16).ok()?;
    (sum == check(scrambled)).then_some((scrambled ^ MASK).cast_signed())
}

fn check(scrambled: u64) -> u64 {
    (!scrambled).wrapping_mul(MASK) >> 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_wrote() {
        for id in [0, 1, 25, -1, i64::MAX, i64::MIN] {
            assert_eq!(decode(&encode(id)), Some(id));
        }
    }

    #[test]
    fn refuses_what_it_did_not_write() {
        let cursor = encode(20);
        for wrong in [
            "",
            "20",
            "1",
            "é",
            "zzzzzzzzzzzzzzzzzzzz",
            "00000000000000000000",
            &cursor[1..],
            &format!("{cursor}0"),
            &cursor.to_uppercase(),
            &cursor.replace('1', "2"),
        ] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
