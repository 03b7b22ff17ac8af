#include "headrace/profile/segment_image.h"

#include <isa-l/igzip_lib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <vector>

#include "headrace/profile/errors.h"
#include "profile/file_calls.h"
#include "profile/pages.h"
#include "profile/record_life.h"

namespace headrace::profile {

/// Pages from the system: zero until they are written, and only what is read is ever touched.
struct SegmentImage::Buffer {
  explicit Buffer(std::size_t bytes) : pages(bytes), base(pages.data()), size(bytes) {}
  char* at(std::uint64_t offset) const { return static_cast<char*>(base) + offset; }
  std::uint64_t offset_of(const void* copy) const {
    return static_cast<std::uint64_t>(static_cast<const char*>(copy) - static_cast<const char*>(base));
  }

  ZeroPages pages;
  void* base;
  std::size_t size;
  std::array<std::uint32_t, kSections> counts{};  ///< records held per section; behind them all is zero
};

/// Source of bytes: a file, or this process's own mapping.
class SegmentImage::SegmentBytes {
 public:
  SegmentBytes(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  SegmentBytes(const void* data, std::size_t size, std::string name = "")
      : name_(std::move(name)), data_(static_cast<const char*>(data)), size_(size) {}

  std::uint64_t size() const {
    if (data_ != nullptr) return size_;
    struct stat info{};
    if (fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) fail("not a regular file");
    return static_cast<std::uint64_t>(info.st_size);
  }

  void read(std::uint64_t offset, std::uint64_t bytes, void* to) const {
    if (data_ != nullptr) {
      copy_words(data_ + offset, bytes, to);
      return;
    }
    std::uint64_t done = 0;
    while (done < bytes) {
      const ssize_t got =
          pread(fd_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(std::strerror(errno));
      if (got == 0) fail("cut off at byte " + std::to_string(offset + done));
      done += static_cast<std::uint64_t>(got);
    }
  }

  /// A copy, which begins as gzip does.
  bool is_packed() const {
    std::array<unsigned char, 2> begin{};
    if (size() < begin.size()) return false;
    read(0, begin.size(), begin.data());
    return begin[0] == 0x1f && begin[1] == 0x8b;
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw SegmentError((name_.empty() ? "segment" : name_) + ": " + why);
  }

 private:
  /// Word by word, so that a cell's value is never torn while its writer goes on. `bytes` is a multiple of 8.
  static void copy_words(const char* from, std::uint64_t bytes, void* to) {
    auto* target = static_cast<std::uint64_t*>(to);
    const auto* source = reinterpret_cast<const std::uint64_t*>(from);
    for (std::uint64_t i = 0; i < bytes / 8; ++i) target[i] = __atomic_load_n(source + i, __ATOMIC_RELAXED);
  }

  int fd_ = -1;
  std::string name_;
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

SegmentImage::SegmentImage() = default;
SegmentImage::~SegmentImage() = default;
SegmentImage::SegmentImage(SegmentImage&&) noexcept = default;
SegmentImage& SegmentImage::operator=(SegmentImage&&) noexcept = default;

bool SegmentImage::empty() const noexcept { return buffer_ == nullptr; }

namespace {

// By thread: a lock could be held by another one when the process forks.
thread_local std::map<std::string, std::string> copies;

}  // namespace

void SegmentImage::expect_copy(const std::string& live_path, const std::string& copy_path) {
  copies[live_path] = copy_path;
}

void SegmentImage::read_file(const std::string& path) {
  constexpr int kReading = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  int fd = open(path.c_str(), kReading);
  if (const auto copy = copies.find(path); fd < 0 && errno == ENOENT && copy != copies.end())
    fd = open(copy->second.c_str(), kReading);
  if (fd < 0) throw SegmentError(path + ": " + std::strerror(errno));
  const Descriptor file(fd);
  read_descriptor(fd, path);
}

void SegmentImage::read_descriptor(int fd, const std::string& name) {
  path_ = name;
  const SegmentBytes file(fd, name);
  if (!file.is_packed()) {
    read(file);
    return;
  }
  const Buffer unpacked(kLayout.total_bytes);
  const std::size_t bytes = unpack(file, unpacked);
  read(SegmentBytes(unpacked.base, bytes, name));
}

// A copy that is larger than the segment itself is none of ours: it is not read to its end.
std::size_t SegmentImage::unpack(const SegmentBytes& file, const Buffer& into) {
  const std::uint64_t packed_bytes = file.size();
  if (packed_bytes > into.size) file.fail("too long for a copy of a segment");
  std::vector<unsigned char> packed(packed_bytes);
  file.read(0, packed_bytes, packed.data());
  inflate_state stream;
  isal_inflate_init(&stream);
  stream.crc_flag = ISAL_GZIP;
  stream.next_in = packed.data();
  stream.avail_in = static_cast<std::uint32_t>(packed.size());
  stream.next_out = static_cast<unsigned char*>(into.base);
  stream.avail_out = static_cast<std::uint32_t>(into.size);
  const int result = isal_inflate(&stream);
  const std::string at = std::to_string(packed.size() - stream.avail_in);
  if (result == ISAL_INCORRECT_CHECKSUM) file.fail("damaged (its checksum does not fit)");
  if (result != ISAL_DECOMP_OK) file.fail("damaged at byte " + at);
  const std::size_t bytes = into.size - stream.avail_out;
  if (stream.block_state != ISAL_BLOCK_FINISH) {
    SegmentHeader header;  // another version's segment may be longer
    if (bytes >= sizeof(header)) read_header(SegmentBytes(into.base, bytes, path_), header);
    file.fail("cut off at byte " + at);
  }
  return bytes;
}

std::vector<unsigned char> SegmentImage::pack() const {
  constexpr std::size_t kOverhead = std::size_t{64}
                                    << 10;  // of stored blocks, should nothing be compressible
  std::vector<unsigned char> level_buffer(ISAL_DEF_LVL1_DEFAULT);
  // Not a vector: most of it is never touched.
  const std::size_t room = buffer_->size + kOverhead;
  const auto packed = std::make_unique_for_overwrite<unsigned char[]>(room);
  isal_zstream stream;
  isal_deflate_stateless_init(&stream);
  stream.gzip_flag = IGZIP_GZIP;
  stream.level = 1;
  stream.level_buf = level_buffer.data();
  stream.level_buf_size = static_cast<std::uint32_t>(level_buffer.size());
  stream.end_of_stream = 1;
  stream.next_in = static_cast<unsigned char*>(buffer_->base);
  stream.avail_in = static_cast<std::uint32_t>(buffer_->size);
  stream.next_out = packed.get();
  stream.avail_out = static_cast<std::uint32_t>(room);
  if (isal_deflate_stateless(&stream) != COMP_OK) throw SegmentError(path_ + ": could not be compressed");
  return {packed.get(), packed.get() + stream.total_out};
}

void SegmentImage::read_memory(const void* data, std::size_t size) { read(SegmentBytes(data, size)); }

void SegmentImage::read_header(const SegmentBytes& source, SegmentHeader& header) {
  const std::uint64_t size = source.size();
  if (size < sizeof(SegmentHeader))
    source.fail("too short for a segment (" + std::to_string(size) + " bytes)");
  source.read(0, sizeof(header), static_cast<void*>(&header));
  if (header.magic != kMagic) source.fail("no Headrace segment (wrong magic number at byte 0)");
  if (header.byte_order != kByteOrder) source.fail("written on a machine of the other byte order");
  if (header.layout_version != kLayoutVersion) {
    source.fail("written by another version of Headrace (layout " + std::to_string(header.layout_version) +
                ", this one reads " + std::to_string(kLayoutVersion) +
                "): read it with the version that recorded it");
  }
}

void SegmentImage::read(const SegmentBytes& source) {
  const std::uint64_t size = source.size();
  SegmentHeader header;
  read_header(source, header);
  if (header.checksum != header_checksum(header)) source.fail("header is damaged (checksum)");
  if (header.total_bytes != kLayout.total_bytes ||
      std::memcmp(header.sections.data(), kLayout.sections.data(), sizeof(header.sections)) != 0) {
    source.fail("sections do not lie where version " + std::to_string(kLayoutVersion) + " puts them");
  }
  if (size != header.total_bytes) {
    source.fail("cut off at byte " + std::to_string(size) + " of " + std::to_string(header.total_bytes));
  }
  try {
    read_records(source, header);
  } catch (...) {
    buffer_.reset();
    throw;
  }
}

void SegmentImage::read_records(const SegmentBytes& source, const SegmentHeader& header) {
  std::array<std::uint32_t, kSections> counts{};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < kSections; ++i) {
    std::uint32_t wanted = header.high_water[i].load(std::memory_order_relaxed);
    if (i == static_cast<std::size_t>(Section::bins))
      wanted = header.bins_used.load(std::memory_order_relaxed);
    if (i == static_cast<std::size_t>(Section::host)) wanted = 1;
    if (i == static_cast<std::size_t>(Section::words))
      wanted = header.words_used.load(std::memory_order_relaxed);
    if (i >= static_cast<std::size_t>(Section::tracks) && !with_history_) wanted = 0;
    if (i == static_cast<std::size_t>(Section::remote_traffic)) wanted = 0;  // of use while it runs
    counts[i] = std::min(wanted, kLayout.sections[i].count);
    bytes += std::uint64_t{kLayout.sections[i].stride} * counts[i];
  }
  if (buffer_ == nullptr) {
    buffer_ = std::make_unique<Buffer>(kLayout.total_bytes);
    buffer_->pages.expect(bytes);
  }
  std::memcpy(buffer_->base, static_cast<const void*>(&header), sizeof(header));
  for (std::size_t i = 0; i < kSections; ++i) {
    const SectionInfo& info = kLayout.sections[i];
    source.read(info.offset, std::uint64_t{info.stride} * counts[i], buffer_->at(info.offset));
    // Records of an earlier read that this segment does not have.
    if (counts[i] < buffer_->counts[i]) {
      std::memset(buffer_->at(info.offset + std::uint64_t{info.stride} * counts[i]), 0,
                  std::size_t{info.stride} * (buffer_->counts[i] - counts[i]));
    }
    buffer_->counts[i] = counts[i];
  }
  settle_groups(source);
}

// A group's lock was read before the rest of the group; if it still holds the same even number now, the copy
// is of one moment. Else the group's heads (a few hundred bytes) are read again, and its windows where they
// moved on meanwhile; histograms may run one item ahead, which readers allow. A group whose writer died
// inside it never settles.
template <class ReadAgain>
void SegmentImage::settle(const SegmentBytes& source, const metrics::Seqlock& lock, ReadAgain&& read_again) {
  constexpr int kTries = 4;
  const std::uint64_t offset = buffer_->offset_of(&lock);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    // Eight bytes, as memory is read by words.
    alignas(8) std::array<char, 8> word{};
    source.read(offset / 8 * 8, word.size(), word.data());
    metrics::Seqlock now;
    std::memcpy(static_cast<void*>(&now), word.data() + offset % 8, sizeof(now));
    if (now.read_valid(lock.read_begin())) return;
    read_again();
  }
}

void SegmentImage::settle_groups(const SegmentBytes& source) {
  const auto again = [&](const void* copy, std::uint64_t bytes) {
    const std::uint64_t offset = buffer_->offset_of(copy);
    source.read(offset, bytes, buffer_->at(offset));
  };
  const auto same_windows = [](const metrics::WindowGrid& grid, std::uint32_t closed,
                               std::uint32_t doublings) {
    return grid.closed.load() == closed && grid.doublings.load() == doublings;
  };
  std::array<std::vector<const metrics::OperatorCell*>, kMaxWorkers> owned;
  for (const metrics::OperatorCell& cell : cells()) {
    if (cell.owner.load() - 1 < kMaxWorkers) owned[cell.owner.load() - 1].push_back(&cell);
  }
  for (const metrics::WorkerCell& worker : workers()) {
    if (!is_live(worker)) continue;
    settle(source, worker.lock, [&] {
      const std::uint32_t closed = worker.grid.closed.load();
      const std::uint32_t doublings = worker.grid.doublings.load();
      again(&worker, offsetof(metrics::WorkerCell, windows));
      const bool windows_too = !same_windows(worker.grid, closed, doublings);
      if (windows_too) again(&worker.windows, sizeof(worker.windows));
      for (const auto* cell : owned[static_cast<std::size_t>(&worker - workers().data())]) {
        again(cell, offsetof(metrics::OperatorCell, service));
        if (windows_too) again(&cell->windows, sizeof(cell->windows));
      }
    });
  }
  for (const QueueRecord& queue : queues()) {
    const metrics::QueueCell& cell = queue.cell;
    if (queue.life.load(std::memory_order_relaxed) != life_of(RecordLife::live)) continue;
    settle(source, cell.lock, [&] {
      const std::uint32_t closed = cell.grid.closed.load();
      const std::uint32_t doublings = cell.grid.doublings.load();
      again(&cell, offsetof(metrics::QueueCell, put_wait));
      if (!same_windows(cell.grid, closed, doublings)) again(&cell.windows, sizeof(cell.windows));
      const std::uint64_t first = std::min<std::uint64_t>(cell.first_bin.load(), bins().size());
      again(bins().data() + first,
            std::min<std::uint64_t>(cell.bins.load(), bins().size() - first) * sizeof(std::int64_t));
    });
  }
  for (const LoaderRecord& loader : loaders()) {
    if (loader.life.load(std::memory_order_relaxed) != life_of(RecordLife::live)) continue;
    settle(source, loader.sink.lock, [&] { again(&loader.sink, sizeof(loader.sink)); });
  }
  if (with_history_) settle_tracks(source);
}

// A track's head was read before its words, so the words that its count speaks of are there, unless they were
// merged meanwhile (the generation tells). A writer that was killed while it merged never settles.
void SegmentImage::settle_tracks(const SegmentBytes& source) {
  constexpr int kTries = 4;
  for (const metrics::HistoryTrack& track : tracks()) {
    if (track.life.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(metrics::TrackLife::free))
      continue;
    const std::uint64_t offset = buffer_->offset_of(&track);
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const std::uint32_t generation = track.generation.load(std::memory_order_relaxed);
      alignas(64) std::array<char, sizeof(metrics::HistoryTrack)> now{};
      source.read(offset, now.size(), now.data());
      std::uint32_t after = 0;
      std::memcpy(&after, now.data() + offsetof(metrics::HistoryTrack, generation), sizeof(after));
      if (after == generation && generation % 2 == 0) break;
      std::memcpy(buffer_->at(offset), now.data(), now.size());
      const std::uint64_t first = std::min<std::uint64_t>(track.first_word.load(), words().size());
      const std::uint64_t count = std::min<std::uint64_t>(track.capacity.load(), words().size() - first);
      const std::uint64_t words_offset = buffer_->offset_of(words().data() + first);
      source.read(words_offset, count * sizeof(metrics::HistoryWord), buffer_->at(words_offset));
    }
  }
}

SegmentImage SegmentImage::clone() const {
  SegmentImage copy;
  copy.with_history_ = with_history_;
  copy.path_ = path_;
  if (buffer_ != nullptr) copy.read(SegmentBytes(buffer_->base, buffer_->size));
  return copy;
}

const SegmentHeader& SegmentImage::header() const noexcept {
  return *static_cast<const SegmentHeader*>(buffer_->base);
}

}  // namespace headrace::profile
