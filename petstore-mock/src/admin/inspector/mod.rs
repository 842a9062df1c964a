//! The inspector, at `/_mock/`: one page that shows and moves what the rest of the administration
//! has, loaded from here alone. What it shows is read from the other paths, so nothing of the mock's
//! state is in these files.

mod serve;

pub(super) use self::serve::{file, page};
