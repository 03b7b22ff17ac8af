// Holder of the interpreter lock, and how long others wait for it.
#pragma once

#include <cstdint>
#include <optional>

namespace headrace::python {

/// How long this (foreign) thread waits for the interpreter lock, ns; negative where it cannot be asked.
std::int64_t wait_for_interpreter_lock();

/// Address of the futex on which threads wait for the interpreter lock, found by letting a thread wait for it
/// for a moment; 0: there is no lock (free-threaded Python), or the kernel does not tell. Takes the lock for
/// 3 ms at most.
std::uintptr_t find_interpreter_lock();

/// Waits for the thread that such a search lets wait, which ends once it has had the lock: the caller does
/// not hold it.
void await_end_of_lock_search() noexcept;

/// Id of the thread that holds the interpreter lock; 0: nobody does; none: not known (the lock was not found,
/// or Python 3.10, which does not keep the kernel's number of a thread). Needs no lock; the answer may be old
/// when it comes.
std::optional<int> holder_of_interpreter_lock() noexcept;

}  // namespace headrace::python
