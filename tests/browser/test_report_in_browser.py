"""The report in Debian's Chromium: no error, no request, tables sort and search, dark, narrow, hostile, on paper."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from report.hand_made import coreset_of, logistic_table

from betacores.models import LogisticRegression

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"),
]

HOSTILE = "</script><img src=x onerror=alert(1)>"
NARROW, WIDE = (360, 800), (1280, 900)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return the address of a report on a small table with hostile names."""
    x, y, theta = logistic_table()
    y[:30] = np.where(x[:30] @ theta[:-1] > -0.5, "no", "yes")
    x[30:35, 1] = 70.0
    trust = np.ones(400)
    trust[30:35] = 0.0
    words = [HOSTILE if k % 2 else "plain" for k in range(400)]
    frame = pd.DataFrame({"age": x[:, 0], HOSTILE: x[:, 1], "visits": x[:, 2], "remark": words})
    frame.loc[31, "visits"] = None
    info = {
        "trace": {"size": [5, 10, 20, 30], "remaining": [3.0, 1.0, 0.2, 0.05]},
        "warnings": ["<script>alert(2)</script>"],
    }
    coreset = coreset_of(
        LogisticRegression(), x, y, theta, columns=["age", HOSTILE, "visits"], trust=trust, info=info,
        labels=np.array(["no", "yes"]), groups=[f"source {k % 5}" for k in range(400)],
        frame=frame, sources=["age", HOSTILE, "visits"], target="<b>bought</b>",
    )  # fmt: skip
    report = coreset.report(title=HOSTILE, command="betacores summarize table.csv")
    return report.save(tmp_path_factory.mktemp("report") / "report.html").as_uri()


@pytest.fixture(scope="module")
def chromium():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=webdriver.ChromeService(DRIVER), options=options)
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium, page):
    """Return the browser with the page freshly loaded, wide and light."""
    view(chromium, WIDE, "light")
    chromium.get(page)
    return chromium


def view(driver, size, scheme, media=""):
    metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    # Smooth scrolling would carry a header away from under the click.
    wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
    # Styles follow at once, but a page hears of the change in its next frame, which a busy machine delays.
    driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
    )


def column(driver, table, place):
    """Return the texts of a column's visible cells."""
    script = "return [...document.querySelectorAll(arguments[0] + ' tbody tr')].filter(r => !r.hidden)"
    return driver.execute_script(f"{script}.map(r => r.cells[arguments[1]].textContent.trim())", table, place)


def header(driver, table, place):
    return driver.find_elements("css selector", f"{table} thead th button")[place]


def background(driver):
    return driver.execute_script("return getComputedStyle(document.body).backgroundColor")


def lightness(colour):
    return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) / 3


def test_it_loads_without_error_or_request(browser, page):
    assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = {m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"}
    assert page in asked
    assert {url for url in asked if not url.startswith("data:")} == {page}


def test_hostile_names_stay_text(browser):
    found = browser.execute_script(
        "return [document.scripts.length, document.images.length, document.querySelectorAll('main b b, h1 *').length]"
    )
    assert found == [1, 0, 0]
    assert browser.title == HOSTILE
    heads = [button.text for button in browser.find_elements("css selector", "#suspicious-table thead button")]
    assert HOSTILE in heads
    assert "<b>bought</b>" in heads
    assert browser.find_element("css selector", ".warnings li").text == "<script>alert(2)</script>"


def test_the_page_forbids_itself_other_scripts(browser):
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.broken = 1'; document.body.append(s);"
        "const i = document.createElement('div'); i.innerHTML = '<img src=x onerror=\"window.broken = 2\">';"
        "document.body.append(i)"
    )
    assert browser.execute_script("return window.broken") is None
    browser.get_log("browser")  # what was refused is not an error of the page


