"""``headrace demo``."""

from __future__ import annotations

import importlib.util

import click

from headrace.errors import Error

#: By their own names: "headrace[demo]" cannot be found where Headrace was installed from a wheel's file.
_NEEDS = {"numpy": "numpy", "PIL": "pillow", "torch": "torch"}


@click.command()
@click.option(
    "--torch", "with_torch", is_flag=True, help="The pipeline is a PyTorch DataLoader (needs torch)."
)
@click.option(
    "--images", type=click.IntRange(50, 5000), default=300, show_default=True, help="JPEG files to make."
)
@click.option(
    "--seconds",
    type=click.FloatRange(2, 60),
    default=None,
    show_default="12; 8 with --torch",
    help="Length of each run.",
)
def demo(with_torch: bool, images: int, seconds: float | None) -> None:
    """Find and remove the bottleneck of a built-in pipeline on real JPEG files."""
    wanted = ("numpy", "PIL", *(["torch"] if with_torch else []))
    missing = [_NEEDS[module] for module in wanted if importlib.util.find_spec(module) is None]
    if missing:
        command = "headrace demo --torch" if with_torch else "headrace demo"
        raise Error(f"{command} needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    # Only here, so that the other commands need none of them.
    from headrace.show.demo import run_demo

    if with_torch:
        from headrace.show.demo.dataloader import SUBJECT
    else:
        from headrace.show.demo.pipeline import SUBJECT
    run_demo(SUBJECT, images, seconds)
