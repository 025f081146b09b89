"""Debian's Chromium without a window, and pages of ours opened in it until their charts are drawn.

Run as ``python tests/browser/chromium.py REPORT FOLDER`` it takes the pictures of docs/images.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
)
PHONE = 390
# name: (width, height in pixels, dark)
PICTURES = {
    "report": (1280, 860, False),
    "report-light": (1280, 2000, False),
    "report-dark": (1280, 2000, True),
    "report-phone": (PHONE, 2000, False),
}


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """Start the browser with an empty profile; it is ended with the block."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS.split(), f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def opened(driver: Any, address: str, *, width: int = 1280, dark: bool = False) -> Any:
    """Open a page in a window of this width and scheme, and wait until its charts are drawn."""
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme, "media": ""})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(address)
    within(60, lambda: driver.execute_script("return document.documentElement.dataset.drawn === 'yes'"))
    return driver


def within(seconds: float, condition: Any) -> None:
    """Wait until a condition holds; fails when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the page did not get there in time"
        time.sleep(0.05)


def picture(driver: Any, width: int, height: int) -> bytes:
    """Return the top of the opened page as PNG."""
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    shot = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", shot)["data"])


def main(report: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as profile, chromium(Path(profile)) as driver:
        for name, (width, height, dark) in PICTURES.items():
            opened(driver, report.resolve().as_uri(), width=width, dark=dark)
            (folder / f"{name}.png").write_bytes(picture(driver, width, height))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take the pictures of a report that the documents show.")
    parser.add_argument("report", type=Path, help="a report.html")
    parser.add_argument("folder", type=Path, help="where the pictures go, docs/images")
    asked = parser.parse_args()
    main(asked.report, asked.folder)
