#include "recording/function_sample.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "crossing.h"
#include "headrace/metrics/clock.h"
#include "headrace/profile/layout.h"

namespace headrace::python {
namespace {

/// Calls and returns of a fetch: at 0.2 us each they cost the worker 20 ms, once.
constexpr std::int64_t kMaxEvents = 100'000;
/// Share of own time below which no function is named.
constexpr double kWorthNaming = 0.05;
constexpr std::size_t kMaxNamed = 3;
constexpr std::size_t kLongestName = 56;
constexpr std::size_t kLongestWithCaller = 84;
/// A library's function that takes so much of the time is named itself, else what the user's code called.
constexpr double kNamesLeaf = 0.5;

std::string text_of(PyObject* object) {
  const char* text = object != nullptr && PyUnicode_Check(object) != 0 ? PyUnicode_AsUTF8(object) : nullptr;
  if (text == nullptr) PyErr_Clear();
  return text != nullptr ? text : "";
}

std::string attribute(PyObject* object, const char* name) {
  const Owned value(PyObject_GetAttrString(object, name));
  if (!value) PyErr_Clear();
  return text_of(value.get());
}

/// "Jpegs.decode (train.py:12)"; the class is told from Python 3.11 on.
std::string name_of_code(PyObject* code) {
  std::string name = attribute(code, "co_qualname");
  if (name.empty()) name = attribute(code, "co_name");
  if (const std::size_t inner = name.rfind("<locals>."); inner != std::string::npos) name.erase(0, inner + 9);
  std::string file = attribute(code, "co_filename");
  file.erase(0, file.rfind('/') + 1);
  return name + " (" + file + ":" + std::to_string(reinterpret_cast<PyCodeObject*>(code)->co_firstlineno) +
         ")";
}

/// "sqlite3.Cursor.execute", "time.sleep".
std::string name_of_builtin(PyObject* function) {
  const auto* builtin = reinterpret_cast<PyCFunctionObject*>(function);
  PyObject* self = builtin->m_self;
  std::string owner;
  if (self != nullptr && PyModule_Check(self) == 0) {
    owner = (PyType_Check(self) != 0 ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self))->tp_name;
  } else {
    owner = text_of(builtin->m_module);
  }
  if (owner == "builtins") owner.clear();
  return (owner.empty() ? "" : owner + ".") + builtin->m_ml->ml_name;
}

/// A comprehension is a part of the function around it.
bool is_part_of_caller(PyCodeObject* code) {
  const char* name = PyUnicode_AsUTF8(code->co_name);
  if (name == nullptr) PyErr_Clear();
  return name != nullptr && name[0] == '<' && std::string_view(name) != "<lambda>";
}

/// The characters that the record's text is made of.
std::string plain(std::string name, std::size_t longest = kLongestName) {
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return std::string(profile::cut_at_character(name, longest));
}

}  // namespace

FunctionSample* FunctionSample::current = nullptr;

bool FunctionSample::begin() {
  if (PyThreadState_Get()->c_profilefunc != nullptr || current != nullptr) return false;
  frames_.clear();
  entered_.clear();
  events_ = 0;
  follows_ = true;
  thread_ = PyThread_get_thread_ident();
  current = this;
  begun_ns_ = last_ns_ = metrics::Clock::now_ns();
  PyEval_SetProfile(&FunctionSample::on_event, nullptr);
  return true;
}

void FunctionSample::end() {
  // The user's code may have set a profiler of its own meanwhile.
  if (PyThreadState_Get()->c_profilefunc == &FunctionSample::on_event) PyEval_SetProfile(nullptr, nullptr);
  current = nullptr;
  const std::int64_t took_ns = metrics::Clock::now_ns() - begun_ns_;
  elapsed_ns_ += took_ns;
  // The rest of a fetch of too many calls is taken to be like the part that was followed.
  const std::int64_t followed_ns = follows_ ? took_ns : last_ns_ - begun_ns_;
  extend(static_cast<double>(took_ns) / static_cast<double>(std::max<std::int64_t>(1, followed_ns)));
  record();
}

void FunctionSample::extend(double factor) {
  for (auto& [op, functions] : times_) {
    for (auto& [key, own] : functions) {
      own.ns = own.before_ns += std::llround(factor * static_cast<double>(own.ns - own.before_ns));
      own.called_ns = own.called_before_ns +=
          std::llround(factor * static_cast<double>(own.called_ns - own.called_before_ns));
    }
  }
}

void FunctionSample::enter(const Operator& op) {
  charge();
  const auto [found, is_new] = times_.try_emplace(op.get());
  if (is_new) kept_.push_back(op);
  entered_.push_back(op);
  Own* own = &found->second[Key{}];
  frames_.push_back({.own = own, .called = own, .is_operator = true});
}

void FunctionSample::leave() {
  charge();
  while (!frames_.empty() && !frames_.back().is_operator) frames_.pop_back();
  if (!frames_.empty()) frames_.pop_back();
  if (!entered_.empty()) entered_.pop_back();
}

