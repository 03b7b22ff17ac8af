#include "trace/whole_file.h"

#include <cstddef>
#include <span>

#include "headrace/trace/gzip_stream.h"

namespace headrace::trace {

std::string read_whole_file(const std::string& path, const ReadOptions& options, std::string& damage) {
  FileBytes file(path, options.bytes_read);
  GzipStream inflated(file, path);
  std::string bytes;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  for (std::size_t more = 1; more > 0;) {
    const std::size_t size = bytes.size();
    bytes.resize(size + kChunk);
    more = inflated.read(std::span(bytes).subspan(size));
    bytes.resize(size + more);
  }
  damage = inflated.damage();
  return bytes;
}

}  // namespace headrace::trace
