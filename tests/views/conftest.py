"""Chromium without a screen, and what a person does in it with the page."""

import shutil
import time

import pytest

from tests.conftest import require


def _found(*names):
    path = next(filter(None, map(shutil.which, names)), None)
    return path or pytest.skip(f"{names[0]} is not here")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A started browser that refuses all network."""
    require("browser", "selenium")
    from selenium.webdriver import Chrome, ChromeOptions, ChromeService

    options = ChromeOptions()
    options.binary_location = _found("chromium", "chromium-browser", "google-chrome")
    still = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars"
    quiet = "--no-first-run --disable-quic --disable-background-networking --disable-sync "
    quiet += "--disable-component-update --window-size=1200,900"
    profile = tmp_path_factory.mktemp("profile")
    for argument in f"{still} {quiet} --user-data-dir={profile}".split():
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, ChromeService(_found("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def chromium(driver, tmp_path):
    """The browser, which has nothing to complain of in the page that is opened."""
    yield Page(driver, tmp_path)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert driver.get_log("browser") == []


class Page:
    """A page in the browser. Elements are named by selectors of CSS."""

    def __init__(self, driver, folder):
        self.driver, self.folder = driver, folder

    def open(self, page):
        path = self.folder / "report.html"
        path.write_bytes(page)
        self.driver.get_log("browser")
        self.driver.get(path.as_uri())
        ready = "const done = arguments[0], wait = () => document.documentElement.dataset.ready ? "
        self.driver.execute_async_script(f"{ready} done() : setTimeout(wait, 10); wait()")

    def js(self, expression, *arguments):
        return self.driver.execute_script(f"return {expression}", *arguments)

    def texts(self, selector):
        every = "[...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
        return self.js(every, selector)

    def click(self, *selectors, at=0):
        for selector in selectors:
            self.js("document.querySelectorAll(arguments[0])[arguments[1]].click()", selector, at)

    def enter(self, field, value, event):
        script = "const s = document.getElementById(arguments[0]); s.value = arguments[1]; "
        self.driver.execute_script(f"{script} s.dispatchEvent(new Event('{event}'))", field, value)

    def set_threshold(self, value):
        self.js("setThreshold(arguments[0])", value)

    def play(self, *steps):
        """Do what a step begins with, thresholds and clicks; then texts are those at its end."""
        for *acts, selector, expected in steps:
            for act in acts:
                (self.click if isinstance(act, str) else self.set_threshold)(act)
            assert self.texts(selector) == expected, (acts, selector)

    def fits(self):
        """Whether no name and no line makes the page wider than the window."""
        root = "document.documentElement"
        return self.js(f"{root}.scrollWidth <= {root}.clientWidth")

    def download(self, *buttons):
        """Click buttons that save files, and return what was saved."""
        folder = self.folder / "saved"
        allowed = {"behavior": "allow", "downloadPath": str(folder)}
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
        saved = []
        for button in buttons:
            # With the mouse: a page that saves many files by itself is stopped.
            self.driver.find_element("css selector", button).click()
            ending = "jsonl" if button == "#save-accepted" else "txt"
            path = folder / f"{button.removeprefix('#save-')}.{ending}"
            for _ in range(200):
                if path.exists() and not list(folder.glob("*.crdownload")):
                    break
                time.sleep(0.05)
            saved.append(path.read_bytes())
            path.unlink()
        return saved
