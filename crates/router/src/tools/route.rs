//! `tachonym route`: the routing information base, and the FIB that follows
//! from it.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tachonym_client::Controller;
use tachonym_packet::Name;
use tachonym_protocol::{ControlParameters, FibEntry, RibEntry, Route, route_flags, route_origin};

use super::hops::Hops;
use super::persistency::Persistency;
use super::{FaceArgument, Management, face, find_face, name, output, text};

const EXAMPLES: &str = "\
Examples:
  tachonym route add /example udp4://192.0.2.1:6363
  tachonym route add /example tcp4://192.0.2.1:6363 --persistency permanent --cost 10
  tachonym route show /example/file
  tachonym route remove /example udp4://192.0.2.1:6363";

/// List, show, add and remove routes.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List routes, with the state of each next hop.
    List {
        /// Only routes of exactly this prefix.
        #[arg(long, value_name = "NAME", value_parser = name::parse)]
        prefix: Option<Name>,
        /// List the FIB instead: next hops by prefix, inherited routes included.
        #[arg(long)]
        fib: bool,
    },
    /// Show the next hops for a name: its longest-prefix match in the FIB.
    Show {
        /// The name.
        #[arg(value_parser = name::parse)]
        name: Name,
    },
    /// Add a route. The next hop is a face; for an address without a face, one is created.
    ///
    /// A route ends with its face. An on-demand face is closed when it is idle, a persistent
    /// one when its connection fails; a permanent one connects again by itself and keeps its
    /// routes.
    Add {
        /// The prefix.
        #[arg(value_parser = name::parse)]
        prefix: Name,
        /// Face number, or remote address such as udp4://192.0.2.1:6363.
        next_hop: FaceArgument,
        /// How long a face lives that this command creates. With on-demand, only a face
        /// that the peer made is used.
        #[arg(long)]
        persistency: Option<Persistency>,
        /// Cost: strategies prefer the next hop with the lowest one.
        #[arg(long, default_value_t = 0)]
        cost: u64,
        /// Where the route comes from: a word such as static, or a number.
        #[arg(long, default_value = "static", value_parser = parse_origin)]
        origin: u64,
        /// Do not let longer prefixes inherit the route.
        #[arg(long)]
        no_inherit: bool,
        /// Inherit no routes of shorter prefixes, here and below.
        #[arg(long)]
        capture: bool,
        /// Time after which the route is removed, in milliseconds.
        #[arg(long, value_name = "N")]
        expires_ms: Option<u64>,
    },
    /// Remove a route.
    Remove {
        /// The prefix.
        #[arg(value_parser = name::parse)]
        prefix: Name,
        /// Face number or remote address.
        next_hop: FaceArgument,
        /// Where the route comes from: a word such as static, or a number.
        #[arg(long, default_value = "static", value_parser = parse_origin)]
        origin: u64,
    },
}

fn parse_origin(text: &str) -> Result<u64, String> {
    if let Some(origin) = route_origin::from_name(text) {
        return Ok(origin);
    }
    match text.parse() {
        Ok(number) if number < 65_536 => Ok(number),
        _ => Err("neither a known origin (app, static, nlsr, …) nor a number below 65536".into()),
    }
}

fn origin_name(origin: u64) -> String {
    route_origin::name(origin).map_or_else(|| origin.to_string(), Into::into)
}

/// Runs it.
///
/// # Errors
/// If the router refuses or does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let management = &arguments.management;
    management.with(|controller| match &arguments.command {
        Command::List { prefix, fib: true } => {
            let mut entries = controller.fib()?;
            entries.retain(|entry| prefix.as_ref().is_none_or(|p| *p == entry.name));
            let hops = Hops::ask(controller)?;
            let value = entries.iter().map(|entry| fib_to_json(entry, &hops));
            let value = Value::Array(value.collect());
            management.print(&value, || list_fib(&entries, &hops))
        }
        Command::List { prefix, .. } => {
            let mut entries = controller.rib()?;
            entries.retain(|entry| prefix.as_ref().is_none_or(|p| *p == entry.name));
            let hops = Hops::ask(controller)?;
            let value = entries.iter().map(|entry| rib_to_json(entry, &hops));
            let value = Value::Array(value.collect());
            management.print(&value, || list_rib(&entries, &hops))
        }
        Command::Show { name } => {
            let mut entries = controller.fib()?;
            entries.retain(|entry| name.starts_with(entry.name.view()));
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.name.len()));
            entries.truncate(1);
            let Some(entry) = entries.first() else {
                anyhow::bail!(
                    "no route leads to {name}; add one with `tachonym route add {name} FACEURI`"
                );
            };
            let hops = Hops::ask(controller)?;
            management.print(&fib_to_json(entry, &hops), || list_fib(&entries, &hops))
        }
        Command::Add {
            prefix,
            next_hop,
            persistency,
            cost,
            origin,
            no_inherit,
            capture,
            expires_ms,
        } => {
            let face_id = face_to(controller, next_hop, *persistency)?;
            let mut flags = 0;
            if !no_inherit {
                flags |= route_flags::CHILD_INHERIT;
            }
            if *capture {
                flags |= route_flags::CAPTURE;
            }
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                face_id: Some(face_id),
                origin: Some(*origin),
                cost: Some(*cost),
                flags: Some(flags),
                expiration_period_ms: *expires_ms,
                ..ControlParameters::default()
            };
            controller.command("rib", "register", &parameters)?;
            output::warning(controller);
            let hops = Hops::ask(controller)?;
            let mut value =
                json!({ "prefix": prefix.to_string(), "face_id": face_id, "cost": cost });
            hops.describe(&mut value, face_id);
            management.print(&value, || {
                let (peer, state) = (hops.peer(face_id), hops.state(face_id));
                format!("route added: {prefix} to face {face_id}, {peer}, {state}\n")
            })
        }
        Command::Remove {
            prefix,
            next_hop,
            origin,
        } => {
            let face_id = find_face(controller, next_hop)?;
            let parameters = ControlParameters {
                name: Some(prefix.clone()),
                face_id: Some(face_id),
                origin: Some(*origin),
                ..ControlParameters::default()
            };
            // The protocol accepts a route that does not exist; a misspelt name is an error
            // here.
            let is_there = controller.rib()?.iter().any(|entry| {
                entry.name == *prefix
                    && entry
                        .routes
                        .iter()
                        .any(|r| r.face_id == face_id && r.origin == *origin)
            });
            if !is_there {
                anyhow::bail!(
                    "{prefix} has no route of origin {} to face {face_id}",
                    origin_name(*origin)
                );
            }
            controller.command("rib", "unregister", &parameters)?;
            let value = json!({ "prefix": prefix.to_string(), "face_id": face_id });
            management.print(&value, || {
                format!("route removed: {prefix} to face {face_id}\n")
            })
        }
    })
}

