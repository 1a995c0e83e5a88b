// An NDNts program at the other end of a router's face.
//
// Every command prints one line of JSON on standard output and exits with 0 if
// it did what it was asked:
//
//   get     fetches a segmented object; finds its version by a prefix Interest,
//           or by RDR metadata with --rdr
//   put     registers a prefix and serves a file in segments, with metadata,
//           until standard input ends
//   register  registers a prefix, and unregisters it at the next line of standard
//             input
//   ask     expresses Interests for NAME/0, NAME/1, …; each must be answered
//   manage  invokes one management command, or lists one dataset
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";

import { consume, produce } from "@ndn/endpoint";
import {
  CsInfo,
  ControlParameters,
  FaceQuery,
  FaceStatus,
  GeneralStatus,
  RibEntry,
  StrategyChoice,
  enableNfdPrefixReg,
  invoke,
  invokeCsErase,
  list,
  localhostPrefix,
} from "@ndn/nfdmgmt";
import { Segment, Version } from "@ndn/naming-convention2";
import { TcpTransport, UdpTransport, UnixTransport } from "@ndn/node-transport";
import { Interest, Name, digestSigning } from "@ndn/packet";
import { Metadata, retrieveMetadata, serveMetadata } from "@ndn/rdr";
import { BufferChunkSource, discoverVersion, fetch, serve } from "@ndn/segmented-object";
import { WsTransport } from "@ndn/ws-transport";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    transport: { type: "string" },
    "mtu-bytes": { type: "string" },
    "segment-bytes": { type: "string", default: "4096" },
    "lifetime-ms": { type: "string", default: "4000" },
    count: { type: "string", default: "1" },
    window: { type: "string", default: "16" },
    rdr: { type: "boolean", default: false },
    "no-register": { type: "boolean", default: false },
  },
});
const [command, ...operands] = positionals;
const lifetimeMs = Number(options["lifetime-ms"]);

function announce(result) {
  const plain = (key, value) => (typeof value === "bigint" ? Number(value) : value);
  process.stdout.write(`${JSON.stringify(result, plain)}\n`);
}

/** Opens a face to the router that `uri` names. */
async function connect(uri, faceOptions) {
  const url = new URL(uri);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = Number(url.port || 6363);
  switch (url.protocol) {
    case "unix:":
      return UnixTransport.createFace(faceOptions, url.pathname);
    case "tcp:":
    case "tcp4:":
    case "tcp6:":
      return TcpTransport.createFace(faceOptions, host, port);
    case "udp:":
    case "udp4:":
    case "udp6:":
      return UdpTransport.createFace(faceOptions, host, port);
    case "ws:":
      return WsTransport.createFace(faceOptions, uri);
    default:
      throw new Error(`no transport for ${uri}`);
  }
}

async function get([name]) {
  const cOpts = { modifyInterest: { lifetime: lifetimeMs }, retx: 3 };
  const versioned = options.rdr
    ? (await retrieveMetadata(new Name(name), cOpts)).name
    : await discoverVersion(new Name(name), { cOpts, conventions: [[Version, Segment]] });
  const result = fetch(versioned, { modifyInterest: { lifetime: lifetimeMs } });
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of result.chunks()) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  announce({
    name: `${versioned}`,
    segments: result.count,
    bytes,
    sha256: hash.digest("hex"),
  });
}

async function put([name, file], face) {
  const prefix = new Name(name);
  const versioned = prefix.append(Version, 1);
  const chunkSize = Number(options["segment-bytes"]);
  const source = new BufferChunkSource(await readFile(file), { chunkSize });
  const announcement = options["no-register"] ? false : prefix;
  serve(versioned, source, {
    freshnessPeriod: 10_000,
    producerPrefix: prefix,
    pOpts: { announcement, concurrency: 16 },
  });
  serveMetadata(new Metadata(versioned), { pOpts: { announcement: false } });
  let local;
  if (options["no-register"]) {
    // One Interest, so that the router has a face for us; no producer answers it.
    await consume(new Interest("/interop/hello", Interest.Lifetime(100))).catch(() => {});
    local = face.localAddress;
  } else {
    await face.registered;
  }
  announce({ ready: true, name: `${versioned}`, local });
  await inputEnds();
}

