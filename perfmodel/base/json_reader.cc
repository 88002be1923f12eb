#include "perfmodel/base/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_set>
#include <vector>

#include "perfmodel/base/error.h"

namespace commtune {

namespace {

constexpr std::size_t kLongestName = 255;     // bytes: what a file's or a host's name has at most
constexpr std::size_t kLongestText = 65'536;  // bytes
constexpr std::size_t kDeepest = 64;          // levels: more than our documents have, and a stack has room
constexpr std::size_t kLongestQuote = 60;     // letters, so that an error stays one line

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

/// Text inside an error: one line, cut where it is long.
std::string printable(std::string_view text) {
  std::string shown{text.substr(0, kLongestQuote)};
  std::replace_if(shown.begin(), shown.end(), is_control, '?');
  return shown + (text.size() > kLongestQuote ? "..." : "");
}

/// A value as an error shows it. Containers by their kind only: their text may be of any length and depth.
std::string shown(const nlohmann::json& value) {
  if (value.is_object()) {
    return "an object";
  }
  if (value.is_array()) {
    return "an array";
  }
  if (value.is_string()) {
    return "\"" + printable(value.get_ref<const std::string&>()) + "\"";
  }
  return printable(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

constexpr const char* kOrNewer = " (or the document was made by a newer commtune)";

/// The number at the end of a format's name ("commtune/plan/1"); nothing if there is none.
std::optional<int> revision_of(std::string_view format) {
  const std::string_view digits = format.substr(format.rfind('/') + 1);
  int revision = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), revision);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  return revision;
}

/// Whether `format` names a later revision of what `known` names.
bool is_newer(const nlohmann::json& format, std::string_view known) {
  if (!format.is_string()) return false;
  const std::string_view name = format.get_ref<const std::string&>();
  const std::size_t stem = known.rfind('/') + 1;
  return name.substr(0, name.rfind('/') + 1) == known.substr(0, stem) &&
         revision_of(name) > revision_of(known);
}

std::string show_number(double value) { return nlohmann::json(value).dump(); }

/// Refuses what the parser itself would take: deep nesting and repeated keys.
class StrictParse {
 public:
  explicit StrictParse(std::string_view what) : what_(what) {}

  bool operator()(int depth, nlohmann::json::parse_event_t event, const nlohmann::json& parsed) {
    using Event = nlohmann::json::parse_event_t;
    if (static_cast<std::size_t>(depth) >= kDeepest) {  // a container's own start counts those around it
      refuse("nested deeper than " + std::to_string(kDeepest) + " levels");
    }
    if (event == Event::object_start) {
      keys_.emplace_back();
    } else if (event == Event::object_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) {
        refuse("the key \"" + printable(key) + "\" appears twice in one object");
      }
    }
    return true;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::kBadInput, std::string(what_) + ": " + why);
  }

  std::string_view what_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view what) {
  try {
    return nlohmann::json::parse(text.begin(), text.end(), StrictParse(what));
  } catch (const nlohmann::json::exception& e) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the library's prefix
    const std::string_view whole = e.what();
    const std::size_t end = whole.find("] ");
    throw Error(ErrorCode::kBadInput,
                std::string(what) + ": not valid JSON: " +
                    std::string(end == std::string_view::npos ? whole : whole.substr(end + 2)));
  }
}

const nlohmann::json& JsonPlace::object() const {
  if (!value_->is_object()) {
    fail("an object");
  }
  return *value_;
}

void JsonPlace::expect_keys(std::span<const std::string_view> known) const {
  for (const auto& [key, value] : object().items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) {
      continue;
    }
    std::string list;
    for (const std::string_view k : known) {
      list += (list.empty() ? "" : ", ") + std::string(k);
    }
    const std::string quoted = printable(key);
    JsonPlace(value, *this, quoted.empty() ? "\"\"" : std::string_view(quoted), 0)
        .fail_because("unknown key; known here: " + list + (has_format() ? kOrNewer : ""));
  }
}

JsonPlace JsonPlace::operator[](std::string_view key) const& {
  const auto found = object().find(key);
  if (found == value_->end()) {
    JsonPlace(*value_, *this, key, 0).fail_because("missing");
  }
  return {*found, *this, key, 0};
}

