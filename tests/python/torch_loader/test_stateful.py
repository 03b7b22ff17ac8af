"""torchdata's StatefulDataLoader, which makes its iterators in its own way."""

from typing import Any

import pytest

import headrace as hr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
stateful = pytest.importorskip("torchdata.stateful_dataloader", reason="torchdata is not installed")

pytestmark = pytest.mark.usefixtures("run")


class Numbers(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([index])


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
def test_goes_on_from_its_state(options: dict[str, Any]) -> None:
    loader: Any = hr.wrap(stateful.StatefulDataLoader(Numbers(), batch_size=4, **options))
    iterator = iter(loader)
    for _ in range(5):
        next(iterator)
    state = loader.state_dict()
    rest = [batch.tolist() for batch in iterator]
    again = stateful.StatefulDataLoader(Numbers(), batch_size=4, **options)
    again.load_state_dict(state)
    assert [batch.tolist() for batch in again] == rest
    assert len(list(loader)) == 16
    profile = loader.report().profile
    assert profile.sink.steps == 32
    numbers = next(one for one in profile.operators if one.name == "Numbers")
    assert numbers.items == 128
