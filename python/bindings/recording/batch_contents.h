// Contents of a batch, by a quick inspection that runs no code of its author.
#pragma once

#include <Python.h>

#include <cstdint>

namespace headrace::python {

struct BatchContents {
  std::uint64_t bytes = 0;  ///< of tensors, arrays and bytes
  std::int64_t tensors = 0;
};

/// Looks through tuples, lists, dicts and the attributes of plain objects (a dataclass, a UserDict, a
/// tokenizer's BatchEncoding), a few levels deep and at some hundred objects. Leaves no Python error behind.
BatchContents contents_of(PyObject* batch);

}  // namespace headrace::python
