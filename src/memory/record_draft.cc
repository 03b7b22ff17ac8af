#include "memory/record_draft.h"

#include <algorithm>
#include <utility>

namespace headrace::memory {
namespace {

constexpr std::array<std::pair<std::string_view, RecordKey>, 27> kKeys = {{
    {"action", RecordKey::action},
    {"addr", RecordKey::addr},
    {"size", RecordKey::size},
    {"stream", RecordKey::stream},
    {"time_us", RecordKey::time_us},
    {"frames", RecordKey::frames},
    {"device_free", RecordKey::device_free},
    {"filename", RecordKey::filename},
    {"line", RecordKey::line},
    {"name", RecordKey::name},
    {"device", RecordKey::device},
    {"address", RecordKey::address},
    {"total_size", RecordKey::total_size},
    {"allocated_size", RecordKey::allocated_size},
    {"active_size", RecordKey::active_size},
    {"requested_size", RecordKey::requested_size},
    {"segment_pool_id", RecordKey::segment_pool_id},
    {"is_expandable", RecordKey::is_expandable},
    {"blocks", RecordKey::blocks},
    {"state", RecordKey::state},
    {"stage", RecordKey::stage},
    {"segments", RecordKey::segments},
    {"device_traces", RecordKey::device_traces},
    {"external_annotations", RecordKey::external_annotations},
    {"expandable_segments", RecordKey::expandable_segments},
    {"PYTORCH_CUDA_ALLOC_CONF", RecordKey::alloc_conf},
    {"PYTORCH_ALLOC_CONF", RecordKey::alloc_conf},
}};

}  // namespace

RecordKey key_named(std::string_view text) noexcept {
  const auto known =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const auto& key) { return key.first == text; });
  return known == kKeys.end() ? RecordKey::unknown : known->second;
}

}  // namespace headrace::memory
