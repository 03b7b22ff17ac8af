"""What `operator` records: calls, failures, times; under any name; of more operators than a run can hold."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.usefixtures("run")
NAP_S = 0.005


def profile_of(items: Any) -> hr.Report:
    """The report of a loop over ``items``."""
    loader: Any = hr.wrap(items, name="loop")
    for _ in loader:
        pass
    report: hr.Report = loader.report()
    return report


def named(report: hr.Report, name: str) -> Any:
    found = [operator for operator in report.profile.operators if operator.name == name]
    assert len(found) == 1, [operator.name for operator in report.profile.operators]
    return found[0]


def test_calls_and_their_time() -> None:
    @hr.operator("nap", kind="filter")
    def nap(item: int) -> int:
        time.sleep(NAP_S)
        return item

    operator = named(profile_of(map(nap, range(10))), "nap")
    assert (operator.kind, operator.items, operator.failures, operator.workers) == ("filter", 10, 0, 1)
    assert operator.service.mean_s >= NAP_S
    assert operator.busy_s >= 9 * NAP_S
    assert operator.demand_s >= NAP_S
    assert operator.items_per_batch == pytest.approx(1, abs=0.2)


def test_failures_are_calls_and_counted_apart() -> None:
    @hr.operator("checked")
    def checked(item: int) -> int:
        if item % 3 == 0:
            raise ValueError(item)
        return item

    def items() -> Iterator[int]:
        for number in range(9):
            try:
                yield checked(number)
            except ValueError:  # noqa: PERF203 - a bad item is passed over
                pass

    operator = named(profile_of(items()), "checked")
    assert (operator.items, operator.failures) == (9, 3)


def test_nested_operators_do_not_count_each_others_time() -> None:
    @hr.operator("inner")
    def inner() -> None:
        time.sleep(NAP_S)

    @hr.operator("outer")
    def outer(item: int) -> int:
        inner()
        return item

    report = profile_of(map(outer, range(10)))
    assert named(report, "inner").items == named(report, "outer").items == 10
    assert named(report, "inner").busy_s >= 9 * NAP_S
    assert named(report, "outer").busy_s < named(report, "inner").busy_s / 2


def test_recursion_a_hundred_deep() -> None:
    @hr.operator("descend")
    def descend(depth: int) -> int:
        return 0 if depth == 0 else 1 + descend(depth - 1)

    report = profile_of(map(descend, [100] * 5))
    operator = named(report, "descend")
    assert operator.items >= 5
    assert 0 <= operator.busy_s <= report.profile.elapsed_s + report.profile.startup.first_batch_s + 1e-6
    assert sum(vars(operator.states).values()) == pytest.approx(1, abs=1e-6)


def test_a_recursion_that_fails_at_its_bottom() -> None:
    @hr.operator("descend")
    def descend(depth: int) -> int:
        if depth == 0:
            raise RuntimeError("bottom")
        return descend(depth - 1)

    @hr.operator("after")
    def after(item: int) -> int:
        with pytest.raises(RuntimeError):
            descend(60)
        return item

    report = profile_of(map(after, range(4)))
    assert named(report, "after").items == 4
    assert named(report, "after").failures == 0


def test_generators_are_timed_per_item() -> None:
    @hr.operator("records", kind="generator")
    def records() -> Iterator[int]:
        for number in range(10):
            time.sleep(NAP_S)
            yield number

    operator = named(profile_of(item for item in records()), "records")
    assert operator.items == 10
    assert operator.service.mean_s >= NAP_S


def test_a_generator_that_fails() -> None:
    @hr.operator("records", kind="generator")
    def records() -> Iterator[int]:
        yield 1
        yield 2
        raise RuntimeError("torn")

    loader: Any = hr.wrap((item for item in records()), name="loop")
    with pytest.raises(RuntimeError, match="torn"):
        list(loader)
    operator = named(loader.report(), "records")
    assert (operator.items, operator.failures) == (3, 1)


def test_blocks_nested_and_in_threads() -> None:
    block = hr.operator("block")

    def work() -> None:
        for _ in range(50):
            with block, hr.operator("inside"):
                pass

    def items() -> Iterator[int]:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with block, pytest.raises(KeyError), block:
            raise KeyError
        yield from range(2)

    report = profile_of(items())
    counted = [(operator.name, operator.items, operator.failures) for operator in report.profile.operators]
    blocks = [one for one in counted if one[0].startswith("block")]
    assert sum(items for _, items, _ in blocks) == 202
    assert sum(failures for _, _, failures in blocks) == 1
    assert sum(items for name, items, _ in counted if name.startswith("inside")) == 200


def test_two_functions_of_one_name_are_two_operators() -> None:
    def make(scale: int) -> Any:
        if scale == 2:

            @hr.operator("scale")
            def scaled(item: int) -> int:
                return item * 2
        else:

            @hr.operator("scale")
            def scaled(item: int) -> int:
                return item * 3

        return scaled

    report = profile_of(map(make(3), map(make(2), range(6))))
    assert named(report, "scale").items == 6
    assert named(report, "scale#2").items == 6


def test_one_function_decorated_twice_is_one_operator() -> None:
    def make() -> Any:
        @hr.operator("again")
        def again(item: int) -> int:
            return item

        return again

    assert named(profile_of(map(make(), map(make(), range(6)))), "again").items == 12


@pytest.mark.parametrize(
    "name",
    [
        "two\nlines\r\n\ttabbed",
        "<b onload=alert(1)>&amp;</b>",
        "[bold red]markup[/]",
        "\x1b[31mred\x1b[0m",
        "数据加载 🚰 é",
        "x" * 10_000,
        "é" * 10_000,
        "nul\0inside",
        '"quoted\\"',
        " ",
        "%s %n {0}",
    ],
    ids=lambda name: ascii(name)[:20],
)
def test_any_name_can_be_reported(name: str, tmp_path: Any) -> None:
    @hr.operator(name)
    def body(item: int) -> int:
        time.sleep(0.001)
        return item

    report = profile_of(map(body, range(20)))
    operators = [one for one in report.profile.operators if one.items == 20 and one.name != "map"]
    assert len(operators) == 1
    text = report.to_text(width=80)
    assert all(ord(letter) >= 32 or letter == "\n" for letter in text)
    assert max(map(len, text.splitlines())) <= 80
    if len(name) < 100 and "\0" not in name:
        assert operators[0].name == name
    assert len(operators[0].name.encode()) < 300
    report.save(tmp_path / "saved.json")
    assert hr.Report.load(tmp_path / "saved.json").to_dict() == report.to_dict()
    assert "<b onload" not in report._repr_html_()
    assert "<b onload" not in report.to_html()


def test_a_name_with_a_lone_surrogate(tmp_path: Any) -> None:
    # File names that are no UTF-8 reach Python so; as a name it is either refused or made readable.
    name = b"caf\xe9.tar".decode("utf-8", "surrogateescape")
    try:
        decorated = hr.operator(name)(abs)
    except hr.UsageError:
        return
    report = profile_of(map(decorated, range(3)))
    report.save(tmp_path / "saved.json")
    assert hr.Report.load(tmp_path / "saved.json").profile.sink.steps == 3


def test_five_hundred_operators_are_said_not_crashed() -> None:
    bodies = [hr.operator(f"operator {number}")(lambda item: item) for number in range(500)]

    def items() -> Iterator[int]:
        for number in range(3):
            for body in bodies:
                assert body(number) == number
            yield number

    report = profile_of(items())
    assert len(report.profile.operators) < 500
    assert any("operator" in note for note in report.profile.notes), report.profile.notes
    assert any(char.isdigit() for note in report.profile.notes for char in note)
    note = next(note for note in report.profile.notes if "operator" in note)
    assert note.split()[0] in report.to_text()


def test_many_threads_after_each_other_lose_nothing() -> None:
    @hr.operator("brief")
    def brief(item: int) -> int:
        return item

    def items() -> Iterator[int]:
        for number in range(400):
            thread = threading.Thread(target=brief, args=(number,))
            thread.start()
            thread.join()
        yield 0
        for number in range(400):
            thread = threading.Thread(target=brief, args=(number,))
            thread.start()
            thread.join()
            yield number

    assert named(profile_of(items()), "brief").items == 800
