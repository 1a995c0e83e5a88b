package tachonym;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import net.named_data.jndn.ComponentType;
import net.named_data.jndn.ControlParameters;
import net.named_data.jndn.ControlResponse;
import net.named_data.jndn.Data;
import net.named_data.jndn.Face;
import net.named_data.jndn.Interest;
import net.named_data.jndn.Name;
import net.named_data.jndn.NetworkNack;
import net.named_data.jndn.OnInterestCallback;
import net.named_data.jndn.encoding.EncodingException;
import net.named_data.jndn.encoding.Tlv0_3WireFormat;
import net.named_data.jndn.encoding.WireFormat;
import net.named_data.jndn.security.KeyChain;
import net.named_data.jndn.security.pib.PibIdentity;
import net.named_data.jndn.transport.TcpTransport;
import net.named_data.jndn.transport.Transport;
import net.named_data.jndn.transport.UdpTransport;
import net.named_data.jndn.util.Blob;

/**
 * A jndn program at the other end of a router's face. jndn has TCP and UDP only.
 *
 * <p>Every command prints one line of JSON on standard output and exits with 0 if it did what it
 * was asked:
 *
 * <ul>
 *   <li>{@code TRANSPORT get NAME} fetches a segmented object, discovering its version;
 *   <li>{@code TRANSPORT put NAME FILE} registers a prefix and serves a file in segments until
 *       standard input ends;
 *   <li>{@code TRANSPORT register NAME} registers a prefix, and unregisters it at the next line of
 *       standard input.
 * </ul>
 */
public final class Peer {
  private static final int SEGMENT_TYPE = 50;
  private static final int VERSION_TYPE = 54;
  private static final int SEGMENT_BYTES = 4096;
  private static final int WINDOW = 16;
  private static final int TRIES = 4;
  private static final double LIFETIME_MS = 4000;

  private final Face face;
  private String failure;

  private Peer(String transport) {
    URI uri = URI.create(transport);
    face = connect(uri.getScheme(), uri.getHost(), uri.getPort());
  }

  public static void main(String[] arguments) throws Exception {
    // jndn's default is Packet Format 0.2, which no router understands any more.
    WireFormat.setDefaultWireFormat(Tlv0_3WireFormat.get());
    Peer peer = new Peer(arguments[0]);
    try {
      switch (arguments[1]) {
        case "get":
          peer.get(new Name(arguments[2]));
          break;
        case "put":
          peer.put(new Name(arguments[2]), Files.readAllBytes(Paths.get(arguments[3])));
          break;
        case "register":
          peer.register(new Name(arguments[2]));
          break;
        default:
          throw new IllegalArgumentException("no command " + arguments[1]);
      }
    } catch (IOException | IllegalStateException error) {
      System.err.println(error);
      System.exit(1);
    }
    System.exit(0);
  }

  private static Face connect(String scheme, String host, int port) {
    switch (scheme) {
      case "tcp":
        return new Face(new TcpTransport(), new TcpTransport.ConnectionInfo(host, port));
      case "udp":
        return new Face(new UdpTransport(), new UdpTransport.ConnectionInfo(host, port));
      default:
        throw new IllegalArgumentException("jndn has no transport for " + scheme);
    }
  }

  /** Serves the face's events once; fails if a callback left a failure. */
  private void turn() throws Exception {
    face.processEvents();
    if (failure != null) {
      throw new IllegalStateException(failure);
    }
    Thread.sleep(1);
  }

  private interface Receiver {
    void receive(Data data);
  }

  private void express(Interest interest, int tries, Receiver receiver) {
    try {
      face.expressInterest(
          interest,
          (asked, data) -> receiver.receive(data),
          asked -> {
            if (tries > 1) {
              express(again(asked), tries - 1, receiver);
            } else {
              failure = "no answer to " + asked.getName();
            }
          },
          (Interest asked, NetworkNack nack) ->
              failure = "Nack " + nack.getReason() + " for " + asked.getName());
    } catch (IOException error) {
      failure = error.toString();
    }
  }

  /** The same question with another nonce, so that it is no loop. */
  private static Interest again(Interest asked) {
    Interest interest = new Interest(asked);
    interest.refreshNonce();
    return interest;
  }

  private static Interest interest(Name name) {
    return new Interest(name, LIFETIME_MS).setCanBePrefix(false);
  }

