// How much memory a batch takes: what a longer prefetch costs.
#pragma once

#include <Python.h>

#include <cstdint>

namespace headrace::python {

/// Bytes of the NumPy arrays, torch tensors and byte strings in a batch, through tuples, lists and dicts; 0
/// where there are none. Runs no code of the user's; needs the interpreter lock and no pending exception.
std::uint64_t batch_bytes(PyObject* batch);

}  // namespace headrace::python