/// The face to `next_hop`, created if it does not exist.
fn face_to(
    controller: &mut Controller<'_>,
    next_hop: &FaceArgument,
    persistency: Option<Persistency>,
) -> anyhow::Result<u64> {
    let FaceArgument::Remote(remote) = next_hop else {
        return find_face(controller, next_hop);
    };
    // Commands make neither faces to multicast groups nor on-demand faces.
    if remote.is_multicast() || persistency == Some(Persistency::OnDemand) {
        return find_face(controller, next_hop);
    }
    let link = ControlParameters {
        face_persistency: persistency.map(Into::into),
        ..ControlParameters::default()
    };
    let (face_id, existed) = face::create(controller, remote, None, link)?;
    if existed && let Some(persistency) = persistency {
        face::compare_persistency(controller, face_id, persistency)?;
    }
    Ok(face_id)
}

fn list_rib(entries: &[RibEntry], hops: &Hops) -> String {
    let heads = [
        "PREFIX", "FACE", "STATE", "PEER", "COST", "ORIGIN", "FLAGS", "EXPIRES",
    ];
    let mut rows = vec![heads.map(String::from).to_vec()];
    for entry in entries {
        for route in &entry.routes {
            rows.push(vec![
                entry.name.to_string(),
                route.face_id.to_string(),
                hops.state(route.face_id).to_owned(),
                hops.peer(route.face_id),
                route.cost.to_string(),
                origin_name(route.origin),
                flag_names(route).join(","),
                route
                    .expiration_period_ms
                    .map_or_else(|| "never".into(), |ms| format!("in {ms} ms")),
            ]);
        }
    }
    text::columns(&rows)
}

fn list_fib(entries: &[FibEntry], hops: &Hops) -> String {
    let heads = ["PREFIX", "FACE", "STATE", "PEER", "COST"];
    let mut rows = vec![heads.map(String::from).to_vec()];
    for entry in entries {
        for hop in &entry.next_hops {
            rows.push(vec![
                entry.name.to_string(),
                hop.face_id.to_string(),
                hops.state(hop.face_id).to_owned(),
                hops.peer(hop.face_id),
                hop.cost.to_string(),
            ]);
        }
    }
    text::columns(&rows)
}

fn flag_names(route: &Route) -> Vec<&'static str> {
    [
        (route_flags::CHILD_INHERIT, "child-inherit"),
        (route_flags::CAPTURE, "capture"),
    ]
    .into_iter()
    .filter_map(|(bit, name)| (route.flags & bit != 0).then_some(name))
    .collect()
}

fn rib_to_json(entry: &RibEntry, hops: &Hops) -> Value {
    let routes = entry.routes.iter().map(|route| {
        let mut value = json!({
            "face_id": route.face_id,
            "origin": origin_name(route.origin),
            "cost": route.cost,
            "flags": flag_names(route),
            "expires_ms": route.expiration_period_ms,
        });
        hops.describe(&mut value, route.face_id);
        value
    });
    json!({ "prefix": entry.name.to_string(), "routes": routes.collect::<Vec<_>>() })
}

fn fib_to_json(entry: &FibEntry, hops: &Hops) -> Value {
    let next_hops = entry.next_hops.iter().map(|hop| {
        let mut value = json!({ "face_id": hop.face_id, "cost": hop.cost });
        hops.describe(&mut value, hop.face_id);
        value
    });
    json!({ "prefix": entry.name.to_string(), "next_hops": next_hops.collect::<Vec<_>>() })
}
