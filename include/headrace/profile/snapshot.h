// From a segment image to a Profile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/profile/profile.h"
#include "headrace/profile/segment_image.h"

namespace headrace::profile {

/// A loader that a segment holds.
struct LoaderSummary {
  std::uint32_t index = 0;
  std::string name;
  std::uint64_t steps = 0;
  double wait_s = 0;  ///< GetNext, first batches of epochs included, without that of loaders inside it
  double first_batches_s = 0;  ///< the part of it for these
  double compute_s = 0;
  std::uint64_t epochs = 0;
  bool superseded = false;  ///< it goes on in another record, with other parameters
};

/// The loaders of a segment, the one that waited most first; those that go on in another record come last.
std::vector<LoaderSummary> list_loaders(const SegmentImage& image);

/// The profile of one loader. `since`: an earlier image of the same segment; only what happened after it
/// counts. Never throws for what the image holds: absurd records are left out or cut to what is possible.
Profile read_profile(const SegmentImage& image, std::uint32_t loader, const SegmentImage* since = nullptr);

}  // namespace headrace::profile
