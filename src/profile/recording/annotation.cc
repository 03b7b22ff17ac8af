#include "headrace/profile/annotation.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "headrace/metrics/clock.h"
#include "headrace/profile/current.h"
#include "headrace/profile/process_identity.h"

namespace headrace::profile {
namespace {

using metrics::Clock;
using metrics::HistoryStore;
using metrics::TrackKind;

/// The open ranges of one thread and the track that keeps them. Follows the current session by itself.
class ThreadRanges {
 public:
  ~ThreadRanges() { leave(); }

  void begin(std::string_view name) {
    const std::size_t depth = depth_++;
    if (depth >= kMaxDepth) return;
    Frame& frame = frames_[depth];
    frame.session_uid = 0;
    if (!follow()) return;
    frame.name = index_of(name);
    frame.session_uid = session_->uid();
    frame.began_ns = Clock::now_ns();
  }

  void end() {
    if (depth_ == 0) return;
    --depth_;
    if (depth_ >= kMaxDepth) return;
    const Frame& frame = frames_[depth_];
    // A session that began meanwhile does not know the range's name.
    if (session_ == nullptr || frame.session_uid != session_->uid() || pid_ != current_pid()) return;
    Known& known = names_[frame.name];
    if (known.id < 0) return;
    history_.range(frame.began_ns, Clock::now_ns(), known.count++, static_cast<std::uint32_t>(known.id));
  }

 private:
  static constexpr std::size_t kMaxDepth = 32;

  struct Frame {
    std::size_t name = 0;
    std::uint64_t session_uid = 0;  ///< 0: not kept
    std::int64_t began_ns = 0;
  };
  struct Known {
    std::string name;
    int id;
    std::uint64_t count = 0;
  };

  /// False if nothing is recorded.
  bool follow() {
    if (generation_ == CurrentSession::generation() && pid_ == current_pid()) return session_ != nullptr;
    generation_ = CurrentSession::generation();
    const std::shared_ptr<Session> session = CurrentSession::enabled() ? CurrentSession::peek() : nullptr;
    if (session == session_ && pid_ == current_pid()) return session_ != nullptr;
    leave();
    pid_ = current_pid();
    session_ = session;
    if (session_ == nullptr) return false;
    HistoryStore store = session_->segment().history();
    history_ = store.range_history(store.claim({.kind = TrackKind::annotation,
                                                .pid = pid_,
                                                .tid = current_tid(),
                                                .process_start = process_start(pid_)},
                                               Clock::now_ns()));
    return true;
  }

  void leave() {
    // After a fork the track belongs to the parent's thread, which continues to write it.
    if (history_.bound() && pid_ == current_pid()) HistoryStore::release(*history_.track());
    history_ = {};
    names_.clear();
    session_.reset();
  }

  std::size_t index_of(std::string_view name) {
    const auto known =
        std::find_if(names_.begin(), names_.end(), [&](const Known& one) { return one.name == name; });
    if (known != names_.end()) return static_cast<std::size_t>(known - names_.begin());
    names_.push_back({std::string(name), session_->annotation_id(name)});
    return names_.size() - 1;
  }

  std::uint64_t generation_ = 0;
  int pid_ = 0;
  std::shared_ptr<Session> session_;
  metrics::RangeHistory history_;
  std::vector<Known> names_;
  std::array<Frame, kMaxDepth> frames_{};
  std::size_t depth_ = 0;
};

ThreadRanges& local() {
  thread_local ThreadRanges ranges;
  return ranges;
}

}  // namespace

void annotate_begin(std::string_view name) noexcept try { local().begin(name); } catch (...) {
  // No memory for the name: the range is not kept.
}

void annotate_end() noexcept try { local().end(); } catch (...) {
}

}  // namespace headrace::profile
