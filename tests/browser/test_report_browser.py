"""The report in a real browser: drawn, quiet, usable by keyboard, by ear and on a phone, and safe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, DRIVER, PHONE, chromium, opened, picture, within

from comparison_sample import comparison
from pivotbench.changes.page import write_page
from pivotbench.charts.build import build_charts
from pivotbench.charts.output import write_charts
from pivotbench.charts.source import source_line
from pivotbench.charts.spec import specifications
from pivotbench.report import write_report
from report_sample import sample

pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver"),
]
AXE = Path(__file__).with_name("axe.min.js")
ATTACK = (
    "</code></pre></script><script>window.stolen = true</script><img src=x onerror='window.stolen = true'>"
)
COMMAND = "python -m server --model model.gguf --variant flash-on"
CHARTS = {
    "report.html": {"ranking", "frontier", "speculation", "stability", "hardware", "launch", "energy"},
    "compare.html": {"changes", "changes-by-load"},
}
PAGES = [*CHARTS, "charts/frontier.html"]
PAPER = 688  # pixels across A4 within its margins
LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 24, 29)"
GROUND = "return getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    case = sample(folder, evidence_line=ATTACK)
    case.decision["log"].append(ATTACK)
    charts = specifications(build_charts(case.decision, case.measurements, case.cells))
    write_report(folder / "report.html", case.decision, charts, case.cells)
    (folder / "charts").mkdir()
    write_page(folder / "compare.html", comparison(folder, ATTACK))
    write_charts({"frontier": charts["frontier"]}, folder / "charts", source_line(case.decision, case.cells))
    return folder


@pytest.fixture(scope="module")
def address(folder: Path) -> str:
    return (folder / "report.html").as_uri()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        driver.set_script_timeout(120)
        yield driver


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


def dimmed(driver: Any, section: str) -> int:
    """Return how many marks of a section's charts stand back."""
    script = """return [...document.querySelectorAll(`#${arguments[0]} svg .role-mark *`)]
      .filter((mark) => Number(mark.getAttribute("opacity") ?? 1) < 0.3).length"""
    return int(driver.execute_script(script, section))


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (PHONE, False)])
@pytest.mark.parametrize("page", CHARTS)
def test_every_chart_is_drawn_and_the_console_stays_silent(
    browser: Any, folder: Path, page: str, width: int, dark: bool
) -> None:
    browser.get_log("browser")
    drawn = marks(opened(browser, (folder / page).as_uri(), width=width, dark=dark))
    assert set(drawn) == CHARTS[page]
    assert min(drawn.values()) >= 4
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (PHONE, False), (PHONE, True)])
def test_axe_finds_nothing_against_wcag_aa(
    browser: Any, folder: Path, page: str, width: int, dark: bool
) -> None:
    opened(browser, (folder / page).as_uri(), width=width, dark=dark)
    # Shadows at the edges of wide tables are pictures, before which axe does not judge contrast.
    browser.execute_script(
        """document.head.append(Object.assign(document.createElement("style"),
          { textContent: ".scroll { background-image: none !important; }" }));
        for (const each of document.querySelectorAll("details")) each.open = true;"""
    )
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text(encoding="utf-8")})
    found = browser.execute_async_script(
        "const done = arguments[0]; axe.run(document).then(done, (error) => done(String(error)));"
    )
    faults = [(v["id"], v["impact"], v["nodes"][0]["html"]) for v in found["violations"]]
    assert faults == []
    assert {"color-contrast", "document-title"} <= {rule["id"] for rule in found["passes"]}


def test_what_a_server_wrote_is_shown_and_never_run(browser: Any, address: str) -> None:
    opened(browser, address)
    assert browser.execute_script("return window.stolen === undefined")
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    browser.execute_script("document.querySelector('#log details').open = true")
    assert ATTACK in browser.find_element(By.ID, "log").text


def test_what_a_server_wrote_stays_text_in_a_comparison(browser: Any, folder: Path) -> None:
    opened(browser, (folder / "compare.html").as_uri())
    assert browser.execute_script("return window.stolen === undefined")
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0
    for section in ("outcomes", "changelog"):
        assert "<script>window.stolen" in browser.find_element(By.ID, section).text