std::optional<JsonPlace> JsonPlace::find(std::string_view key) const& {
  const auto found = object().find(key);
  if (found == value_->end() || found->is_null()) {
    return std::nullopt;
  }
  return JsonPlace(*found, *this, key, 0);
}

std::size_t JsonPlace::size(std::size_t least, std::size_t most) const {
  if (!value_->is_array()) {
    fail("an array");
  }
  const std::size_t n = value_->size();
  if (n < least || n > most) {
    fail_because("expected " +
                 (n < least ? "at least " + std::to_string(least) : "at most " + std::to_string(most)) +
                 " elements, got " + std::to_string(n));
  }
  return n;
}

JsonPlace JsonPlace::operator[](std::size_t index) const& { return {(*value_)[index], *this, {}, index}; }

double JsonPlace::number(double least, double most) const {
  const double value = value_->is_number() ? value_->get<double>() : std::nan("");
  if (!(value >= least && value <= most)) {
    fail("a number from " + show_number(least) + " to " + show_number(most));
  }
  return value;
}

std::uint64_t JsonPlace::integer(std::uint64_t least, std::uint64_t most) const {
  // A number that is not negative may be stored as signed where the document was not parsed from text.
  const bool whole =
      value_->is_number_unsigned() || (value_->is_number_integer() && value_->get<std::int64_t>() >= 0);
  const std::uint64_t value = whole ? value_->get<std::uint64_t>() : 0;
  if (!whole || value < least) {
    fail(least == 0   ? "an integer that is not negative"
         : least == 1 ? "a positive integer"
                      : "an integer of at least " + std::to_string(least));
  }
  if (value > most) {
    fail("an integer of at most " + std::to_string(most));
  }
  return value;
}

std::int64_t JsonPlace::signed_integer(std::int64_t least, std::int64_t most) const {
  bool fits = value_->is_number_integer();
  if (value_->is_number_unsigned()) {
    fits = value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX);
  }
  const std::int64_t value = fits ? value_->get<std::int64_t>() : 0;
  if (!fits || value < least || value > most) {
    fail("an integer from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

bool JsonPlace::truth() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

std::string JsonPlace::name() const {
  if (!value_->is_string()) {
    fail("text");
  }
  const auto& text = value_->get_ref<const std::string&>();
  if (text.empty() || text.size() > kLongestName || std::any_of(text.begin(), text.end(), is_control)) {
    fail("1 to " + std::to_string(kLongestName) + " bytes of text without control characters");
  }
  return text;
}

std::string JsonPlace::text() const {
  if (!value_->is_string()) {
    fail("text");
  }
  const auto& text = value_->get_ref<const std::string&>();
  if (text.size() > kLongestText) {
    fail("at most " + std::to_string(kLongestText) + " bytes of text");
  }
  return text;
}

void JsonPlace::expect_format(std::string_view known) const {
  const JsonPlace format = (*this)["format"];
  if (*format.value_ != known) {
    format.fail_because("expected \"" + std::string(known) +
                        "\", which is the only format understood here, got " + shown(*format.value_) +
                        (is_newer(*format.value_, known) ? ", made by a newer commtune" : ""));
  }
}

bool JsonPlace::has_format() const {
  const JsonPlace* root = this;
  while (root->parent_ != nullptr) root = root->parent_;
  return root->value_->is_object() && root->value_->contains("format");
}

void JsonPlace::fail(std::string_view rule) const {
  fail_because("expected " + std::string(rule) + ", got " + shown(*value_));
}

void JsonPlace::fail_because(std::string_view message) const {
  throw Error(ErrorCode::kBadInput, path() + ": " + std::string(message));
}

std::string JsonPlace::path() const {
  if (parent_ == nullptr) {
    return "document";
  }
  const std::string before = parent_->parent_ == nullptr ? "" : parent_->path();
  if (key_.empty()) {
    return before + "[" + std::to_string(index_) + "]";
  }
  return before + (before.empty() ? "" : ".") + std::string(key_);
}

}  // namespace commtune
