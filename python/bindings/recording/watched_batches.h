// Batches that loops take, shown to a function of headrace.watch. Off unless somebody asked for it.
#pragma once

#include <Python.h>

#include <cstdint>

#include "headrace/profile/probes.h"

namespace headrace::python {

/// Whether a function wants to see batches.
bool batches_are_watched() noexcept;

/// A loop of `loader` takes `batch` from `iterator`. number: of the batch in its epoch, worker: who made it; -1:
/// not known. What the function raises is forgotten. Returns the time that it took (ns), which is not the step's, if it says that it looked;
/// below 0: the program was interrupted meanwhile, as it would be inside next(), and the exception is set.
std::int64_t show_batch(const profile::LoaderHandle& loader, PyObject* iterator, std::int64_t number,
                        int worker, PyObject* batch);

/// Whether a function wants to look into some batches.
bool batches_are_looked_into() noexcept;

/// Shows `batch` to that function; like `show_batch`.
std::int64_t show_contents(const profile::LoaderHandle& loader, PyObject* batch);

}  // namespace headrace::python