def test_a_comparison_brings_a_configuration_out_in_charts_and_tables(browser: Any, folder: Path) -> None:
    opened(browser, (folder / "compare.html").as_uri())
    Select(browser.find_element(By.ID, "bring-out")).select_by_visible_text("kv-q8")
    for section in ("speed", "loads"):
        within(30, lambda section=section: dimmed(browser, section) > 0)
    lit = [row for row in browser.find_elements(By.CSS_SELECTOR, "tr.lit") if row.is_displayed()]
    assert len(lit) == 3  # speed, what works, answers


def test_every_entry_of_the_contents_of_a_comparison_goes_somewhere(browser: Any, folder: Path) -> None:
    opened(browser, (folder / "compare.html").as_uri())
    inside = {link.get_attribute("hash") for link in browser.find_elements(By.CSS_SELECTOR, "a[href]")}
    assert len(inside) == 10
    assert all(browser.find_elements(By.CSS_SELECTOR, link) for link in inside)


def test_evidence_opens_by_keyboard(browser: Any, address: str) -> None:
    opened(browser, address)
    summary = browser.find_elements(By.CSS_SELECTOR, "#outcomes summary:not(.quiet)")[-1]
    summary.send_keys(Keys.ENTER)
    shown = browser.find_elements(By.CSS_SELECTOR, "#outcomes details[open] .evidence code")
    assert [code.text for code in shown] == [ATTACK]


def test_the_copy_button_copies_and_says_so(browser: Any, address: str) -> None:
    opened(browser, address)
    grant = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.execute_cdp_cmd("Browser.grantPermissions", grant)
    browser.find_element(By.CSS_SELECTOR, "button[data-copy]").click()
    within(30, lambda: browser.find_element(By.ID, "copied").get_attribute("textContent") != "")
    assert browser.find_element(By.ID, "copied").get_attribute("textContent") == "Launch command copied"
    read = "const done = arguments[0]; navigator.clipboard.readText().then(done, (e) => done(String(e)));"
    assert browser.execute_async_script(read) == COMMAND


@pytest.mark.parametrize("page", PAGES)
def test_a_phone_needs_no_sideways_scrolling(browser: Any, folder: Path, page: str) -> None:
    opened(browser, (folder / page).as_uri(), width=PHONE)
    browser.execute_script("for (const each of document.querySelectorAll('details')) each.open = true")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE
    outside = """
      return [...document.querySelectorAll("main *")]
        .filter((e) => !e.closest(".scroll, pre, .hidden, svg") && e.getBoundingClientRect().right > 391)
        .map((e) => e.outerHTML)"""
    assert browser.execute_script(outside) == []


def test_on_a_phone_outcomes_and_verdicts_are_seen_without_scrolling(browser: Any, address: str) -> None:
    opened(browser, address, width=PHONE)
    right = """return Math.max(...[...document.querySelectorAll("#outcomes .tone, #ranking .badge")]
      .map((e) => e.getBoundingClientRect().right))"""
    assert browser.execute_script(right) <= PHONE


@pytest.mark.parametrize("dark", [False, True])
def test_the_words_of_charts_reach_the_contrast_of_wcag_aa(browser: Any, address: str, dark: bool) -> None:
    opened(browser, address, dark=dark)  # axe does not look into pictures
    script = """
      const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
      const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
      const ground = light(rgb(getComputedStyle(document.body).backgroundColor));
      const words = [...document.querySelectorAll("svg text")].filter((e) => e.textContent.trim());
      const contrast = (e) => {
        const [high, dim] = [light(rgb(getComputedStyle(e).fill)), ground].sort((a, b) => b - a);
        return (high + 0.05) / (dim + 0.05);
      };
      return [words.length, words.filter((e) => contrast(e) < 4.5).map((e) => e.textContent)];"""
    words, low = browser.execute_script(script)
    assert words > 50
    assert low == []


def test_colours_follow_the_scheme_without_drawing_anew(browser: Any, address: str) -> None:
    label = "return getComputedStyle(document.querySelector('svg .role-axis-label text')).fill"
    opened(browser, address)
    light = browser.execute_script(GROUND), browser.execute_script(label)
    scheme = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    dark = browser.execute_script(GROUND), browser.execute_script(label)
    assert (light[0], dark[0]) == (LIGHT, DARK)
    assert light[1] != dark[1]


