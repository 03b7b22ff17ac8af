// The few functions of the CUDA driver that copies need, found at run time: nothing here is linked or
// included from CUDA.
//
// Types, values and signatures are those of the CUDA Driver API (cuda.h); the functions with a suffix are the
// symbols that cuda.h maps the plain names to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace headrace::transport {

// --- cuda.h ---

using CudaResult = int;             ///< CUresult
using CudaDeviceHandle = int;       ///< CUdevice
using CudaPointer = std::uint64_t;  ///< CUdeviceptr on 64-bit systems
struct CudaContextRecord;
struct CudaStreamRecord;
struct CudaEventRecord;
using CudaContextHandle = CudaContextRecord*;  ///< CUcontext
using CudaStream = CudaStreamRecord*;          ///< CUstream
using CudaEvent = CudaEventRecord*;            ///< CUevent

inline constexpr CudaResult kCudaSuccess = 0;              ///< CUDA_SUCCESS
inline constexpr CudaResult kCudaErrorNoDevice = 100;      ///< CUDA_ERROR_NO_DEVICE
inline constexpr CudaResult kCudaErrorNotReady = 600;      ///< CUDA_ERROR_NOT_READY
inline constexpr unsigned kCudaStreamNonBlocking = 1;      ///< CU_STREAM_NON_BLOCKING
inline constexpr unsigned kCudaEventDefault = 0;           ///< CU_EVENT_DEFAULT: with timing
inline constexpr unsigned kCudaEventDisableTiming = 2;     ///< CU_EVENT_DISABLE_TIMING
inline constexpr unsigned kCudaMemHostAllocPortable = 1;   ///< CU_MEMHOSTALLOC_PORTABLE
inline constexpr int kCudaPointerAttributeMemoryType = 2;  ///< CU_POINTER_ATTRIBUTE_MEMORY_TYPE
inline constexpr unsigned kCudaMemoryTypeHost = 1;         ///< CU_MEMORYTYPE_HOST

/// The loaded library with its table of functions. Immutable after `load`; thread-safe as CUDA is. Stays
/// loaded for the life of the process: CUDA's own threads and exit handlers run in it.
class CudaDriver {
 public:
  /// `library` as dlopen takes it. Raises DeviceError if it cannot be loaded, lacks a function, or has no
  /// device to offer.
  static std::shared_ptr<const CudaDriver> load(const std::string& library);

  int devices() const noexcept { return devices_; }

  /// Raises DeviceError with CUDA's own name and words for the failure; does nothing for success.
  void check(CudaResult result, const std::string& what) const;

  CudaResult (*init)(unsigned flags) = nullptr;
  CudaResult (*get_error_name)(CudaResult, const char**) = nullptr;
  CudaResult (*get_error_string)(CudaResult, const char**) = nullptr;
  CudaResult (*device_get_count)(int*) = nullptr;
  CudaResult (*device_get)(CudaDeviceHandle*, int) = nullptr;
  CudaResult (*primary_context_retain)(CudaContextHandle*, CudaDeviceHandle) = nullptr;
  CudaResult (*primary_context_release)(CudaDeviceHandle) = nullptr;
  CudaResult (*context_push)(CudaContextHandle) = nullptr;
  CudaResult (*context_pop)(CudaContextHandle*) = nullptr;
  CudaResult (*mem_alloc)(CudaPointer*, std::size_t) = nullptr;
  CudaResult (*mem_free)(CudaPointer) = nullptr;
  CudaResult (*mem_host_alloc)(void**, std::size_t, unsigned flags) = nullptr;
  CudaResult (*mem_free_host)(void*) = nullptr;
  CudaResult (*pointer_get_attribute)(void* value, int attribute, CudaPointer) = nullptr;
  CudaResult (*copy_to_device_async)(CudaPointer, const void*, std::size_t, CudaStream) = nullptr;
  CudaResult (*copy_to_host)(void*, CudaPointer, std::size_t) = nullptr;
  CudaResult (*stream_create)(CudaStream*, unsigned flags) = nullptr;
  CudaResult (*stream_destroy)(CudaStream) = nullptr;
  CudaResult (*stream_synchronize)(CudaStream) = nullptr;
  CudaResult (*stream_wait_event)(CudaStream, CudaEvent, unsigned flags) = nullptr;
  CudaResult (*event_create)(CudaEvent*, unsigned flags) = nullptr;
  CudaResult (*event_destroy)(CudaEvent) = nullptr;
  CudaResult (*event_record)(CudaEvent, CudaStream) = nullptr;
  CudaResult (*event_query)(CudaEvent) = nullptr;
  CudaResult (*event_synchronize)(CudaEvent) = nullptr;
  CudaResult (*event_elapsed)(float* milliseconds, CudaEvent, CudaEvent) = nullptr;

 private:
  CudaDriver() = default;
  void find_functions(void* library, const std::string& name);

  int devices_ = 0;
};

}  // namespace headrace::transport
