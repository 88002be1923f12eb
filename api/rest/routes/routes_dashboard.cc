// The dashboard's pages: one document for every address of a page, and the files that it asks for.

#include "api/dashboard/assets.h"
#include "api/rest/service.h"
#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

/// Nothing but this service is asked, and nothing in a page's text runs.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Those that the dashboard's router knows (api/dashboard/src/main.ts).
constexpr std::string_view kPages[] = {"clusters", "fits", "plans", "what-if", "runs", "tune", "jobs"};

const Asset* find_asset(std::string_view path) {
  for (const Asset& asset : dashboard_assets())
    if (asset.path == path) return &asset;
  return nullptr;
}

/// The HTTP library compresses texts by itself, too slowly for a large script: that is held compressed, under
/// a type of scripts that the library leaves alone. Every browser takes gzip.
Reply asset_reply(const Asset& asset) {
  Reply reply;
  reply.type = asset.type;
  reply.body = asset.body;
  if (!asset.encoding.empty()) reply.headers.emplace_back("Content-Encoding", asset.encoding);
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  reply.headers.emplace_back("Cache-Control",
                             asset.immutable ? "public, max-age=31536000, immutable" : "no-cache");
  reply.headers.emplace_back("Content-Security-Policy", kPolicy);
  return reply;
}

Reply page(const Request& /*request*/) {
  const Asset* document = find_asset("/index.html");
  if (document == nullptr)
    throw Error(ErrorCode::kNotFound,
                "dashboard: this program was built without it; build with Node.js 18, npm and "
                "COMMTUNE_DASHBOARD=ON. The service itself: /openapi.yaml");
  return asset_reply(*document);
}

Reply file(const Request& request) {
  const Asset* asset = find_asset(request.path);
  if (asset == nullptr) throw Error(ErrorCode::kNotFound, "no such file of the dashboard");
  return asset_reply(*asset);
}

}  // namespace

void add_dashboard_routes(Router& router) {
  router.add({"GET", "/", Scope::kNone, page});
  for (const std::string_view name : kPages) {
    const std::string path = "/" + std::string(name);
    router.add({"GET", path, Scope::kNone, page});
    router.add({"GET", path + "/{id}", Scope::kNone, page});
  }
  router.add({"GET", "/assets/{file}", Scope::kNone, file});
  router.add({"GET", "/favicon.svg", Scope::kNone, file});
}

}  // namespace commtune::api::rest
