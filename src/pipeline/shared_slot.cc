#include "headrace/pipeline/shared_slot.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "headrace/profile/errors.h"
#include "headrace/profile/process_identity.h"

namespace headrace::pipeline {
namespace {

enum State : std::uint32_t { free_state, claimed_state, retired_state };

std::atomic_ref<std::uint32_t> state_of(void* mapping) noexcept {
  return std::atomic_ref<std::uint32_t>(*static_cast<std::uint32_t*>(mapping));
}

[[noreturn]] void fail(const std::string& what) {
  throw Error("shared memory: " + what + " (" + std::strerror(errno) + ")");
}

/// All pages at once: one by one they are faulted in at half the speed.
void* map(int fd, std::int64_t bytes) {
  void* mapping = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_POPULATE, fd, 0);
  if (mapping == MAP_FAILED) fail("cannot map " + std::to_string(bytes) + " bytes");
  return mapping;
}

/// Items differ in size: rounded up to one of eight steps per octave, so that a slot fits the next item, too.
std::int64_t rounded(std::int64_t bytes) noexcept {
  constexpr std::int64_t kMin = 64 << 10;
  if (bytes <= kMin) return kMin;
  const auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)) / 8);
  return (bytes + step - 1) / step * step;
}

}  // namespace

SharedSlot::SharedSlot(void* mapping, std::int64_t bytes, int descriptor) noexcept
    : mapping_(mapping),
      data_(static_cast<std::byte*>(mapping) + kHeaderBytes, static_cast<std::size_t>(bytes - kHeaderBytes)),
      descriptor_(descriptor) {}

SharedSlot::~SharedSlot() {
  close_descriptor();
  munmap(mapping_, data_.size() + static_cast<std::size_t>(kHeaderBytes));
}

std::shared_ptr<SharedSlot> SharedSlot::create(std::int64_t bytes) {
  const std::int64_t whole = bytes + kHeaderBytes;
  const int fd = memfd_create("headrace", MFD_CLOEXEC);
  if (fd < 0) fail("cannot be made");
  try {
    if (ftruncate(fd, whole) != 0) fail("no room for " + std::to_string(whole) + " bytes");
    void* mapping = map(fd, whole);
    state_of(mapping).store(claimed_state, std::memory_order_relaxed);
    return std::shared_ptr<SharedSlot>(new SharedSlot(mapping, whole, fd));
  } catch (...) {
    close(fd);
    throw;
  }
}

std::shared_ptr<SharedSlot> SharedSlot::attach(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0) fail("cannot be read");
  // The sender's claim of its length is ignored: pages beyond the end would kill their reader.
  if (!S_ISREG(status.st_mode) || status.st_size <= kHeaderBytes)
    throw Error("shared memory: the descriptor that came is of something else");
  return std::shared_ptr<SharedSlot>(new SharedSlot(map(fd, status.st_size), status.st_size, -1));
}

void SharedSlot::close_descriptor() noexcept {
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

bool SharedSlot::claim() noexcept {
  std::uint32_t expected = free_state;
  // Acquire: the reader's last look at the bytes, which its `release` ended, comes before they are written.
  return state_of(mapping_).compare_exchange_strong(expected, claimed_state, std::memory_order_acquire,
                                                    std::memory_order_relaxed);
}

void SharedSlot::release() noexcept {
  // Release: pairs with `claim`.
  state_of(mapping_).store(free_state, std::memory_order_release);
}

bool SharedSlot::retire() noexcept {
  std::uint32_t expected = free_state;
  return state_of(mapping_).compare_exchange_strong(expected, retired_state, std::memory_order_relaxed);
}

bool SharedSlot::retired() const noexcept {
  return state_of(mapping_).load(std::memory_order_relaxed) == retired_state;
}

SlotSender::Claimed SlotSender::claim(std::int64_t bytes) {
  // The one used last is warm; a slot of several times the size would keep that memory for little.
  for (auto known = slots_.rbegin(); known != slots_.rend(); ++known) {
    const auto size = static_cast<std::int64_t>(known->slot->data().size());
    if (size < bytes || size > 4 * rounded(bytes) || !known->slot->claim()) continue;
    Known found = std::move(*known);
    slots_.erase(std::next(known).base());
    slots_.push_back(found);
    return {found.number, std::move(found.slot), false};
  }
  const std::int64_t size = rounded(bytes);
  retire_free_ones(size);
  auto slot = SharedSlot::create(size);
  const std::uint32_t number = next_number_++;
  if (bytes_ + size > most_bytes_) return {number, std::move(slot), true};
  bytes_ += size;
  slots_.push_back({number, slot});
  return {number, std::move(slot), false};
}

void SlotSender::retire_free_ones(std::int64_t needed) noexcept {
  for (auto known = slots_.begin(); known != slots_.end() && bytes_ + needed > most_bytes_;) {
    if (!known->slot->retire()) {
      ++known;
      continue;
    }
    bytes_ -= static_cast<std::int64_t>(known->slot->data().size());
    known = slots_.erase(known);
  }
}

void SlotReceiver::add(std::uint32_t number, int fd) {
  std::erase_if(slots_, [](const Known& known) { return known.slot->retired(); });
  slots_.push_back({number, SharedSlot::attach(fd)});
}

std::shared_ptr<SharedSlot> SlotReceiver::find(std::uint32_t number) const {
  const auto found = std::find_if(slots_.rbegin(), slots_.rend(),
                                  [number](const Known& known) { return known.number == number; });
  if (found == slots_.rend())
    throw Error("shared memory: slot " + std::to_string(number) + " was never announced");
  return found->slot;
}

SlotLease::SlotLease(std::shared_ptr<SharedSlot> slot) noexcept
    : slot_(std::move(slot)), pid_(profile::current_pid()) {}

SlotLease::~SlotLease() {
  if (pid_ == profile::current_pid()) slot_->release();
}

}  // namespace headrace::pipeline
