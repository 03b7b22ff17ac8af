// Recording in C++, operation by operation: each runs N times, then 2 N times, between marks.
//
//     native RUN_FOLDER
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "headrace/pipeline/pipeline.h"
#include "headrace/profile/current.h"
#include "headrace/profile/probes.h"
#include "marks.h"

namespace {

namespace pl = headrace::pipeline;
namespace pr = headrace::profile;

/// `operation(n)` does it n times.
template <class Operation>
void measure(const char* name, int count, Operation&& operation, int step_ns = 50) {
  operation(count);
  for (const int times : {count, 2 * count}) {
    costs_begin(step_ns);
    operation(times);
    costs_end((std::string(name) + ":" + std::to_string(times)).c_str());
  }
}

template <class Body>
auto repeated(Body body) {
  return [body = std::move(body)](int times) mutable {
    for (int i = 0; i < times; ++i) body(i);
  };
}

void events(const std::shared_ptr<pr::Session>& session) {
  const auto loader = std::make_shared<pr::LoaderHandle>(session, "loop", nullptr);
  {
    pr::LoopRecorder loop(loader);
    measure("event: GetNext", 20'000, repeated([&](int) {
              loop.begin_wait();
              loop.end_wait(true, false);
            }));
    pr::OperatorHandle op("body", "map", 1);
    measure("event: a body in a step", 20'000, repeated([&](int) {
              if (op.begin()) op.end(false);
            }));
  }
  // In threads of their own: the loop's thread is no worker.
  std::thread([] {
    pr::OperatorHandle op("worker", "map", 2);
    measure("event: a body in a worker", 20'000, repeated([&](int) {
              if (op.begin()) op.end(false);
            }));
    pr::QueueHandle queue("queue", 64);
    measure("event: a put and a get", 20'000, repeated([&](int) {
              queue.put(1, 0, true, "loop");
              queue.get(0, 0, true, "loop");
            }));
  }).join();
}

pl::Pipeline<std::int64_t> numbers(int times) {
  return pl::generator<std::int64_t>("numbers", [times](const pl::Shard&) -> pl::ItemMaker<std::int64_t> {
    return [times, at = std::int64_t{0}]() mutable -> std::optional<std::int64_t> {
      if (at == times) return std::nullopt;
      return at++;
    };
  });
}

template <class Build>
void pipeline(const char* name, Build&& build) {
  measure(name, 15'000, [&](int times) {
    auto made = build(numbers(times));
    std::int64_t sum = 0;
    while (auto item = made.next()) sum += *item;
    if (sum == 0) std::abort();
  });
}

void operators() {
  pipeline("pipeline in C++: source", [](auto from) { return from; });
  pipeline("pipeline in C++: map",
           [](auto from) { return std::move(from).map("map", [](std::int64_t item) { return item + 1; }); });
  pipeline("pipeline in C++: filter", [](auto from) {
    return std::move(from).filter("filter", [](const std::int64_t&) { return true; });
  });
  pipeline("pipeline in C++: shuffle", [](auto from) { return std::move(from).shuffle(16, 0); });
  pipeline("pipeline in C++: batch", [](auto from) {
    return std::move(from).batch(32, [](std::vector<std::int64_t>&& items) { return items.back() + 1; });
  });
}

}  // namespace

int main(int, char** arguments) {
  const auto session = pr::Session::open({.run = arguments[1]});
  pr::CurrentSession::set(session);
  events(session);
  operators();
  session->close();
}
