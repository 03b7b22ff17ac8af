#include "trace/whole_file.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "headrace/profile/errors.h"
#include "headrace/trace/gzip_stream.h"

namespace headrace::trace {

std::string read_all(ByteSource& source, std::size_t most, bool& is_more) {
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  for (std::size_t more = 1; more > 0;) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kChunk);
    more = source.read(std::span(bytes).subspan(size));
    bytes.resize(size + more);
    if (bytes.size() > most) {
      is_more = true;
      break;
    }
  }
  return bytes;
}

std::string read_whole(const Input& input, const ReadOptions& options, std::string& damage) {
  // Profiles of this kind shrink to a tenth.
  constexpr std::size_t kMostRatio = 100;
  constexpr std::size_t kAlways = std::size_t{64} << 20;
  std::atomic<std::uint64_t> read = 0;
  const std::unique_ptr<ByteSource> bytes = input.open(&read);
  GzipStream inflated(*bytes, input.path());
  bool is_more = false;
  std::string whole = read_all(inflated, std::max(kAlways, kMostRatio * input.size()), is_more);
  if (options.bytes_read != nullptr) *options.bytes_read += read;
  if (is_more)
    throw FormatError(input.path(), "a profile, but it holds more than a hundred times what it takes");
  damage = inflated.damage();
  return whole;
}

}  // namespace headrace::trace
