"""Chromium without a screen, for the tests of the page."""

import shutil

import pytest

from tests.conftest import require


def browser(folder, width=1200, height=900):
    """A started browser that refuses all network."""
    require("browser", "selenium")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = _found("chromium", "chromium-browser", "google-chrome")
    still = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars"
    quiet = "--no-first-run --disable-quic --disable-background-networking"
    quiet += " --disable-component-update --disable-sync"
    place = (f"--user-data-dir={folder}", f"--window-size={width},{height}")
    for argument in (*still.split(), *quiet.split(), *place):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options, ChromeService(_found("chromedriver")))


def _found(*names):
    for name in names:
        if path := shutil.which(name):
            return path
    return pytest.skip(f"{names[0]} is not here")
