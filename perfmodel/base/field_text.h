#pragma once
// A struct's fields (fields.h) as the text of their JSON, without the JSON: for documents of many small
// objects, which take longer to build, to write and to take down than to write at once.

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "perfmodel/base/fields.h"

namespace commtune::fields {

/// What is written, and what of it are members of objects that have not ended.
class JsonText {
 public:
  void append(std::string_view text) { text_.append(text); }
  void append(std::integral auto number) {
    std::array<char, 24> digits;
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    text_.append(digits.data(), end);
  }
  void append_value(const nlohmann::json& value) {
    text_.append(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }

  std::size_t begin_object() {
    text_.push_back('{');
    return members_.size();
  }
  /// Its value follows.
  void begin_member(std::string_view name) {
    members_.push_back({name, text_.size()});
    text_.append("\"").append(name).append("\":");
  }
  void end_member() { text_.push_back(','); }
  /// first  as begin_object() returned
  void end_object(std::size_t first) {
    sort_members(first);
    members_.resize(first);
    end_list('}');
  }
  /// Takes back the comma after the last element, if there is one.
  void end_list(char closing) {
    if (text_.back() == ',') text_.pop_back();
    text_.push_back(closing);
  }

  std::string take() && { return std::move(text_); }

 private:
  struct Part {
    std::string_view name;
    std::size_t begin;
    std::size_t length = 0;
  };

  /// As nlohmann::json has them: by name.
  void sort_members(std::size_t first) {
    const std::span members(members_.data() + first, members_.size() - first);
    if (std::ranges::is_sorted(members, {}, &Part::name)) return;
    const std::size_t begin = members.front().begin;
    std::size_t end = text_.size();
    for (std::size_t i = members_.size(); i-- > first; end = members_[i].begin) {
      members_[i].length = end - members_[i].begin;
    }
    std::ranges::sort(members, {}, &Part::name);
    unsorted_.assign(text_, begin);
    text_.resize(begin);
    for (const Part& member : members) text_.append(unsorted_, member.begin - begin, member.length);
  }

  std::string text_, unsorted_;
  std::vector<Part> members_;
};

template <typename T, typename Rule>
void write_text(JsonText& text, const T& value, const Rule& /*rule*/) {
  using Number = std::remove_cvref_t<decltype(bare(value))>;
  if constexpr (std::integral<Number> && !std::same_as<Number, bool>) {
    text.append(bare(value));
  } else {
    text.append_value(bare(value));
  }
}
inline void write_text(JsonText& text, bool value, const Truth& /*rule*/) { text.append(value ? 1 : 0); }
template <typename Enum, std::size_t kSize>
void write_text(JsonText& text, Enum value, const OneOf<Enum, kSize>& rule) {
  text.append_value(enum_name(value, rule.table));
}
template <typename T, typename Rule>
void write_text(JsonText& text, const std::optional<T>& value, const Rule& rule) {
  if (!value) return text.append("null");
  write_text(text, *value, rule);
}
template <typename T, typename Each>
void write_text(JsonText& text, const std::vector<T>& values, const ListOf<Each>& rule) {
  text.append("[");
  for (const T& value : values) {
    write_text(text, value, rule.each);
    text.append(",");
  }
  text.end_list(']');
}

class TextWriter {
 public:
  explicit TextWriter(JsonText& text) : text_(text) {}
  void constant(std::string_view name, std::string_view value) {
    text_.begin_member(name);
    text_.append_value(value);
    text_.end_member();
  }
  template <typename T, typename Rule>
  void operator()(const Field& field, const T& value, const Rule& rule) {
    text_.begin_member(field.name);
    write_text(text_, value, rule);
    text_.end_member();
  }
  template <typename T, typename Rule>
  void when_set(const Field& field, const T& value, const Rule& rule, const T& usual = {}) {
    if (!is_usual(value, usual)) (*this)(field, value, rule);
  }

 private:
  JsonText& text_;
};

template <typename T, typename Rule>
void write_object(JsonText& text, const T& value, const Rule& rule) {
  const std::size_t first = text.begin_object();
  TextWriter writer(text);
  walk(writer, value, rule);
  text.end_object(first);
}
template <Plain T>
void write_text(JsonText& text, const T& value, const Object& rule) {
  if constexpr (requires(TextWriter writer) { visit_fields(writer, value); }) {
    write_object(text, value, rule);
  } else {
    text.append_value(written(value, rule));
  }
}
template <Plain T, typename List>
void write_text(JsonText& text, const T& value, const ObjectOf<List>& rule) {
  write_object(text, value, rule);
}

/// What write_fields() makes, in nlohmann's shortest form. What is not UTF-8 is replaced.
template <typename T>
std::string text_of(const T& value) {
  JsonText text;
  write_text(text, value, Object{});
  return std::move(text).take();
}

}  // namespace commtune::fields
