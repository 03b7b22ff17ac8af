// One copy that a CUDA device carries out by itself.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "headrace/transport/completion.h"
#include "transport/cuda_context.h"

namespace headrace::transport {

/// Between two marks on the stream for copies. Holds the staging buffer until the device has read it: also
/// when nobody asks for the completion any more.
class CudaCopy : public PendingCopy {
 public:
  explicit CudaCopy(const std::shared_ptr<CudaContext>& context)
      : begin_(context, true), end_(context, true) {}
  ~CudaCopy() override;

  bool done() override;
  void wait() override;
  std::int64_t copy_ns() override;

  /// The device's orders stand between `began` and `ordered`.
  void began(CudaStream stream) { begin_.record(stream); }
  void ordered(CudaStream stream) {
    end_.record(stream);
    is_ordered_ = true;
  }
  void hold_staging(Block staging) noexcept { staging_ = std::move(staging); }
  /// Later work on `stream` begins after this copy.
  void make_wait(CudaStream stream) const { end_.hold(stream); }

 private:
  void finish() noexcept;
  void raise_failure() const;

  CudaMark begin_;
  CudaMark end_;
  bool is_ordered_ = false;  ///< set before the copy is shared
  std::mutex mutex_;         ///< what follows
  Block staging_;
  bool finished_ = false;
  std::int64_t copy_ns_ = -1;
  std::optional<std::string> failure_;
};

}  // namespace headrace::transport
