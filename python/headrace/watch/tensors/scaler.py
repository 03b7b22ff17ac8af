"""Steps that a GradScaler skips. The first ones are by design: it begins with a scale that is too large."""

from __future__ import annotations

from headrace.watch.tensors.reporting import Reporting


class ScalerSkips:
    """By the scale after each update of one scaler."""

    def __init__(self, reporting: Reporting) -> None:
        self._reporting = reporting
        self._last: float | None = None
        self._in_a_row = 0
        self._was_right = False

    def add(self, scale: float, step: int) -> None:
        parameters = self._reporting.parameters("scaler_skips")
        last, self._last = self._last, scale
        if parameters is None or last is None:
            return
        if scale >= last:
            self._in_a_row, self._was_right = 0, True
            return
        self._in_a_row += 1
        says = ""
        if scale < parameters["scale"]:
            says = f"the scale of the GradScaler fell to {scale:.3g}"
        elif self._was_right and self._in_a_row > parameters["skips"]:
            says = f"the GradScaler skipped {self._in_a_row} updates in a row"
        if says:
            self._reporting.add(
                "scaler_skips",
                "GradScaler",
                f"{says} at step {step}: gradients overflow in float16 at any scale",
                cure="Use bfloat16, or compute the part that overflows in float32",
                step=step,
                figures={"scale": scale},
            )
