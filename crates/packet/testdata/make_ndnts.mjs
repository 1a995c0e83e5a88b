// Writes the files ndnts-*.tlv into the current folder, and what NDNts itself
// says of them to standard output. Those that are here are of @ndn 0.0.20250307;
// sequence numbers of fragments differ each time.
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";

import { Fragmenter, LpPacket } from "@ndn/lp";
import {
  Component,
  Data,
  FwHint,
  Interest,
  KeyLocator,
  Name,
  SigInfo,
  SigType,
  ValidityPeriod,
  digestSigning,
  noopSigning,
} from "@ndn/packet";
import { Encoder } from "@ndn/tlv";
import { ByteOffset, Segment, SequenceNum, Timestamp, Version } from "@ndn/naming-convention2";

async function save(label, packet, name) {
  const wire = packet instanceof Uint8Array ? packet : Encoder.encode(packet);
  await writeFile(`ndnts-${label}.tlv`, wire);
  const digest = createHash("sha256").update(wire).digest("hex");
  console.log(label, digest, name ? `${name}` : "");
}

const name = new Name("/golden/NDNts")
  .append(new Component(8, ""))
  .append(new Component(8, "."))
  .append(new Component(8, Uint8Array.of(0x00, 0x2f, 0xff)))
  .append(new Component(65535, "x"))
  .append(Segment, 300)
  .append(ByteOffset, 4096)
  .append(Version, 1)
  .append(Timestamp.ms, 1700000000000)
  .append(SequenceNum, 255);

const interest = new Interest(
  name,
  Interest.CanBePrefix,
  Interest.MustBeFresh,
  Interest.Nonce(0x01020304),
  Interest.Lifetime(65536),
  Interest.HopLimit(255),
  new FwHint([new Name("/isp/a"), new Name("/isp/b")]),
);
await save("interest", interest, name);

const params = new Interest("/golden/params", Interest.Nonce(5), Uint8Array.of(1, 2, 3));
await params.updateParamsDigest();
await save("interest-params", params, params.name);

const signed = new Interest("/golden/signed", Interest.Nonce(6));
signed.sigInfo = new SigInfo(SigInfo.Nonce(Uint8Array.of(9, 8, 7, 6)), SigInfo.Time(1700000000000000), SigInfo.SeqNum(42n));
await digestSigning.sign(signed);
await save("interest-signed", signed, signed.name);

const data = new Data(name, Data.FreshnessPeriod(1000), Uint8Array.of(7, 7, 7), Data.FinalBlock);
await digestSigning.sign(data);
await save("data-digest", data, name);

const certificate = new Data("/golden/KEY/%01/self/v=1", Data.ContentType(2), new Uint8Array(300));
certificate.sigInfo = new SigInfo(SigType.Sha256WithEcdsa, new KeyLocator(new Name("/golden/KEY/%01")));
certificate.sigInfo.validity = new ValidityPeriod(
  new Date("2020-01-01T00:00:00Z"),
  new Date("2099-12-31T23:59:59Z"),
);
certificate.sigValue = new Uint8Array(71).fill(3);
await save("data-validity", certificate, certificate.name);

const locator = new Data("/golden/locator");
locator.sigInfo = new SigInfo(SigType.Sha256WithRsa, new KeyLocator(new Uint8Array(32).fill(4)));
locator.sigValue = new Uint8Array(256).fill(5);
await save("data-key-digest", locator, locator.name);

const unsigned = new Data("/golden/null");
await noopSigning.sign(unsigned);
await save("data-null", unsigned, unsigned.name);

const lp = new LpPacket();
lp.pitToken = new Uint8Array(32).fill(6);
lp.congestionMark = 1;
lp.payload = Encoder.encode(certificate);
await save("lp", lp);
const parts = new Fragmenter().fragment(lp, 300);
for (const [i, part] of parts.entries()) {
  await save(`fragment-${i}`, part);
}
await save("idle", new LpPacket());
