"""Answers every Interest under /example/python."""

from ndn.appv2 import NDNApp
from ndn.encoding import Name

PREFIX = "/example/python"
app = NDNApp()  # connects to NDN_CLIENT_TRANSPORT
signer = app.default_keychain().get_signer({})


def answer(name, _parameters, reply, _context):
    content = f"Hello from Python: {Name.to_str(name)}\n".encode()
    reply(app.make_data(name, content, signer, freshness_period=10_000))


async def serve():
    app.attach_handler(PREFIX, answer)
    if not await app.register(PREFIX):
        raise RuntimeError(f"the router did not register {PREFIX}")
    print(f"serving {PREFIX}", flush=True)


app.run_forever(after_start=serve())
