"""The pictures of ``visualize=True``, drawn with plotly where it is installed."""

from __future__ import annotations

import logging
from typing import Any

import pandas as pd

logger = logging.getLogger("headrace")


def _express() -> Any:
    try:
        import plotly.express
    except ImportError:
        logger.warning("visualize=True needs plotly, which is not installed: pip install plotly")
        return None
    return plotly.express


def stacked_by_rank(table: pd.DataFrame, columns: list[str], title: str) -> None:
    """One bar a rank, one colour a column."""
    if express := _express():
        express.bar(table, x="rank", y=columns, title=title, labels={"value": "%", "variable": ""}).show()


def pie_by_type(table: pd.DataFrame, renderer: str | None) -> None:
    if express := _express():
        express.pie(table, values="percentage", names="kernel_type", title="Kernel types").show(
            renderer or None
        )


def bars_by_name(table: pd.DataFrame, title: str, renderer: str | None) -> None:
    if express := _express():
        express.bar(table, x="name", y="sum (us)", color="rank", title=title).show(renderer or None)


def idle_by_stream(table: pd.DataFrame, percent: bool) -> None:
    if express := _express():
        value = "idle_time_ratio" if percent else "idle_time"
        express.bar(
            table, x="stream", y=value, color="idle_category", facet_col="rank", title="Idle time"
        ).show()


def scatter_of_launches(table: pd.DataFrame, title: str) -> None:
    if express := _express():
        express.scatter(table, x="cpu_duration", y="gpu_duration", title=title).show()


def histogram_of(table: pd.DataFrame, column: str, title: str) -> None:
    if express := _express():
        express.histogram(table, x=column, title=title).show()


def bar_of_differences(table: pd.DataFrame, column: str, title: str, show: bool, path: str | None) -> None:
    if express := _express():
        figure = express.bar(table.reset_index(), x=column, y=table.index.name, orientation="h", title=title)
        if show:
            figure.show()
        if path:
            figure.write_image(path)
