#include "api/dashboard/assets.h"

namespace commtune::api {

std::span<const Asset> dashboard_assets() { return {}; }

}  // namespace commtune::api
