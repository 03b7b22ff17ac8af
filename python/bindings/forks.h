// Around a fork the process has no thread of Headrace's.
#pragma once

namespace headrace::python {

/// For os.register_at_fork. CPython 3.12 and newer count the threads after the first and before the second
/// call, and warn of more than one. With the interpreter lock, which the first lets go meanwhile.
void before_fork();
void after_fork_in_parent();

}  // namespace headrace::python
