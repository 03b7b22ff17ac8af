// Around a fork the process has no thread of Headrace's.
#pragma once

namespace headrace::python {

/// For os.register_at_fork. CPython 3.12 and newer warn of more than one thread. They count between the two
/// calls; the first releases of 3.13 and 3.14 count after the second one (gh-137109).
/// With the interpreter lock, which the first lets go meanwhile.
void before_fork();
void after_fork_in_parent();

}  // namespace headrace::python
