//! What must hold for every seed.

use super::client::Kind;
use super::rng::Rng;
use super::service::Model;
use super::world::{Setup, run};

#[test]
fn a_sole_user_is_never_refused_and_every_wait_ends() {
    for seed in 0..60 {
        let mut rng = Rng::new(seed);
        let mut model = Model::new(60);
        model.errors = u32::try_from(rng.below(200)).unwrap();
        let mut setup = Setup::new(Kind::Gate, model, 1 + seed as usize % 40, 200, seed);
        setup.cancelled = u32::try_from(rng.below(400)).unwrap();
        setup.dropped = u32::try_from(rng.below(200)).unwrap();
        setup.lost = u32::try_from(rng.below(100)).unwrap();
        setup.wall = rng.below(7_200_000_000) - 3_600_000_000;
        let outcome = run(&setup);
        assert_eq!((outcome.refusals, outcome.undone, outcome.left_over), (0, 0, 0), "{seed}");
        assert!(outcome.most_while_unknown <= 1, "{seed}");
    }
}
