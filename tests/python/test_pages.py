"""What the templates draw: a report, a comparison, a search for parameters, a memory snapshot, a job."""

import json
import math
import random
import re
from html.parser import HTMLParser
from typing import Any

import pytest

import headrace as hr
from headrace import _core
from headrace.pages import graph, plots, render

#: Elements that have no end tag.
EMPTY = {"meta", "link", "input", "rect", "path", "br"}
NOT_A_FIGURE = re.compile(r"(?i:(^|[^a-z_])-?(nan|inf)([^a-z_]|$))|\bNone\b")


class Reading(HTMLParser):
    """Elements, attributes and text of a page; fails where an element is left open or closed twice."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


def check(page: str) -> Reading:
    """Well-formed; nothing in it loads or runs, or is a figure that is none."""
    reading = Reading(page)
    for foreign in ("http://", "https://", "url(", "@import"):
        assert foreign not in page
    assert not {"script", "img", "iframe"} & set(reading.elements)
    for name, value in reading.attributes:
        assert not name.startswith(("on", "src"))
        assert name != "href" or value == "data:,"
        assert not NOT_A_FIGURE.search(value), (name, value)
    assert not NOT_A_FIGURE.search(reading.text), NOT_A_FIGURE.search(reading.text)
    return reading


def decode_limits() -> dict[str, Any]:
    """Two epochs of read, decode and batch; decode has too few workers."""
    operators = []
    for name, kind in (("read", "source"), ("decode", "map"), ("batch", "batch")):
        slow = name == "decode"
        took = 0.04 if slow else 0.002
        quantiles = dict.fromkeys(("mean_s", "p50_s", "p90_s", "p99_s", "max_s"), took)
        states = (1, 0, 0, 0) if slow else (0.05, 0.4, 0.55, 0)
        operators.append(
            {
                "name": name,
                "kind": kind,
                "items": 1000,
                "items_per_batch": 1,
                "demand_s": took,
                "busy_s": 1000 * took,
                "states": dict(zip(("busy", "blocked_in", "blocked_out", "idle"), states, strict=True)),
                "service": {"count": 1000, **quantiles},
                "fidelity": "exact",
                "executor": "thread",
                "workers": 1,
                "parameters": [{"parameter": "decode.workers", "value": 1, "min": 1.0, "sets": "workers"}]
                if slow
                else [],
            }
        )
    queues = [
        {
            "name": name,
            "from": source,
            "to": to,
            "capacity": 2,
            "mean": levels[1] + 2 * levels[2],
            "empty_share": levels[0],
            "full_share": levels[2],
            "occupancy": levels,
        }
        for name, source, to, levels in (
            ("raw", "read", "decode", [0, 0.05, 0.95]),
            ("decoded", "decode", "batch", [0.9, 0.1, 0]),
            ("ready", "batch", "sink", [0.95, 0.05, 0]),
        )
    ]
    return {
        "loader": "train_loader",
        "epochs": 2,
        "elapsed_s": 40,
        "startup": {"first_batch_s": 1.5},
        "sink": {
            "steps": 1001,
            "step_s": 0.04,
            "compute_s": 0.01,
            "wait_share": 0.75,
            "starved_share": 0.75,
            "getnext_wait": {
                "count": 1000,
                "mean_s": 0.03,
                "p50_s": 0.03,
                "p90_s": 0.031,
                "p99_s": 0.032,
                "max_s": 0.033,
            },
            "longest_waits": [{"at_s": 1, "wait_s": 0.033, "step": 2}],
        },
        "operators": operators,
        "queues": queues,
        "stall_ledger": [
            {"what": "in_service", "operator": "decode", "seconds": 28, "share": 0.93},
            {"what": "unknown", "operator": "", "seconds": 2, "share": 0.07},
        ],
        "host": {"cores": 4, "cpu_share": 0.1},
    }


def report_of(profile: dict[str, Any]) -> hr.Report:
    return hr.Report.from_profile_json(json.dumps(profile))


def page_of(profile: dict[str, Any]) -> str:
    page = report_of(profile).to_html()
    check(page)
    return page


def document(profile: dict[str, Any]) -> Any:
    return json.loads(report_of(profile)._parsed.page())


def drawn(page: Any, whole_page: bool = True, range_link: str = "", curve: Any = ("", 0, [])) -> str:
    plot = plots.Curve(curve, page["own_s"], [])
    return render("report", whole_page, page=page, plot=plot, range_link=range_link)


def advice(**figures: Any) -> dict[str, Any]:
    unknown = dict.fromkeys(
        ("parameter", "code", "predicted_step_s", "low", "high", "speedup", "memory_bytes")
    )
    return {**unknown, "from": "", "to": "", "text": "", "after": [], **figures}


def in_order(page: str, *parts: str) -> None:
    at = 0
    for part in parts:
        assert part in page[at:], part
        at = page.index(part, at)


# --- the report ---------------------------------------------------------------------------------------------


def test_verdict_and_advice_come_first() -> None:
    in_order(
        page_of(decode_limits()),
        "<!doctype html>",
        "Content-Security-Policy",
        "train_loader",
        "2 epochs",
        "INPUT-BOUND",
        "decode has too few workers",
        "waited 30.0 ms of 40.0 ms",
        "Do this",
        "decode.workers",
        "An average step: 40.0 ms",
        "The pipeline",
        "How full the queues were",
        "What the workers did",
        "What the wait was for",
        "Evidence",
        "Machine and settings",
        "All figures",
    )


def test_how_long_items_take_unless_that_is_not_known() -> None:
    profile = decode_limits()
    times = {"count": 100, "mean_s": 0.04, "p50_s": 0.03, "p90_s": 0.05, "p99_s": 0.2, "max_s": 0.19}
    profile["operators"][1]["service"] = times
    page = page_of(profile)
    assert "decode: half within 30.0 ms, 90 % within 50.0 ms, 99 % within 200 ms, longest 190 ms" in page
    assert page.count('class="service"') == 3
    # A histogram that cannot be, and one of an operator that was not timed.
    times["p90_s"] = 0.001
    profile["operators"][2]["service"]["count"] = 0
    assert page_of(profile).count('class="service"') == 1


def test_parts_of_the_step_stand_below_it() -> None:
    profile = decode_limits()
    assert "A step: gap" not in page_of(profile)
    profile["device"] = {
        "steps": {
            "steps": 6,
            "of_steps": 6,
            "iteration_gap_s": 0.0614,
            "forward_backward_s": 0.114,
            "tail_s": 0.0019,
            "tail_steps": 6,
        }
    }
    said = "A step: gap 61.4 ms, forward and backward 114 ms, tail 1.90 ms (device trace, 6 steps)"
    assert said in page_of(profile)
    del profile["device"]["steps"]
    profile["device"]["step_notes"] = ["rank 3 has <no> steps"]
    assert "(rank 3 has &lt;no&gt; steps); " in page_of(profile)


def test_advice_stands_beside_today_with_its_interval() -> None:
    page = document(decode_limits())
    page["diagnosis"]["advice"] = [
        advice(
            parameter="decode.workers",
            to="4",
            text="run decode with 4 workers",
            code="a = 1\nb < 2\n",
            predicted_step_s=0.0125,
            low=0.011,
            high=0.014,
            speedup=3.2,
        ),
        advice(text="cache what decode makes", predicted_step_s=0.02, speedup=2, after=["decode.workers=4"]),
    ]
    page["limits"] = ["the training step", ""]
    html = drawn(page)
    check(html)
    assert 'aria-label="today 40.0 ms"' in html
    assert 'aria-label="predicted 12.5 ms (11.0 to 14.0 ms)"' in html
    assert html.count('class="whisker"') == 1  # the second one has no interval
    for part in (
        "3.20\u00d7 as fast",
        "Then the limit is the training step.",
        "Cache what decode makes",
        "After decode.workers=4.",
        "<span>a = 1</span><span>b &lt; 2</span></pre>",
    ):
        assert part in html


def test_the_picture_of_the_step_is_to_scale() -> None:
    profile = decode_limits()
    profile["sink"]["starved_share"] = 0.5
    page = page_of(profile)
    for css, x, width, title in (
        ("starved", 0, 500, "starved 20.0 ms, 50 %"),
        ("floor", 500, 250, "hand-off 10.0 ms, 25 %"),
        ("compute", 750, 250, "compute 10.0 ms, 25 %"),
    ):
        assert f'<rect class="{css}" x="{x}" y="0" width="{width}" height="10"><title>{title}' in page


def test_every_figure_is_text() -> None:
    profile = decode_limits()
    decode = profile["operators"][1]
    decode["failures"] = 7
    quantiles = {"mean_s": 0.0401, "p50_s": 0.0402, "p90_s": 0.0403, "p99_s": 0.0404, "max_s": 0.0405}
    decode["service"] = {"count": 1000, **quantiles}
    profile["queues"][1] |= {"puts": 12345, "put_wait_s": 1.23}
    profile["host"] |= {"memory": 64_000_000, "gil_share": 0.31}
    decode["per_worker"] = [{"slowest": [{"index": 4711, "wall_s": 0.0777, "cpu_s": 0.05}]}]
    page = page_of(profile)
    text = Reading(page).text
    for figure in (
        "40.0 ms",
        "30.0 ms, 75 %",
        "1.50 s",
        "40.1 ms",
        "40.2 ms",
        "40.3 ms",
        "40.4 ms",
        "40.5 ms",
        "12345",
        "1.23 s",
        "64 MB",
        "31 %",
        "empty 90 %, full 0 %",
        "28.0 ms",
        "93 %",
        "4711",
        "77.7 ms",
        "32.0 ms",
        "decode.workers=1",
        "0.75",
    ):
        assert figure in text, figure
    assert re.search(r'<td class="number" data-title="[a-z ]+">7</td>', page)


def test_the_bottleneck_is_marked_once_in_the_graph() -> None:
    page = page_of(decode_limits())
    assert page.count('class="box bottleneck"') == 1
    box = page[page.index('class="box bottleneck"') :]
    assert box.index(">decode<") < box.index("</ul>")


def test_a_healthy_run_asks_for_nothing() -> None:
    profile = decode_limits()
    profile["sink"] |= {"compute_s": 0.0396, "wait_share": 0.01, "starved_share": 0.01}
    profile["operators"][1]["demand_s"] = 0.02
    page = page_of(profile)
    assert "NOT INPUT-BOUND" in page
    assert "The input could feed steps down to 20.0 ms" in page
    assert "Do this" not in page
    assert "box bottleneck" not in page


def test_an_empty_run_says_what_is_missing() -> None:
    page = page_of({})
    assert "UNDETERMINED" in page
    assert "the loop over this loader has not begun" in page
    assert 'class="confidence"' not in page
    assert "<svg" not in page


def test_operators_stand_in_the_order_of_the_flow() -> None:
    page = page_of(decode_limits())
    flow = page[page.index('<ol class="flow">') :]
    in_order(flow, ">read<", ">raw<", ">decode<", ">decoded<", ">batch<", ">ready<", ">training step<")
    assert 'class="ends"' not in page  # the place of every queue tells its ends


def graph_of(profile: dict[str, Any]) -> str:
    """Per stage: queues in front of it, "?" where its ends are not clear, then the operators of its boxes."""
    page = document(profile)
    found = graph.stages(page["profile"]["operators"], page["graph"])
    return " | ".join(
        " ".join(
            [each["name"] + "?" * (not each["is_clear"]) for each in stage["queues"]]
            + [str(box["operators"]) for box in stage["boxes"]]
        )
        for stage in found
    )


def test_branches_and_queues_that_lead_back_say_where_they_lead() -> None:
    profile = decode_limits()
    assert graph_of(profile) == "[0] | raw [1] | decoded [2] | ready []"
    profile["operators"][1]["kind"] = "source"
    profile["queues"][0]["to"] = "batch"  # read and decode feed batch side by side
    assert graph_of(profile) == "[0] [1] | raw? decoded? [2] | ready []"
    page = page_of(profile)
    assert "read → batch" in page
    assert "decode → batch" in page
    profile = decode_limits()
    profile["queues"].append({**profile["queues"][2], "name": "free buffers", "from": "batch", "to": "read"})
    assert graph_of(profile) == "free buffers? [0] | raw [1] | decoded [2] | ready []"
    assert "batch → read" in page_of(profile)


def test_a_sampler_stands_before_the_workers_that_take_its_indices() -> None:
    profile = in_workers(4)
    sampler = {**profile["operators"][0], "name": "Hard", "kind": "sampler", "segment": None, "in_sink": True}
    profile["operators"].insert(0, sampler)
    drawn_graph = graph_of(profile)
    assert drawn_graph.startswith("[0] | ")
    assert "index (4 queues) [1, 2, 3] | " in drawn_graph


def in_workers(count: int) -> dict[str, Any]:
    """The operators run in turn in each of the worker processes."""
    profile = decode_limits()
    for op in profile["operators"]:
        busy = 0.9 if op["name"] == "decode" else 0.01
        op |= {"workers": count, "segment": 0}
        op["per_worker"] = [
            {"worker_id": number, "name": str(number), "items": 40, "busy_s": busy, "states": {"busy": busy}}
            for number in range(count)
        ]
    index = {**profile["queues"][0], "from": "", "to": "read"}
    profile["queues"] += [{**index, "name": f"index[{number}]"} for number in range(count)]
    return profile


def test_operators_of_one_worker_are_one_box_and_each_worker_has_its_row() -> None:
    page = page_of(in_workers(64))
    assert page.count('class="stage"') == 2  # the workers, the training step
    for part in ("index (64 queues)", "64 worker processes", ">worker 0<", ">worker 63<"):
        assert part in page


def test_different_verdicts_are_marked_in_time() -> None:
    profile = decode_limits()
    window = {"steps": 25, "wait_s": 0.5, "starved_s": 0.4, "compute_s": 0.5}
    profile["windows"] = [{"start_s": at, "end_s": at + 1, **window} for at in range(4)]
    page = document(profile)
    page["diagnosis"]["windows"] = [
        {"start_s": 0, "end_s": 2, "kind": "input_bound", "operator": "read"},
        {"start_s": 2, "end_s": 4, "kind": "not_input_bound", "operator": None},
    ]
    page["windows"] = ["waits for read", "does not wait"]
    html = drawn(page)
    check(html)
    for part in (
        'style="left:0.00%;width:50.00%"',
        "waits for read",
        "does not wait",
        "25 steps, waited 50 %, starved 40 %",
    ):
        assert part in html


def test_ranks_stand_side_by_side() -> None:
    profile = decode_limits()
    assert "The ranks" not in page_of(profile)
    profile["rank"] = 1
    profile["ranks"] = [
        {
            "rank": 0,
            "step_s": 0.08,
            "wait_share": 0.5,
            "starved_share": 0.25,
            "operator": "resize",
            "steps": 9,
        }
    ]
    page = page_of(profile)
    first = page[page.index('aria-label="rank 0: 80.0 ms a step, waits 50 %"') :]
    in_order(first, '<rect class="starved" x="0" y="0" width="250"', ">resize<", ">rank 1, this one<")


def test_large_queues_are_counted_in_bins() -> None:
    profile = decode_limits()
    profile["queues"][1] |= {"capacity": 10_000, "occupancy": [1 / 10_001] * 10_001}
    page = page_of(profile)
    assert "<title>levels 0 to 312: 3.1 %</title>" in page
    assert " to 10000: 3.1 %</title>" in page
    profile["queues"][1] |= {"occupancy": [1 / 101] * 101, "levels_per_bin": 100}
    assert " to 10000: 3.0 %</title>" in page_of(profile)


@pytest.mark.parametrize(
    "name",
    [
        "a\nb\r\tc",
        "\x1b[31mred\x1b[0m",
        "x" * 10_000,
        "</script><script>alert(1)</script>",
        '" onmouseover="alert(1)',
        "' autofocus onfocus='alert(1)",
        "</style></title><img src=x onerror=alert(1)>",
        "&lt;b&gt; &amp; & &#60;",
        "{{ 7 * 7 }} {% raw %} {# none",
        "--><!-- ]]> <![CDATA[",
        "\u202eevil\u2066",
        "a\0b",
        "解码" * 16,
        "\n" * 10_000,
        "",
    ],
    ids=lambda name: ascii(name[:12]),
)
def test_hostile_names_are_safe(name: str) -> None:
    profile = in_workers(3)
    profile["loader"] = name
    for at in (0, 1):
        profile["operators"][at]["name"] = name
    profile["operators"][1] |= {"kind": name, "executor": name}
    profile["operators"][1]["parameters"][0]["parameter"] = f"{name}.workers"
    profile["operators"][1]["per_worker"][0] |= {"name": name, "shard": name}
    profile["queues"][1] |= {"name": name, "from": name}
    profile["queues"][0]["to"] = name
    profile["stall_ledger"][0] |= {"operator": name, "what": name}
    profile |= {"settings": {name: name}, "notes": [name]}
    profile["autopilot"] = [{"parameter": name, "outcome": "put_back"}]
    profile["budget"] = [{"part": "evaluation", "function": name, "seconds": 1, "share": 1, "times": 2}]
    profile["findings"] = [{"severity": name, "kind": name, "says": name, "cure": name}]
    profile["second_opinions"] = [{"tool": name, "rule": name, "says": name, "misled": name}]
    profile["windows"] = [{"start_s": at, "end_s": at + 1, "steps": 1} for at in range(3)]
    page = document(profile)
    page["diagnosis"] |= {
        "operator": name,
        "windows": [{"start_s": 0, "end_s": 1, "kind": "input_bound", "operator": name}],
        "advice": [
            advice(
                **{"parameter": name, "from": name, "to": name, "text": name, "after": [name], "code": name},
                predicted_step_s=0.01,
                low=0.01,
                high=0.01,
            )
        ],
    }
    page |= {"windows": [name], "limits": [name]}
    curve = (name, 1, [(1, 0.1, 0.08, 0.1, name), (2, 0.05, 0.04, 0.06, name)])
    for whole_page in (True, False):
        html = drawn(page, whole_page, curve=curve)
        check(html.replace("inf", ""))
        assert len(html) < 250_000
        assert "\u202e" not in html
        assert "\x1b" not in html


def test_long_names_are_short_in_pictures_and_whole_in_tables() -> None:
    profile = decode_limits()
    profile["operators"][0]["name"] = name = "n" * 300 + "end"
    page = page_of(profile)
    assert re.search(rf'<td class="word" data-title="[a-z ]*">{name}</td>', page)
    assert f'<span class="name">{"n" * 39}…</span>' in page


def spoilt(value: Any, bad: float | None) -> Any:
    """Every figure that is no count is ``bad``."""
    if isinstance(value, dict):
        return {name: spoilt(each, bad) for name, each in value.items()}
    if isinstance(value, list):
        return [spoilt(each, bad) for each in value]
    return bad if isinstance(value, float) else value


@pytest.mark.parametrize("bad", [None, 1e300, -1e300, -1.0, 0.0])
def test_figures_that_are_none_do_not_reach_the_page(bad: float | None) -> None:
    profile = in_workers(3)
    profile["windows"] = [
        {
            "start_s": float(at),
            "end_s": at + 1.0,
            "steps": 1,
            "wait_s": 0.5,
            "starved_s": 0.1,
            "compute_s": 0.5,
            "operators": [{"busy_share": 0.5, "demand_s": 0.1, "items": 1}],
            "queues": [{"mean": 0.5, "empty_share": 0.5, "full_share": 0.5}],
            "host": {"cpu_share": 0.5},
        }
        for at in range(3)
    ]
    profile["ranks"] = [{"rank": 4, "step_s": 0.1, "wait_share": 0.1, "operator": "decode", "steps": 10}]
    profile["handoff"] = {"batches": 4, "message_bytes": 1.5, "tensors": 1.5, "pickle_s": 0.1}
    profile["tokens"] = {"tokens": 10.5, "lengths": [{"up_to": 64, "share": 0.5}]}
    profile["device"] = {"idle_s": 0.5, "window_s": 1.5, "causes": [{"cause": "input", "idle_s": 0.25}]}
    page = document(profile)
    page["diagnosis"]["advice"] = [
        advice(parameter="n", predicted_step_s=0.01, low=0.01, high=0.01, speedup=1.5),
    ]
    check(drawn({**page, **spoilt(page, bad)}))


def test_more_than_can_be_drawn_is_counted() -> None:
    profile = decode_limits()
    read, ready = profile["operators"][0], profile["queues"][2]
    profile["operators"] += [{**read, "name": f"extra{at}", "per_worker": [{}] * 20} for at in range(500)]
    profile["queues"] += [{**ready, "name": f"spare{at}"} for at in range(500)]
    read["per_worker"] = [{}] * 300
    profile["windows"] = [
        {"start_s": at, "end_s": at + 1, "steps": 1, "operators": [{}] * 503} for at in range(300)
    ]
    page = page_of(profile)
    assert len(page) < 3_000_000
    for part in ("and 439 more operators", "and 439 more queues", "and 236 quicker workers"):
        assert part in page


def test_a_notebooks_cell_leaves_the_notebook_alone() -> None:
    cell = report_of(decode_limits())._html(False)
    assert cell.startswith('<div class="headrace">')
    assert not {"html", "head", "body", "meta", "link"} & set(check(cell).elements)
    # One rule for .headrace; all others stand in it.
    style = re.sub(
        r"/\*.*?\*/", "", cell[cell.index("<style>") + 7 : cell.index("</style>")], flags=re.DOTALL
    )
    assert style.strip().startswith(".headrace {")
    depth = [0]
    for letter in style.strip():
        depth.append(depth[-1] + (letter == "{") - (letter == "}"))
    assert depth.index(0, depth.index(1)) == len(depth) - 1
    assert ":root" not in style


def test_sections_of_what_few_runs_have() -> None:
    profile = decode_limits()
    profile["budget"] = [
        {"part": "evaluation", "function": "<lambda> (train.py:3)", "seconds": 1, "share": 1, "times": 2}
    ]
    profile["tokens"] = {"lengths": [{"up_to": 64, "share": 0.5}, {"up_to": 128, "share": 0.5}]}
    profile["autopilot"] = [{"parameter": "<workers>", "outcome": "put_back", "low": None, "high": None}]
    profile["findings"] = [
        {
            "kind": "constant_samples",
            "severity": "fault",
            "says": "batch['<image>'] is 0",
            "cure": "Look at it",
        }
    ]
    profile["second_opinions"] = [
        {"tool": "Tool", "rule": "a rule", "says": "says <this>", "misled": "it looked at averages"}
    ]
    profile["operators"][0] |= {"demand_s": None, "busy_s": None, "items_per_batch": None, "items": None}
    profile["queues"][0]["puts"] = None
    profile["device"] = {
        "idle_s": None,
        "steps": {
            "steps": 6,
            "of_steps": 6,
            "iteration_gap_s": 0.004,
            "forward_backward_s": 0.03,
            "fp_point": "Conv",
        },
    }
    page = page_of(profile)
    for part in (
        "&lt;lambda&gt; (train.py:3), 2 times",
        "up to 128 tokens",
        "&lt;workers&gt;  -&gt;  (step 0): put back",
        "fault, constant_samples",
        "batch[&#39;&lt;image&gt;&#39;] is 0. Look at it.",
        "says &lt;this&gt; Misled: it looked at averages.",
        "Forward begins with Conv",
    ):
        assert part in page


def test_lanes_and_links_to_other_ranges() -> None:
    page = document(decode_limits())
    picture = {
        "from_s": 0.01,
        "to_s": 0.02,
        "columns": 480,
        "rows": [{"name": "<decode>", "pieces": [["busy", 0, 8], ["waits", 8, 10], ["busy", 10, 11]]}],
    }
    page["lanes"] = {
        "end_s": 0.04,
        "picture": picture,
        "left_out": 3,
        "waits": [
            {
                "batch": 2,
                "begin_s": 0.02,
                "end_s": 0.028,
                "picture": {**picture, "from_s": 0.016, "to_s": 0.032},
                "busy": [["decode", 1.0], ["read", 0.12], ["idle", 0.001]],
            }
        ],
    }
    html = drawn(page)
    check(html)
    for part in (
        'data-from="0.010000" data-to="0.020000" data-end="0.040000"',
        '<path class="busy" d="M0 0H8V1H0zM10 0H11V1H10z"/><path class="waits" d="M8 0H10V1H8z"/>',
        "8.00 ms for batch 2, after 20.0 ms",
        "Busy in that time: decode 100 %, read 12 %.",
        "and 3 more workers",
    ):
        assert part in html
    assert "<a " not in html  # no server would answer
    served = drawn(page, False, "/run/x?rank=0&")
    for word, low, high in (
        ("earlier", "0.005000", "0.015000"),
        ("later", "0.015000", "0.025000"),
        ("closer", "0.012500", "0.017500"),
        ("wider", "0.005000", "0.025000"),
        ("the whole run", "0.000000", "0.040000"),
        ("show it above", "0.016000", "0.032000"),
    ):
        assert f'<a href="/run/x?rank=0&amp;from={low}&amp;to={high}#lanes">{word}</a>' in served


# --- a search for parameters --------------------------------------------------------------------------------


def tuning(
    points: list[tuple[str, float, float, float, float, float]],
    curve: Any = ("", 0, []),
    measured: Any = (),
    whole_page: bool = True,
) -> str:
    return render(
        "tuning",
        whole_page,
        headline="TUNED 100 ms -> 50 ms",
        about="<b>train.py</b>",
        plot=plots.Curve(curve, None, list(measured)),
        square=plots.Square([plots.Point(*each) for each in points]),
        titles=["change", "#measured step"],
        rows=[["a<b", "50 ms"]],
        remarks=["ended: a & b"],
    )


def test_a_prediction_that_was_right_is_on_the_diagonal() -> None:
    # The scale goes to 100 ms * 1.06, so that 50 ms is at 471.7 of 1000 from the left and from the bottom.
    html = tuning([("workers 1 -> 2", 0.05, 0.04, 0.1, 0.05, 0.005)])
    check(html)
    assert "left:47.17%;top:52.83%" in html
    assert "M377.4 528.3H943.4M471.7 622.6V434" in html
    assert 'title="workers 1 -&gt; 2: predicted 50.0 ms (40.0 ms to 100 ms), measured 50.0 ms">1<' in html


def test_texts_of_a_search_are_escaped() -> None:
    html = tuning([("<img onerror=x>", 0.05, 0.04, 0.06, 0.05, 0)])
    check(html)
    assert "<b>train" not in html
    assert "ended: a &amp; b" in html


@pytest.mark.parametrize(
    "figures", [(*[math.nan] * 3, 0.1, 0.01), (0, 0, 0, 0.1, 0), (0.1, 0.1, 0.1, math.inf, 0)]
)
def test_trials_without_a_prediction_are_only_in_the_table(figures: tuple[float, ...]) -> None:
    html = tuning([("start", *figures)])  # type: ignore[list-item]
    assert "<svg" not in html
    assert "a&lt;b" in html


def test_measured_steps_are_on_the_predicted_curve() -> None:
    points = [(1, 0.1, 0.08, 0.1, "map"), (2, 0.05, 0.04, 0.06, "map")]
    html = tuning([], ("workers", 1, points), [(1, 0.1), (2, 0.075), (7, 0.02), (2, math.nan)])
    check(html)
    # In the middle of each third; 0 is at 160.
    for place in ("166.7 0", "500 40", "833.3 128"):  # the last one without a prediction
        assert f'class="dot measured" d="M{place}h0"' in html
    assert "2: measured 75.0 ms" in html
    assert 'class="line" d="M166.7 0L500 80"' in html


def test_a_search_as_a_part_of_another_page_has_no_head() -> None:
    html = tuning([], whole_page=False)
    assert html.startswith('<div class="headrace">')
    assert "<html" not in html


# --- a memory snapshot, a job -------------------------------------------------------------------------------


def memory(held: list[list[float]]) -> str:
    places = [f"place {at}" for at in range(len(held))]
    device = {
        "title": "device 0",
        "places": places,
        "held_bytes": held,
        "highest": "4 GiB",
        "ends": "event 9",
    }
    return render(
        "job",
        title="MemorySnapshot: 1 segment",
        is_bad=True,
        heading="out of memory",
        why=["<b>more</b>"],
        devices=[device],
        tables=[("Who holds the peak", ["where", "#held"], [["a<b", "4 GiB"]])],
        remarks=["a note"],
    )


def test_places_lie_on_each_other() -> None:
    # 4 is the highest sum, 220 the height: 1 of 4 is at 165, and the second place goes from there to 0.
    html = memory([[1, 2], [3, 0]])
    check(html)
    assert 'class="l4" d="M0 165H500V110H1000V220H500V220H0z"' in html
    assert 'class="v1" d="M0 0H500V110H1000V110H500V165H0z"' in html
    assert "<title>place 1</title>" in html
    assert "a&lt;b" in html


@pytest.mark.parametrize("held", [[], [[], [1.0]]])
def test_nothing_is_drawn_without_moments(held: list[list[float]]) -> None:
    html = memory(held)
    check(html)
    assert "<svg" not in html


def test_more_places_than_colours_are_left_out() -> None:
    html = memory([[1.0]] * 20)
    assert "place 7" in html
    assert "place 8" not in html


def job(count: int) -> str:
    draw = random.Random(count)
    steps = list(range(512))
    columns = []
    for rank in range(count):
        own = [1.0 if rank == 7 and step >= 300 else 0.5 + 0.001 * draw.randrange(7) for step in steps]
        one = (_bytes("q", steps), _bytes("f", [1.0] * 512), _bytes("f", own))
        columns.append((rank, 0, *one, 0.0))
    maps = [("All ranks", plots.HeatMap(_core.heat_map(columns, []), 16.0))]
    maps.insert(0, ("The latest", plots.HeatMap(_core.heat_map(columns, [7]), 16.0)))
    return render(
        "job", title=f"{count} ranks", kind="SLOW RANK", is_bad=True, heading="Rank 7 is <slow>", maps=maps
    )


def _bytes(kind: str, values: list[Any]) -> bytes:
    from array import array

    return array(kind, values).tobytes()


def test_the_late_rank_is_shown() -> None:
    html = job(20)
    check(html)
    assert "Rank 7 is &lt;slow&gt;" in html
    assert "<title>rank 7, steps 300 to 511: late by up to" in html


def test_thousands_of_ranks_stay_small() -> None:
    assert len(job(5000)) < 100_000
