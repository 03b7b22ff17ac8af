#include "trace/whole_file.h"

#include <cstddef>
#include <memory>
#include <span>

#include "headrace/trace/gzip_stream.h"

namespace headrace::trace {

std::string read_all(ByteSource& source) {
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  for (std::size_t more = 1; more > 0;) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kChunk);
    more = source.read(std::span(bytes).subspan(size));
    bytes.resize(size + more);
  }
  return bytes;
}

std::string read_whole(const Input& input, const ReadOptions& options, std::string& damage) {
  const std::unique_ptr<ByteSource> bytes = input.open(options.bytes_read);
  GzipStream inflated(*bytes, input.path());
  std::string whole = read_all(inflated);
  damage = inflated.damage();
  return whole;
}

}  // namespace headrace::trace
