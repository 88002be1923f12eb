#pragma once
// A struct's stored fields, each described once: its name in JSON, which values it takes, whether it may be
// missing. The reader, the writer, the digest and tests walk the same list, a function beside the struct:
//
//   template <typename Visitor, fields::Of<Piece> Given>
//   void visit_fields(Visitor& visit, Given& piece) {
//     visit("tensor", piece.tensor, fields::Whole{0, kMostTensors - 1});
//     visit("offset_bytes", piece.offset, fields::Whole{0, kLargestTensor});
//   }
//
// A visitor has three functions:
//   constant(name, text)                  always this text; "format" comes first
//   (name, value, rule)                   always written; fields::optional(name) may be missing in documents
//                                         of older versions, and then the value stays as it was; the digest
//                                         sees all but fields::aside(name)
//   when_set(name, value, rule, usual)    written only where it is not the usual value, by default T{}, and
//                                         seen by the digest only then: what was stored before there was
//                                         such a field keeps its digest. Not at all where it is aside(name)

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "perfmodel/base/digest.h"
#include "perfmodel/base/json_reader.h"
#include "perfmodel/base/units.h"

namespace commtune::fields {

/// A struct's fields are listed once for reading it and for writing a const one.
template <typename Given, typename Struct>
concept Of = std::same_as<std::remove_const_t<Given>, Struct>;

/// The name of a field, and what is special about it.
struct Field {
  // NOLINTNEXTLINE(google-explicit-constructor): most fields have nothing but a name
  constexpr Field(const char* its_name) : name(its_name) {}
  constexpr explicit Field(std::string_view its_name) : name(its_name) {}
  std::string_view name;
  bool may_be_missing = false;
  bool in_digest = true;
};
constexpr Field optional(Field field) {
  field.may_be_missing = true;
  return field;
}
constexpr Field aside(Field field) {
  field.in_digest = false;
  return field;
}

// --- rules: which values a field takes, and how they stand in JSON ---------------------------------------

struct Whole {
  std::uint64_t least, most;  ///< of an integer, or of Bytes
};
struct Signed {
  std::int64_t least, most;
};
struct Real {
  double least, most;  ///< of a ratio, of Seconds (in seconds) or of SecondsPerByte
};
struct Name {};     ///< as JsonPlace::name()
struct Text {};     ///< as JsonPlace::text()
struct Boolean {};  ///< a bool, as true or false
struct Truth {};    ///< a bool, stored as 0 or 1
struct Texts {      ///< a map from name to text
  std::size_t most;
  std::string_view what;  ///< "facts": what there are too many of
};
struct Object {
};  ///< a struct with a visit_fields() of its own, or with read_fields(), written() and add_to()

/// An enumerator by its name in a table of read_enum().
template <typename Enum, std::size_t kSize>
struct OneOf {
  const std::pair<std::string_view, Enum> (&table)[kSize];
};
template <typename Enum, std::size_t kSize>
OneOf(const std::pair<std::string_view, Enum> (&)[kSize]) -> OneOf<Enum, kSize>;

template <typename Each>
struct ListOf {
  std::size_t least, most;  ///< elements
  Each each;
};
template <typename Each>
ListOf(std::size_t, std::size_t, Each) -> ListOf<Each>;

/// A struct whose fields are listed where it is used: list(visitor, value).
template <typename List>
struct ObjectOf {
  List list;
};
template <typename List>
ObjectOf(List) -> ObjectOf<List>;

template <typename Visitor, typename Struct>
void walk(Visitor& visit, Struct& value, const Object& /*rule*/) {
  visit_fields(visit, value);
}
template <typename Visitor, typename Struct, typename List>
void walk(Visitor& visit, Struct& value, const ObjectOf<List>& rule) {
  rule.list(visit, value);
}

/// For when_set(). A struct that cannot be compared has one of its own.
template <typename T>
bool is_usual(const T& value, const T& usual) {
  return value == usual;
}

/// The number in a field: bytes, seconds, seconds per byte, or the value itself.
template <typename T>
constexpr auto bare(const T& value) {
  if constexpr (std::same_as<T, Bytes>) {
    return value.count;
  } else if constexpr (std::same_as<T, Seconds>) {
    return value.count();
  } else if constexpr (std::same_as<T, SecondsPerByte>) {
    return value.value;
  } else {
    return value;
  }
}

// --- reading ---------------------------------------------------------------------------------------------

/// Collects the names, for the refusal of others.
class KnownKeys {
 public:
  explicit KnownKeys(const JsonPlace& place) : place_(place) {}
  void constant(std::string_view name, std::string_view text) {
    if (name == "format") place_.expect_format(text);
    names_.push_back(name);
  }
  template <typename T, typename Rule>
  void operator()(const Field& field, T& /*value*/, const Rule& /*rule*/) {
    names_.push_back(field.name);
  }
  template <typename T, typename Rule>
  void when_set(const Field& field, T& /*value*/, const Rule& /*rule*/, const T& /*usual*/ = {}) {
    names_.push_back(field.name);
  }
  void check() const { place_.expect_keys(names_); }

