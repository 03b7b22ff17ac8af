"""Attributes of the user's objects, without their dicts and without a call of the user's code."""

import gc
from collections import deque
from typing import Any

import pytest

from headrace.common.own_attributes import own_attribute, own_values


class Plain:
    by_class: Any = "default"

    def __init__(self) -> None:
        self.own = [1]
        self.options = {"own": self.own}

    @property
    def asked(self) -> Any:
        raise AssertionError("the user's code ran")

    def method(self) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AssertionError("the user's code ran")


class Slots:
    __slots__ = ("own",)

    def __init__(self) -> None:
        self.own = 1


@pytest.mark.parametrize("with_dict", [False, True])
def test_only_what_the_object_has_itself(with_dict: bool) -> None:
    plain = Plain()
    if with_dict:
        assert vars(plain)
    assert own_attribute(plain, "own") is plain.own
    assert [own_attribute(plain, name) for name in ("asked", "method", "by_class", "none")] == [None] * 4
    plain.by_class = "own"
    assert own_attribute(plain, "by_class") == "own"
    values = own_values(plain)
    assert any(value is plain.own for value in values)
    assert not any(value is vars(plain) for value in values)


def test_reading_makes_no_dict() -> None:
    plain = Plain()
    before = gc.get_referents(plain)
    own_attribute(plain, "own")
    own_values(plain)
    assert gc.get_referents(plain) == before


def test_classes_slots_and_builtins() -> None:
    assert own_attribute(Plain, "by_class") == "default"
    assert own_attribute(Slots(), "own") is None
    assert own_attribute(5, "own") is None
    assert own_values(5) == []
    assert len(own_values(deque(range(5000)))) <= 1000
