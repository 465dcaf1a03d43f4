//! How a BMC carries out commands: resets, boot overrides, virtual media.

mod bios;
mod boot;
mod media;
mod power;

pub(crate) use bios::patch_bios;
pub(crate) use boot::patch_system;
pub(crate) use media::{ENABLE, eject, enable_remote_media, insert, patch_drive};
pub(crate) use power::reset;

use http::StatusCode;
use http::header::IF_MATCH;

use crate::bmc::Core;
use crate::personality::Answer;
use crate::reply::{Problem, Reply};
use crate::serve::Asked;

/// The answer to an action that worked.
fn done(core: &Core) -> Reply {
    match core.personality.power.answer {
        Answer::Message => Reply::success(&core.personality.messages),
        Answer::NoContent | Answer::Resource => Reply::empty(StatusCode::NO_CONTENT),
    }
}

/// Some BMCs want no `If-Match` on an action.
fn check_headers(core: &Core, asked: &Asked<'_>) -> Result<(), Problem> {
    if core.personality.etags.refused_on_actions && asked.headers.contains_key(IF_MATCH) {
        return Err(Problem::new(
            StatusCode::PRECONDITION_FAILED,
            "PreconditionFailed",
            "The ETag supplied did not match the ETag required to change this resource.",
        ));
    }
    Ok(())
}
