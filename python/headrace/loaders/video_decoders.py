"""Decoders of videos as operators of whatever reads with them: decord's VideoReader, torchcodec's, LeRobot's.

Under `headrace run` each call of these is one call of an operator, in the loop, in a worker or in a
thread, as if its user had marked it with `hr.operator`.
"""

from __future__ import annotations

import sys
from typing import Any

from headrace import _core

#: By module: the class ("" for the module's own functions), and what of it decodes.
_DECODERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "decord.video_reader": ("VideoReader", ("get_batch", "next", "__getitem__")),
    "torchcodec.decoders._video_decoder": (
        "VideoDecoder",
        (
            "get_frame_at",
            "get_frames_at",
            "get_frames_in_range",
            "get_frame_played_at",
            "get_frames_played_at",
            "get_frames_played_in_range",
            "__getitem__",
        ),
    ),
    "lerobot.datasets.video_utils": ("", ("decode_video_frames_torchvision",)),
}

RECORDED_AFTER = dict.fromkeys(_DECODERS, "")


def record_every_loader() -> None:
    """From now on what the imported decoders do in this process is recorded (``headrace run``)."""
    for module, (kind, names) in _DECODERS.items():
        found = sys.modules.get(module)
        owner: Any = getattr(found, kind, None) if kind else found
        for name in names if owner is not None else ():
            bare = vars(owner).get(name)
            if callable(bare) and not isinstance(bare, _core.TimedCallable):
                shown = f"{kind}.{name}" if kind else name
                setattr(owner, name, _core.TimedCallable(bare, _core.OperatorHandle(shown, "map")))
