#pragma once
// The command line as a page of the manual and as a shell's completion: both are made from the parser itself,
// so that they say what it takes.

#include <CLI/CLI.hpp>
#include <span>
#include <string>

namespace commtune::api {

/// tune(1), for `man`.
std::string manual_page(const CLI::App& tune);

/// For bash: commands, their flags, and files.
/// models  completed where a command could stand, since `tune MODEL` is the main job
std::string bash_completion(const CLI::App& tune, std::span<const std::string> models);

}  // namespace commtune::api
