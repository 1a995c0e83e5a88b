// Answers every Interest under /example/node.
import { produce } from "@ndn/endpoint";
import { AltUri } from "@ndn/naming-convention2";
import { enableNfdPrefixReg } from "@ndn/nfdmgmt";
import { UnixTransport } from "@ndn/node-transport";
import { Data, digestSigning } from "@ndn/packet";
import { toUtf8 } from "@ndn/util";

const router = process.env.NDN_CLIENT_TRANSPORT ?? "unix:///run/nfd/nfd.sock";
// `addRoutes: []`: this program sends no Interests of its own to the router.
const face = await UnixTransport.createFace({ addRoutes: [] }, new URL(router).pathname);
enableNfdPrefixReg(face, { signer: digestSigning });

const answer = async ({ name }) => {
  const content = toUtf8(`Hello from Node.js: ${AltUri.ofName(name)}\n`);
  return new Data(name, Data.FreshnessPeriod(10_000), content);
};
produce("/example/node", answer, { dataSigner: digestSigning });
console.log("serving /example/node");
