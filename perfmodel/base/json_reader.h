#pragma once
// Reading JSON that somebody else wrote: every refusal names the place, the rule and the value.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace commtune {

/// Parses JSON text. Throws Error{kBadInput} with the position for malformed text, numbers out of a double's
/// range, a key that an object has twice, and nesting deeper than 64 levels.
///
/// what  names the text in errors: a file name, "request body"
nlohmann::json parse_json(std::string_view text, std::string_view what);

/// A value inside a JSON document, with the path that leads to it. Methods that read throw Error{kBadInput}:
/// `layers[12].tensors[0].bytes: expected a positive integer, got -4`.
///
/// A child refers to its parent, so keep each in a variable of its own:
/// `const JsonPlace layers = document["layers"]; for (...) { const JsonPlace layer = layers[i]; ... }`.
class JsonPlace {
 public:
  /// document  must outlive this object
  explicit JsonPlace(const nlohmann::json& document) : value_(&document) {}

  // Object.
  /// Throws for a key that is not one of these, or if this is no object.
  void expect_keys(std::span<const std::string_view> known) const;
  void expect_keys(std::initializer_list<std::string_view> known) const {
    expect_keys(std::span(known.begin(), known.size()));
  }
  JsonPlace operator[](std::string_view key) const&;  ///< throws if missing
  JsonPlace operator[](std::string_view key) && = delete;
  std::optional<JsonPlace> find(std::string_view key) const&;  ///< nullopt if missing or null
  std::optional<JsonPlace> find(std::string_view key) && = delete;
  const nlohmann::json& object() const;
  bool is_object() const { return value_->is_object(); }
  bool is_number() const { return value_->is_number(); }
  bool is_truth() const { return value_->is_boolean(); }

  // Array.
  /// Number of elements. Throws if this is no array, or for fewer or more elements.
  std::size_t size(std::size_t least, std::size_t most) const;
  JsonPlace operator[](std::size_t index) const&;
  JsonPlace operator[](std::size_t index) && = delete;

  // Values.
  double number(double least, double most) const;
  std::uint64_t integer(std::uint64_t least, std::uint64_t most) const;
  bool truth() const;  ///< true or false
  std::int64_t signed_integer(std::int64_t least, std::int64_t most) const;
  /// At most 255 bytes without control characters, not empty: what names a thing.
  std::string name() const;
  /// At most 64 KiB: what a person wrote. May be empty.
  std::string text() const;

  /// Checks that "format" is `known` ("commtune/plan/1"); otherwise the error says which is understood, and
  /// whether a newer commtune made the document.
  void expect_format(std::string_view known) const;

  /// Throws the error for this place: `<path>: expected <rule>, got <value>`.
  [[noreturn]] void fail(std::string_view rule) const;
  /// The same for a rule that the value alone does not show: `<path>: <message>`.
  [[noreturn]] void fail_because(std::string_view message) const;

  std::string path() const;  ///< "layers[12].name"; "document" for the root

 private:
  JsonPlace(const nlohmann::json& value, const JsonPlace& parent, std::string_view key, std::size_t index)
      : value_(&value), parent_(&parent), key_(key), index_(index) {}

  bool has_format() const;  ///< whether the whole document is one of ours, with a version

  const nlohmann::json* value_;
  const JsonPlace* parent_ = nullptr;
  std::string_view key_;  ///< empty: an array's element
  std::size_t index_ = 0;
};

/// The enumerator of a table {{"ring", Collective::kRing}, ...} that the place names; otherwise the error
/// lists the table.
template <typename Enum, std::size_t kSize>
Enum read_enum(const JsonPlace& place, const std::pair<std::string_view, Enum> (&table)[kSize]) {
  const std::string given = place.name();
  std::string known;
  for (const auto& [text, value] : table) {
    if (text == given) {
      return value;
    }
    known += (known.empty() ? "\"" : ", \"") + std::string(text) + "\"";
  }
  place.fail("one of " + known);
}

/// The name of an enumerator in such a table.
template <typename Enum, std::size_t kSize>
std::string enum_name(Enum value, const std::pair<std::string_view, Enum> (&table)[kSize]) {
  for (const auto& [text, candidate] : table) {
    if (candidate == value) {
      return std::string(text);
    }
  }
  return "unknown";
}

}  // namespace commtune
