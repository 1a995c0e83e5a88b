"""Fetches one Data by its name: python consumer.py /example/node/hello"""

import sys

from ndn.appv2 import NDNApp, pass_all
from ndn.types import InterestNack, InterestTimeout

app = NDNApp()  # connects to NDN_CLIENT_TRANSPORT
failure = None


async def fetch(name):
    global failure
    try:
        # pass_all accepts every signature; a validator of your own checks it here.
        _, content, _ = await app.express(name, pass_all, lifetime=4000)
        print(bytes(content).decode(), end="")
    except InterestNack as nack:
        failure = f"{name}: Nack, reason {nack.reason}"
    except InterestTimeout:
        failure = f"{name}: no answer within 4 s"
    app.shutdown()


app.run_forever(after_start=fetch(sys.argv[1]))
sys.exit(failure)
