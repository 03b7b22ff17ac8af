#include "headrace/pipeline/runtime.h"

#include <algorithm>
#include <array>
#include <utility>

#include "headrace/profile/current.h"
#include "headrace/profile/process_identity.h"
#include "headrace/profile/run_folder.h"

namespace headrace::pipeline {

using profile::CurrentSession;

namespace {

/// Operators whose part in a wait is distinguished.
constexpr std::size_t kMaxStages = 64;

constexpr metrics::WaitCharges kLaysReady{.ready = true, .charges = {}};

}  // namespace

Runtime::~Runtime() {
  if (is_of_another_process()) {
    // Its threads are in the parent, and so is what they hold.
    for (auto& group : groups_) static_cast<void>(group.release());
    for (auto& op : operators_) static_cast<void>(op.release());
    return;
  }
  end_pass();
}

OperatorSettings Runtime::admit(OperatorSettings settings) {
  check(settings);
  const bool one_before = !operators_.empty() && operators_.back()->settings().queue == QueueChoice::spsc;
  if (one_before || settings.queue == QueueChoice::spsc) {
    if (settings.workers != 1) {
      throw UsageError("'" + settings.name + "': the queue " + (one_before ? "before" : "behind") +
                       " it is spsc, which takes one worker, not " + std::to_string(settings.workers));
    }
    settings.serial = true;
  }
  const std::string base = settings.name;
  const auto taken = [this](const std::string& name) {
    return std::any_of(operators_.begin(), operators_.end(),
                       [&](const auto& op) { return op->name() == name; });
  };
  for (int number = 2; taken(settings.name); ++number) settings.name = base + "#" + std::to_string(number);
  if (settings.capacity == 0) {
    using enum profile::OperatorKind;
    const bool of_batches = settings.kind == batch || settings.kind == transfer ||
                            std::any_of(operators_.begin(), operators_.end(),
                                        [](const auto& op) { return op->settings().kind == batch; });
    settings.capacity = default_capacity(settings.workers, of_batches);
  }
  return settings;
}

void Runtime::add(std::unique_ptr<Operator> op) {
  groups_.push_back(std::make_unique<WorkerGroup>(*op));
  operators_.push_back(std::move(op));
}

void Runtime::record_as(RecordingOptions options) {
  if (loader_ != nullptr) throw UsageError("a pipeline that was recorded already keeps its name and run");
  recording_ = std::move(options);
}

void Runtime::record_in(std::shared_ptr<profile::LoaderHandle> loader) {
  if (passes_ > 0) throw UsageError("a pipeline that has run keeps its record");
  loader_ = std::move(loader);
}

const std::shared_ptr<profile::LoaderHandle>& Runtime::loader() {
  if (loader_ == nullptr) open_record();
  return loader_;
}

void Runtime::open_record() noexcept try {
  std::shared_ptr<profile::Session> session;
  if (!recording_.run.empty() || recording_.rank >= 0) {
    session = CurrentSession::for_run(recording_.run.empty() ? profile::default_run_folder() : recording_.run,
                                      recording_.rank >= 0 ? recording_.rank : profile::default_rank());
  } else {
    session = CurrentSession::get();
  }
  if (session == nullptr) return;
  loader_ = std::make_shared<profile::LoaderHandle>(session, recording_.name, nullptr);
} catch (...) {
  // Recording must not stop the pipeline.
}

// Relaxed: the number is written once and orders nothing.
bool Runtime::is_of_another_process() const noexcept {
  const int pid = pid_.load(std::memory_order_relaxed);
  return pid != 0 && pid != profile::current_pid();
}

void Runtime::check_process() const {
  if (is_of_another_process())
    throw UsageError("a pipeline cannot be used in a forked process; build another one there");
}

void Runtime::begin_pass() {
  int none = 0;
  pid_.compare_exchange_strong(none, profile::current_pid(), std::memory_order_relaxed);
  check_process();
  end_pass();
  if (const auto& loader = this->loader()) recorder_ = std::make_unique<profile::LoopRecorder>(loader, true);
  auto stop = std::make_shared<StopState>([this] {
    for (const auto& op : operators_) op->close_output();
  });
  const std::uint64_t pass = passes_++;
  for (const auto& op : operators_) {
    op->record_in(loader_ == nullptr ? -1 : loader_->id());
    op->open(pass);
  }
  {
    const std::scoped_lock lock(mutex_);
    stop_ = stop;
  }
  try {
    // From the sink's side: whoever makes items finds who takes them.
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group) (*group)->begin(*stop);
  } catch (...) {
    end_pass();
    throw;
  }
}

