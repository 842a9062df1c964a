"""Real clients of Python: `python clients.py CLIENT METHOD URL`. Each does what its library does by
itself, with the settings that are written here; whether the request succeeds is of no interest."""

import os
import sys

CLIENT, METHOD, URL = sys.argv[1:]
HEADERS = {"Authorization": "Bearer " + os.environ["PETSTORE_API_KEY"], "User-Agent": CLIENT + "/1"}
BODY = {"name": "Rex", "categoryId": 7} if METHOD == "POST" else None


def urllib3_with(total=5, **settings):
    import urllib3

    retry = urllib3.util.Retry(total=total, **settings)
    with urllib3.PoolManager(retries=retry) as pool:
        pool.request(METHOD, URL, headers=HEADERS, json=BODY)


def requests_with(**settings):
    import requests
    from urllib3.util import Retry

    with requests.Session() as session:
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=Retry(total=5, **settings)))
        session.request(METHOD, URL, headers=HEADERS, json=BODY)


def httpx_plain():
    import httpx

    with httpx.Client() as client:
        client.request(METHOD, URL, headers=HEADERS, json=BODY)


def httpx_retries():
    import httpx
    from httpx_retries import Retry, RetryTransport

    with httpx.Client(transport=RetryTransport(retry=Retry(total=4, backoff_factor=0.2))) as client:
        client.request(METHOD, URL, headers=HEADERS, json=BODY)


def tenacity_with(attempts=6, **settings):
    import httpx
    import tenacity

    @tenacity.retry(stop=tenacity.stop_after_attempt(attempts), **settings)
    def send(client):
        client.request(METHOD, URL, headers=HEADERS, json=BODY).raise_for_status()

    with httpx.Client() as client:
        send(client)


def tenacity_fixed():
    import tenacity

    tenacity_with(wait=tenacity.wait_fixed(1))


def in_a_loop(send):
    """Sends the request nine times, whatever the response is."""
    for _ in range(9):
        send()


def requests_loop():
    import requests

    # As in many scripts, `response` keeps its connection open until the next one replaces it.
    for _ in range(9):
        response = requests.request(METHOD, URL, headers=HEADERS, json=BODY)
    response.close()


def urllib_loop():
    import json
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    body = json.dumps(BODY).encode() if BODY else None
    headers = {**HEADERS, "Content-Type": "application/json"} if BODY else HEADERS

    def send():
        try:
            urlopen(Request(URL, body, headers, method=METHOD)).read()
        except HTTPError:
            pass

    in_a_loop(send)


def httpx_loop():
    import httpx

    with httpx.Client() as client:
        in_a_loop(lambda: client.request(METHOD, URL, headers=HEADERS, json=BODY))


def aiohttp_loop():
    import asyncio

    import aiohttp

    async def run():
        async with aiohttp.ClientSession(headers=HEADERS) as session:
            for _ in range(9):
                async with session.request(METHOD, URL, json=BODY) as response:
                    await response.read()

    asyncio.run(run())


STATUSES = [429, 500, 502, 503, 504]
CLIENTS = {
    "urllib3-backoff": lambda: urllib3_with(status_forcelist=STATUSES, backoff_factor=0.1),
    "urllib3-no-backoff": lambda: urllib3_with(total=20, status_forcelist=STATUSES),
    "requests-all-methods": lambda: requests_with(
        status_forcelist=STATUSES, backoff_factor=0.1, allowed_methods=None
    ),
    "httpx": httpx_plain,
    "httpx-retries": httpx_retries,
    "requests-loop": requests_loop,
    "urllib-loop": urllib_loop,
    "httpx-loop": httpx_loop,
    "aiohttp-loop": aiohttp_loop,
    "tenacity": lambda: tenacity_with(attempts=21),
    "tenacity-fixed": tenacity_fixed,
}

try:
    CLIENTS[CLIENT]()
except (ImportError, KeyError, TypeError):
    raise
except Exception as error:
    print(type(error).__name__)
