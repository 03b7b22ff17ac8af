#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "headrace/profile/json_fields.h"
#include "headrace/profile/profile_json.h"
#include "profile/member_count.h"
#include "profile/profile_fields.h"

namespace headrace::profile {
namespace {

/// How many members of a struct are declared.
template <class Struct>
constexpr std::size_t declared_of() {
  std::size_t count = 0;
  figures_of(Of<Struct>{}, [&](const char*, auto, const Meaning&) { ++count; });
  return count;
}

class SchemaWriter {
 public:
  /// The struct itself comes after those that it is made of.
  template <Declared Struct>
  void add() {
    static_assert(declared_of<Struct>() == members_of<Struct>(),
                  "every member of the struct needs its line in figures_of()");
    const About what = about(Of<Struct>{});
    if (!known_.insert(what.name).second) return;
    nlohmann::json figures = nlohmann::json::array();
    const nlohmann::json defaults = JsonFieldWriter::object_of(Struct{});
    figures_of(Of<Struct>{}, [&]<class T>(const char* name, T Struct::*, const Meaning& meaning) {
      nlohmann::json figure{{"name", name}, {"says", meaning.says}};
      describe<T>(figure, meaning.unit_for(name));
      if (meaning.null == Null::when_unset) figure["null"] = true;
      if (!figure.contains("list") && !figure.contains("struct")) figure["default"] = defaults[name];
      figures.push_back(std::move(figure));
    });
    schema_.push_back({{"name", what.name}, {"says", what.says}, {"figures", std::move(figures)}});
  }

  nlohmann::json take() { return std::move(schema_); }

 private:
  template <class T>
  void describe(nlohmann::json& figure, const Unit& unit) {
    if constexpr (Declared<T>) {
      add<T>();
      figure["type"] = about(Of<T>{}).name;
      figure["struct"] = true;
    } else if constexpr (std::is_same_v<T, std::string> || std::is_enum_v<T> || kIsWord<T>) {
      figure["type"] = "string";
    } else if constexpr (std::is_same_v<T, ParameterValue>) {
      figure["type"] = "value";
    } else if constexpr (std::is_same_v<T, bool>) {
      figure["type"] = "boolean";
    } else if constexpr (std::is_same_v<T, std::vector<Setting>>) {
      figure["type"] = "object";
    } else if constexpr (std::is_same_v<T, std::map<std::string, double>>) {
      figure["type"] = "numbers";
    } else if constexpr (std::is_arithmetic_v<T>) {
      figure["type"] = std::is_integral_v<T> ? "integer" : "number";
      figure["unit"] = unit.name;
      figure["least"] = unit.least;
      figure["most"] = unit.most;
    } else {
      figure[kIsOptional<T> ? "null" : "list"] = true;
      describe<typename T::value_type>(figure, unit);
    }
  }

  std::set<std::string> known_;
  nlohmann::json schema_ = nlohmann::json::array();
};

}  // namespace

std::string profile_schema(int indent) {
  SchemaWriter writer;
  writer.add<Profile>();
  return dump_json(writer.take(), indent);
}

}  // namespace headrace::profile
