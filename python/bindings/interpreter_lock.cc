#include "interpreter_lock.h"

namespace headrace::python {

bool interpreter_is_ending() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() == 0 || Py_IsFinalizing() != 0;
#else
  return Py_IsInitialized() == 0 || _Py_IsFinalizing() != 0;
#endif
}

PyGILState_STATE take_lock() noexcept {
  if (PyGILState_Check() == 0 && interpreter_is_ending()) park();
  return parked_when_unwound<Throws::nothing>([] { return PyGILState_Ensure(); });
}

void give_lock_back(PyGILState_STATE state) noexcept {
  parked_when_unwound<Throws::nothing>([state] { PyGILState_Release(state); });
}

void take_lock_again(PyThreadState* thread) noexcept {
  parked_when_unwound<Throws::nothing>([thread] { PyEval_RestoreThread(thread); });
}

}  // namespace headrace::python