 private:
  const JsonPlace& place_;
  std::vector<std::string_view> names_;
};

/// Not std::optional, which is read and written as what it holds.
template <typename T>
concept Plain = !requires(T value) {
  value.has_value();
};

template <Plain T>
void read_value(const JsonPlace& place, T& value, const Whole& rule) {
  value = T{static_cast<decltype(bare(value))>(place.integer(rule.least, rule.most))};
}
template <Plain T>
void read_value(const JsonPlace& place, T& value, const Signed& rule) {
  value = static_cast<T>(place.signed_integer(rule.least, rule.most));
}
template <Plain T>
void read_value(const JsonPlace& place, T& value, const Real& rule) {
  value = T{place.number(rule.least, rule.most)};
}
inline void read_value(const JsonPlace& place, std::string& value, const Name& /*rule*/) {
  value = place.name();
}
inline void read_value(const JsonPlace& place, std::string& value, const Text& /*rule*/) {
  value = place.text();
}
inline void read_value(const JsonPlace& place, bool& value, const Boolean& /*rule*/) {
  value = place.truth();
}
inline void read_value(const JsonPlace& place, bool& value, const Truth& /*rule*/) {
  value = place.integer(0, 1) == 1;
}
inline void read_value(const JsonPlace& place, std::map<std::string, std::string>& value, const Texts& rule) {
  for (const auto& [name, text] : place.object().items()) {
    if (value.size() == rule.most)
      place.fail_because("more than " + std::to_string(rule.most) + " " + std::string(rule.what));
    const JsonPlace each = place[name];
    value[name] = each.text();
  }
}
template <typename Enum, std::size_t kSize>
void read_value(const JsonPlace& place, Enum& value, const OneOf<Enum, kSize>& rule) {
  value = read_enum(place, rule.table);
}
template <typename T, typename Rule>
void read_value(const JsonPlace& place, std::optional<T>& value, const Rule& rule) {
  read_value(place, value.emplace(), rule);
}
template <typename T, typename Each>
void read_value(const JsonPlace& place, std::vector<T>& values, const ListOf<Each>& rule) {
  values.resize(place.size(rule.least, rule.most));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const JsonPlace element = place[i];
    read_value(element, values[i], rule.each);
  }
}

class Reader {
 public:
  explicit Reader(const JsonPlace& place) : place_(place) {}
  void constant(std::string_view name, std::string_view text) {
    const JsonPlace child = place_[name];
    if (child.name() != text) child.fail("\"" + std::string(text) + "\"");
  }
  template <typename T, typename Rule>
  void operator()(const Field& field, T& value, const Rule& rule) {
    if (field.may_be_missing) return when_set(field, value, rule);
    const JsonPlace child = place_[field.name];
    read_value(child, value, rule);
  }
  template <typename T, typename Rule>
  void when_set(const Field& field, T& value, const Rule& rule, const T& /*usual*/ = {}) {
    if (const auto child = place_.find(field.name)) read_value(*child, value, rule);
  }

 private:
  const JsonPlace& place_;
};

/// Refuses unknown keys, then reads field by field. Errors as in JsonPlace.
///
/// value  as by default: what is missing and may be stays so
template <typename T, typename Rule>
void read_fields(const JsonPlace& place, T& value, const Rule& rule) {
  KnownKeys keys(place);
  walk(keys, value, rule);
  keys.check();
  Reader reader(place);
  walk(reader, value, rule);
}
template <typename T>
void read_fields(const JsonPlace& place, T& value) {
  read_fields(place, value, Object{});
}
template <Plain T>
void read_value(const JsonPlace& place, T& value, const Object& /*rule*/) {
  read_fields(place, value);
}
template <Plain T, typename List>
void read_value(const JsonPlace& place, T& value, const ObjectOf<List>& rule) {
  read_fields(place, value, rule);
}

// --- writing ---------------------------------------------------------------------------------------------

