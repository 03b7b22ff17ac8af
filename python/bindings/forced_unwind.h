// Parking a thread that `pthread_exit` is about to unwind.
//
// glibc unwinds the thread by an exception that no C++ code threw. A destructor sees it. `catch` must not: the C++
// runtimes end the process where a foreign exception is caught inside a handler of another one, and libc++, with which
// the portable wheels are built, has no name for it.
#pragma once

#include <chrono>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>

namespace headrace::python {

/// Sleeps until the process is gone.
[[noreturn]] inline void park() noexcept {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
}

/// Whether C++ exceptions may leave a call. One that throws none may also be made while an exception is on its way,
/// in a destructor.
enum class Throws { nothing, exceptions };

/// The result of `call`. If the thread is unwound meanwhile, it is parked instead. Free where nothing is thrown.
template <Throws kThrows = Throws::exceptions, class Call>
decltype(auto) parked_when_unwound(Call&& call) {
  struct Unwound {
    bool returned = false;
    // An exception that C++ code threw is counted while it leaves `call`; a forced unwinding is not.
    ~Unwound() {
      if (!returned && (kThrows == Throws::nothing || std::uncaught_exceptions() == 0)) park();
    }
  } unwound;
  if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
    std::forward<Call>(call)();
    unwound.returned = true;
  } else {
    decltype(auto) result = std::forward<Call>(call)();
    unwound.returned = true;
    return result;
  }
}

}  // namespace headrace::python
