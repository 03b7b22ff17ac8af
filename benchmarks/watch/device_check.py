"""Checks on a CUDA device that `hr.watch` waits for it in no step, and still finds a NaN one step later.

    python benchmarks/watch/device_check.py

PyTorch raises on every wait while `torch.cuda.set_sync_debug_mode("error")` is set. Prints a line for each
check and ends with 1 if one fails.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
from torch import nn
from torch.nn import functional
from training import Gpt, next_token_loss

import headrace as hr

STEPS = 130

#: A model on the device, and its loss.
Make = Callable[[], tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]]


def conv_net() -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Flatten(),
        nn.Linear(16 * 196, 10),
    ).cuda()
    x, y = torch.randn(16, 3, 16, 16, device="cuda"), torch.randint(0, 10, (16,), device="cuda")
    return model, lambda model: functional.cross_entropy(model(x), y)


def gpt() -> tuple[nn.Module, Callable[[nn.Module], torch.Tensor]]:
    model = Gpt(64, blocks=2, length=32).cuda()
    tokens = torch.randint(0, 20, (8, 32), device="cuda")
    return model, lambda model: next_token_loss(model(tokens), tokens)


def train(make: Make, kind: str, poisoned: int = -1) -> list[str]:
    """Kinds of the findings of a training in which every wait is an error."""
    model, loss_of = make()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=kind == "fused scaler")
    scaler = torch.amp.GradScaler("cuda", enabled=kind == "fused scaler")
    nan = torch.full((), float("nan"), device="cuda")
    with (
        tempfile.TemporaryDirectory() as folder,
        hr.session(run=folder),
        hr.watch(model, optimizer) as watching,
    ):
        for step in range(STEPS):
            # The first steps allocate: the scaler's scale, the optimizer's state.
            torch.cuda.set_sync_debug_mode("error" if step > 2 else "default")
            optimizer.zero_grad(set_to_none=kind != "zeroed in place")
            loss = loss_of(model)
            if step == poisoned:
                loss = loss * nan
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        torch.cuda.set_sync_debug_mode("default")
        return [one.kind for one in watching.findings]


def losses(make: Make, watched: bool) -> list[float]:
    torch.manual_seed(0)
    model, loss_of = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seen = []
    watching = hr.watch(model, optimizer) if watched else None
    for _ in range(30):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        seen.append(loss.detach())
    if watching is not None:
        watching.close()
    return torch.stack(seen).tolist()


def main() -> int:
    if not torch.cuda.is_available():
        print("there is no CUDA device")
        return 1
    checks: dict[str, Callable[[], bool]] = {}
    for make in (conv_net, gpt):
        for kind in ("plain", "zeroed in place", "fused scaler"):
            checks[f"{make.__name__}, {kind}: no wait, nothing found"] = lambda make=make, kind=kind: (
                train(make, kind) == []
            )
        checks[f"{make.__name__}: a NaN is found without a wait"] = lambda make=make: (
            "nonfinite_loss" in train(make, "plain", poisoned=STEPS // 2)
        )
        checks[f"{make.__name__}: losses equal to the bit"] = lambda make=make: (
            repr(losses(make, True)) == repr(losses(make, False))
        )
    failed = 0
    for name, check in checks.items():
        try:
            good = check()
        except Exception:
            traceback.print_exc()
            good = False
        torch.cuda.set_sync_debug_mode("default")
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'} {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
