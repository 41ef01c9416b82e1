"""What tests of views share."""

import pytest

from tests.browser import browser


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
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert driver.get_log("browser") == []
