"""Checks of batches: each finds its fault, at the right place, and is silent on what only looks like it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from loops import Images, Training, kinds, trained  # noqa: E402
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
)

import headrace as hr  # noqa: E402
from headrace.results.figures import Finding  # noqa: E402


def shuffled(dataset: Any, **more: Any) -> DataLoader[Any]:
    return DataLoader(dataset, batch_size=16, shuffle=True, **more)


def only(report: hr.Report, kind: str) -> Finding:
    assert kinds(report) == [kind]
    return report.findings[0]


def evaluated(training: Training, train: Any, held: Any, epochs: int) -> Training:
    """After each epoch of training, one evaluation without gradients."""
    for _ in range(epochs):
        training.epochs(train, 1)
        with torch.no_grad():
            for images, _ in held:
                training.model(images)
    return training


def test_a_healthy_training_has_no_finding(tmp_path: Path) -> None:
    assert trained(str(tmp_path), shuffled(Images()), epochs=3).findings == []


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_sample_that_is_not_finite_is_named(tmp_path: Path, workers: int, odd: float) -> None:
    def change(index: int, image: Any) -> Any:
        if index == 77:
            image[1, 2, 3] = odd
        return image

    report = trained(str(tmp_path), shuffled(Images(change=change), num_workers=workers))
    found = only(report, "nonfinite_batch")
    assert (found.severity, found.where, found.samples, found.steps) == ("fault", "batch[0]", [77], 2)
    assert "dataset index 77 (img_0077.png)" in found.says
    assert ("read by worker" in found.says) == (workers > 0)
    assert report.samples("nonfinite_batch") == [77]
    assert Subset(Images(), report.samples("nonfinite_batch"))[0][1] == 77 * 7 % 10


def test_nan_as_missing_value_is_a_note(tmp_path: Path) -> None:
    def change(index: int, image: Any) -> Any:
        if index % 3 == 0:
            image[0, 0, 0] = float("nan")
        return image

    assert (
        only(trained(str(tmp_path), shuffled(Images(size=320, change=change))), "nonfinite_batch").severity
        == "note"
    )


def test_masks_of_minus_infinity_are_no_finding(tmp_path: Path) -> None:
    def batches() -> Iterator[dict[str, Any]]:
        for _ in range(30):
            mask = torch.zeros(8, 16)
            mask[:, 9:] = -torch.inf
            yield {"x": torch.randn(8, 16), "mask": mask}

    loader = hr.wrap(batches(), run=str(tmp_path), watch=True)
    for _ in loader:
        pass
    assert loader.report().findings == []  # type: ignore[attr-defined]


def test_black_images_are_named(tmp_path: Path) -> None:
    def change(index: int, image: Any) -> Any:
        return torch.zeros_like(image) if index in (5, 50) else image

    found = only(trained(str(tmp_path), shuffled(Images(change=change))), "constant_samples")
    assert found.samples in ([5, 50], [50, 5])
    assert found.figures["rows"] == 4


def test_masks_with_empty_samples_are_no_finding(tmp_path: Path) -> None:
    def change(index: int, image: Any) -> Any:
        return torch.zeros_like(image) if index % 9 == 0 else (image > 0).float()

    assert trained(str(tmp_path), shuffled(Images(change=change))).findings == []


def test_samples_of_two_scales(tmp_path: Path) -> None:
    def change(index: int, image: Any) -> Any:
        return image.sigmoid() * (255 if index % 8 == 3 else 1)

    found = only(trained(str(tmp_path), shuffled(Images(change=change))), "scale")
    assert found.severity == "fault"
    assert all(index % 8 == 3 for index in found.samples)
    assert len(set(found.samples)) == 16


def test_bytes_divided_twice(tmp_path: Path) -> None:
    found = only(trained(str(tmp_path), shuffled(Images(change=lambda _, x: x.sigmoid() / 255))), "scale")
    assert "twice" in found.says


def test_two_shards_of_another_range(tmp_path: Path) -> None:
    def change(index: int, image: Any) -> Any:
        return image.sigmoid() * (12 if index >= 64 else 1)

    found = only(trained(str(tmp_path), shuffled(Images(change=change))), "scale")
    assert found.figures["samples"] == pytest.approx(128, abs=1)


def test_a_second_shard_of_another_range(tmp_path: Path) -> None:
    def change(index: int, image: Any) -> Any:
        return image.sigmoid() * 2 - 1 if index >= 320 else image.sigmoid()

    loader = DataLoader(Images(480, change=change), batch_size=16)
    assert only(trained(str(tmp_path), loader, epochs=1), "range_drift").first_step == 20


def test_images_that_were_scaled_before_they_were_normalised(tmp_path: Path) -> None:
    def change(_: int, image: Any) -> Any:
        return (image.sigmoid() / 255 - 0.45) / 0.225

    found = only(trained(str(tmp_path), shuffled(Images(change=change))), "scale")
    assert "scaled twice" in found.says


def test_normalised_dark_images_are_no_finding(tmp_path: Path) -> None:
    def change(_: int, image: Any) -> Any:
        return (image.sigmoid() * 0.2 - 0.45) / 0.225

    assert trained(str(tmp_path), shuffled(Images(change=change))).findings == []


def test_a_channel_of_another_scale(tmp_path: Path) -> None:
    def change(_: int, image: Any) -> Any:
        return image.sigmoid() * torch.tensor([1.0, 255.0, 1.0])[:, None, None]

    assert only(trained(str(tmp_path), shuffled(Images(change=change))), "scale").severity == "fault"


def test_numbers_that_drift(tmp_path: Path) -> None:
    class Drifting(Images):
        taken = 0

        def __getitem__(self, index: int) -> tuple[Any, int]:
            Drifting.taken += 1
            image, label = super().__getitem__(index)
            return (image * 20 + 100 if Drifting.taken > 400 else image), label

    found = only(trained(str(tmp_path), shuffled(Drifting()), epochs=5), "range_drift")
    assert found.first_step == 25


def test_a_type_that_changes(tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        for step in range(20):
            yield torch.randn(8, 20, dtype=torch.float64 if step == 12 else torch.float32)

    loader = hr.wrap(batches(), run=str(tmp_path), watch=True)
    for _ in loader:
        pass
    found = loader.report().findings[0]  # type: ignore[attr-defined]
    assert (found.kind, found.first_step) == ("shape_change", 12)


def test_lengths_that_vary_are_no_finding(tmp_path: Path) -> None:
    loader = hr.wrap((torch.randn(8, 20 + step % 7) for step in range(60)), run=str(tmp_path), watch=True)
    for _ in loader:
        pass
    assert loader.report().findings == []  # type: ignore[attr-defined]


class Labelled(Images):
    def __init__(self, labels: list[int], classes: int = 10) -> None:
        super().__init__(len(labels))
        self.labels = labels
        self.classes = [str(one) for one in range(classes)]

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return super().__getitem__(index)[0], self.labels[index]


def test_a_label_out_of_range(tmp_path: Path) -> None:
    labels = [index % 10 for index in range(128)]
    labels[31] = 10
    found = only(trained(str(tmp_path), shuffled(Labelled(labels))), "label_range")
    assert (found.where, found.samples) == ("batch[1]", [31])


def test_labels_that_losses_leave_out_are_no_finding(tmp_path: Path) -> None:
    labels = [index % 10 if index % 5 else -100 for index in range(128)]
    assert trained(str(tmp_path), shuffled(Labelled(labels))).findings == []


def test_samples_sorted_by_class(tmp_path: Path) -> None:
    found = kinds(
        trained(str(tmp_path), DataLoader(Labelled([index // 32 for index in range(160)]), batch_size=16), 1)
    )
    assert found == ["single_class_batches"]


def test_rare_classes_are_a_note(tmp_path: Path) -> None:
    labels = [0 if index % 40 else 1 for index in range(640)]
    found = only(trained(str(tmp_path), shuffled(Labelled(labels, 2)), 1), "imbalance")
    assert found.severity == "note"
    assert found.figures["ratio"] == 39


def test_padding_is_a_note_with_its_cost(tmp_path: Path) -> None:
    def batches() -> Iterator[Any]:
        for step in range(20):
            tokens = torch.randint(1, 1000, (8, 64), generator=torch.Generator().manual_seed(step))
            for row in range(8):
                tokens[row, 8 + row * 4 :] = 0
            yield {"input_ids": tokens, "attention_mask": (tokens > 0).long()}

    loader = hr.wrap(batches(), run=str(tmp_path), watch=True)
    for _ in loader:
        pass
    (found,) = loader.report().findings  # type: ignore[attr-defined]
    assert (found.kind, found.severity, found.where) == ("padding", "note", "batch['input_ids']")
    assert found.figures["share"] == pytest.approx(1 - 22 / 64)


@pytest.mark.parametrize("kind", ["counts", "classes", "answers"])
def test_what_is_no_token_is_not_padded(tmp_path: Path, kind: str) -> None:
    def batches() -> Iterator[Any]:
        for step in range(20):
            draw = torch.Generator().manual_seed(step)
            numbers = torch.randint(2, 1000, (8, 400), generator=draw)
            if kind == "counts":
                yield {"text": numbers * (torch.rand(8, 400, generator=draw) < 0.004)}
            elif kind == "classes":
                yield {"classes": torch.where(torch.arange(400) < 9, numbers, 0)}
            else:
                yield {"input_ids": numbers, "labels": torch.where(torch.arange(400) < 300, -100, numbers)}

    loader = hr.wrap(batches(), run=str(tmp_path), watch=True)
    for _ in loader:
        pass
    assert [one.kind for one in loader.report().findings] == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_order_that_repeats(tmp_path: Path, workers: int) -> None:
    report = trained(str(tmp_path), DataLoader(Images(), batch_size=16, num_workers=workers), epochs=3)
    assert "shuffle=True" in only(report, "order_identical").cure


def test_set_epoch_forgotten(tmp_path: Path) -> None:
    sampler = torch.utils.data.distributed.DistributedSampler(Images(), num_replicas=2, rank=0)
    report = trained(str(tmp_path), DataLoader(Images(), batch_size=8, sampler=sampler), epochs=2)
    assert "set_epoch" in only(report, "order_identical").cure


def test_evaluation_in_order_is_no_finding(tmp_path: Path) -> None:
    train = hr.wrap(shuffled(Images()), run=str(tmp_path), watch=True)
    even = hr.wrap(
        DataLoader(Images(change=lambda _, x: x + 9), batch_size=16),
        run=str(tmp_path),
        watch=True,
        name="even",
    )
    evaluated(Training(), train, even, epochs=3)
    assert train.report().findings == even.report().findings == []  # type: ignore[attr-defined]


def test_evaluation_on_training_samples(tmp_path: Path) -> None:
    dataset = Images()
    train = hr.wrap(shuffled(Subset(dataset, range(96))), name="train", run=str(tmp_path), watch=True)
    held = hr.wrap(
        DataLoader(Subset(dataset, range(80, 128)), batch_size=16), name="held", run=str(tmp_path), watch=True
    )
    evaluated(Training(), train, held, epochs=2)
    (found,) = train.report().findings  # type: ignore[attr-defined]
    assert (found.kind, found.where, found.samples) == ("leak", "train and held", list(range(80, 96)))
    assert held.report().findings == [found]  # type: ignore[attr-defined]


def test_copies_of_training_samples_in_another_dataset(tmp_path: Path) -> None:
    train = hr.wrap(shuffled(Images(96)), name="train", run=str(tmp_path), watch=True)
    held = hr.wrap(DataLoader(Images(16), batch_size=8), name="held", run=str(tmp_path), watch=True)
    evaluated(Training(), train, held, epochs=2)
    assert kinds(train.report()) == ["leak"]  # type: ignore[attr-defined]


def test_samples_that_come_twice(tmp_path: Path) -> None:
    dataset = Subset(Images(), [*range(128), *range(0, 128, 4)])
    indices = [*range(128), *range(0, 128, 4)]
    sampler = BatchSampler(torch.utils.data.SubsetRandomSampler(indices), 16, drop_last=False)
    found = only(trained(str(tmp_path), DataLoader(dataset, batch_sampler=sampler), 1), "duplicates_in_epoch")
    assert set(found.samples) == set(range(0, 128, 4))


@pytest.mark.parametrize(
    "sampler",
    [RandomSampler(Images(), replacement=True), WeightedRandomSampler([1.0] * 128, 128)],
    ids=["random", "weighted"],
)
def test_drawing_with_replacement_is_no_finding(tmp_path: Path, sampler: Any) -> None:
    assert trained(str(tmp_path), DataLoader(Images(), batch_size=16, sampler=sampler)).findings == []


class Stream(IterableDataset[tuple[Any, int]]):
    def __iter__(self) -> Iterator[tuple[Any, int]]:
        yield from (Images()[index] for index in torch.randperm(128).tolist())


def test_a_stream_that_every_worker_reads_whole(tmp_path: Path) -> None:
    report = trained(str(tmp_path), DataLoader(Stream(), batch_size=16, num_workers=2), epochs=1)
    found = only(report, "duplicates_in_epoch")
    assert "get_worker_info" in found.cure


def test_one_loop_of_two_loaders_trains_both(tmp_path: Path) -> None:
    a = hr.wrap(DataLoader(Images(), batch_size=16), name="a", run=str(tmp_path), watch=True)
    b = hr.wrap(shuffled(Images(change=lambda _, x: x + 3)), name="b", run=str(tmp_path), watch=True)
    training = Training()
    for _ in range(3):
        for (images, labels), (others, _) in zip(a, b, strict=True):
            training.step(images + others, labels)
    assert kinds(a.report()) == ["order_identical"]  # type: ignore[attr-defined]
    assert b.report().findings == []  # type: ignore[attr-defined]


def test_batches_and_random_numbers_are_the_same(tmp_path: Path) -> None:
    def taken(loader: Any) -> list[Any]:
        torch.manual_seed(3)
        return [image.sum().item() for _ in range(2) for image, _ in loader] + [torch.rand(1).item()]

    bare = taken(shuffled(Images(), num_workers=2))
    assert taken(hr.wrap(shuffled(Images(), num_workers=2), run=str(tmp_path), watch=True)) == bare


def test_sequential_sampler_of_one_batch_is_no_order(tmp_path: Path) -> None:
    loader = DataLoader(Images(16), batch_size=16, sampler=SequentialSampler(Images(16)))
    assert trained(str(tmp_path), loader, epochs=4).findings == []


def test_a_loader_that_is_made_anew_each_epoch(tmp_path: Path) -> None:
    training, dataset = Training(), Images()
    for epoch in range(3):
        seeded = torch.Generator().manual_seed(5)
        loader = DataLoader(dataset, batch_size=16, shuffle=True, generator=seeded)
        wrapped = hr.wrap(loader, name="train", run=str(tmp_path), watch=True)
        training.epochs(wrapped, 1)
        assert kinds(wrapped.report()) == (["order_identical"] if epoch else [])  # type: ignore[attr-defined]


def make(dataset: Any, run: str, *, shuffle: bool) -> Any:
    return hr.wrap(DataLoader(dataset, batch_size=16, shuffle=shuffle), name="data", run=run, watch=True)


def test_loaders_of_one_helper_are_told_apart(tmp_path: Path) -> None:
    """Made anew in each epoch, and evaluated on another scale."""
    training, run = Training(), str(tmp_path)
    for _ in range(3):
        train = make(Images(), run, shuffle=True)
        held = make(Images(48, change=lambda _, x: x * 9 + 50), run, shuffle=False)
        evaluated(training, train, held, epochs=1)
    assert train.report().findings == held.report().findings == []


def test_graphs_and_subclasses_are_looked_at(tmp_path: Path) -> None:
    class Meta(torch.Tensor):
        pass

    def batches() -> Iterator[Any]:
        for step in range(20):
            nodes, image = torch.randn(37, 5), torch.randn(4, 20)
            if step == 12:
                nodes[20, 1] = image[2, 3] = float("nan")
            yield {"image": image.as_subclass(Meta), "nodes": nodes}

    loader = hr.wrap(batches(), run=str(tmp_path), watch=True)
    for _ in loader:
        pass
    found = {one.where: one.first_step for one in loader.report().findings}  # type: ignore[attr-defined]
    assert found == {"batch['image']": 12, "batch['nodes']": 12}


def test_views_that_repeat_memory_are_not_written_out(tmp_path: Path) -> None:
    mask = torch.zeros(1, 1, 1, 1).expand(64, 64, 4096, 4096)
    loader = hr.wrap([{"x": torch.randn(4, 20), "mask": mask}] * 3, run=str(tmp_path), watch=True)
    assert sum(1 for _ in loader) == 3


def test_numbers_beside_classes_are_none(tmp_path: Path) -> None:
    class Detection(Images):
        classes = ("a", "b", "c")

        def __getitem__(self, index: int) -> Any:
            image = super().__getitem__(index)[0]
            return {
                "image": image,
                "label": index % 3,
                "image_id": index,
                "width": 640,
                "degrees": index % 40 - 12,
            }

    class Fit(Training):
        def epochs(self, loader: Any, number: int) -> None:
            for _ in range(number):
                for batch in loader:
                    self.step(batch["image"], batch["label"])

    loader = hr.wrap(shuffled(Detection()), run=str(tmp_path), watch=True)
    Fit().epochs(loader, 2)
    assert loader.report().findings == []  # type: ignore[attr-defined]


def test_the_programs_own_sampler_may_repeat(tmp_path: Path) -> None:
    class Twice:
        def __iter__(self) -> Iterator[int]:
            order = torch.randperm(128).tolist()
            return iter([index for index in order for _ in range(2)])

        def __len__(self) -> int:
            return 256

    report = trained(str(tmp_path), DataLoader(Images(), batch_size=16, sampler=Twice()))
    assert only(report, "duplicates_in_epoch").severity == "note"


def test_a_property_of_the_dataset_is_not_asked(tmp_path: Path) -> None:
    class Asked(Images):
        @property
        def classes(self) -> list[str]:
            raise AssertionError("a property of the user's")

        num_classes = dataset = indices = samples = classes

    assert trained(str(tmp_path), shuffled(Asked())).findings == []


def test_a_part_of_the_training_set_may_be_evaluated_beside_a_test(tmp_path: Path) -> None:
    dataset, run = Images(), str(tmp_path)
    train = hr.wrap(shuffled(dataset), name="train", run=run, watch=True)
    fit = hr.wrap(DataLoader(Subset(dataset, range(40)), batch_size=8), name="fit", run=run, watch=True)
    test = hr.wrap(
        DataLoader(Images(40, change=lambda _, x: x + 5), batch_size=16), name="test", run=run, watch=True
    )
    training = evaluated(Training(), train, fit, epochs=3)
    with torch.no_grad():
        for images, _ in test:
            training.model(images)
    assert [(one.kind, one.severity) for one in train.report().findings] == [("leak", "note")]  # type: ignore[attr-defined]


def test_folds_are_no_leak(tmp_path: Path) -> None:
    dataset = Images(120)
    for fold in range(3):
        held = range(fold * 40, fold * 40 + 40)
        rest = [index for index in range(120) if index not in held]
        train = hr.wrap(shuffled(Subset(dataset, rest)), name="train", run=str(tmp_path), watch=True)
        other = hr.wrap(shuffled(Subset(dataset, held)), name="held", run=str(tmp_path), watch=True)
        evaluated(Training(), train, other, epochs=2)
    assert train.report().findings == other.report().findings == []  # type: ignore[attr-defined]
