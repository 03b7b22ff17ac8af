// What tests ask of the CUDA driver that is none: a library with the driver's functions on host memory.
#pragma once

namespace headrace::transport {

/// Streams run what is put on them at once, unless they are held; then it is run when somebody waits, or
/// lets go. One nanosecond per byte passes on a stream. Functions refuse to work without a current context,
/// and copies that leave an allocation, as the real ones do.
struct FakeCuda {
  /// Forgets failures, holds and counts, not what is allocated.
  void (*reset)();
  void (*set_devices)(int count);
  /// The call of `function` after `skip` others fails with `result`.
  void (*fail)(const char* function, int result, int skip);
  /// What is put on this stream stays there; null: on any.
  void (*hold)(void* stream);
  /// Everything runs.
  void (*let_go)();
  int (*calls)(const char* function);
  /// Contexts, streams, events and allocations that nobody gave back.
  int (*live)();
  bool (*is_device_memory)(const void* address);
};

/// The symbol under which the library hands out a `const FakeCuda*`.
inline constexpr const char* kFakeCudaSymbol = "headrace_fake_cuda";

}  // namespace headrace::transport
