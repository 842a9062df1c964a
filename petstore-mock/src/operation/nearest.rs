//! What may have been meant by a path that leads nowhere.

use http::Method;
use strsim::osa_distance;

use super::Operation;

/// How many letters may be wrong, missing, too many or swapped.
const TYPOS: usize = 2;

impl Operation {
    /// Returns the operation whose path is most like this one, if any is like it.
    pub(crate) fn nearest(method: &Method, path: &str) -> Option<Self> {
        // No path of the service is nearly as long; to compare takes time that grows with its square.
        if path.len() > 100 {
            return None;
        }
        let path = path.trim_end_matches('/').to_ascii_lowercase();
        let last = path.rsplit('/').next().unwrap_or_default();
        let one = format!("/v1/pets/{last}");
        let paths = [
            (Self::ListPets, "/v1/pets"),
            (Self::GetPet, one.as_str()),
            (Self::ListOrders, "/v1/store/orders"),
            (Self::ListOrders, "/v1/orders"),
        ];
        let distance = |wanted: &str| {
            let without_version = wanted.strip_prefix("/v1").unwrap_or(wanted);
            osa_distance(&path, wanted).min(osa_distance(&path, without_version))
        };
        let distances = paths.map(|(operation, wanted)| (distance(wanted), operation));
        let (typos, nearest) = distances.into_iter().min_by_key(|(typos, _)| *typos)?;
        match nearest {
            _ if typos > TYPOS => None,
            Self::ListPets if method == Method::POST => Some(Self::CreatePet),
            nearest => Some(nearest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_what_was_meant() {
        for (path, nearest) in [
            ("/pets", Some(Operation::ListPets)),
            ("/v1/pets/", Some(Operation::ListPets)),
            ("/v1/pet", Some(Operation::ListPets)),
            ("/v1/Pets", Some(Operation::ListPets)),
            ("/v2/pets", Some(Operation::ListPets)),
            ("/v1/pest", Some(Operation::ListPets)),
            ("/v1/pet/7", Some(Operation::GetPet)),
            ("/pets/a-long-id", Some(Operation::GetPet)),
            ("/v1/store/order", Some(Operation::ListOrders)),
            ("/orders", Some(Operation::ListOrders)),
            ("/", None),
            ("/v1", None),
            ("/v1/nowhere", None),
            ("/metrics", None),
        ] {
            assert_eq!(Operation::nearest(&Method::GET, path), nearest, "{path}");
        }
        assert_eq!(Operation::nearest(&Method::POST, "/v1/pet"), Some(Operation::CreatePet));
        assert_eq!(Operation::nearest(&Method::GET, &"/v1/pets".repeat(20)), None);
    }
}
