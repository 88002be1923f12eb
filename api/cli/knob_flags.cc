#include "api/cli/knob_flags.h"

#include <fmt/format.h>

#include <utility>

namespace commtune::api {
namespace {

/// CLI11's, but that defaults stand in the description, as in the manual page.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text;
    if (option->get_items_expected_max() > 0 && !option->get_type_name().empty())
      text += " " + option->get_type_name();
    if (option->get_required()) text += " (required)";
    return text;
  }
  std::string make_option_desc(const CLI::Option* option) const override { return described(*option); }
};

}  // namespace

std::string flag_text(Bytes size) {
  for (const auto& [shift, unit] : {std::pair{30U, "G"}, {20U, "M"}, {10U, "K"}}) {
    const std::uint64_t whole_units = size.count >> shift;
    if (whole_units > 0 && whole_units << shift == size.count) return fmt::format("{}{}", whole_units, unit);
  }
  return fmt::format("{}", size.count);
}

std::string flag_text(Seconds time) { return fmt::format("{:g}s", time.count()); }

std::string described(const CLI::Option& option) {
  const std::string& usual = option.get_default_str();
  return option.get_description() + (usual.empty() ? "" : fmt::format(" (default: {})", usual));
}

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

CLI::Range range_of(const Knob& knob) {
  if (knob.takes == Takes::kRatio) return {knob.least, knob.most};
  return {static_cast<long long>(knob.least), static_cast<long long>(knob.most)};
}

CLI::Option* add_device(CLI::App& command, const Knob& knob, std::function<void(DeviceKind)> take) {
  std::vector<std::string> names;
  for (const auto& [name, kind] : kDeviceKinds) names.emplace_back(name);
  const auto set = [take = std::move(take)](const std::string& text) {
    for (const auto& [name, kind] : kDeviceKinds)
      if (name == text) take(kind);
  };
  return command.add_option_function<std::string>(std::string(knob.flag), set, std::string(knob.help))
      ->check(CLI::IsMember(names));
}

}  // namespace commtune::api