template <typename T, typename Rule>
nlohmann::json written(const T& value, const Rule& /*rule*/) {
  return bare(value);
}
inline nlohmann::json written(bool value, const Truth& /*rule*/) { return value ? 1 : 0; }
template <typename Enum, std::size_t kSize>
nlohmann::json written(Enum value, const OneOf<Enum, kSize>& rule) {
  return enum_name(value, rule.table);
}
template <typename T, typename Rule>
nlohmann::json written(const std::optional<T>& value, const Rule& rule) {
  return value ? written(*value, rule) : nlohmann::json();
}
template <typename T, typename Each>
nlohmann::json written(const std::vector<T>& values, const ListOf<Each>& rule) {
  nlohmann::json out = nlohmann::json::array();
  for (const T& value : values) out.push_back(written(value, rule.each));
  return out;
}

class Writer {
 public:
  explicit Writer(nlohmann::json& object) : object_(object) {}
  void constant(std::string_view name, std::string_view text) { object_[std::string(name)] = text; }
  template <typename T, typename Rule>
  void operator()(const Field& field, const T& value, const Rule& rule) {
    object_[std::string(field.name)] = written(value, rule);
  }
  template <typename T, typename Rule>
  void when_set(const Field& field, const T& value, const Rule& rule, const T& usual = {}) {
    if (!is_usual(value, usual)) object_[std::string(field.name)] = written(value, rule);
  }

 private:
  nlohmann::json& object_;
};

template <typename T, typename Rule>
nlohmann::json write_fields(const T& value, const Rule& rule) {
  nlohmann::json object = nlohmann::json::object();
  Writer writer(object);
  walk(writer, value, rule);
  return object;
}
template <typename T>
nlohmann::json write_fields(const T& value) {
  return write_fields(value, Object{});
}
template <Plain T>
nlohmann::json written(const T& value, const Object& /*rule*/) {
  return write_fields(value);
}
template <typename T, typename List>
nlohmann::json written(const T& value, const ObjectOf<List>& rule) {
  return write_fields(value, rule);
}

// --- digest ----------------------------------------------------------------------------------------------

template <typename T, typename Rule>
void add_value(Digest& digest, const T& value, const Rule& /*rule*/) {
  digest.add(bare(value));
}
template <typename Enum, std::size_t kSize>
void add_value(Digest& digest, Enum value, const OneOf<Enum, kSize>& rule) {
  digest.add(enum_name(value, rule.table));
}
template <typename T, typename Each>
void add_value(Digest& digest, const std::vector<T>& values, const ListOf<Each>& rule) {
  digest.add(static_cast<std::uint64_t>(values.size()));
  for (const T& value : values) add_value(digest, value, rule.each);
}

/// First what every document has, then what is set: each of that led by its name, with hyphens, so that two
/// of them are never taken for each other.
class Adder {
 public:
  enum class Pass { kAlways, kSet };
  Adder(Digest& digest, Pass pass) : digest_(digest), pass_(pass) {}
  void constant(std::string_view /*name*/, std::string_view text) {
    if (pass_ == Pass::kAlways) digest_.add(text);
  }
  template <typename T, typename Rule>
  void operator()(const Field& field, const T& value, const Rule& rule) {
    if (pass_ == Pass::kAlways && field.in_digest) add_value(digest_, value, rule);
  }
  template <typename T, typename Rule>
  void when_set(const Field& field, const T& value, const Rule& rule, const T& usual = {}) {
    if (pass_ == Pass::kAlways || !field.in_digest || is_usual(value, usual)) return;
    std::string label(field.name);
    std::replace(label.begin(), label.end(), '_', '-');
    digest_.add(label);
    add_value(digest_, value, rule);
  }

 private:
  Digest& digest_;
  Pass pass_;
};

template <typename T, typename Rule>
void digest_fields(Digest& digest, const T& value, const Rule& rule) {
  for (const Adder::Pass pass : {Adder::Pass::kAlways, Adder::Pass::kSet}) {
    Adder adder(digest, pass);
    walk(adder, value, rule);
  }
}
template <typename T>
void digest_fields(Digest& digest, const T& value) {
  digest_fields(digest, value, Object{});
}
template <typename T>
void add_value(Digest& digest, const T& value, const Object& /*rule*/) {
  digest_fields(digest, value);
}
template <typename T, typename List>
void add_value(Digest& digest, const T& value, const ObjectOf<List>& rule) {
  digest_fields(digest, value, rule);
}

}  // namespace commtune::fields
