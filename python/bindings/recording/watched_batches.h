// Batches that loops take, shown to functions of headrace.watch: all of them if somebody asked for it, and some
// to be looked into.
#pragma once

#include <Python.h>

#include <cstdint>

#include "headrace/profile/probes.h"

namespace headrace::python {

/// Whether a function wants to see batches, all of them or some.
bool batches_are_shown() noexcept;

/// A loop of `loader` takes `batch` from `iterator`. number: of the batch in its epoch, worker: who made it; -1:
/// not known. look_into: it is one of those that are looked into. What the functions raise is forgotten. Returns the
/// time that they took (ns), which is not the step's, if they say that they looked; below 0: the program was
/// interrupted meanwhile, as it would be inside next(), and the exception is set.
std::int64_t show_batch(const profile::LoaderHandle& loader, PyObject* iterator, std::int64_t number,
                        int worker, PyObject* batch, bool look_into);

}  // namespace headrace::python
