// A CUDA driver on host memory; see fake_cuda.h. Signatures and values: CUDA Driver API, cuda.h.
#include "fake_cuda/fake_cuda.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kNotReady = 600;
constexpr std::size_t kMaxMemory = std::size_t{1} << 30;

struct Event {
  bool reached = true;  ///< one that was never recorded is no obstacle
  std::int64_t at_ns = 0;
};

struct Order {
  enum Kind { copy, record, wait } kind;
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
  Event* event = nullptr;
};

struct Stream {
  std::deque<Order> orders;
  bool held = false;
  std::int64_t now_ns = 0;
};

struct State {
  std::mutex mutex;
  int devices = 2;
  int contexts = 0;
  bool all_held = false;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Event*> dying;  ///< destroyed, and still in some stream's orders
  std::map<std::uintptr_t, std::size_t> device_memory;
  std::map<std::uintptr_t, std::size_t> pinned_memory;
  /// Of each thread. Not thread-local: LeakSanitizer stumbles now and then over such variables of a library
  /// that was loaded at run time.
  std::map<std::thread::id, std::vector<int*>> contexts_of;
  std::map<std::string, int> calls;
  std::map<std::string, std::pair<int, int>> failures;  ///< function: result, calls still to pass
};

State& state() {
  static State* const one = new State;  // calls come until the process ends
  return *one;
}

int the_context = 0;

std::vector<int*>& current_contexts() { return state().contexts_of[std::this_thread::get_id()]; }

bool within(const std::map<std::uintptr_t, std::size_t>& memory, std::uintptr_t address, std::size_t bytes) {
  auto after = memory.upper_bound(address);
  if (after == memory.begin()) return false;
  const auto& [first, length] = *--after;
  return address - first <= length && bytes <= length - (address - first);
}

/// Runs what can run. `anyway`: also on held streams.
void run(bool anyway) {
  State& fake = state();
  for (bool moved = true; moved;) {
    moved = false;
    for (Stream* stream : fake.streams) {
      if (!anyway && (fake.all_held || stream->held)) continue;
      while (!stream->orders.empty()) {
        const Order& order = stream->orders.front();
        if (order.kind == Order::wait && !order.event->reached) break;
        if (order.kind == Order::copy) {
          if (order.to != nullptr) std::memcpy(order.to, order.from, order.bytes);
          stream->now_ns += static_cast<std::int64_t>(order.bytes);
        }
        if (order.kind == Order::record) {
          order.event->reached = true;
          order.event->at_ns = stream->now_ns;
        }
        stream->orders.pop_front();
        moved = true;
      }
    }
  }
}

/// Frees events that were destroyed once no stream waits for them any more.
void bury() {
  State& fake = state();
  for (auto event = fake.dying.begin(); event != fake.dying.end();) {
    bool needed = false;
    for (const Stream* stream : fake.streams) {
      for (const Order& order : stream->orders) needed |= order.event == *event;
    }
    if (needed) {
      ++event;
    } else {
      delete *event;
      event = fake.dying.erase(event);
    }
  }
}

/// Counts the call; what it is to fail with, or success.
int enter(const char* function, bool needs_context) {
  State& fake = state();
  ++fake.calls[function];
  const auto failure = fake.failures.find(function);
  if (failure != fake.failures.end() && failure->second.second-- <= 0) {
    const int result = failure->second.first;
    fake.failures.erase(failure);
    return result;
  }
  return needs_context && current_contexts().empty() ? kInvalidContext : kSuccess;
}

#define HEADRACE_ENTER(needs_context)         \
  const std::scoped_lock lock(state().mutex); \
  if (const int result = enter(__func__, needs_context); result != kSuccess) return result

int put(void* stream, const Order& order) {
  auto* const on = static_cast<Stream*>(stream);
  if (state().streams.count(on) == 0) return kInvalidValue;
  on->orders.push_back(order);
  run(false);
  return kSuccess;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  HEADRACE_ENTER(false);
  return kSuccess;
}

