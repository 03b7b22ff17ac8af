// Batches that loops take, shown to functions of headrace.watch: all of them if somebody asked for it, and some
// to be looked into.
#pragma once

#include <Python.h>

#include <cstdint>

#include "headrace/profile/probes.h"

namespace headrace::python {

/// Functions that want to see batches, all of them and those that are looked into; null: there is none. Never
/// released: loops may end after the module.
struct BatchViewers {
  PyObject* watching = nullptr;
  PyObject* looking = nullptr;
};
extern BatchViewers batch_viewers;

enum class BatchView { none, watched, looked_into };

/// How the batch that was just taken is to be shown; `loop`: who asks_for_contents.
template <class Loop>
BatchView view_of_batch(Loop& loop) noexcept {
  if (batch_viewers.looking != nullptr && loop.asks_for_contents()) return BatchView::looked_into;
  return batch_viewers.watching != nullptr ? BatchView::watched : BatchView::none;
}

/// A loop of `loader` takes `batch` from `iterator`. number: of the batch in its epoch, worker: who made it; -1:
/// not known. What the functions raise is forgotten. Returns the
/// time that they took (ns), which is not the step's, if they say that they looked; below 0: the program was
/// interrupted meanwhile, as it would be inside next(), and the exception is set.
std::int64_t show_batch(const profile::LoaderHandle& loader, PyObject* iterator, std::int64_t number,
                        int worker, PyObject* batch, BatchView view);

}  // namespace headrace::python
