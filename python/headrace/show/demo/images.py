"""Real JPEG files of several sizes, made once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from headrace.common.folder_files import user_cache

SIZES = ((1600, 1200), (2048, 1536), (2592, 1728), (2272, 1704))  # 1.9 to 4.5 megapixels


def image_folder(count: int) -> Path:
    """The folder of the images: the user's cache, so that a second demo starts at once."""
    folder = Path(user_cache(f"demo-jpegs-{count}"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="headrace-demo-"))
    return folder


def make_images(count: int, progress: Callable[[], object]) -> list[Path]:
    """``count`` files of photograph-like content; those that exist are kept. Calls ``progress`` per file."""
    folder = image_folder(count)
    random = np.random.default_rng(20)
    textures = [_texture(random, width, height) for width, height in SIZES]
    paths = []
    for number in range(count):
        path = folder / f"{number:05d}.jpg"
        paths.append(path)
        if not path.exists():
            # Rolled and mirrored, so that no two files are the same but making them stays cheap.
            pixels = np.roll(textures[number % len(SIZES)], int(random.integers(0, 1000)), axis=number % 2)
            beside = path.with_suffix(".tmp")
            Image.fromarray(pixels[:, :: 1 if number % 3 else -1]).save(beside, "JPEG", quality=88)
            beside.replace(path)
        progress()
    return paths


def _texture(random: np.random.Generator, width: int, height: int) -> np.ndarray:
    """Smooth shapes with fine grain: compresses like a photograph."""
    coarse = random.integers(0, 256, (height // 64 + 2, width // 64 + 2, 3), dtype=np.uint8)
    smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
    grain = random.normal(0, 9, (height, width, 1))
    pixels: np.ndarray = np.clip(np.asarray(smooth, dtype=np.float32) + grain, 0, 255).astype(np.uint8)
    return pixels
