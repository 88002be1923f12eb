#pragma once
// Knobs as flags: their names, kinds and help are the table's (api/options.h), their defaults the value's.

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "api/cli/session.h"
#include "api/options.h"
#include "perfmodel/base/units.h"
#include "perfmodel/device_kind.h"

namespace commtune::api {

/// As a flag takes them: "64M", "4"; "60s", "0.5s".
std::string flag_text(Bytes size);
std::string flag_text(Seconds time);

/// A description with what holds when the flag is not given, as help and the manual page show it:
/// "longest wait for any one message (default: 60s)".
std::string described(const CLI::Option& option);

/// For the whole app, before commands are added.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// The limits of a request, where a flag has the same.
CLI::Range range_of(const Knob& knob);

/// What parse() makes of the flag's text; errors name the flag.
template <typename T, typename Value>
CLI::Option* add_parsed(CLI::App& command, const Knob& knob, T& target, const char* type,
                        Value (*parse)(std::string_view)) {
  const std::string name(short_flag(knob));
  return command
      .add_option_function<std::string>(
          std::string(knob.flag),
          [name, &target, parse](const std::string& text) { target = parse_flag(name, text, parse); },
          std::string(knob.help))
      ->type_name(type);
}

/// As kDeviceKinds names them.
CLI::Option* add_device(CLI::App& command, const Knob& knob, std::function<void(DeviceKind)> take);

/// Adds the flag; the target is what it is by default and must outlive the app.
template <typename T>
CLI::Option* add_knob(CLI::App& command, const Knob& knob, T& target) {
  const std::string flag(knob.flag), help(knob.help);
  CLI::Option* option = nullptr;
  if constexpr (std::is_same_v<T, bool>) {
    option = command.add_flag(flag, target, help);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    option = add_parsed(command, knob, target, "SIZE", parse_size);
    if (target.count > 0) option->default_str(flag_text(target));
  } else if constexpr (std::is_same_v<T, Seconds>) {
    option = add_parsed(command, knob, target, "TIME", parse_duration);
    option->default_str(flag_text(target));
  } else if constexpr (std::is_same_v<T, DeviceKind> || std::is_same_v<T, std::optional<DeviceKind>>) {
    option = add_device(command, knob, [&target](DeviceKind device) { target = device; });
  } else if constexpr (std::is_same_v<T, std::optional<Seconds>>) {
    option = add_parsed(command, knob, target, "TIME", parse_duration);
  } else {
    option = command.add_option(flag, target, help);
    if constexpr (std::is_arithmetic_v<T>) option->capture_default_str();
  }
  if (!knob.usual.empty()) option->default_str(std::string(knob.usual));
  if (!knob.value.empty()) option->type_name(std::string(knob.value));
  return option;
}

}  // namespace commtune::api
