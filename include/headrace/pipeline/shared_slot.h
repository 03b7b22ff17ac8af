// Memory that one process fills and another one reads, without a copy on the reader's side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace headrace::pipeline {

/// A piece of anonymous memory (memfd) that two processes map. One side claims and fills it, the other side
/// reads it and releases it; then it can be claimed again, with its pages in place.
///
///     0          64                                  64 + bytes
///     | state 4 | what the sender put there          |            (mapped whole, shared)
///
/// `claim`, `retire`: the sender. `release`: the reader, any thread. It needs no name, no space on /dev/shm
/// and no descriptor once both sides have mapped it; the kernel frees it with the last mapping.
class SharedSlot {
 public:
  static constexpr std::int64_t kHeaderBytes = 64;

  /// Makes one, claimed. Throws Error if the system gives no memory.
  static std::shared_ptr<SharedSlot> create(std::int64_t bytes);
  /// Maps one that another process made. Throws Error for a descriptor of anything else. `fd` stays the
  /// caller's.
  static std::shared_ptr<SharedSlot> attach(int fd);
  ~SharedSlot();
  SharedSlot(const SharedSlot&) = delete;
  SharedSlot& operator=(const SharedSlot&) = delete;

  std::span<std::byte> data() const noexcept { return data_; }
  /// To be handed to the other process; -1 in one that was attached, and after `close_descriptor`.
  int descriptor() const noexcept { return descriptor_; }
  void close_descriptor() noexcept;

  /// False if it is still being read.
  bool claim() noexcept;
  void release() noexcept;
  /// It will never be claimed again. False if it is still being read.
  bool retire() noexcept;
  bool retired() const noexcept;

 private:
  SharedSlot(void* mapping, std::int64_t bytes, int descriptor) noexcept;

  void* mapping_;
  std::span<std::byte> data_;
  int descriptor_;
};

/// The sender's slots to one reader: finds a free one, makes one, and keeps all of them within `most_bytes`.
/// One thread at a time.
class SlotSender {
 public:
  struct Claimed {
    std::uint32_t number;  ///< what the reader knows it by
    std::shared_ptr<SharedSlot> slot;
    bool is_lent;  ///< beyond `most_bytes`: the reader must copy what is in it and release it at once
  };

  explicit SlotSender(std::int64_t most_bytes) noexcept : most_bytes_(most_bytes) {}

  /// A slot of at least `bytes`; while it has a descriptor, it must still be sent to the reader. Throws Error
  /// if the system has no memory.
  Claimed claim(std::int64_t bytes);
  /// Bytes of all slots, free ones included.
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  struct Known {
    std::uint32_t number;
    std::shared_ptr<SharedSlot> slot;
  };
  void retire_free_ones(std::int64_t needed) noexcept;

  std::int64_t most_bytes_;
  std::int64_t bytes_ = 0;
  std::uint32_t next_number_ = 0;
  std::vector<Known> slots_;  ///< last used last
};

/// The reader's side of the same slots. One thread at a time; what it leases may go in any thread.
class SlotReceiver {
 public:
  /// One more slot, which the sender made.
  void add(std::uint32_t number, int fd);
  /// Throws Error for a number that is not known.
  std::shared_ptr<SharedSlot> find(std::uint32_t number) const;

 private:
  struct Known {
    std::uint32_t number;
    std::shared_ptr<SharedSlot> slot;
  };
  std::vector<Known> slots_;
};

/// Lease of a slot's contents: while it lives, the slot is not claimed again. Releases it in the process
/// that leased it only; a forked child's copy does nothing.
class SlotLease {
 public:
  explicit SlotLease(std::shared_ptr<SharedSlot> slot) noexcept;
  ~SlotLease();
  SlotLease(const SlotLease&) = delete;
  SlotLease& operator=(const SlotLease&) = delete;

  std::span<std::byte> data() const noexcept { return slot_->data(); }

 private:
  std::shared_ptr<SharedSlot> slot_;
  int pid_;
};

}  // namespace headrace::pipeline
