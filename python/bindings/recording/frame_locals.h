// Local variables of a frame, read without `frame.f_locals`: before Python 3.13 that makes a dict that the
// user's function then shares with `locals()`, and that keeps what the function deletes.
// `_core.local_variables(frame)` is a dict of its own.
#pragma once

#include <Python.h>

#include "crossing.h"

namespace headrace::python {

/// The exception, or one that it was explicitly raised from, if it passed through a function that is the handler of a
/// signal now, or that was called with the frame below it as an argument, which is how Python calls handlers. So a
/// signal's handler raised it, whichever code it interrupted. Null for others. A handler written in C leaves no trace.
Owned raised_by_signal_handler(PyObject* exception);

}  // namespace headrace::python
