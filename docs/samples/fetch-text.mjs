// Fetches one Data over WebSocket, in a web page or in Node.js.
import { consume } from "@ndn/endpoint";
import { fromUtf8 } from "@ndn/util";
import { WsTransport } from "@ndn/ws-transport";

export async function fetchText(router, name) {
  const face = await WsTransport.createFace({}, router);
  try {
    const data = await consume(name);
    return fromUtf8(data.content);
  } finally {
    face.close();
  }
}
