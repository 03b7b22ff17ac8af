#include "headrace/profile/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "headrace/metrics/page_backing.h"
#include "headrace/profile/errors.h"
#include "headrace/profile/output_file.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/segment_image.h"

namespace headrace::profile {
namespace {

/// True if a file may grow to `bytes`: writing past the limit (`ulimit -f`) would be a SIGXFSZ, which
/// kills.
bool file_size_allowed(std::size_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

/// Header and the small tables that every run uses.
bool back_common_tables(void* base) {
  if (!metrics::back_pages(base, sizeof(SegmentHeader))) return false;
  for (const Section section : {Section::operators, Section::host, Section::tracks, Section::annotations}) {
    const SectionInfo& info = info_of(section);
    if (!metrics::back_pages(static_cast<char*>(base) + info.offset, std::size_t{info.stride} * info.count))
      return false;
  }
  return true;
}

/// True if the file system of `path` has so much room that the segment takes nothing that somebody else
/// needs: worker processes hand batches over in /dev/shm, of which a container has 64 MB by default.
bool has_room(const std::string& path, std::size_t bytes) {
  constexpr std::uint64_t kTimes = 16;
  struct statvfs info{};
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  if (statvfs(folder.c_str(), &info) != 0) return true;  // opening the file will say why
  return std::uint64_t{info.f_bavail} * info.f_frsize / kTimes >= bytes;
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
  const auto length = static_cast<off_t>(bytes);
  // All pages are allocated now if single ones cannot be later: a store into a hole may be a SIGBUS.
  int error = 0;
  if (metrics::can_back_pages()) {
    if (ftruncate(fd, length) != 0) error = errno;
  } else {
    error = posix_fallocate(fd, 0, length);
  }
  void* base = MAP_FAILED;
  if (error == 0) {
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) error = errno;
  }
  close(fd);
  if (base != MAP_FAILED && !back_common_tables(base)) {
    munmap(base, bytes);
    base = MAP_FAILED;
    error = ENOSPC;
  }
  if (base != MAP_FAILED) return base;
  reason = path + ": " + std::strerror(error);
  ::unlink(path.c_str());
  return nullptr;
}

/// Distinguishes segments; cannot be guessed. Never 0.
std::uint64_t random_identity() {
  std::uint64_t identity = 0;
  if (getrandom(&identity, sizeof(identity), GRND_NONBLOCK) != sizeof(identity)) {
    identity = static_cast<std::uint64_t>(metrics::Clock::now_ns()) ^ process_start(current_pid()) << 40;
  }
  return identity == 0 ? 1 : identity;
}

void fill_header(SegmentHeader& header, int rank) {
  header.magic = kMagic;
  header.layout_version = kLayoutVersion;
  header.byte_order = kByteOrder;
  header.total_bytes = kLayout.total_bytes;
  header.sections = kLayout.sections;
  header.clock = metrics::Clock::calibrate();
  const metrics::ClockMoment opened = metrics::Clock::moment();
  header.opened_ns = opened.now_ns;
  header.opened_realtime_ns = opened.realtime_ns;
  header.owner_pid = current_pid();
  header.owner_start = process_start(current_pid());
  header.boot = boot_identity();
  header.pid_namespace = pid_namespace();
  header.identity = random_identity();
  header.rank = rank;
  header.checksum = header_checksum(header);
  header.loop_clock.open(header.opened_ns);
  header.anchors.add(opened);
}

}  // namespace

std::unique_ptr<Segment> Segment::create(const Places& places, int rank) {
  std::string problem;
  void* base = nullptr;
  std::string path;
  for (const std::string* candidate : {&places.first, &places.second}) {
    if (candidate->empty() || base != nullptr) continue;
    std::string reason;
    if (candidate == &places.first && !has_room(*candidate, kLayout.total_bytes)) {
      reason = candidate->substr(0, candidate->rfind('/', candidate->rfind('/') - 1)) + " is short of room";
    } else {
      base = map_new_file(*candidate, kLayout.total_bytes, reason);
    }
    if (base != nullptr) {
      path = *candidate;
    } else {
      problem += (problem.empty() ? "" : "; ") + reason;
    }
  }
  if (base == nullptr) {
    base = mmap(nullptr, kLayout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    path.clear();
  }
  std::unique_ptr<Segment> segment(new Segment(base, kLayout.total_bytes, path));
  segment->problem_ = problem;
  segment->header().in_memory.store(path.empty() ? 1 : 0);
  fill_header(segment->header(), rank);
  return segment;
}

std::unique_ptr<Segment> Segment::attach(const std::string& path) {
  SegmentImage check;
  check.read_file(path);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) throw SegmentError(path + ": " + std::strerror(errno));
  const std::size_t bytes = check.header().total_bytes;
  struct stat info{};
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

bool Segment::back_record(Section section, std::uint32_t index) noexcept {
  const SectionInfo& info = info_of(section);
  return metrics::back_pages(static_cast<char*>(base_) + info.offset + std::size_t{info.stride} * index,
                             info.stride);
}

std::string Segment::copy_to(const std::string& path) noexcept try {
  SegmentImage image;
  image.include_history();
  image.read_memory(base_, size_);
  write_copy(image, path);
  return "";
} catch (const std::exception& error) {
  return error.what();
}

bool read_header(int fd, SegmentHeader& header) noexcept {
  return pread(fd, static_cast<void*>(&header), sizeof(header), 0) == sizeof(header) &&
         header.magic == kMagic && header.layout_version == kLayoutVersion &&
         header.checksum == header_checksum(header);
}

void write_copy(const SegmentImage& image, const std::string& path) {
  const std::vector<unsigned char> packed = image.pack();
  if (!file_size_allowed(packed.size())) throw Error(path + ": " + std::strerror(EFBIG));
  OutputFile file(path);
  file.write(packed.data(), packed.size());
  file.commit();
}

}  // namespace headrace::profile
