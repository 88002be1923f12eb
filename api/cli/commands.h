#pragma once
// The commands of `tune`: each adds its flags and examples to the parser, and an action to the session.

#include <CLI/CLI.hpp>

#include "api/cli/session.h"

namespace commtune::api {

void add_plan_command(CLI::App& tune, Session& session);  ///< tune MODEL: the main job
void add_probe_command(CLI::App& tune, Session& session);
void add_profile_command(CLI::App& tune, Session& session);
void add_run_command(CLI::App& tune, Session& session);
void add_show_command(CLI::App& tune, Session& session);
void add_scale_command(CLI::App& tune, Session& session);
void add_map_command(CLI::App& tune, Session& session);
void add_export_command(CLI::App& tune, Session& session);
void add_serve_command(CLI::App& tune, Session& session);
void add_token_command(CLI::App& tune, Session& session);
void add_store_command(CLI::App& tune, Session& session);
void add_config_command(CLI::App& tune, Session& session);
void add_methods_command(CLI::App& tune, Session& session);
void add_manual_command(CLI::App& tune, Session& session);  ///< for packagers; not shown

}  // namespace commtune::api
