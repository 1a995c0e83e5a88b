//! Making faces by commands and at start: in which of several face systems.

use tachonym_face::{CreateError, FaceParams, Placement};
use tachonym_packet::FaceId;

use crate::handle::{Threads, WorkerGone};
use crate::plane::Plane;

/// Most systems that are tried: one may say that another has to, once.
const MAX_TRIES: usize = 2;

/// Has `make` make a face, or find the one that there is.
///
/// # Errors
/// If no thread answers; and, inside, why it cannot be made.
pub(crate) fn create<R: Send + 'static>(
    threads: &Threads,
    params: FaceParams,
    make: impl Make<R>,
) -> Result<Result<R, CreateError>, WorkerGone> {
    let mut made = create_each(threads, vec![params], make)?;
    made.pop().ok_or(WorkerGone)
}

/// Makes a face on the thread whose it is to be.
pub(crate) trait Make<R>:
    Fn(&mut Plane, &FaceParams) -> Result<R, CreateError> + Clone + Send + 'static
{
}

impl<R, F> Make<R> for F where
    F: Fn(&mut Plane, &FaceParams) -> Result<R, CreateError> + Clone + Send + 'static
{
}

/// Has `make` make faces, one after the other; what came of each. Where there is one system,
/// it is one job.
///
/// # Errors
/// If no thread answers.
pub(crate) fn create_each<R: Send + 'static>(
    threads: &Threads,
    wanted: Vec<FaceParams>,
    make: impl Make<R>,
) -> Result<Vec<Result<R, CreateError>>, WorkerGone> {
    let systems = threads.team().layout.system_threads();
    if systems.len() == 1 {
        return threads.at(systems.start, move |plane| {
            let made = wanted.iter().map(|params| make(plane, params));
            let made = made.collect();
            plane.handle_face_events();
            made
        });
    }
    let made = wanted
        .into_iter()
        .map(|params| create_at_best(threads, &params, &make));
    made.collect()
}

/// Makes a face at the system that has to, or at the one with the fewest faces.
fn create_at_best<R: Send + 'static>(
    threads: &Threads,
    params: &FaceParams,
    make: &impl Make<R>,
) -> Result<Result<R, CreateError>, WorkerGone> {
    let mut thread = place(threads, params)?;
    let mut n_tries = 1;
    loop {
        let (params, make) = (params.clone(), make.clone());
        let made = threads.at(thread, move |plane| {
            let made = make(plane, &params);
            plane.handle_face_events();
            made
        })?;
        match made {
            Err(CreateError::Elsewhere(index)) if n_tries < MAX_TRIES => {
                n_tries += 1;
                thread = threads.team().layout.thread_of_system(index);
            }
            made => return Ok(made),
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
