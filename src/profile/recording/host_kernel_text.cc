#include "headrace/profile/host/kernel_text.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace headrace::profile {
namespace {

/// Takes the text up to `end` off the front of `text`.
std::string_view take(std::string_view& text, char end) noexcept {
  const std::size_t at = text.find(end);
  const std::string_view front = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return front;
}

std::string_view take_word(std::string_view& text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  return take(text, ' ');
}

std::string_view trim(std::string_view text) noexcept {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

template <class Number = std::int64_t>
std::optional<Number> number(std::string_view text) noexcept {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

/// A counter: never negative.
std::optional<std::int64_t> counter(std::string_view text) noexcept {
  const auto value = number(text);
  return value && *value >= 0 ? value : std::nullopt;
}

std::optional<std::int64_t> times(std::optional<std::int64_t> value, std::int64_t factor) noexcept {
  if (!value || *value > std::numeric_limits<std::int64_t>::max() / factor) return std::nullopt;
  return *value * factor;
}

bool add(std::int64_t& sum, std::optional<std::int64_t> value) noexcept {
  return value && !__builtin_add_overflow(sum, *value, &sum);
}

bool starts_with(std::string_view text, std::string_view prefix) noexcept {
  return text.substr(0, prefix.size()) == prefix;
}

bool lists(std::string_view comma_separated, std::string_view word) noexcept {
  while (!comma_separated.empty()) {
    if (take(comma_separated, ',') == word) return true;
  }
  return false;
}

}  // namespace

std::int64_t tick_ns() noexcept {
  static const std::int64_t ns = kSecondNs / std::max(1L, sysconf(_SC_CLK_TCK));
  return ns;
}

std::optional<SchedStat> parse_schedstat(std::string_view text) noexcept {
  text = trim(text);
  const auto cpu = counter(take_word(text));
  const auto waiting = counter(take_word(text));
  // The third field proves that the second one is whole.
  if (!cpu || !waiting || !counter(take_word(text))) return std::nullopt;
  return SchedStat{*cpu, *waiting};
}

std::optional<ProcessStat> parse_process_stat(std::string_view text, std::int64_t tick_ns) noexcept {
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  text = trim(text.substr(name_end + 1));
  ProcessStat stat;
  const std::string_view state = take_word(text);
  if (state.size() != 1) return std::nullopt;
  stat.state = state.front();
  const auto parent = number<int>(take_word(text));
  if (!parent) return std::nullopt;
  stat.parent = *parent;
  for (int field = 5; field <= 21; ++field) {
    const std::string_view word = take_word(text);
    if (field >= 14 && field <= 15 && !add(stat.own_ns, times(counter(word), tick_ns))) return std::nullopt;
    if (field == 12) stat.major_faults = counter(word).value_or(0);
    if (field == 20) stat.threads = counter(word).value_or(0);
    // Children's times are signed in the kernel's format; a negative one is as good as none.
    if (field >= 16 && field <= 17 && !add(stat.reaped_ns, times(counter(word), tick_ns)))
      return std::nullopt;
  }
  const auto start = number<std::uint64_t>(take_word(text));
  // A field behind it proves that it is whole.
  if (!start || text.empty()) return std::nullopt;
  stat.start = *start;
  return stat;
}

std::optional<std::int64_t> parse_number_behind(std::string_view text, std::string_view name) noexcept {
  std::size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  at = text.find_first_not_of(' ', at + name.size());
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + at, end, value);
  const bool whole = error == std::errc() && stop != end && (*stop == '\n' || *stop == ' ');
  return whole && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<SystemCall> parse_system_call(std::string_view text) noexcept {
  const char* const end = text.data() + text.size();
  SystemCall call;
  const auto [after, error] = std::from_chars(text.data(), end, call.number);
  if (error != std::errc()) return std::nullopt;
  constexpr std::string_view kArgument = " 0x";
  if (!std::string_view(after, static_cast<std::size_t>(end - after)).starts_with(kArgument)) return call;
  std::uint64_t argument = 0;
  if (std::from_chars(after + kArgument.size(), end, argument, 16).ec == std::errc())
    call.argument = argument;
  return call;
}

std::optional<std::int64_t> parse_resident_pages(std::string_view text) noexcept {
  text = trim(text);
  const auto size = counter(take_word(text));
  const auto resident = counter(take_word(text));
  if (!size || text.empty()) return std::nullopt;
  return resident;
}

std::optional<std::int64_t> parse_busy_ns(std::string_view text, const CpuSet& cpus,
                                          std::int64_t tick_ns) noexcept {
  enum Field { user, nice, system, idle, iowait, irq, softirq, steal, count };
  std::int64_t busy = 0;
  bool any = false;
  while (!text.empty()) {
    const bool whole = text.find('\n') != std::string_view::npos;
    std::string_view line = take(text, '\n');
    if (!whole) return std::nullopt;
    if (!starts_with(line, "cpu")) return any ? std::optional(busy) : std::nullopt;
    const auto cpu = number<std::uint32_t>(take_word(line).substr(3));
    if (!cpu || *cpu >= kMaxCpus || !cpus.test(*cpu)) continue;  // "cpu": all of them
    for (int field = user; field < count; ++field) {
      // Old kernels end the line earlier.
      if (line.empty() && field >= iowait) break;
      const auto time = times(counter(take_word(line)), tick_ns);
      if (!time) return std::nullopt;
      if (field != idle && field != iowait && !add(busy, time)) return std::nullopt;
    }
    any = true;
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_pressure_ns(std::string_view text) noexcept {
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    if (take_word(line) != "some") continue;
    while (!line.empty()) {
      const std::string_view word = take_word(line);
      if (starts_with(word, "total=")) return times(counter(word.substr(6)), 1000);
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> parse_throttled_ns(std::string_view text) noexcept {
  while (!text.empty()) {
    std::string_view line = take(text, '\n');
    const std::string_view name = take_word(line);
    if (name == "throttled_time") return counter(line);
    if (name == "throttled_usec") return times(counter(line), 1000);
  }
  return std::nullopt;
}

std::optional<double> parse_cpu_max(std::string_view text) noexcept {
  text = trim(text);
  const std::string_view quota = take_word(text);
  const std::string_view period = take_word(text);
  if (quota == "max") return std::numeric_limits<double>::infinity();
  return parse_cfs_quota(quota, period.empty() ? "100000" : period);
}

std::optional<double> parse_cfs_quota(std::string_view quota_us, std::string_view period_us) noexcept {
  const auto quota = number(trim(quota_us));
  const auto period = number(trim(period_us));
  if (!quota || !period || *period <= 0) return std::nullopt;
  if (*quota <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

namespace {

struct Mount {
  std::string_view id;
  std::string_view root;  ///< what of the file system is mounted
  std::string_view where;
  std::string_view type;
  std::string_view options;
};

/// "36 35 0:30 /root /where rw,noatime master:1 - type source options"
std::optional<Mount> parse_mount(std::string_view line) noexcept {
  Mount mount;
  mount.id = take_word(line);
  for (int skipped = 0; skipped < 2; ++skipped) take_word(line);
  mount.root = take_word(line);
  mount.where = take_word(line);
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos || mount.where.empty()) return std::nullopt;
  line.remove_prefix(dash + 3);
  mount.type = take_word(line);
  take_word(line);
  mount.options = take_word(line);
  return mount;
}

/// mountinfo writes blanks as \040.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      unsigned code = 0;
      const auto [stop, error] = std::from_chars(&text[i + 1], text.data() + i + 4, code, 8);
      if (error == std::errc() && stop == text.data() + i + 4 && code < 256) {
        plain += static_cast<char>(code);
        i += 3;
        continue;
      }
    }
    plain += text[i];
  }
  return plain;
}

/// The path of the process's cgroup in the hierarchy of the cpu controller (version 1) or in the unified one.
std::optional<std::string_view> path_in(std::string_view cgroup, int version) noexcept {
  while (!cgroup.empty()) {
    std::string_view line = take(cgroup, '\n');
    const std::string_view hierarchy = take(line, ':');
    const std::string_view controllers = take(line, ':');
    if (version == 1 ? lists(controllers, "cpu") : hierarchy == "0" && controllers.empty()) return line;
  }
  return std::nullopt;
}

std::string below_mount(std::string_view path, std::string_view root) {
  if (root == "/") root = "";
  if (!starts_with(path, root)) return "";
  path.remove_prefix(root.size());
  // "/../x": the cgroup lies outside of what this namespace shows. "/dockerx" is not below "/docker".
  if (path == "/" || path.find("..") != std::string_view::npos || !starts_with(path, "/")) return "";
  return std::string(path);
}

}  // namespace

std::string_view mount_type(std::string_view mountinfo, std::int64_t id) noexcept {
  while (!mountinfo.empty()) {
    const auto mount = parse_mount(take(mountinfo, '\n'));
    if (mount && counter(mount->id) == id) return mount->type.substr(0, mount->type.find('.'));
  }
  return {};
}

std::optional<CpuCgroup> find_cpu_cgroup(std::string_view cgroup, std::string_view mountinfo) {
  // A machine with both hierarchies has the controller in one of them: version 1 if it is listed there.
  for (const int version : {1, 2}) {
    const auto path = path_in(cgroup, version);
    if (!path) continue;
    for (std::string_view rest = mountinfo; !rest.empty();) {
      const auto mount = parse_mount(take(rest, '\n'));
      if (!mount) continue;
      if (version == 1 ? mount->type == "cgroup" && lists(mount->options, "cpu") : mount->type == "cgroup2") {
        return CpuCgroup{version, unescaped(mount->where), below_mount(*path, unescaped(mount->root))};
      }
    }
  }
  return std::nullopt;
}

}  // namespace headrace::profile
