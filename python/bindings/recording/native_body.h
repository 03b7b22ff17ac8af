// A map's body that is a C function.
#pragma once

#include <Python.h>

#include <cstdint>
#include <string>

#include "recording/pipeline_item.h"

namespace headrace::python {

/// A C body: reads `input_bytes` at `input`, writes at most `output_bytes` at `output`, and
/// returns how many bytes it wrote, or a number below 0 as its own error code. Called by several threads at a
/// time, without the interpreter lock.
using BodyFunction = std::int64_t (*)(const void* input, std::int64_t input_bytes, void* output,
                                      std::int64_t output_bytes, void* context);

/// Calls the function with an item's buffer and gives its output as a bytearray, cut to what was written.
class NativeBody {
 public:
  /// `owner` keeps the library that the function is in.
  NativeBody(std::uintptr_t function, std::uintptr_t context, std::int64_t output_bytes, PyObject* owner);
  NativeBody(const NativeBody& other) noexcept;
  NativeBody& operator=(const NativeBody&) = delete;
  ~NativeBody();

  /// With the interpreter lock held. Throws BodyFailure.
  Item call(Item&& item) const;

 private:
  BodyFunction function_;
  void* context_;
  std::int64_t output_bytes_;
  PyObject* owner_;
};

void add_native_body(PyObject* module);

}  // namespace headrace::python