int cuGetErrorName(int error, const char** name) {
  switch (error) {
    case kInvalidValue:
      *name = "CUDA_ERROR_INVALID_VALUE";
      return kSuccess;
    case kOutOfMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kSuccess;
    case 100:
      *name = "CUDA_ERROR_NO_DEVICE";
      return kSuccess;
    case kInvalidDevice:
      *name = "CUDA_ERROR_INVALID_DEVICE";
      return kSuccess;
    case kInvalidContext:
      *name = "CUDA_ERROR_INVALID_CONTEXT";
      return kSuccess;
    case 700:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kSuccess;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
}

int cuGetErrorString(int error, const char** words) {
  *words = error == kOutOfMemory ? "out of memory" : nullptr;
  return error == kOutOfMemory ? kSuccess : kInvalidValue;
}

int cuDeviceGetCount(int* count) {
  HEADRACE_ENTER(false);
  *count = state().devices;
  return kSuccess;
}

int cuDeviceGet(int* device, int index) {
  HEADRACE_ENTER(false);
  *device = index;
  return index >= 0 && index < state().devices ? kSuccess : kInvalidDevice;
}

int cuDevicePrimaryCtxRetain(void** context, int) {
  HEADRACE_ENTER(false);
  ++state().contexts;
  *context = &the_context;
  return kSuccess;
}

int cuDevicePrimaryCtxRelease_v2(int) {
  HEADRACE_ENTER(false);
  --state().contexts;
  return kSuccess;
}

int cuCtxPushCurrent_v2(void* context) {
  HEADRACE_ENTER(false);
  if (context != &the_context || state().contexts == 0) return kInvalidContext;
  current_contexts().push_back(&the_context);
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  HEADRACE_ENTER(true);
  *context = current_contexts().back();
  current_contexts().pop_back();
  return kSuccess;
}

int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  HEADRACE_ENTER(true);
  if (bytes == 0) return kInvalidValue;
  if (bytes > kMaxMemory) return kOutOfMemory;
  *address = reinterpret_cast<std::uintptr_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  state().device_memory[*address] = bytes;
  return kSuccess;
}

int cuMemFree_v2(std::uint64_t address) {
  HEADRACE_ENTER(true);
  run(true);
  if (state().device_memory.erase(address) == 0) return kInvalidValue;
  std::free(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)));
  return kSuccess;
}

int cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  HEADRACE_ENTER(true);
  if (bytes == 0 || bytes > kMaxMemory) return kOutOfMemory;
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  state().pinned_memory[reinterpret_cast<std::uintptr_t>(*data)] = bytes;
  return kSuccess;
}

int cuMemFreeHost(void* data) {
  HEADRACE_ENTER(true);
  run(true);
  if (state().pinned_memory.erase(reinterpret_cast<std::uintptr_t>(data)) == 0) return kInvalidValue;
  std::free(data);
  return kSuccess;
}

int cuPointerGetAttribute(void* value, int attribute, std::uint64_t address) {
  HEADRACE_ENTER(false);
  if (attribute != 2) return kInvalidValue;
  const bool pinned = within(state().pinned_memory, address, 1);
  if (!pinned && !within(state().device_memory, address, 1)) return kInvalidValue;
  *static_cast<unsigned*>(value) = pinned ? 1 : 2;
  return kSuccess;
}

int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
  HEADRACE_ENTER(true);
  if (!within(state().device_memory, to, bytes)) return kInvalidValue;
  if (!within(state().pinned_memory, reinterpret_cast<std::uintptr_t>(from), bytes)) {
    // From pageable memory the real one returns when it has read it; here it writes it, too.
    std::memcpy(reinterpret_cast<void*>(static_cast<std::uintptr_t>(to)), from, bytes);
    return put(stream, {Order::copy, nullptr, nullptr, bytes, nullptr});
  }
  return put(stream,
             {Order::copy, reinterpret_cast<void*>(static_cast<std::uintptr_t>(to)), from, bytes, nullptr});
}

