// Taking the interpreter lock, also while the interpreter ends.
//
// Once the interpreter has begun to end, CPython gives the lock to no other thread: up to 3.13 it ends a
// thread that asks for it by `pthread_exit`, which unwinds the thread's C++ frames, and from 3.14 on it lets
// the thread hang. Unwinding is fatal: destructors may not unwind, `catch` may not swallow it, and
// frames that hold Python objects would drop them without the lock. So no thread of ours is unwound: it is
// parked where it asked for the lock, until the process is gone. For the same reason whatever a thread uses
// without the lock must stay alive on that thread's own stack; Python's objects are destroyed meanwhile.
//
// glibc unwinds the thread by an exception that no C++ code threw. A destructor sees it. `catch` must not: the C++
// runtimes end the process where a foreign exception is caught inside a handler of another one, and libc++, with which
// the portable wheels are built, has no name for it.
#pragma once

#include <Python.h>

#include <chrono>
#include <exception>
#include <memory>
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

/// True from the moment from which no thread gets the lock but the one that ends the interpreter.
inline bool interpreter_is_ending() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() == 0 || Py_IsFinalizing() != 0;
#else
  return Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0;
#endif
}

/// Runs `call`, which runs Python code or takes the lock, and returns what it gives. Does not return where
/// the interpreter ended meanwhile. Needed around every such call below a frame that owns something or
/// catches everything.
template <class Call>
decltype(auto) calling_python(Call&& call) {
  return parked_when_unwound(std::forward<Call>(call));
}

/// PyGILState_Ensure for threads that may not be known to the interpreter.
inline PyGILState_STATE take_lock() noexcept {
  if (PyGILState_Check() == 0 && interpreter_is_ending()) park();
  return parked_when_unwound<Throws::nothing>([] { return PyGILState_Ensure(); });
}
inline void give_lock_back(PyGILState_STATE state) noexcept {
  parked_when_unwound<Throws::nothing>([state] { PyGILState_Release(state); });
}

/// PyEval_RestoreThread.
inline void take_lock_again(PyThreadState* thread) noexcept {
  parked_when_unwound<Throws::nothing>([thread] { PyEval_RestoreThread(thread); });
}

/// While it lives the calling thread, which holds the interpreter lock, does not.
class LockReleased {
 public:
  LockReleased() noexcept : saved_(PyEval_SaveThread()) {}
  ~LockReleased() { take_lock_again(saved_); }
  LockReleased(const LockReleased&) = delete;
  LockReleased& operator=(const LockReleased&) = delete;

 private:
  PyThreadState* saved_;
};

/// The result of `call` without the interpreter lock, which the calling thread holds.
template <class Call>
decltype(auto) without_lock(Call&& call) {
  const LockReleased released;
  return std::forward<Call>(call)();
}

/// While it lives the calling thread, which does not hold the interpreter lock, does.
class LockTaken {
 public:
  LockTaken() noexcept : state_(take_lock()) {}
  ~LockTaken() { give_lock_back(state_); }
  LockTaken(const LockTaken&) = delete;
  LockTaken& operator=(const LockTaken&) = delete;

 private:
  PyGILState_STATE state_;
};

/// A member function as a binding that runs without the interpreter lock: it keeps the object, because the
/// interpreter may end, and drop its own reference, while the call runs.
template <class Result, class T, class... Args>
auto on_shared(Result (T::*member)(Args...) const) {
  return [member](const std::shared_ptr<T>& self, Args... args) {
    return ((*self).*member)(std::forward<Args>(args)...);
  };
}
template <class Result, class T, class... Args>
auto on_shared(Result (T::*member)(Args...)) {
  return [member](const std::shared_ptr<T>& self, Args... args) {
    return ((*self).*member)(std::forward<Args>(args)...);
  };
}

}  // namespace headrace::python
