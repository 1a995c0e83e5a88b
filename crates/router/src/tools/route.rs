//! `tachonym route`: the routing information base, and the FIB that follows
//! from it.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tachonym_packet::Name;
use tachonym_protocol::{ControlParameters, FibEntry, RibEntry, Route, route_flags, route_origin};

use super::{FaceArgument, Management, face, find_face, name, output, text};

/// List, add and remove routes.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List routes.
    List {
        /// Only those of exactly this prefix.
        #[arg(long, value_name = "NAME", value_parser = name::parse)]
        prefix: Option<Name>,
        /// List the FIB instead: where Interests really go.
        #[arg(long)]
        fib: bool,
    },
    /// Show the routes that Interests for a name would follow.
    Show {
        /// The name.
        #[arg(value_parser = name::parse)]
        name: Name,
    },
    /// Add a route.
    Add {
        /// The prefix.
        #[arg(value_parser = name::parse)]
        prefix: Name,
        /// Face number, or remote address; a face is made where there is none.
        next_hop: FaceArgument,
        /// Cost.
        #[arg(long, default_value_t = 0)]
        cost: u64,
        /// Where the route comes from: a word such as static, or a number.
        #[arg(long, default_value = "static", value_parser = parse_origin)]
        origin: u64,
        /// Longer prefixes do not inherit the route.
        #[arg(long)]
        no_inherit: bool,
        /// Routes of shorter prefixes do not count here and below.
        #[arg(long)]
        capture: bool,
        /// Time after which the route goes, in milliseconds.
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
            let value = Value::Array(entries.iter().map(fib_to_json).collect());
            management.print(&value, || list_fib(&entries))
        }
        Command::List { prefix, .. } => {
            let mut entries = controller.rib()?;
            entries.retain(|entry| prefix.as_ref().is_none_or(|p| *p == entry.name));
            let value = Value::Array(entries.iter().map(rib_to_json).collect());
            management.print(&value, || list_rib(&entries))
        }
        Command::Show { name } => {
            let mut entries = controller.fib()?;
            entries.retain(|entry| name.starts_with(entry.name.view()));
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.name.len()));
            entries.truncate(1);
            let Some(entry) = entries.first() else {
                anyhow::bail!("no route for {name}");
            };
            management.print(&fib_to_json(entry), || list_fib(&entries))
        }
        Command::Add {
            prefix,
            next_hop,
            cost,
            origin,
            no_inherit,
            capture,
            expires_ms,
        } => {
            let face_id = match next_hop {
                // A face to a group is there from the start, or never.
                FaceArgument::Remote(remote) if !remote.is_multicast() => {
                    let link = ControlParameters::default();
                    face::create(controller, remote, None, link)?.0
                }
                there => find_face(controller, there)?,
            };
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
            if let Some(warning) = controller.take_warning() {
                output::note(format_args!("warning: {warning}"));
            }
            let value = json!({ "prefix": prefix.to_string(), "face_id": face_id, "cost": cost });
            management.print(&value, || format!("{prefix} goes to face {face_id}\n"))
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
            // The protocol lets a route be unregistered that was never there;
            // a person wants to hear of a misspelt name.
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
                format!("{prefix} no longer goes to face {face_id}\n")
            })
        }
    })
}

fn list_rib(entries: &[RibEntry]) -> String {
    let mut rows = vec![
        ["PREFIX", "FACE", "COST", "ORIGIN", "FLAGS", "EXPIRES"]
            .map(String::from)
            .to_vec(),
    ];
    for entry in entries {
        for route in &entry.routes {
            rows.push(vec![
                entry.name.to_string(),
                route.face_id.to_string(),
                route.cost.to_string(),
                origin_name(route.origin),
                flag_names(route).join(","),
                route
                    .expiration_period_ms
                    .map_or_else(|| "never".into(), |ms| format!("{ms} ms")),
            ]);
        }
    }
    text::columns(&rows)
}

fn list_fib(entries: &[FibEntry]) -> String {
    let mut rows = vec![["PREFIX", "FACE", "COST"].map(String::from).to_vec()];
    for entry in entries {
        for hop in &entry.next_hops {
            rows.push(vec![
                entry.name.to_string(),
                hop.face_id.to_string(),
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

fn rib_to_json(entry: &RibEntry) -> Value {
    let routes = entry.routes.iter().map(|route| {
        json!({
            "face_id": route.face_id,
            "origin": origin_name(route.origin),
            "cost": route.cost,
            "flags": flag_names(route),
            "expires_ms": route.expiration_period_ms,
        })
    });
    json!({ "prefix": entry.name.to_string(), "routes": routes.collect::<Vec<_>>() })
}

fn fib_to_json(entry: &FibEntry) -> Value {
    let hops = entry.next_hops.iter();
    let hops = hops.map(|hop| json!({ "face_id": hop.face_id, "cost": hop.cost }));
    json!({ "prefix": entry.name.to_string(), "next_hops": hops.collect::<Vec<_>>() })
}
