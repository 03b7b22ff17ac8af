#include "headrace/profile/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "headrace/profile/errors.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/segment_image.h"

namespace headrace::profile {
namespace {

/// True where a file may grow to `bytes`: writing past the limit (`ulimit -f`) would be a SIGXFSZ, which
/// kills.
bool file_size_allowed(std::size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

/// Maps a new file of `bytes` zeros; null and a reason where that fails.
void* map_new_file(const std::string& path, std::size_t bytes, std::string& reason) {
  if (!file_size_allowed(bytes)) {
    reason = path + ": " + std::strerror(EFBIG);
    return nullptr;
  }
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    reason = path + ": " + std::strerror(errno);
    return nullptr;
  }
  // Every page is allocated here: on a full disk this fails, while a store into a hole would be a SIGBUS.
  const int full = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  void* base = MAP_FAILED;
  if (full == 0) base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) {
    reason = path + ": " + std::strerror(full != 0 ? full : errno);
    ::unlink(path.c_str());
    close(fd);
    return nullptr;
  }
  close(fd);
  return base;
}

void fill_header(SegmentHeader& header, const Layout& layout, int rank) {
  header.magic = kMagic;
  header.layout_version = kLayoutVersion;
  header.byte_order = kByteOrder;
  header.total_bytes = layout.total_bytes;
  header.sections = layout.sections;
  header.clock = metrics::Clock::calibrate();
  const metrics::ClockMoment opened = metrics::Clock::moment();
  header.opened_ns = opened.now_ns;
  header.opened_realtime_ns = opened.realtime_ns;
  header.owner_pid = current_pid();
  header.owner_start = process_start(current_pid());
  header.boot = boot_identity();
  header.rank = rank;
  header.checksum = header_checksum(header);
  header.loop_clock.open(header.opened_ns);
  header.anchors.add(opened);
}

}  // namespace

std::unique_ptr<Segment> Segment::create(const Places& places, int rank) {
  const Layout layout = Layout::current();
  std::string trouble;
  void* base = nullptr;
  std::string path;
  for (const std::string* candidate : {&places.first, &places.second}) {
    if (candidate->empty() || base != nullptr) continue;
    std::string reason;
    base = map_new_file(*candidate, layout.total_bytes, reason);
    if (base != nullptr) {
      path = *candidate;
    } else {
      trouble += (trouble.empty() ? "" : "; ") + reason;
    }
  }
  if (base == nullptr) {
    base = mmap(nullptr, layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
  }
  std::unique_ptr<Segment> segment(new Segment(base, layout.total_bytes, path));
  segment->trouble_ = path.empty() ? trouble : "";
  fill_header(segment->header(), layout, rank);
  return segment;
}

std::unique_ptr<Segment> Segment::attach(const std::string& path) {
  SegmentImage check;
  check.read_file(path);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) throw SegmentError(path + ": " + std::strerror(errno));
  const std::size_t bytes = check.header().total_bytes;
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != static_cast<off_t>(bytes)) {
    close(fd);
    throw SegmentError(path + ": replaced while it was opened");
  }
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int error = errno;
  close(fd);
  if (base == MAP_FAILED) throw SegmentError(path + ": " + std::strerror(error));
  metrics::Clock::adopt(static_cast<SegmentHeader*>(base)->clock);
  return std::unique_ptr<Segment>(new Segment(base, bytes, path));
}

metrics::HistoryStore Segment::history() noexcept {
  return {section<metrics::HistoryTrack>(Section::tracks),
          kMaxTracks,
          &header().high_water[static_cast<std::size_t>(Section::tracks)],
          section<metrics::HistoryWord>(Section::words),
          kHistoryWords,
          &header().words_used};
}

Segment::~Segment() { munmap(base_, size_); }

void Segment::unlink() noexcept {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::string Segment::copy_to(const std::string& path) noexcept try {
  SegmentImage image;
  image.include_history();
  image.read_memory(base_, size_);
  if (!file_size_allowed(size_)) return path + ": " + std::strerror(EFBIG);
  const std::string beside = path + ".tmp" + std::to_string(current_pid());
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return path + ": " + std::strerror(errno);
  std::string reason;
  const auto write_part = [&](const void* from, std::size_t bytes) {
    const auto offset = static_cast<const char*>(from) - reinterpret_cast<const char*>(&image.header());
    std::size_t done = 0;
    while (reason.empty() && done < bytes) {
      const ssize_t wrote = pwrite(fd, static_cast<const char*>(from) + done, bytes - done,
                                   static_cast<off_t>(offset + static_cast<std::ptrdiff_t>(done)));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) reason = path + ": " + std::strerror(errno);
      if (wrote > 0) done += static_cast<std::size_t>(wrote);
    }
  };
  if (ftruncate(fd, static_cast<off_t>(size_)) != 0) reason = path + ": " + std::strerror(errno);
  write_part(&image.header(), sizeof(SegmentHeader));
  const auto write_live = [&](const auto& records, const auto& live) {
    for (const auto& record : records) {
      if (live(record)) write_part(&record, sizeof(record));
    }
  };
  const auto named = [](const auto& record) { return record.life.load(std::memory_order_relaxed) != 0; };
  write_live(image.loaders(), named);
  write_live(image.operators(), named);
  write_live(image.queues(), named);
  write_live(image.workers(), named);
  write_live(image.cells(), [](const metrics::OperatorCell& cell) { return cell.owner.load() != 0; });
  write_part(image.bins().data(),
             std::min<std::size_t>(image.header().bins_used.load(), kMaxBins) * sizeof(std::int64_t));
  write_part(&image.host(), sizeof(metrics::HostCell));
  write_live(image.tracks(), named);
  write_part(image.words().data(), std::min<std::size_t>(image.header().words_used.load(), kHistoryWords) *
                                       sizeof(metrics::HistoryWord));
  write_live(image.annotations(), named);
  if (close(fd) != 0 && reason.empty()) reason = path + ": " + std::strerror(errno);
  if (reason.empty() && rename(beside.c_str(), path.c_str()) != 0)
    reason = path + ": " + std::strerror(errno);
  if (!reason.empty()) ::unlink(beside.c_str());
  return reason;
} catch (const std::exception& error) {
  return error.what();
}

}  // namespace headrace::profile