async function inputEnds() {
  for await (const chunk of process.stdin) {
    void chunk;
  }
}

async function register([name], face) {
  const producer = produce(new Name(name), async () => undefined);
  await face.registered;
  announce({ registered: true });
  await once(process.stdin, "data");
  producer.close();
  await face.unregistered;
  announce({ unregistered: true });
  await inputEnds();
}

async function ask([name]) {
  const count = Number(options.count);
  let next = 0;
  let bytes = 0;
  const worker = async () => {
    while (next < count) {
      const interest = new Interest(new Name(name).append(`${next++}`));
      interest.lifetime = lifetimeMs;
      const data = await consume(interest);
      bytes += data.content.length;
    }
  };
  await Promise.all(Array.from({ length: Number(options.window) }, worker));
  announce({ answers: count, bytes });
}

const datasets = {
  status: GeneralStatus,
  faces: FaceStatus,
  cs: CsInfo,
  strategies: StrategyChoice,
  rib: RibEntry,
};

/** What `manage` prints of a value that NDNts decoded. */
function describe(value) {
  if (value instanceof Name) {
    return `${value}`;
  }
  if (Array.isArray(value)) {
    return value.map(describe);
  }
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).filter(([key]) => !key.startsWith("_"));
    return Object.fromEntries(fields.map(([key, field]) => [key, describe(field)]));
  }
  return value;
}

async function manage([verb, json = "{}"]) {
  const opts = { prefix: localhostPrefix, cOpts: { modifyInterest: { lifetime: lifetimeMs } } };
  const fields = JSON.parse(json);
  for (const key of ["name", "strategy"]) {
    if (fields[key] !== undefined) {
      fields[key] = new Name(fields[key]);
    }
  }
  if (verb in datasets) {
    announce({ entries: describe(await list(datasets[verb], opts)) });
  } else if (verb === "query") {
    announce({ entries: describe(await list(FaceQuery(fields), opts)) });
  } else if (verb === "erase") {
    announce({ count: await invokeCsErase(fields.name, opts) });
  } else {
    const { statusCode, statusText, body } = await invoke(verb, fields, opts);
    const parameters = body.length > 0 ? ControlParameters.decodeFromResponseBody({ body }) : {};
    announce({ code: statusCode, text: statusText, ...describe(parameters) });
  }
}

const commands = { get, put, register, ask, manage };

async function main() {
  const run = commands[command];
  if (!run || !options.transport) {
    throw new Error(`usage: peer.mjs --transport URI ${Object.keys(commands).join("|")} …`);
  }
  const mtu = options["mtu-bytes"] ? { mtu: Number(options["mtu-bytes"]) } : {};
  const registers = command === "register" || (command === "put" && !options["no-register"]);
  const extras = {};
  const face = await connect(options.transport, {
    addRoutes: registers ? [] : ["/"],
    lp: mtu,
    callback(transport) {
      const { laddr } = transport;
      extras.localAddress = laddr && `${laddr.address}:${laddr.port}`;
    },
  });
  if (registers) {
    Object.assign(extras, registration(face));
  }
  await run(operands, extras);
  process.exit(0);
}

/**
 * Has NDNts register every prefix that is served. The promises settle with the
 * first answer to a registration, and to its end.
 */
function registration(face) {
  const registerer = enableNfdPrefixReg(face, { signer: digestSigning, retry: { retries: 0 } });
  const answerTo = (method) =>
    new Promise((resolve, reject) => {
      const original = registerer[method].bind(registerer);
      registerer[method] = async (...parameters) => {
        try {
          await original(...parameters);
          resolve();
        } catch (error) {
          reject(error);
          throw error;
        }
      };
    });
  return { registered: answerTo("doAdvertise"), unregistered: answerTo("doWithdraw") };
}

try {
  await main();
} catch (error) {
  process.stderr.write(`${error}\n`);
  process.exit(1);
}