def test_tables_sort_by_a_click(browser):
    table = "#suspicious-table"
    head = browser.find_elements("css selector", f"{table} thead th")
    assert head[1].get_attribute("aria-sort") == "ascending"
    header(browser, table, 0).click()
    rows = [int(text.replace(",", "")) for text in column(browser, table, 0)]
    assert rows == sorted(rows, reverse=True)
    assert [one.get_attribute("aria-sort") for one in head[:2]] == ["descending", None]
    header(browser, table, 0).click()
    assert [int(text.replace(",", "")) for text in column(browser, table, 0)] == sorted(rows)


def test_numbers_sort_as_numbers_and_missing_cells_last(browser):
    table, visits = "#suspicious-table", 6
    assert header(browser, table, visits).text.startswith("visits")
    header(browser, table, visits).click()
    texts = column(browser, table, visits)
    assert texts[-1] == "missing"
    numbers = [float(text.replace("−", "-")) for text in texts[:-1]]
    assert numbers == sorted(numbers, reverse=True)
    header(browser, table, visits).click()
    assert column(browser, table, visits)[-1] == "missing"


def test_tables_sort_by_keyboard(browser):
    button = header(browser, "#coreset-table", 0)
    browser.execute_script("arguments[0].focus()", button)
    browser.switch_to.active_element.send_keys("\ue007")  # Enter
    rows = [int(text.replace(",", "")) for text in column(browser, "#coreset-table", 0)]
    assert rows == sorted(rows, reverse=True)
    browser.switch_to.active_element.send_keys(" ")
    assert [int(text.replace(",", "")) for text in column(browser, "#coreset-table", 0)] == sorted(rows)


def test_searching_hides_rows_that_do_not_hold_the_words(browser):
    every = column(browser, "#suspicious-table", 0)
    box = browser.find_element("css selector", "#suspicious-table-search")
    box.send_keys("70 EXPECTED")
    assert sorted(column(browser, "#suspicious-table", 0)) == ["30", "31", "32", "33", "34"]
    assert browser.find_element("css selector", "#suspicious-table-found").text == f"5 of {len(every)} rows"
    box.send_keys("\ue00c")  # Escape
    assert column(browser, "#suspicious-table", 0) == every


def test_the_first_key_leads_to_the_report(browser):
    browser.find_element("css selector", "body").send_keys("\ue004")  # Tab
    active = browser.switch_to.active_element
    assert active.text == "Skip to the report"
    outline = browser.execute_script("return getComputedStyle(arguments[0]).outlineStyle", active)
    assert outline == "solid"


def test_dark_and_light(browser):
    assert lightness(background(browser)) > 230
    view(browser, WIDE, "dark")
    assert lightness(background(browser)) < 40
    ink = browser.execute_script("return getComputedStyle(document.body).color")
    assert lightness(ink) > 200
    button = browser.find_element("css selector", "#theme")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert lightness(background(browser)) > 230
    button.send_keys("\ue007")
    assert lightness(background(browser)) < 40
    browser.refresh()  # nothing is remembered but the system's choice
    view(browser, WIDE, "light")
    assert lightness(background(browser)) > 230


def test_a_phone_needs_no_sideways_scrolling(browser, page):
    view(browser, NARROW, "light")
    browser.get(page)
    widths = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert widths == [360, 360]
    # What is wider scrolls in its own box.
    script = "const e = document.querySelector('#suspicious .scroll'); return e.scrollWidth > e.clientWidth"
    assert browser.execute_script(script)
    small = browser.execute_script(
        "return [...document.querySelectorAll('svg.chart text')].map(t => t.getBoundingClientRect().height)"
        ".filter(h => h > 0 && h < 9).length"
    )
    assert small == 0


def test_paper_is_light_and_has_no_folds(browser):
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = false; })")
    view(browser, WIDE, "dark", "print")
    assert background(browser) == "rgb(255, 255, 255)"
    shown = browser.execute_script(
        "const e = document.querySelector('#suspicious .scroll');"
        "return [getComputedStyle(document.querySelector('.tools')).display, e.scrollHeight <= e.clientHeight + 1]"
    )
    assert shown == ["none", True]
    printed = browser.print_page()
    assert len(printed) > 10_000
    assert browser.execute_script("return [...document.querySelectorAll('details')].every(d => d.open)")
