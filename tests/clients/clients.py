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


STATUSES = [429, 500, 502, 503, 504]
CLIENTS = {
    "urllib3-backoff": lambda: urllib3_with(status_forcelist=STATUSES, backoff_factor=0.1),
    "urllib3-no-backoff": lambda: urllib3_with(total=20, status_forcelist=STATUSES),
    "requests-all-methods": lambda: requests_with(
        status_forcelist=STATUSES, backoff_factor=0.1, allowed_methods=None
    ),
    "httpx": httpx_plain,
    "httpx-retries": httpx_retries,
    "tenacity": lambda: tenacity_with(attempts=21),
    "tenacity-fixed": tenacity_fixed,
}

try:
    CLIENTS[CLIENT]()
except (ImportError, KeyError, TypeError):
    raise
except Exception as error:
    print(type(error).__name__)
