#include "profile/recording/segment_copy.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "headrace/profile/errors.h"
#include "headrace/profile/output_file.h"

namespace headrace::profile {

bool file_size_allowed(std::size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

void write_copy(const SegmentImage& image, const std::string& path) {
  const std::vector<unsigned char> packed = image.pack();
  if (!file_size_allowed(packed.size())) throw Error(path + ": " + std::strerror(EFBIG));
  OutputFile file(path);
  file.write(packed.data(), packed.size());
  file.commit();
}

}  // namespace headrace::profile