@pytest.mark.parametrize("dark", [False, True])
def test_a_button_changes_the_scheme_and_back(browser: Any, address: str, dark: bool) -> None:
    opened(browser, address, dark=dark)
    grounds = [browser.execute_script(GROUND)]
    button = browser.find_element(By.ID, "scheme")
    for _ in range(2):
        button.send_keys(Keys.ENTER)
        grounds.append(browser.execute_script(GROUND))
    assert grounds == ([DARK, LIGHT, DARK] if dark else [LIGHT, DARK, LIGHT])
    assert button.text == ("Light view" if dark else "Dark view")


def test_a_legend_entry_brings_its_configuration_out_in_all_charts(browser: Any, address: str) -> None:
    opened(browser, address)
    button = browser.find_element(By.CSS_SELECTOR, "#stability button[data-focus='flash-off']")
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-pressed") == "true"
    within(30, lambda: browser.find_elements(By.CSS_SELECTOR, "tr.lit"))
    assert browser.find_element(By.CSS_SELECTOR, "tr.lit th").text == "flash-off"
    for section in ("ranking", "frontier", "stability", "energy"):
        within(30, lambda section=section: dimmed(browser, section) > 0)


def test_a_list_brings_out_any_configuration_by_keyboard(browser: Any, address: str) -> None:
    opened(browser, address)
    Select(browser.find_element(By.ID, "bring-out")).select_by_visible_text("no-repack")
    within(30, lambda: dimmed(browser, "ranking") > 0)
    lit = [row for row in browser.find_elements(By.CSS_SELECTOR, "tr.lit") if row.is_displayed()]
    assert {row.text.split()[0] for row in lit} == {"no-repack"}
    assert len(lit) >= 3  # outcomes, ranking, flags


def test_a_row_of_a_table_brings_its_configuration_out_and_a_second_click_lets_go(
    browser: Any, address: str
) -> None:
    opened(browser, address)
    head = browser.find_element(By.CSS_SELECTOR, "#outcomes tr[data-name='kv-q8'] th")
    browser.execute_script("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", head)
    head.click()
    within(30, lambda: dimmed(browser, "ranking") > 0)
    assert browser.execute_script("return document.getElementById('bring-out').value") == "kv-q8"
    head.click()
    assert browser.execute_script("return document.getElementById('bring-out').value") == ""


def test_every_link_of_the_page_goes_somewhere(browser: Any, address: str) -> None:
    opened(browser, address)
    links = browser.find_elements(By.CSS_SELECTOR, "a[href]")
    inside = {link.get_attribute("hash") for link in links if link.get_attribute("protocol") == "file:"}
    outside = [link.get_attribute("href") for link in links if link.get_attribute("protocol") != "file:"]
    assert len(inside) == 16  # the sections, and past the contents
    assert all(browser.find_elements(By.CSS_SELECTOR, link) for link in inside)
    assert all(link.startswith("https://") for link in outside)


def test_without_its_script_the_page_still_says_all_in_words(browser: Any, address: str) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(address)
        assert "Undecided between flash-on and kv-q8" in browser.find_element(By.TAG_NAME, "h1").text
        assert "charts/" in browser.find_element(By.TAG_NAME, "noscript").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_paper_is_light_and_shows_the_evidence(browser: Any, address: str) -> None:
    opened(browser, address, dark=True)
    browser.find_element(By.ID, "scheme").click()
    browser.find_element(By.ID, "scheme").click()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert browser.execute_script(GROUND) == LIGHT
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    closed = browser.find_elements(By.CSS_SELECTOR, "details:not([open]) > summary")
    assert all("quiet" in summary.get_attribute("class") for summary in closed)
    assert browser.find_elements(By.CSS_SELECTOR, "#outcomes details[open] .evidence")


@pytest.mark.parametrize("page", CHARTS)
def test_no_table_is_cut_on_paper(browser: Any, folder: Path, page: str) -> None:
    opened(browser, (folder / page).as_uri(), width=PAPER)
    browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    cut = """return [...document.querySelectorAll(".scroll")]
      .filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.getAttribute("aria-label"))"""
    assert browser.execute_script(cut) == []


def test_a_picture_of_the_page_is_not_empty(browser: Any, address: str) -> None:
    opened(browser, address)
    assert len(picture(browser, 1280, 900)) > 30_000
