"""The tokens of language data: counts, padding, packing, what other ways to form batches would save."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from headrace.results import tokens as reading  # noqa: E402
from headrace.watch.fields import fields_of  # noqa: E402
from headrace.watch.language import tokens_of  # noqa: E402


def ids(*lengths: int, width: int, pad: int = 0) -> Any:
    rows = torch.full((len(lengths), width), pad, dtype=torch.int64)
    for row, length in enumerate(lengths):
        rows[row, :length] = torch.arange(5, 5 + length)
    return rows


def counted(batch: Any) -> tuple[int, int, list[int]]:
    found = tokens_of(fields_of(batch))
    assert found is not None
    return found.rows, found.width, found.lengths


class TestOneBatch:
    def test_a_mask_says_what_is_a_token(self) -> None:
        tokens = ids(3, 10, width=16)
        batch = {"labels": tokens, "input_ids": tokens, "attention_mask": (tokens != 0).long()}
        assert counted(batch) == (2, 16, [3, 10])

    def test_a_mask_of_hidden_tokens_is_not_of_padding(self) -> None:
        hidden = torch.arange(16).repeat(2, 1) % 3 == 0
        assert counted({"input_ids": ids(3, 10, width=16), "mask": hidden}) == (2, 16, [16, 16])

    def test_without_a_mask_each_place_is_computed(self) -> None:
        assert counted({"input_ids": ids(3, 10, 16, width=16, pad=1)}) == (3, 16, [16, 16, 16])

    def test_a_name_that_other_data_has_needs_a_mask(self) -> None:
        tokens = ids(3, 10, width=16)
        assert tokens_of(fields_of({"text": tokens})) is None
        assert counted({"text": tokens, "attention_mask": tokens != 0}) == (2, 16, [3, 10])

    def test_padding_on_both_sides(self) -> None:
        mask = torch.zeros(1, 16, dtype=torch.int64)
        mask[0, 4:9] = 1
        assert counted({"input_ids": ids(16, width=16), "attention_mask": mask}) == (1, 16, [5])

    def test_positions_tell_packed_sequences(self) -> None:
        positions = torch.cat([torch.arange(6), torch.arange(10)]).reshape(1, 16)
        assert counted({"input_ids": ids(16, width=16), "position_ids": positions}) == (1, 16, [6, 10])

    def test_sums_of_lengths_tell_flattened_ones(self) -> None:
        batch = {"input_ids": torch.arange(20), "cu_seqlens": torch.tensor([0, 4, 13, 20])}
        assert counted(batch) == (1, 20, [4, 9, 7])

    def test_numpy(self) -> None:
        tokens = ids(3, 10, width=16).numpy()
        assert counted({"input_ids": tokens, "attention_mask": tokens != 0}) == (2, 16, [3, 10])

    @pytest.mark.parametrize(
        "batch",
        [
            torch.zeros(4, 3, 8, 8),
            (torch.zeros(4, 16), torch.zeros(4, dtype=torch.int64)),
            (torch.randint(1, 9, (4, 26)), torch.zeros(4)),  # a table of whole numbers
            (300 * ids(3, 12, width=16), ids(3, 12, width=16)),  # without names
            {"tokens": torch.randint(0, 9, (4, 300))},  # counts of words
            {"input_ids": torch.zeros(4, 16)},
            {"source": torch.randint(1, 999, (4, 12))},  # edges of a graph
            {"input_ids": None},
            [1, 2, 3],
            None,
            "text",
            {"input_ids": torch.empty(0, 16, dtype=torch.int64)},
        ],
    )
    def test_other_data(self, batch: Any) -> None:
        assert tokens_of(fields_of(batch)) is None


def lengths(count: int) -> list[int]:
    draw = random.Random(3)
    return [min(256, 3 + int(draw.lognormvariate(3.5, 0.8))) for _ in range(count)]


class Texts(torch.utils.data.Dataset):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        self.lengths, self.width = lengths(400), width

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> int:
        return self.lengths[index]

    def collate(self, batch: list[int]) -> dict[str, Any]:
        tokens = ids(*batch, width=self.width or max(max(batch), 8))
        return {"input_ids": tokens, "attention_mask": (tokens != 0).long()}


def recorded(run: Path, width: int, workers: int = 0) -> hr.Report:
    data = Texts(width)
    loader = hr.wrap(
        torch.utils.data.DataLoader(data, batch_size=8, collate_fn=data.collate, num_workers=workers),
        run=run,
        name="texts",
    )
    assert sum(len(batch["input_ids"]) for batch in loader) == 400
    return loader.report()


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_in_the_batches(tmp_path: Path, workers: int) -> None:
    report = recorded(tmp_path / "run", 256, workers)
    tokens = report.profile.tokens
    assert tokens is not None
    assert tokens.batches == 50
    assert (tokens.rows, tokens.places, tokens.fixed_width) == (8, 2048, True)
    all_lengths = lengths(400)
    assert tokens.tokens == pytest.approx(sum(all_lengths) / 50)
    assert tokens.padding_share == pytest.approx(1 - sum(all_lengths) / 400 / 256)
    assert tokens.length_max == max(all_lengths)
    assert sum(one.share for one in tokens.lengths) == pytest.approx(1)
    assert tokens.tokens_per_s == pytest.approx(tokens.tokens / report.profile.sink.step_s)
    assert "TOKENS" in report.to_text()
    assert "of what a step computes is padding" in report.to_text()
    assert hr.Report.load(tmp_path / "run").profile.tokens == tokens


def test_batches_of_one_row(tmp_path: Path) -> None:
    batches = [{"input_ids": ids(9, width=16)} for _ in range(10)]
    for _ in hr.wrap(batches, run=tmp_path / "run"):
        pass
    report = hr.Report.load(tmp_path / "run")
    assert report.profile.tokens is not None
    assert "1 row, all of one width" in report.to_text()


def test_what_is_said_to_be_saved_is_what_it_saves(tmp_path: Path) -> None:
    fixed = recorded(tmp_path / "fixed", 256).profile.tokens
    longest = recorded(tmp_path / "longest", 0).profile.tokens
    assert fixed is not None
    assert longest is not None
    said = {one.change: one.saves for one in fixed.savings}
    assert set(said) == {"pad_to_longest", "bucket", "pack"}
    assert said["pad_to_longest"] == pytest.approx(1 - longest.places / fixed.places, abs=0.05)
    assert "pad_to_longest" not in {one.change for one in longest.savings}
    bucketed = sorted(lengths(400))
    places = sum(8 * max(bucketed[at : at + 8]) for at in range(0, 400, 8)) / 50
    assert said["bucket"] == pytest.approx(1 - places / fixed.places, abs=0.03)


def test_ranks_are_compared_at_the_same_steps(tmp_path: Path) -> None:
    recorded(tmp_path / "run", 256)
    (first,) = (tmp_path / "run").glob("rank0.tokens-*.json")
    document = json.loads(first.read_text())
    document["loaders"][0]["steps"] = [[step, 3 * tokens] for step, tokens in document["loaders"][0]["steps"]]
    (tmp_path / "run" / "rank1.tokens-1.json").write_text(json.dumps(document))
    tokens = hr.Report.load(tmp_path / "run").profile.tokens
    assert tokens is not None
    assert tokens.rank_imbalance == pytest.approx(0.5)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"loaders": [{}]}', '{"loaders": [{"name": "texts", "rows": "x"}]}']
)
def test_a_damaged_file_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "rank0.tokens-1.json").write_text(text)
    assert reading.tokens_in(str(tmp_path), 0, "texts", 1.0) is None


def test_images_have_no_tokens(tmp_path: Path) -> None:
    data = [torch.zeros(3, 8, 8)] * 40
    loader = hr.wrap(torch.utils.data.DataLoader(data, batch_size=4), run=tmp_path / "run")
    for _ in loader:
        pass
    assert loader.report().profile.tokens is None
    assert not list((tmp_path / "run").glob("rank0.tokens-*"))
