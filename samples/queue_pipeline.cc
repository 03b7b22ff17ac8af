// A pipeline of one's own in C++: a reader, two decoders, a training loop, the queues between them, and the
// report.
//
//     queue_pipeline [RUN_FOLDER]
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "headrace/analysis/verdict/diagnose.h"
#include "headrace/profile/current.h"
#include "headrace/profile/probes.h"
#include "headrace/profile/snapshot.h"
#include "headrace/queues/adaptive_recorder.h"
#include "headrace/queues/bounded_queue.h"
#include "headrace/queues/mpmc_ring.h"
#include "headrace/report/text.h"

namespace {

using headrace::profile::CurrentSession;
using headrace::profile::LoaderHandle;
using headrace::profile::LoopRecorder;
using headrace::profile::OperatorHandle;
using headrace::queues::AdaptiveRecorder;
using Queue = headrace::queues::BoundedQueue<headrace::queues::MpmcRing<int>, AdaptiveRecorder>;

constexpr int kItems = 300;

void work_for(std::chrono::microseconds time) { std::this_thread::sleep_for(time); }

}  // namespace

int main(int argc, char** argv) {
  const auto session = CurrentSession::for_run(argc > 1 ? argv[1] : "headrace-runs/queue-pipeline", 0);
  Queue paths(8, AdaptiveRecorder("paths", 8));
  Queue images(4, AdaptiveRecorder("images", 4));
  OperatorHandle decode("decode", "map", 0);

  std::thread reader([&] {
    for (int i = 0; i < kItems; ++i) {
      work_for(std::chrono::microseconds(300));
      paths.put(int{i}, headrace::queues::kNever, "read");
    }
    paths.close();
  });
  std::vector<std::thread> decoders;
  for (int worker = 0; worker < 2; ++worker) {
    decoders.emplace_back([&] {
      while (const auto path = paths.get()) {
        const bool recorded = decode.begin();
        work_for(std::chrono::microseconds(6000));
        if (recorded) decode.end(false);
        images.put(int{*path});
      }
    });
  }
  std::thread closer([&] {
    for (auto& thread : decoders) thread.join();
    images.close();
  });

  // The training loop: each get is a GetNext.
  const auto loader = std::make_shared<LoaderHandle>(session, "images", nullptr);
  {
    LoopRecorder loop(loader);
    for (;;) {
      loop.begin_wait();
      const auto image = images.get();
      loop.end_wait(image.has_value(), false);
      if (!image) break;
      work_for(std::chrono::microseconds(1500));
    }
  }
  reader.join();
  closer.join();

  headrace::profile::SegmentImage image;
  image.read_memory(session->segment().data(), session->segment().size());
  const auto profile = headrace::profile::read_profile(image, static_cast<std::uint32_t>(loader->id()));
  const auto verdict = headrace::analysis::diagnose(profile);
  std::puts(headrace::report::to_text(profile, verdict).c_str());
  CurrentSession::close_all();
  return profile.sink.steps == kItems ? 0 : 1;
}
