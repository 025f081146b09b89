"""The report in a real browser: drawn, quiet, usable by keyboard and on a phone, and safe."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pivotbench.report import write_report
from report_sample import sample

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver"),
]
ATTACK = (
    "</code></pre></script><script>window.stolen = true</script><img src=x onerror='window.stolen = true'>"
)
COMMAND = "python -m server --model model.gguf --variant flash-on"
CHARTS = {"ranking", "frontier", "speculation", "stability", "launch"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("report")
    case = sample(folder, evidence_line=ATTACK)
    case.decision["log"].append(ATTACK)
    write_report(folder / "report.html", case.decision, case.measurements, case.cells)
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = (
        "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run "
        "--disable-background-networking --disable-component-update --disable-sync"
    )
    for flag in [*flags.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def opened(driver: Any, address: str, *, width: int = 1280, dark: bool = False) -> Any:
    """Open the report in a window of this width and scheme, and wait until its charts are drawn."""
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme, "media": ""})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(address)
    within(30, lambda: driver.execute_script("return document.documentElement.dataset.drawn === 'yes'"))
    return driver


def within(seconds: float, condition: Any) -> None:
    """Wait until a condition holds; fails when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the page did not get there in time"
        time.sleep(0.05)


def marks(driver: Any) -> dict[str, int]:
    """Return how many visible marks each chart has drawn."""
    script = """
      const drawn = {};
      for (const figure of document.querySelectorAll("figure[data-chart]")) {
        const marks = figure.querySelectorAll("svg .role-mark :is(path, line, text)");
        drawn[figure.dataset.chart] = [...marks].filter((m) => m.getBoundingClientRect().height > 0).length;
      }
      return drawn;"""
    found: dict[str, int] = driver.execute_script(script)
    return found


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_every_chart_is_drawn_and_the_console_stays_silent(
    chromium: Any, address: str, width: int, dark: bool
) -> None:
    chromium.get_log("browser")
    drawn = marks(opened(chromium, address, width=width, dark=dark))
    assert set(drawn) == CHARTS
    assert min(drawn.values()) >= 4
    assert chromium.get_log("browser") == []


def test_what_a_server_wrote_is_shown_and_never_run(chromium: Any, address: str) -> None:
    opened(chromium, address)
    assert chromium.execute_script("return window.stolen === undefined")
    assert chromium.execute_script("return document.querySelectorAll('img').length") == 0
    assert ATTACK in chromium.find_element(By.ID, "log").text


def test_evidence_opens_by_keyboard(chromium: Any, address: str) -> None:
    opened(chromium, address)
    summary = chromium.find_elements(By.CSS_SELECTOR, "#outcomes summary:not(.quiet)")[-1]
    summary.send_keys(Keys.ENTER)
    shown = chromium.find_elements(By.CSS_SELECTOR, "#outcomes details[open] .evidence code")
    assert [code.text for code in shown] == [ATTACK]


def test_the_copy_button_copies_and_says_so(chromium: Any, address: str) -> None:
    opened(chromium, address)
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    chromium.execute_cdp_cmd("Browser.grantPermissions", grant)
    chromium.find_element(By.CSS_SELECTOR, "button[data-copy]").click()
    within(5, lambda: chromium.find_element(By.ID, "copied").get_attribute("textContent") != "")
    assert chromium.find_element(By.ID, "copied").get_attribute("textContent") == "Launch command copied"
    read = "const done = arguments[0]; navigator.clipboard.readText().then(done, (e) => done(String(e)));"
    assert chromium.execute_async_script(read) == COMMAND


def test_a_phone_needs_no_sideways_scrolling(chromium: Any, address: str) -> None:
    opened(chromium, address, width=390)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= 390
    outside = """
      return [...document.querySelectorAll("main *")]
        .filter((e) => !e.closest(".scroll, pre, .hidden, svg") && e.getBoundingClientRect().right > 391)
        .map((e) => e.outerHTML)"""
    assert chromium.execute_script(outside) == []


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_reaches_the_contrast_of_wcag_aa(chromium: Any, address: str, dark: bool) -> None:
    opened(chromium, address, dark=dark)
    script = """
      const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
      const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
      const ground = (e) => {
        for (; e; e = e.parentElement) {
          const colour = rgb(getComputedStyle(e).backgroundColor);
          if (colour.length === 3 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
      };
      const low = [];
      for (const e of document.querySelectorAll("body *:not(script)")) {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
        const style = getComputedStyle(e);
        const colour = e.closest("svg") ? style.fill : style.color;
        if (!colour.startsWith("rgb")) continue;
        const [high, dim] = [light(rgb(colour)), light(ground(e))].sort((a, b) => b - a);
        if ((high + 0.05) / (dim + 0.05) < 4.5) low.push(`${e.tagName} ${e.textContent.slice(0, 40)}`);
      }
      return low;"""
    assert chromium.execute_script(script) == []


def test_colours_follow_the_scheme_without_drawing_anew(chromium: Any, address: str) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    label = "return getComputedStyle(document.querySelector('svg .role-axis-label text')).fill"
    opened(chromium, address)
    light = chromium.execute_script(ground), chromium.execute_script(label)
    scheme = [{"name": "prefers-color-scheme", "value": "dark"}]
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    dark = chromium.execute_script(ground), chromium.execute_script(label)
    assert light[0] != dark[0]
    assert light[1] != dark[1]


def test_a_legend_entry_brings_its_configuration_out_in_all_charts(chromium: Any, address: str) -> None:
    opened(chromium, address)
    button = chromium.find_element(By.CSS_SELECTOR, "#stability button[data-focus='flash-off']")
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "true"
    assert chromium.find_element(By.CSS_SELECTOR, "tr.lit th").text == "flash-off"
    dimmed = """return [...document.querySelectorAll("#ranking svg .role-mark *")]
      .filter((mark) => Number(mark.getAttribute("opacity") ?? 1) < 0.3).length"""
    within(5, lambda: chromium.execute_script(dimmed) > 0)


def test_every_link_of_the_contents_goes_somewhere(chromium: Any, address: str) -> None:
    opened(chromium, address)
    links = [a.get_attribute("hash") for a in chromium.find_elements(By.CSS_SELECTOR, "nav a")]
    assert len(links) == 13
    assert all(chromium.find_elements(By.CSS_SELECTOR, link) for link in links)


def test_paper_is_light_and_shows_the_evidence(chromium: Any, address: str) -> None:
    opened(chromium, address, dark=True)
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert (
        chromium.execute_script("return getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    chromium.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert chromium.execute_script("return document.querySelectorAll('details:not([open])').length") == 0
