"""What tests of views share."""

import pytest

from tests.browser import browser


def write(folder, texts):
    """Write a file for each name and text."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    driver = browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def chromium(driver, tmp_path):
    """The browser, which has nothing to complain of in the page that is opened."""
    driver.folder = tmp_path
    yield driver
    assert driver.get_log("browser") == []
