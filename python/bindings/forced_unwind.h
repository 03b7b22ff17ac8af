// Parking a thread that `pthread_exit` is about to unwind.
//
// glibc unwinds the thread by an exception that no C++ code threw. libstdc++ has a name for it. libc++, with which the
// portable wheels are built, has none, and its `catch (...)` does not see it: there only destructors run.
#pragma once

#include <chrono>
#include <thread>
#include <utility>
#include <version>  // says which library this is

#ifdef _LIBCPP_VERSION
#include <exception>
#include <type_traits>
#else
#include <cxxabi.h>
#endif

namespace headrace::python {

/// Sleeps until the process is gone.
[[noreturn]] inline void park() noexcept {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
}

/// What `call` returns. Where the thread is unwound meanwhile, it is parked instead. Free, or nearly so, where nothing
/// is thrown.
template <class Call>
decltype(auto) parked_when_unwound(Call&& call) {
#ifdef _LIBCPP_VERSION
  struct Unwound {
    int thrown = std::uncaught_exceptions();
    bool returned = false;
    // An exception that C++ code threw is counted while it leaves `call`; a forced unwinding is not.
    ~Unwound() {
      if (!returned && std::uncaught_exceptions() == thrown) park();
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
#else
  try {
    return std::forward<Call>(call)();
  } catch (const abi::__forced_unwind&) {
    park();
  }
#endif
}

}  // namespace headrace::python
