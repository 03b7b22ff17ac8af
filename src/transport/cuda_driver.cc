#include "headrace/transport/cuda_driver.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

#include "headrace/profile/errors.h"

namespace headrace::transport {
namespace {

template <class Function>
void find(void* library, const std::string& name, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr) {
    throw DeviceError("CUDA: " + name + " has no function " + symbol +
                      ": it is no CUDA driver, or one that is too old");
  }
}

}  // namespace

void CudaDriver::find_functions(void* library, const std::string& name) {
  find(library, name, "cuInit", init);
  find(library, name, "cuGetErrorName", get_error_name);
  find(library, name, "cuGetErrorString", get_error_string);
  find(library, name, "cuDeviceGetCount", device_get_count);
  find(library, name, "cuDeviceGet", device_get);
  find(library, name, "cuDevicePrimaryCtxRetain", primary_context_retain);
  find(library, name, "cuDevicePrimaryCtxRelease_v2", primary_context_release);
  find(library, name, "cuCtxPushCurrent_v2", context_push);
  find(library, name, "cuCtxPopCurrent_v2", context_pop);
  find(library, name, "cuMemAlloc_v2", mem_alloc);
  find(library, name, "cuMemFree_v2", mem_free);
  find(library, name, "cuMemHostAlloc", mem_host_alloc);
  find(library, name, "cuMemFreeHost", mem_free_host);
  find(library, name, "cuPointerGetAttribute", pointer_get_attribute);
  find(library, name, "cuMemcpyHtoDAsync_v2", copy_to_device_async);
  find(library, name, "cuMemcpyDtoH_v2", copy_to_host);
  find(library, name, "cuStreamCreate", stream_create);
  find(library, name, "cuStreamDestroy_v2", stream_destroy);
  find(library, name, "cuStreamSynchronize", stream_synchronize);
  find(library, name, "cuStreamWaitEvent", stream_wait_event);
  find(library, name, "cuEventCreate", event_create);
  find(library, name, "cuEventDestroy_v2", event_destroy);
  find(library, name, "cuEventRecord", event_record);
  find(library, name, "cuEventQuery", event_query);
  find(library, name, "cuEventSynchronize", event_synchronize);
  find(library, name, "cuEventElapsedTime", event_elapsed);
}

std::shared_ptr<const CudaDriver> CudaDriver::load(const std::string& library) {
  // One table per library: loading and cuInit cost tens of milliseconds.
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const CudaDriver>> loaded;
  const std::scoped_lock lock(mutex);
  if (const auto known = loaded.find(library); known != loaded.end()) return known->second;
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw DeviceError("CUDA: " + library + " cannot be loaded: no driver is installed");
  std::shared_ptr<CudaDriver> driver(new CudaDriver);
  driver->find_functions(handle, library);
  driver->check(driver->init(0), "cuInit");
  driver->check(driver->device_get_count(&driver->devices_), "cuDeviceGetCount");
  if (driver->devices_ < 1) driver->check(kCudaErrorNoDevice, "cuDeviceGetCount");
  loaded[library] = driver;
  return driver;
}

void CudaDriver::check(CudaResult result, const std::string& what) const {
  if (result == kCudaSuccess) return;
  const char* name = nullptr;
  const char* words = nullptr;
  if (get_error_name(result, &name) != kCudaSuccess || name == nullptr) name = "unknown error";
  if (get_error_string(result, &words) != kCudaSuccess || words == nullptr) words = "";
  throw DeviceError("CUDA: " + what + ": " + name + " (" + std::to_string(result) + ")" +
                    (*words != '\0' ? std::string(", ") + words : ""));
}

}  // namespace headrace::transport
