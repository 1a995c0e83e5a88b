//! Making faces by commands and at start: in which of several face systems.

use tachonym_face::{CreateError, CreateOutcome, FaceParams, Placement};
use tachonym_packet::FaceId;

use crate::handle::{Threads, WorkerGone};
use crate::plane::Plane;

/// Most systems that are tried: one may say that another has to, once.
const MAX_TRIES: usize = 2;

/// A face that was made or found, and the thread that has it; or why there is none.
pub(crate) type Made = Result<(CreateOutcome, usize), CreateError>;

/// Makes a face, or finds the one that there is.
///
/// # Errors
/// If no thread answers.
pub(crate) fn create(threads: &Threads, params: FaceParams) -> Result<Made, WorkerGone> {
    let mut made = create_each(threads, vec![params], |plane, params| {
        plane.faces.create(params)
    })?;
    made.pop().ok_or(WorkerGone)
}

/// Has `make` make faces, one after the other; what came of each. Where there is one system,
/// it is one job.
///
/// # Errors
/// If no thread answers.
pub(crate) fn create_each(
    threads: &Threads,
    wanted: Vec<FaceParams>,
    make: impl Fn(&mut Plane, &FaceParams) -> Result<CreateOutcome, CreateError>
    + Clone
    + Send
    + 'static,
) -> Result<Vec<Made>, WorkerGone> {
    let systems = threads.team().layout.system_threads();
    if systems.len() == 1 {
        let thread = systems.start;
        let make_all = move |plane: &mut Plane| {
            let outcomes = wanted.iter().map(|params| make(plane, params));
            let outcomes = outcomes.collect::<Vec<_>>();
            plane.handle_face_events();
            outcomes
        };
        let outcomes = threads.at(thread, make_all)?.into_iter();
        let made = outcomes.map(|outcome| outcome.map(|outcome| (outcome, thread)));
        return Ok(made.collect());
    }
    let made = wanted
        .into_iter()
        .map(|params| create_at_best(threads, params, &make));
    made.collect()
}

/// Makes a face at the system that has to, or at the one with the fewest faces.
fn create_at_best(
    threads: &Threads,
    params: FaceParams,
    make: &(
         impl Fn(&mut Plane, &FaceParams) -> Result<CreateOutcome, CreateError> + Clone + Send + 'static
     ),
) -> Result<Made, WorkerGone> {
    let mut thread = place(threads, &params)?;
    let mut n_tries = 1;
    loop {
        let (params, make) = (params.clone(), make.clone());
        let outcome = threads.at(thread, move |plane| {
            let outcome = make(plane, &params);
            plane.handle_face_events();
            outcome
        })?;
        match outcome {
            Err(CreateError::Elsewhere(index)) if n_tries < MAX_TRIES => {
                n_tries += 1;
                thread = threads.team().layout.thread_of_system(index);
            }
            outcome => return Ok(outcome.map(|outcome| (outcome, thread))),
        }
    }
}

/// The thread whose face it is to be.
fn place(threads: &Threads, params: &FaceParams) -> Result<usize, WorkerGone> {
    let layout = &threads.team().layout;
    let wanted = params.clone();
    let answers = threads.each_system(move |plane: &mut Plane| {
        let answer = plane.faces.placement(&wanted);
        (answer, plane.faces.n_faces(), plane.thread().idx())
    })?;
    // Of those that can make it, the one with the fewest faces.
    let first = answers.into_iter().min().ok_or(WorkerGone)?;
    Ok(match first {
        (Placement::Exists(face), ..) => owner(threads, face).unwrap_or(first.2),
        (Placement::Here | Placement::Anywhere, _, thread) => thread,
        (Placement::Elsewhere(index), ..) => layout.thread_of_system(index),
    })
}

fn owner(threads: &Threads, face: FaceId) -> Option<usize> {
    let thread = threads.team().layout.thread_of_face(face)?;
    Some(thread.idx())
}
