"""Chromium as a test's browser: what it shows, says and asks for."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def program(*names: str) -> str:
    """The first of these programs that is there; without it the tests are skipped, but not in CI."""
    for name in names:
        if found := shutil.which(name):
            return found
    message = f"needs {names[0]}, as tools/check-packages.txt names it"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


class Browser:
    """Chromium, and what it says and asks for while it shows a page."""

    def __init__(self, profile: Path) -> None:
        from selenium import webdriver

        options = webdriver.ChromeOptions()
        options.binary_location = program("chromium", "chromium-browser", "google-chrome")
        for option in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        service = webdriver.ChromeService(program("chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=service)

    def show(self, page: Path | str, width: int, scheme: str = "light") -> None:
        """Opens the page in a window of this width; forgets what was logged before."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")  # what was shown may ask for more meanwhile
        self.messages()
        self.requests()
        self.driver.get(page if isinstance(page, str) else page.as_uri())

    def ask(self, script: str) -> Any:
        return self.driver.execute_script(f"return {script}")

    def messages(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Addresses that were asked for."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
