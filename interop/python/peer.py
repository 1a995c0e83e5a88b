"""A python-ndn program at the other end of a router's face.

Every command prints one line of JSON on standard output and exits with 0 if it
did what it was asked:

  get   fetches a segmented object, discovering its version
  put   registers a prefix and serves a file in segments until standard input ends
  ask   expresses Interests for NAME/0, NAME/1, …; each must be answered
  register  registers a prefix, and unregisters it at the next line of standard input
  legacy-register  registers a prefix with a command signed in the older format
"""

import argparse
import asyncio
import hashlib
import json
import os
import sys


def announce(**result):
    print(json.dumps(result), flush=True)


async def express(app, name, lifetime_ms, tries, **options):
    """Expresses one Interest, again after each time-out; gives name, content, context."""
    from ndn.appv2 import pass_all
    from ndn.types import InterestTimeout

    for left in reversed(range(tries)):
        try:
            return await app.express(name, pass_all, lifetime=lifetime_ms, **options)
        except InterestTimeout:
            if left == 0:
                raise


async def get(app, arguments):
    from ndn.encoding import Component, Name

    async def fetch(name, **options):
        return await express(app, name, arguments.lifetime_ms, 4, **options)

    name, first, context = await fetch(
        Name.from_str(arguments.name), can_be_prefix=True, must_be_fresh=True
    )
    prefix = name[:-1]
    final = Component.to_number(context["meta_info"].final_block_id)
    contents = {Component.to_number(name[-1]): bytes(first or b"")}
    window = asyncio.Semaphore(arguments.window)

    async def fetch_segment(i):
        async with window:
            _, content, _ = await fetch(prefix + [Component.from_segment(i)])
            contents[i] = bytes(content or b"")

    await asyncio.gather(*(fetch_segment(i) for i in range(final + 1) if i not in contents))
    whole = b"".join(contents[i] for i in range(final + 1))
    announce(
        name=Name.to_str(prefix),
        segments=final + 1,
        bytes=len(whole),
        sha256=hashlib.sha256(whole).hexdigest(),
    )
    return 0


async def put(app, arguments):
    from ndn.appv2 import pass_all
    from ndn.encoding import Component, MetaInfo, Name
    from ndn.security import DigestSha256Signer

    with open(arguments.file, "rb") as file:
        whole = file.read()
    prefix = Name.from_str(arguments.name)
    versioned = prefix + [Component.from_version(1)]
    size = arguments.segment_bytes
    final = max(0, (len(whole) - 1) // size)
    keys = app.default_keychain() if arguments.key else None
    signer = keys.get_signer({}) if keys else DigestSha256Signer()
    packets = [
        app.make_data(
            versioned + [Component.from_segment(i)],
            whole[i * size : (i + 1) * size],
            signer=signer,
            freshness_period=10_000,
            final_block_id=Component.from_segment(final),
        )
        for i in range(final + 1)
    ]

    def answer(name, _parameters, reply, _context):
        if len(name) == len(versioned) + 1 and name[:-1] == versioned:
            i = Component.to_number(name[-1])
            if i <= final:
                reply(packets[i])
        elif len(name) <= len(versioned):
            reply(packets[0])

    app.attach_handler(prefix, answer, validator=pass_all)
    local = None
    if arguments.register:
        if not await app.register(prefix):
            return 1
    else:
        # One Interest, so that the router has a face for us; no producer answers it.
        app.express(Name.from_str("/interop/hello"), pass_all, lifetime=100).close()
        socket = app.face.transport if hasattr(app.face, "transport") else app.face.writer
        host, port = socket.get_extra_info("sockname")[:2]
        local = f"{host}:{port}"
    announce(ready=True, name=Name.to_str(versioned), segments=final + 1, local=local)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    return 0


async def ask(app, arguments):
    from ndn.encoding import Component, Name

    prefix = Name.from_str(arguments.name)
    window = asyncio.Semaphore(arguments.window)

    async def one(i):
        async with window:
            name = prefix + [Component.from_str(str(i))]
            _, content, _ = await express(app, name, arguments.lifetime_ms, 1)
            return len(content or b"")

    sizes = await asyncio.gather(*(one(i) for i in range(arguments.count)))
    announce(answers=len(sizes), bytes=sum(sizes))
    return 0


async def register(app, arguments):
    """Each half is announced when the router has answered."""
    input_at = asyncio.get_running_loop().run_in_executor
    announce(registered=await app.register(arguments.name))
    await input_at(None, sys.stdin.readline)
    announce(unregistered=await app.unregister(arguments.name))
    await input_at(None, sys.stdin.read)
    return 0


async def legacy_register(app, arguments):
    """`app` is python-ndn's first API, whose commands are signed in their name."""
    registered = await app.register(arguments.name, lambda *_: None)
    announce(registered=registered)
    return 0 if registered else 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--transport", required=True, help="FaceUri of the router")
    commands = parser.add_subparsers(required=True)

    def command(name, run, summary):
        sub = commands.add_parser(name, help=summary)
        sub.set_defaults(run=run)
        sub.add_argument("name", help="NDN name")
        sub.add_argument("--lifetime-ms", type=int, default=4000)
        sub.add_argument("--window", type=int, default=16, help="most Interests at once")
        return sub

    command("get", get, "fetch a segmented object")
    command("register", register, "hold a registration")
    command("legacy-register", legacy_register, "register with an older command")
    sub = command("ask", ask, "express Interests one by one")
    sub.add_argument("--count", type=int, default=1)
    sub = command("put", put, "serve a file")
    sub.add_argument("file", help="what to serve")
    sub.add_argument("--segment-bytes", type=int, default=4096)
    sub.add_argument("--key", action="store_true", help="sign with the default key")
    sub.add_argument(
        "--no-register",
        dest="register",
        action="store_false",
        help="leave it to another program to register the prefix for our face",
    )
    return parser.parse_args()


def main():
    arguments = parse()
    os.environ["NDN_CLIENT_TRANSPORT"] = arguments.transport
    if arguments.run is legacy_register:
        from ndn.app import NDNApp
    else:
        from ndn.appv2 import NDNApp
    app = NDNApp()
    code = 1

    async def run():
        nonlocal code
        try:
            code = await arguments.run(app, arguments)
        except Exception as error:  # the harness wants one line, not a trace
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        finally:
            app.shutdown()

    app.run_forever(after_start=run())
    sys.exit(code)


if __name__ == "__main__":
    main()
