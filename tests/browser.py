"""Chromium without a screen, for the tests of the page."""

import shutil

from tests.conftest import require


def browser(folder, width=1200, height=900):
    """A started browser that refuses all network."""
    require("browser", "selenium")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = _found("chromium", "chromium-browser", "google-chrome")
    quiet = (
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    )
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        *quiet,
    ):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={folder}")
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return Chrome(options, ChromeService(_found("chromedriver")))


def _found(*names):
    import pytest

    path = next((path for name in names if (path := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"{names[0]} is not here")
    return path