int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  HEADRACE_ENTER(true);
  if (!within(state().device_memory, from, bytes)) return kInvalidValue;
  std::memcpy(to, reinterpret_cast<const void*>(static_cast<std::uintptr_t>(from)), bytes);
  return kSuccess;
}

int cuStreamCreate(void** stream, unsigned) {
  HEADRACE_ENTER(true);
  auto* const made = new Stream;
  state().streams.insert(made);
  *stream = made;
  return kSuccess;
}

int cuStreamDestroy_v2(void* stream) {
  HEADRACE_ENTER(true);
  if (state().streams.erase(static_cast<Stream*>(stream)) == 0) return kInvalidValue;
  delete static_cast<Stream*>(stream);
  return kSuccess;
}

int cuStreamSynchronize(void*) {
  HEADRACE_ENTER(true);
  run(true);
  return kSuccess;
}

int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  HEADRACE_ENTER(true);
  return put(stream, {Order::wait, nullptr, nullptr, 0, static_cast<Event*>(event)});
}

int cuEventCreate(void** event, unsigned) {
  HEADRACE_ENTER(true);
  auto* const made = new Event;
  state().events.insert(made);
  *event = made;
  return kSuccess;
}

int cuEventDestroy_v2(void* event) {
  HEADRACE_ENTER(true);
  auto* const gone = static_cast<Event*>(event);
  if (state().events.erase(gone) == 0) return kInvalidValue;
  state().dying.insert(gone);
  bury();
  return kSuccess;
}

int cuEventRecord(void* event, void* stream) {
  HEADRACE_ENTER(true);
  static_cast<Event*>(event)->reached = false;
  return put(stream, {Order::record, nullptr, nullptr, 0, static_cast<Event*>(event)});
}

int cuEventQuery(void* event) {
  HEADRACE_ENTER(true);
  return static_cast<Event*>(event)->reached ? kSuccess : kNotReady;
}

int cuEventSynchronize(void*) {
  HEADRACE_ENTER(true);
  run(true);
  return kSuccess;
}

int cuEventElapsedTime(float* milliseconds, void* from, void* to) {
  HEADRACE_ENTER(true);
  *milliseconds =
      static_cast<float>(static_cast<Event*>(to)->at_ns - static_cast<Event*>(from)->at_ns) * 1e-6F;
  return kSuccess;
}

[[gnu::visibility("default")]] extern const headrace::transport::FakeCuda headrace_fake_cuda;
const headrace::transport::FakeCuda headrace_fake_cuda{
    [] {
      const std::scoped_lock lock(state().mutex);
      run(true);
      state().calls.clear();
      state().failures.clear();
      state().all_held = false;
      for (Stream* stream : state().streams) stream->held = false;
      state().devices = 2;
    },
    [](int count) {
      const std::scoped_lock lock(state().mutex);
      state().devices = count;
    },
    [](const char* function, int result, int skip) {
      const std::scoped_lock lock(state().mutex);
      state().failures[function] = {result, skip};
    },
    [](void* stream) {
      const std::scoped_lock lock(state().mutex);
      if (stream == nullptr) {
        state().all_held = true;
      } else {
        static_cast<Stream*>(stream)->held = true;
      }
    },
    [] {
      const std::scoped_lock lock(state().mutex);
      state().all_held = false;
      for (Stream* stream : state().streams) stream->held = false;
      run(false);
    },
    [](const char* function) {
      const std::scoped_lock lock(state().mutex);
      return state().calls[function];
    },
    [] {
      const std::scoped_lock lock(state().mutex);
      return state().contexts + static_cast<int>(state().streams.size() + state().events.size() +
                                                 state().device_memory.size() + state().pinned_memory.size());
    },
    [](const void* address) {
      const std::scoped_lock lock(state().mutex);
      return within(state().device_memory, reinterpret_cast<std::uintptr_t>(address), 1);
    }};

}  // extern "C"