void FunctionSample::charge() {
  if (!follows_) return;
  const std::int64_t now_ns = metrics::Clock::now_ns();
  if (!frames_.empty()) {
    frames_.back().own->ns += now_ns - last_ns_;
    frames_.back().called->called_ns += now_ns - last_ns_;
  }
  last_ns_ = now_ns;
}

void FunctionSample::call(const void* function, std::string (*name)(PyObject*), PyObject* object) {
  if (frames_.empty()) return;
  const Frame caller = frames_.back();
  const bool users = is_users(function, object);
  const Key key{function, users ? nullptr : caller.user};
  const auto [own, is_new] = times_[entered_.back().get()].try_emplace(key);
  if (is_new) {
    own->second.name = plain(name(object));
    if (!users && caller.user_function != nullptr)
      own->second.name = plain(own->second.name + " in " + caller.user_function->name, kLongestWithCaller);
    // A builtin's method would keep the object alive that it was called on; its table entry outlives the
    // fetch.
    if (PyCode_Check(object)) codes_.emplace_back(Py_NewRef(object));
  }
  Frame frame{.own = &own->second,
              .called = &own->second,
              .user = caller.user,
              .user_function = caller.user_function};
  if (users) {
    frame.user = function;
    frame.user_function = &own->second;
    frame.is_users = true;
  } else if (!caller.is_users && !caller.is_operator) {
    frame.called = caller.called;  // within a library
  }
  frames_.push_back(frame);
}

bool FunctionSample::is_users(const void* function, PyObject* object) {
  if (!PyCode_Check(object)) return false;
  const auto [found, is_new] = users_.try_emplace(function, false);
  if (!is_new) return found->second;
  const Owned is_the_users = imported("headrace.loaders.kit.names", "is_the_users");
  const Owned file(PyObject_GetAttrString(object, "co_filename"));
  const Owned answer(is_the_users && file ? PyObject_CallOneArg(is_the_users.get(), file.get()) : nullptr);
  found->second = answer && PyObject_IsTrue(answer.get()) == 1;
  forget_failure();
  return found->second;
}

void FunctionSample::returned() {
  if (!frames_.empty() && !frames_.back().is_operator) frames_.pop_back();
}

int FunctionSample::on_event(PyObject*, PyFrameObject* frame, int what, PyObject* argument) {
  FunctionSample* sample = current;
  if (sample == nullptr || !sample->follows_ || !sample->is_of_this_thread()) return 0;
  sample->charge();
  if (++sample->events_ > kMaxEvents) {
    sample->follows_ = false;
    return 0;
  }
  switch (what) {
    case PyTrace_CALL: {
      PyCodeObject* code = PyFrame_GetCode(frame);
      if (!sample->frames_.empty() && is_part_of_caller(code)) {
        Frame part = sample->frames_.back();
        part.is_operator = false;
        sample->frames_.push_back(part);
      } else {
        sample->call(code, name_of_code, reinterpret_cast<PyObject*>(code));
      }
      Py_DECREF(code);
      return PyErr_Occurred() != nullptr ? -1 : 0;  // a signal's handler raised while names were looked up
    }
    case PyTrace_C_CALL:
      if (PyCFunction_Check(argument) == 0) return 0;
      sample->call(reinterpret_cast<PyCFunctionObject*>(argument)->m_ml, name_of_builtin, argument);
      return PyErr_Occurred() != nullptr ? -1 : 0;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
      if (PyCFunction_Check(argument) != 0) sample->returned();
      break;
    case PyTrace_RETURN:
      sample->returned();
      break;
    default:
      break;
  }
  return 0;
}

void FunctionSample::record() const {
  for (const Operator& op : kept_) {
    std::vector<const Own*> sorted;
    double all_ns = 0;
    for (const auto& [function, own] : times_.at(op.get())) {
      all_ns += static_cast<double>(own.ns);
      if (!own.name.empty()) sorted.push_back(&own);
    }
    const auto most = std::max_element(sorted.begin(), sorted.end(),
                                       [](const Own* a, const Own* b) { return a->ns < b->ns; });
    const bool by_leaf = most != sorted.end() && static_cast<double>((*most)->ns) >= kNamesLeaf * all_ns;
    const auto shown_ns = [by_leaf](const Own* own) { return by_leaf ? own->ns : own->called_ns; };
    std::sort(sorted.begin(), sorted.end(),
              [&](const Own* a, const Own* b) { return shown_ns(a) > shown_ns(b); });
    std::string text;
    for (std::size_t i = 0; i < std::min(kMaxNamed, sorted.size()); ++i) {
      const double share = static_cast<double>(shown_ns(sorted[i])) / all_ns;
      if (share < kWorthNaming) break;
      char line[kLongestWithCaller + 16];
      std::snprintf(line, sizeof line, "%s\t%.2f\n", sorted[i]->name.c_str(), share);
      text += line;
    }
    op->sampled_functions(text);
  }
}

}  // namespace headrace::python
