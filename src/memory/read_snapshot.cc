#include <array>
#include <filesystem>
#include <span>
#include <system_error>

#include "headrace/memory/snapshot.h"
#include "headrace/profile/errors.h"
#include "headrace/trace/gzip_stream.h"
#include "memory/lifetimes.h"
#include "memory/pickle_reader.h"
#include "memory/record_builder.h"

namespace headrace::memory {
namespace {

constexpr std::string_view kArchive = "PK\x03\x04";

/// The first bytes of a stream, then the stream.
class PeekedBytes : public trace::ByteSource {
 public:
  explicit PeekedBytes(trace::ByteSource& source) : source_(source) {
    while (size_ < first_.size()) {
      const std::size_t more = source_.read(std::span(first_).subspan(size_));
      if (more == 0) break;
      size_ += more;
    }
  }

  std::string_view first() const noexcept { return {first_.data(), size_}; }

  std::size_t read(std::span<char> into) override {
    if (given_ == size_) return source_.read(into);
    const std::size_t count = std::min(into.size(), size_ - given_);
    std::copy_n(first_.data() + given_, count, into.data());
    given_ += count;
    return count;
  }

 private:
  trace::ByteSource& source_;
  std::array<char, kArchive.size()> first_{};
  std::size_t size_ = 0;
  std::size_t given_ = 0;
};

bool begins_as_pickle(std::string_view first) noexcept {
  constexpr char kProto = '\x80';
  return first.size() > 1 && first[0] == kProto && first[1] >= 2 && first[1] <= 5;
}

void refuse_others(std::string_view first, const std::string& name) {
  if (first == kArchive)
    throw FormatError(name,
                      "no memory snapshot but an archive, as torch.save writes it; "
                      "torch.cuda.memory._dump_snapshot(path) writes a snapshot");
  if (!first.empty() && !begins_as_pickle(first))
    throw FormatError(name,
                      "no memory snapshot, which is a pickle of protocol 2 to 5: "
                      "torch.cuda.memory._dump_snapshot(path) writes one");
}

}  // namespace

Snapshot read_snapshot(trace::ByteSource& source, const std::string& name) {
  Snapshot snapshot;
  snapshot.path = name;
  trace::GzipStream inflated(source, name);
  PeekedBytes bytes(inflated);
  refuse_others(bytes.first(), name);
  RecordBuilder records(snapshot);
  PickleReader reader(bytes, name, records);
  const char* wrong = nullptr;
  try {
    wrong = records.finish(reader.read());
  } catch (const FormatError&) {
    if (!inflated.damage().empty()) throw FormatError(name, inflated.damage());
    throw;
  }
  if (wrong != nullptr) throw FormatError(name, std::string("a pickle, but not as expected: ") + wrong);
  join_lifetimes(snapshot.events, snapshot.devices);
  return snapshot;
}

Snapshot read_snapshot(const std::string& path) {
  trace::FileBytes file(path);
  return read_snapshot(file, path);
}

bool holds_pickle(const std::string& path) {
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) return false;
  try {
    trace::FileBytes file(path);
    trace::GzipStream inflated(file, path);
    const PeekedBytes bytes(inflated);
    return begins_as_pickle(bytes.first()) || bytes.first() == kArchive;
  } catch (const FormatError&) {
    return false;
  }
}

}  // namespace headrace::memory
