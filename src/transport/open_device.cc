#include "headrace/profile/errors.h"
#include "headrace/transport/device.h"
#include "headrace/transport/host_device.h"

namespace headrace::transport {

std::vector<std::string> available_devices(const DeviceOptions&) { return {"cpu"}; }

std::shared_ptr<Device> open_device(std::string_view name, const DeviceOptions& options) {
  if (name == "cpu") return std::make_shared<HostDevice>(options);
  std::string there;
  for (const std::string& one : available_devices(options)) there += (there.empty() ? "" : ", ") + one;
  throw DeviceError("no device \"" + std::string(name) + "\" here; there is: " + there);
}

}  // namespace headrace::transport
