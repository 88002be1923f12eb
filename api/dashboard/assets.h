#pragma once
// The dashboard's files inside the program. Made by build.mjs, or none_built.cc in a build without it.

#include <span>
#include <string_view>

namespace commtune::api {

struct Asset {
  std::string_view path;      ///< "/index.html", "/assets/main-ABCDEFGH.js"
  std::string_view type;      ///< media type
  std::string_view encoding;  ///< of the body, for Content-Encoding; empty: none
  bool immutable;             ///< its path changes with its content, so that it may be kept for ever
  std::string_view body;
};

/// Empty when the program was built without the dashboard (COMMTUNE_DASHBOARD=OFF).
std::span<const Asset> dashboard_assets();

}  // namespace commtune::api
