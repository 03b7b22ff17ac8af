// An operator of one's own in a pipeline: overlapping windows over the readings of a sensor.
//
//     custom_operator [RUN_FOLDER]
//
// A map makes one item from one, a batch one from n. What is neither is written in the five steps below, and
// is then recorded, stopped and waited for as every other operator.
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/pipeline/pipeline.h"
#include "headrace/profile/current.h"
#include "headrace/profile/snapshot.h"
#include "headrace/report/text.h"

namespace {

namespace pipeline = headrace::pipeline;

// 1. The class. An operator is a Producer of what it makes; it takes from the Producer before it. The
//    constructor's first three parameters are given by `append`, the others are yours.
template <class T>
class SlidingWindow final : public pipeline::Producer<std::vector<T>> {
 public:
  /// Windows of `size` items, each beginning `stride` items after the one before. What is left at the end is
  /// in no window.
  SlidingWindow(pipeline::OperatorSettings settings, int stage, pipeline::Producer<T>& input,
                std::size_t size, std::size_t stride)
      : pipeline::Producer<std::vector<T>>(std::move(settings), stage),
        input_(input),
        size_(size),
        stride_(stride) {
    if (stride < 1 || stride > size) throw headrace::UsageError("window: the stride is 1 to the size");
  }

  // 2. The work of one worker in one pass. State that lives as long as a pass is a local variable here; what
  //    several workers share is a member, made anew in `open(pass)` (call Producer::open at its end).
  bool work(pipeline::WorkerSlot& slot) override {
    // While this lives, all time between the waits at queues is the operator's service time.
    pipeline::RecordedLoop loop(this->handle(), slot.stop);
    std::vector<T> kept;
    std::uint64_t made = 0;
    while (!slot.must_leave()) {
      // 3. Taking. `take` waits. False: the input has ended, and so has this worker's part (true tells the
      //    others so). A stopped pass gives false back; a token without an item stands for one left out.
      pipeline::Token<T> token;
      if (!pipeline::take(input_.output(), token, slot.hooks)) return true;
      if (slot.stop.stopped()) return false;
      if (!token.item) continue;
      loop.item(token.number);
      kept.push_back(std::move(*token.item));
      if (kept.size() < size_) continue;

      // 4. Making. Numbers count from 0 without gaps. The trace tells the stall ledger what an item was doing
      //    while the loop waited for it: a window waited for the item that filled it, so it goes on with
      //    that one's. It is null for items that are not followed.
      pipeline::Token<std::vector<T>> window;
      window.item = kept;
      window.number = made++;
      window.trace = std::move(token.trace);
      if (window.trace != nullptr)
        window.trace->until(headrace::metrics::Clock::now_ns(), pipeline::ItemTrace::What::in_service,
                            this->stage());
      kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(stride_));
      // `give` waits for room. False: the pass was stopped, and nobody takes the window.
      if (!pipeline::give(this->output(), window, slot.hooks)) return false;
    }
    return false;
  }
  // Where a body of the user's is called, its exceptions go to skip_after_failure (item_failure.h).

 private:
  pipeline::Producer<T>& input_;
  const std::size_t size_;
  const std::size_t stride_;
};

// 5. A function that appends it. `serial`: its order or its state allow one worker only.
template <class T>
pipeline::Pipeline<std::vector<T>> windows(pipeline::Pipeline<T> of, std::size_t size, std::size_t stride) {
  return of.template append<SlidingWindow<T>>({.name = "window", .kind = "window", .serial = true}, size,
                                              stride);
}

/// A sensor that gives `count` readings, one of them out of range. One thread puts them and one window takes
/// them: the queue between the two is Boost.Lockfree's.
pipeline::Pipeline<double> readings(int count) {
  return pipeline::generator<double>("sensor",
                                     [count](const pipeline::Shard&) -> pipeline::ItemMaker<double> {
                                       return [count, at = 0]() mutable -> std::optional<double> {
                                         if (at == count) return std::nullopt;
                                         const int now = at++;
                                         return now == 700 ? 40.0 : std::sin(0.05 * now);
                                       };
                                     },
                                     {.queue = pipeline::QueueChoice::spsc});
}

/// Root mean square, made slow enough to be seen: what a feature extractor would do.
double loudness(const std::vector<double>& window) {
  double sum = 0;
  for (int turn = 0; turn < 200; ++turn) {
    for (const double reading : window) sum += reading * reading;
  }
  return std::sqrt(sum / 200 / static_cast<double>(window.size()));
}

}  // namespace

int main(int argc, char** argv) {
  using headrace::profile::CurrentSession;
  const auto session = CurrentSession::for_run(argc > 1 ? argv[1] : "headrace-runs/custom-operator", 0);
  constexpr std::size_t kSize = 64;
  constexpr std::size_t kStride = 16;
  constexpr int kReadings = 150'000;

  auto features = windows(readings(kReadings), kSize, kStride)
                      .map("loudness", loudness, {.workers = 2})
                      .record_as({.name = "features"});
  std::size_t seen = 0;
  std::size_t loud = 0;
  while (const auto feature = features.next()) {
    ++seen;
    if (*feature > 2) ++loud;
  }
  std::printf("%zu windows, %zu of them with the reading that is out of range\n\n", seen, loud);

  headrace::profile::SegmentImage image;
  image.read_memory(session->segment().data(), session->segment().size());
  const auto loader = static_cast<std::uint32_t>(features.runtime().loader()->id());
  const auto profile = headrace::profile::read_profile(image, loader);
  std::puts(headrace::report::to_text(profile, headrace::analysis::diagnose(profile)).c_str());
  CurrentSession::close_all();
  return seen == (kReadings - kSize) / kStride + 1 && loud == kSize / kStride ? 0 : 1;
}