  private void get(Name name) throws Exception {
    Data[] first = new Data[1];
    Interest discovery = interest(name).setCanBePrefix(true).setMustBeFresh(true);
    express(discovery, TRIES, data -> first[0] = data);
    while (first[0] == null) {
      turn();
    }
    Name versioned = first[0].getName().getPrefix(-1);
    int nSegments = (int) first[0].getMetaInfo().getFinalBlockId().toNumber() + 1;
    byte[][] contents = new byte[nSegments][];
    Deque<Integer> toAsk = new ArrayDeque<>();
    for (int i = 0; i < nSegments; i++) {
      toAsk.add(i);
    }
    int[] counts = new int[2]; // pending, received
    while (counts[1] < nSegments) {
      while (counts[0] < WINDOW && !toAsk.isEmpty()) {
        int i = toAsk.remove();
        counts[0]++;
        express(
            interest(new Name(versioned).append(number(i, SEGMENT_TYPE))),
            TRIES,
            data -> {
              contents[i] = data.getContent().getImmutableArray();
              counts[0]--;
              counts[1]++;
            });
      }
      turn();
    }
    ByteArrayOutputStream whole = new ByteArrayOutputStream();
    for (byte[] content : contents) {
      whole.write(content);
    }
    byte[] digest = MessageDigest.getInstance("SHA-256").digest(whole.toByteArray());
    StringBuilder hex = new StringBuilder();
    for (byte octet : digest) {
      hex.append(String.format("%02x", octet));
    }
    System.out.printf(
        "{\"segments\": %d, \"bytes\": %d, \"sha256\": \"%s\"}%n", nSegments, whole.size(), hex);
  }

  private void put(Name prefix, byte[] whole) throws Exception {
    KeyChain keys = signCommands();
    Name versioned = new Name(prefix).append(number(1, VERSION_TYPE));
    int last = Math.max(0, (whole.length - 1) / SEGMENT_BYTES);
    Data[] segments = new Data[last + 1];
    for (int i = 0; i <= last; i++) {
      int end = Math.min(whole.length, (i + 1) * SEGMENT_BYTES);
      segments[i] = new Data(new Name(versioned).append(number(i, SEGMENT_TYPE)));
      segments[i].setContent(new Blob(Arrays.copyOfRange(whole, i * SEGMENT_BYTES, end), false));
      segments[i].getMetaInfo().setFreshnessPeriod(10_000);
      segments[i].getMetaInfo().setFinalBlockId(number(last, SEGMENT_TYPE));
      keys.sign(segments[i]);
    }
    registered(
        prefix,
        (matched, asked, from, id, filter) -> {
          Name name = asked.getName();
          boolean isSegment = name.size() == versioned.size() + 1 && versioned.match(name);
          int i = isSegment ? (int) name.get(-1).toNumber() : 0;
          try {
            if (isSegment ? i <= last : asked.getCanBePrefix() && name.match(versioned)) {
              from.putData(segments[i]);
            }
          } catch (IOException error) {
            failure = error.toString();
          }
        });
    System.out.printf("{\"ready\": true, \"segments\": %d}%n", last + 1);
    turnUntilInput(-1);
  }

  private void register(Name prefix) throws Exception {
    signCommands();
    long id = registered(prefix, (matched, asked, from, filterId, filter) -> {});
    System.out.println("{\"registered\": true}");
    turnUntilInput('\n');
    face.removeRegisteredPrefix(id);
    unregister(prefix);
    System.out.println("{\"unregistered\": true}");
    turnUntilInput(-1);
  }

  /** Has commands signed with a key of their own, and returns what holds it. */
  private KeyChain signCommands() throws Exception {
    KeyChain keys = new KeyChain("pib-memory:", "tpm-memory:");
    PibIdentity identity = keys.createIdentityV2(new Name("/interop/jndn"));
    face.setCommandSigningInfo(keys, identity.getDefaultKey().getDefaultCertificate().getName());
    return keys;
  }

  /** Registers a prefix and returns jndn's number of it when the router has answered. */
  private long registered(Name prefix, OnInterestCallback answer) throws Exception {
    boolean[] isDone = new boolean[1];
    long id =
        face.registerPrefix(
            prefix,
            answer,
            name -> failure = "cannot register " + name,
            (name, given) -> isDone[0] = true);
    while (!isDone[0]) {
      turn();
    }
    return id;
  }

  /** Tells the router; jndn itself only forgets what it has registered. */
  private void unregister(Name prefix) throws Exception {
    Name name = new Name(face.isLocal() ? "/localhost/nfd" : "/localhop/nfd");
    name.append("rib").append("unregister");
    name.append(new ControlParameters().setName(prefix).wireEncode());
    Interest command = interest(name);
    face.makeCommandInterest(command);
    ControlResponse response = new ControlResponse();
    express(
        command,
        1,
        data -> {
          try {
            response.wireDecode(data.getContent());
          } catch (EncodingException error) {
            failure = error.toString();
          }
        });
    while (response.getStatusCode() < 0) {
      turn();
    }
    if (response.getStatusCode() != 200) {
      throw new IllegalStateException("cannot unregister: " + response.getStatusText());
    }
  }

  /**
   * Serves events until standard input brings this octet, or ends. A thread waits for it, for
   * {@code available} is 0 both before input and at its end.
   */
  private void turnUntilInput(int last) throws Exception {
    Thread input =
        new Thread(
            () -> {
              try {
                int octet;
                do {
                  octet = System.in.read();
                } while (octet >= 0 && octet != last);
              } catch (IOException error) {
                failure = error.toString();
              }
            });
    input.start();
    while (input.isAlive()) {
      turn();
    }
  }

  private static Name.Component number(long value, int type) {
    return Name.Component.fromNumber(value, ComponentType.OTHER_CODE, type);
  }
}
