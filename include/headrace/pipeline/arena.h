// CPU-bound bodies on oneTBB's threads: no more of them at a time than there are cores.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "headrace/pipeline/map.h"

namespace headrace::pipeline {

/// Runs `work` in the process's one arena for operator bodies and waits for it. The arena has as many slots
/// as this process may use cores; a caller waits if none is free. Exceptions of `work` pass through.
void run_in_arena(const std::function<void()>& work);

/// `body`, run in the arena.
template <class T, class U>
MapBody<T, U> in_arena(MapBody<T, U> body) {
  return [body = std::move(body)](T&& item) -> U {
    std::optional<U> made;
    run_in_arena([&] { made.emplace(body(std::move(item))); });
    return std::move(*made);
  };
}

}  // namespace headrace::pipeline