void Runtime::end_pass() noexcept {
  if (is_of_another_process()) return;
  std::shared_ptr<StopState> stop;
  {
    const std::scoped_lock lock(mutex_);
    stop = stop_;
  }
  if (stop != nullptr) {
    stop->stop();
    for (const auto& group : groups_) group->wait_until_idle();
    const std::scoped_lock lock(mutex_);
    stop_ = nullptr;
  }
  for (const auto& op : operators_) op->clear();
  recorder_.reset();
}

void Runtime::stop() noexcept {
  if (is_of_another_process()) return;
  std::shared_ptr<StopState> stop;
  {
    const std::scoped_lock lock(mutex_);
    stop = stop_;
  }
  if (stop != nullptr) stop->stop();
}

std::exception_ptr Runtime::error() const noexcept {
  const std::scoped_lock lock(mutex_);
  return stop_ == nullptr ? nullptr : stop_->error();
}

bool Runtime::stopped() const noexcept { return stop_ == nullptr || stop_->stopped(); }

void Runtime::wait_began() noexcept {
  if (recorder_ == nullptr) return;
  asked_ns_ = metrics::Clock::now_ns();
  recorder_->begin_wait();
}

void Runtime::wait_delivered(const ItemTrace* trace, bool at_once) noexcept {
  if (recorder_ == nullptr) return;
  const std::int64_t now = metrics::Clock::now_ns();
  if (trace != nullptr) {
    std::array<int, kMaxStages> ids{};
    const std::size_t stages = std::min(operators_.size(), kMaxStages);
    for (std::size_t i = 0; i < stages; ++i) ids[i] = operators_[i]->handle()->id_in(*loader_->session());
    const metrics::WaitCharges charges = trace->charges(asked_ns_, now, std::span(ids.data(), stages));
    if (!charges.ready) last_charges_ = charges;
    return recorder_->end_wait(true, false, charges);
  }
  if (at_once) return recorder_->end_wait(true, false, kLaysReady);
  metrics::WaitCharges charges = last_charges_;
  charges.made_from_ns = 0;  // of another batch
  double sum = 0;
  for (std::size_t i = 0; i < charges.count; ++i) sum += static_cast<double>(charges.charges[i].ns);
  for (std::size_t i = 0; i < charges.count; ++i) {
    std::int64_t& ns = charges.charges[i].ns;
    ns = static_cast<std::int64_t>(static_cast<double>(ns) / sum * static_cast<double>(now - asked_ns_));
  }
  recorder_->end_wait(true, false, charges);
}

void Runtime::wait_failed(bool with_error) noexcept {
  if (recorder_ != nullptr) recorder_->end_wait(false, with_error);
}

WorkerGroup& Runtime::group_of(const std::string& op) const {
  std::string known;
  for (const auto& group : groups_) {
    if (group->op().name() == op) return *group;
    known += (known.empty() ? "" : ", ") + group->op().name();
  }
  throw UsageError("no operator '" + op + "' in this pipeline; there are: " + known);
}

void Runtime::set_workers(const std::string& op, int workers) {
  check_process();
  group_of(op).resize(workers);
}

void Runtime::set_capacity(const std::string& op, std::int64_t capacity) {
  check_process();
  group_of(op).op().set_capacity(capacity);
}

int Runtime::workers(const std::string& op) const { return group_of(op).size(); }

std::int64_t Runtime::capacity(const std::string& op) const { return group_of(op).op().capacity(); }

std::vector<std::string> Runtime::names() const {
  std::vector<std::string> names;
  for (const auto& op : operators_) names.push_back(op->name());
  return names;
}

}  // namespace headrace::pipeline
