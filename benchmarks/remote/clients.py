"""The clients of the draws: each returns a function that reads one object, with retries."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PAUSE_S = 0.05
MOST_ATTEMPTS = 200

Read = Callable[[str], bytes]


def urllib_client() -> Read:
    import urllib.error
    import urllib.request

    def read(url: str) -> bytes:
        for _ in range(MOST_ATTEMPTS):
            try:
                with urllib.request.urlopen(url) as answer:
                    return answer.read()
            except urllib.error.HTTPError as error:  # noqa: PERF203 - a retry
                error.close()
                time.sleep(PAUSE_S)
        raise OSError(f"no answer: {url}")

    return read


def urllib3_client() -> Read:
    import urllib3

    retry = urllib3.Retry(MOST_ATTEMPTS, backoff_factor=PAUSE_S, backoff_max=0.2, status_forcelist=[429, 503])
    pool = urllib3.PoolManager(retries=retry, maxsize=4)
    return lambda url: pool.request("GET", url).data


def requests_client() -> Read:
    import requests
    import urllib3

    session = requests.Session()
    retry = urllib3.Retry(MOST_ATTEMPTS, backoff_factor=PAUSE_S, backoff_max=0.2, status_forcelist=[429, 503])
    session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
    return lambda url: session.get(url).content


def httpx_client() -> Read:
    import httpx2

    client = httpx2.Client()

    def read(url: str) -> bytes:
        for _ in range(MOST_ATTEMPTS):
            answer = client.get(url)
            if answer.status_code == 200:
                return answer.content
            time.sleep(PAUSE_S)
        raise OSError(f"no answer: {url}")

    return read


def fsspec_client() -> Read:
    import aiohttp
    import fsspec

    files: Any = fsspec.filesystem("http")

    def read(url: str) -> bytes:
        for _ in range(MOST_ATTEMPTS):
            try:
                return files.cat_file(url)
            except aiohttp.ClientResponseError:  # noqa: PERF203 - a retry
                time.sleep(PAUSE_S)
        raise OSError(f"no answer: {url}")

    return read


CLIENTS: dict[str, Callable[[], Read]] = {
    "urllib": urllib_client,
    "urllib3": urllib3_client,
    "requests": requests_client,
    "httpx": httpx_client,
    "fsspec": fsspec_client,
}
