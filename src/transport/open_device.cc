#include <charconv>

#include "headrace/profile/errors.h"
#include "headrace/transport/cuda_device.h"
#include "headrace/transport/device.h"
#include "headrace/transport/host_device.h"

namespace headrace::transport {
namespace {

/// The number in "cuda:1", 0 for "cuda"; below 0 if it is no such name.
int cuda_index(std::string_view name) {
  constexpr std::string_view kPrefix = "cuda";
  if (name.substr(0, kPrefix.size()) != kPrefix) return -1;
  name.remove_prefix(kPrefix.size());
  if (name.empty()) return 0;
  int index = -1;
  const char* const end = name.data() + name.size();
  // Digits alone: from_chars would take a sign.
  if (name.size() < 2 || name[0] != ':' || name[1] < '0' || name[1] > '9') return -1;
  const auto [last, error] = std::from_chars(name.data() + 1, end, index);
  return error == std::errc() && last == end ? index : -1;
}

/// CUDA devices, or why there are none.
int count_cuda(const DeviceOptions& options, std::string& why_none) {
  try {
    return CudaDriver::load(options.cuda_library)->devices();
  } catch (const DeviceError& error) {
    why_none = error.what();
    return 0;
  }
}

std::vector<std::string> names(int cuda_devices) {
  std::vector<std::string> there{"cpu"};
  for (int i = 0; i < cuda_devices; ++i) there.push_back("cuda:" + std::to_string(i));
  return there;
}

}  // namespace

std::vector<std::string> available_devices(const DeviceOptions& options) {
  std::string why_none;
  return names(count_cuda(options, why_none));
}

std::shared_ptr<Device> open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "cpu") return std::make_shared<HostDevice>(options);
  std::string why_none;
  const int cuda_devices = count_cuda(options, why_none);
  const int index = cuda_index(name);
  if (index >= 0 && index < cuda_devices) return std::make_shared<CudaDevice>(index, options);
  std::string there;
  for (const std::string& one : names(cuda_devices)) there += (there.empty() ? "" : ", ") + one;
  const bool asked_for_cuda = name.substr(0, 4) == "cuda";
  throw DeviceError("no device \"" + std::string(name) + "\" here; there is: " + there +
                    (asked_for_cuda && !why_none.empty() ? " (" + why_none + ")" : ""));
}

}  // namespace headrace::transport
