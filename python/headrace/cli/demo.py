"""``headrace demo``."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--images", type=click.IntRange(50, 5000), default=300, show_default=True, help="JPEG files to make."
)
@click.option(
    "--seconds", type=click.FloatRange(2, 60), default=12.0, show_default=True, help="Length of each run."
)
def demo(images: int, seconds: float) -> None:
    """Find and remove the bottleneck of a built-in pipeline on real JPEG files."""
    from headrace.demo import run_demo  # numpy and Pillow only where they are used

    run_demo(images=images, seconds=seconds)
