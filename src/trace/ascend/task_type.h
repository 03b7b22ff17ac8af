// What a task of the device is, as its type says.
#pragma once

#include <string_view>

namespace headrace::trace::ascend {

/// The category (`categories.h`) of a task on the device's own rows. `type`: "AI_CORE", "MIX_AIV",
/// "KERNEL_AIVEC", "EVENT_WAIT_SQE", ...; a kernel is known by its type, copies and fills by type or name.
/// Types that are not known here are kTask, which counts as no work.
std::string_view category_of_task(std::string_view type, std::string_view name) noexcept;

/// "Memcpy HtoD" for "host to device", also "HtoH", "DtoH" and "DtoD"; empty for anything else.
std::string_view name_of_copy(std::string_view direction) noexcept;

}  // namespace headrace::trace::ascend
