#include "headrace/profile/segment_image.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "headrace/profile/errors.h"

namespace headrace::profile {

/// Fresh pages from the system: only what is read is ever touched.
struct SegmentImage::Buffer {
  explicit Buffer(std::size_t bytes) : size(bytes) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
  }
  ~Buffer() { munmap(base, size); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  char* at(std::uint64_t offset) const { return static_cast<char*>(base) + offset; }

  void* base = nullptr;
  std::size_t size;
};

/// Where bytes come from: a file, or this process's own mapping.
class SegmentImage::Source {
 public:
  Source(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  Source(const void* data, std::size_t size) : data_(static_cast<const char*>(data)), size_(size) {}

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
      const ssize_t got = pread(fd_, static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail(std::strerror(errno));
      if (got == 0) fail("cut off at byte " + std::to_string(offset + done));
      done += static_cast<std::uint64_t>(got);
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw SegmentError((name_.empty() ? "segment" : name_) + ": " + why);
  }

 private:
  /// Word by word, so that a cell's value is never torn while its writer goes on.
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

void SegmentImage::read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw SegmentError(path + ": " + std::strerror(errno));
  path_ = path;
  try {
    read(Source(fd, path));
  } catch (...) {
    close(fd);
    throw;
  }
  close(fd);
}

void SegmentImage::read_memory(const void* data, std::size_t size) { read(Source(data, size)); }

void SegmentImage::read(const Source& source) {
  const std::uint64_t size = source.size();
  const Layout expected = Layout::current();
  if (size < sizeof(SegmentHeader)) source.fail("too short for a segment (" + std::to_string(size) + " bytes)");
  SegmentHeader header;
  source.read(0, sizeof(header), static_cast<void*>(&header));
  if (header.magic != kMagic) source.fail("no Headrace segment (wrong magic number at byte 0)");
  if (header.byte_order != kByteOrder) source.fail("written on a machine of the other byte order");
  if (header.layout_version != kLayoutVersion) {
    source.fail("layout version " + std::to_string(header.layout_version) + ", this Headrace reads version " +
                std::to_string(kLayoutVersion));
  }
  if (header.checksum != header_checksum(header)) source.fail("header is damaged (checksum)");
  if (header.total_bytes != expected.total_bytes ||
      std::memcmp(header.sections.data(), expected.sections.data(), sizeof(header.sections)) != 0) {
    source.fail("sections do not lie where version " + std::to_string(kLayoutVersion) + " puts them");
  }
  if (size != header.total_bytes) {
    source.fail("cut off at byte " + std::to_string(size) + " of " + std::to_string(header.total_bytes));
  }
  // A buffer that is used again may hold records which are free by now: start from fresh pages.
  buffer_ = std::make_unique<Buffer>(expected.total_bytes);

  const auto read_range = [&](Section which, std::uint32_t count) {
    const SectionInfo& info = expected.sections[static_cast<std::size_t>(which)];
    count = std::min(count, info.count);
    source.read(info.offset, std::uint64_t{info.stride} * count, buffer_->at(info.offset));
  };
  source.read(0, sizeof(SegmentHeader), buffer_->base);
  std::memcpy(buffer_->base, static_cast<const void*>(&header), offsetof(SegmentHeader, loop_clock));
  const auto& marks = *static_cast<const SegmentHeader*>(buffer_->base);
  for (const Section which :
       {Section::loaders, Section::operators, Section::queues, Section::workers, Section::cells}) {
    read_range(which, marks.high_water[static_cast<std::size_t>(which)].load(std::memory_order_relaxed));
  }
  read_range(Section::bins, marks.bins_used.load(std::memory_order_relaxed));
  read_range(Section::host, 1);
  settle_groups(source);
}

// The worker's lock was read before its operator cells; if it still holds the same even number now, the group is one
// moment. Else the heads (a few hundred bytes) are read again; histograms may run one item ahead, which readers allow.
void SegmentImage::settle_groups(const Source& source) {
  constexpr int kTries = 4;
  constexpr std::uint64_t kWorkerHead = offsetof(metrics::WorkerCell, windows);
  constexpr std::uint64_t kCellHead = offsetof(metrics::OperatorCell, service);
  const SectionInfo& worker_info = header().sections[static_cast<std::size_t>(Section::workers)];
  const SectionInfo& cell_info = header().sections[static_cast<std::size_t>(Section::cells)];
  const auto all_cells = cells();
  const auto all_workers = workers();
  const auto settled = [&](std::uint64_t offset, const metrics::WorkerCell& copy) {
    alignas(8) std::array<char, 8> word{};
    source.read(offset + offsetof(metrics::WorkerCell, lock), word.size(), word.data());
    metrics::Seqlock now;
    std::memcpy(static_cast<void*>(&now), word.data(), sizeof(now));
    return now.read_valid(copy.lock.read_begin());
  };
  for (std::uint32_t worker = 0; worker < all_workers.size(); ++worker) {
    const metrics::WorkerCell& copy = all_workers[worker];
    if (copy.life.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(metrics::WorkerLife::live)) continue;
    const std::uint64_t offset = worker_info.offset + std::uint64_t{worker_info.stride} * worker;
    for (int attempt = 0; attempt < kTries && !settled(offset, copy); ++attempt) {
      source.read(offset, kWorkerHead, buffer_->at(offset));
      for (std::uint32_t i = 0; i < all_cells.size(); ++i) {
        if (all_cells[i].owner.load() != worker + 1) continue;
        const std::uint64_t at = cell_info.offset + std::uint64_t{cell_info.stride} * i;
        source.read(at, kCellHead, buffer_->at(at));
      }
    }
  }
}

SegmentImage SegmentImage::clone() const {
  SegmentImage copy;
  copy.path_ = path_;
  if (buffer_ != nullptr) copy.read(Source(buffer_->base, buffer_->size));
  return copy;
}

const SegmentHeader& SegmentImage::header() const noexcept {
  return *static_cast<const SegmentHeader*>(buffer_->base);
}

template <class T>
std::span<const T> SegmentImage::section(Section which) const noexcept {
  const SectionInfo& info = header().sections[static_cast<std::size_t>(which)];
  return {reinterpret_cast<const T*>(buffer_->at(info.offset)), info.count};
}

std::span<const LoaderRecord> SegmentImage::loaders() const noexcept {
  return section<LoaderRecord>(Section::loaders);
}
std::span<const OperatorRecord> SegmentImage::operators() const noexcept {
  return section<OperatorRecord>(Section::operators);
}
std::span<const QueueRecord> SegmentImage::queues() const noexcept { return section<QueueRecord>(Section::queues); }
std::span<const metrics::WorkerCell> SegmentImage::workers() const noexcept {
  return section<metrics::WorkerCell>(Section::workers);
}
std::span<const metrics::OperatorCell> SegmentImage::cells() const noexcept {
  return section<metrics::OperatorCell>(Section::cells);
}
std::span<const metrics::Relaxed<std::int64_t>> SegmentImage::bins() const noexcept {
  return section<metrics::Relaxed<std::int64_t>>(Section::bins);
}
const metrics::HostCell& SegmentImage::host() const noexcept {
  return section<metrics::HostCell>(Section::host).front();
}

}  // namespace headrace::profile
