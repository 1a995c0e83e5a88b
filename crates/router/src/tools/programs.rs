//! The peers of faces, as the tools show them: an address, or the program behind a Unix
//! socket, whose FaceUri is only a descriptor of the router.

use std::collections::HashMap;

use serde_json::{Value, json};
use tachonym_client::{CommandError, Controller};
use tachonym_protocol::{FaceProgram, FaceStatus};

use super::own;

/// What FaceUris of accepted Unix connections begin with.
const DESCRIPTOR: &str = "fd://";

/// Programs by the number of their face.
#[derive(Default)]
pub(super) struct Programs(HashMap<u64, FaceProgram>);

impl Programs {
    /// Asks for the programs behind `faces`; not at all if none has one. Only routers of
    /// this kind know them.
    pub(super) fn of(
        controller: &mut Controller<'_>,
        faces: &[FaceStatus],
    ) -> Result<Self, CommandError> {
        if !faces.iter().any(|face| face.uri.starts_with(DESCRIPTOR)) {
            return Ok(Self::default());
        }
        let version = controller.general_status()?.nfd_version;
        let programs = own::dataset(&version, || controller.face_programs())?;
        let by_face = |program: FaceProgram| (program.face_id, program);
        Ok(Self(programs.into_iter().flatten().map(by_face).collect()))
    }

    /// The peer of a face: `python3 (pid 4242)`, or its FaceUri.
    pub(super) fn peer(&self, face: &FaceStatus) -> String {
        let program = self.0.get(&face.face_id);
        program.map_or_else(|| face.uri.clone(), shown)
    }

    /// The program of a face as an object, or null.
    pub(super) fn to_json(&self, face: u64) -> Value {
        let program = self.0.get(&face);
        program.map_or(Value::Null, |it| json!({ "name": it.name, "pid": it.pid }))
    }
}

fn shown(program: &FaceProgram) -> String {
    let pid = program.pid;
    match &program.name {
        Some(name) => format!("{name} (pid {pid})"),
        None => format!("ended program (pid {pid})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_shown_by_name_and_pid() {
        let program = |name: Option<&str>| FaceProgram {
            face_id: 256,
            pid: 42,
            name: name.map(Into::into),
        };
        assert_eq!(shown(&program(Some("ping"))), "ping (pid 42)");
        assert_eq!(shown(&program(None)), "ended program (pid 42)");
    }
}
