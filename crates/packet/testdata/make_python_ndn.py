"""Writes the files python-ndn-*.tlv into the current folder, and what
python-ndn itself says of them to standard output. Those that are here are of
python-ndn 0.5.2; the signed Interest has another nonce and time each time."""

from hashlib import sha256

from ndn.encoding import (
    Component,
    ContentType,
    InterestParam,
    MetaInfo,
    Name,
    make_data,
    make_interest,
    make_network_nack,
)
from ndn.encoding.ndnlp_v2 import CachePolicy, LpPacket, LpPacketValue
from ndn.security import DigestSha256Signer, HmacSha256Signer, NullSigner


def save(label, wire, name=None):
    wire = bytes(wire)
    with open(f"python-ndn-{label}.tlv", "wb") as file:
        file.write(wire)
    print(label, sha256(wire).hexdigest(), "" if name is None else Name.to_canonical_uri(name))


PLAIN = "/golden/python/8=%00%FF/32=metadata/54=%01"
NUMBERS = "/golden/seg=300/off=4096/v=1700000000000000/t=1/seq=70000"

interest = make_interest(
    PLAIN,
    InterestParam(
        can_be_prefix=True,
        must_be_fresh=True,
        nonce=0x01020304,
        lifetime=2000,
        hop_limit=7,
        forwarding_hint=["/isp/a", "/isp/b"],
    ),
)
save("interest", interest, Name.from_str(PLAIN))

params, name = make_interest(
    "/golden/params", InterestParam(nonce=5), b"hello", need_final_name=True
)
save("interest-params", params, name)

signed, name = make_interest(
    "/golden/signed",
    InterestParam(nonce=6),
    b"",
    DigestSha256Signer(for_interest=True),
    need_final_name=True,
)
save("interest-signed", signed, name)

data = make_data(
    NUMBERS,
    MetaInfo(freshness_period=1000, final_block_id=Component.from_segment(65536)),
    b"content",
    DigestSha256Signer(),
)
save("data-digest", data, Name.from_str(NUMBERS))

hmac = make_data(
    "/golden/hmac",
    MetaInfo(content_type=ContentType.KEY),
    bytes(300),
    HmacSha256Signer("/golden/KEY/hmac", b"secret"),
)
save("data-hmac", hmac, Name.from_str("/golden/hmac"))

null = make_data("/golden/null", MetaInfo(), None, NullSigner())
save("data-null", null, Name.from_str("/golden/null"))

save("nack", make_network_nack(interest, 150))

packet = LpPacket()
packet.lp_packet = LpPacketValue()
packet.lp_packet.pit_token = bytes(range(1, 33))
packet.lp_packet.incoming_face_id = 300
packet.lp_packet.cache_policy = CachePolicy()
packet.lp_packet.cache_policy.cache_policy_type = 1
packet.lp_packet.congestion_mark = 1
packet.lp_packet.non_discovery = True
packet.lp_packet.fragment = bytes(data)
save("lp", packet.encode())
