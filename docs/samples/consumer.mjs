// Fetches one Data by its name: node consumer.mjs /example/python/hello
import { consume } from "@ndn/endpoint";
import { UnixTransport } from "@ndn/node-transport";
import { Interest } from "@ndn/packet";
import { fromUtf8 } from "@ndn/util";

const router = process.env.NDN_CLIENT_TRANSPORT ?? "unix:///run/nfd/nfd.sock";
const face = await UnixTransport.createFace({}, new URL(router).pathname);
try {
  const interest = new Interest(process.argv[2], Interest.Lifetime(4000));
  const data = await consume(interest);
  process.stdout.write(fromUtf8(data.content));
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
face.close();
