//! What the commands of the module `trace` and the datasets `trace/records` and
//! `status/recent-drops` do.
//!
//! Only signers that may use the module start a trace. Its number cannot be guessed, so only
//! who started it reads it.

use tachonym_packet::NameView;
use tachonym_protocol::{
    ControlParameters, ControlResponse, RecentDrop, TRACE_DEFAULT_MS, TraceQuery, status_code,
};

use crate::commands::ok;
use crate::control::{ControlError, ControlPlane, TraceRequest};
use crate::verbs::TraceVerb;

/// Starts or stops a trace.
pub(crate) fn command(
    control: &mut impl ControlPlane,
    verb: TraceVerb,
    parameters: &ControlParameters,
) -> Result<ControlResponse, ControlError> {
    match verb {
        TraceVerb::Start => {
            let request = TraceRequest {
                prefix: parameters.name.clone().unwrap_or_default(),
                max_records: parameters.count,
                duration_ms: parameters.expiration_period_ms.unwrap_or(TRACE_DEFAULT_MS),
                sample: parameters.sample.unwrap_or(1),
            };
            let trace_id = control.start_trace(&request)?;
            Ok(ok(&ControlParameters {
                trace_id: Some(trace_id),
                expiration_period_ms: Some(request.duration_ms),
                ..parameters.clone()
            }))
        }
        TraceVerb::Stop => {
            control.stop_trace(parameters.trace_id.unwrap_or_default())?;
            Ok(ok(parameters))
        }
    }
}

/// The content of `trace/records`; `rest` is what follows the dataset's name.
pub(crate) fn records(
    control: &mut impl ControlPlane,
    rest: NameView<'_>,
) -> Result<Vec<u8>, ControlResponse> {
    let query = rest.get(0).map(TraceQuery::of_component);
    let Some(Ok(query)) = query else {
        let text = "TraceQuery is missing or malformed";
        return Err(ControlResponse::new(status_code::BAD_REQUEST, text));
    };
    Ok(control.read_trace(query.trace_id, query.read)?.encode())
}

/// The content of `status/recent-drops`; `rest` is what follows the dataset's name.
pub(crate) fn recent_drops(
    control: &mut impl ControlPlane,
    rest: NameView<'_>,
) -> Result<Vec<u8>, ControlResponse> {
    let prefix = rest.get(0).map(RecentDrop::prefix_of_query);
    let Some(Ok(prefix)) = prefix else {
        let text = "the prefix is missing or malformed";
        return Err(ControlResponse::new(status_code::BAD_REQUEST, text));
    };
    let drops = control.recent_drops(&prefix, RecentDrop::MAX)?;
    Ok(RecentDrop::encode_list(&drops))
}
