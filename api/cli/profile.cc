#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/actions/profile.h"
#include "api/cli/commands.h"
#include "api/cli/knob_flags.h"
#include "api/output/table.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::api {
namespace {

constexpr std::size_t kSlowest = 10;

struct ProfileFlags {
  ProfileRequest request;
};

std::string share(Seconds part, Seconds whole) {
  return whole.count() > 0 ? fmt::format("{:.1f} %", 100 * (part / whole)) : "-";
}

/// The layers that take the most, and all together.
std::string profile_report(const ProfileOutcome& outcome) {
  const Profile& profile = outcome.profile;
  std::vector<const Layer*> layers;
  for (const Layer& layer : profile.layers) layers.push_back(&layer);
  std::stable_sort(layers.begin(), layers.end(), [](const Layer* a, const Layer* b) {
    return a->forward + a->backward > b->forward + b->backward;
  });
  const Seconds whole = profile.forward() + profile.backward();
  Table table({{"layer", Align::kLeft}, {"forward"}, {"backward"}, {"share"}});
  for (std::size_t i = 0; i < std::min(layers.size(), kSlowest); ++i) {
    table.add({layers[i]->name, format_time(layers[i]->forward), format_time(layers[i]->backward),
               share(layers[i]->forward + layers[i]->backward, whole)});
  }
  table.add({fmt::format("all {} layers", layers.size()), format_time(profile.forward()),
             format_time(profile.backward()), ""});
  std::string text = fmt::format("{}, batch {}, on {}: measured in {}\n\n", profile.model, profile.batch,
                                 profile.origin.device, format_time(outcome.elapsed));
  text += table.text();
  text += fmt::format("{:.2f} samples/s on one worker without communication\n{}\nnote: {}\n",
                      whole.count() > 0 ? profile.batch / whole.count() : 0, profile.origin.source,
                      profile.origin.note);
  return text;
}

void run_profile(const Session& session, const ProfileFlags& flags) {
  if (flags.request.model.empty() && flags.request.pytorch.empty())
    throw Error(ErrorCode::kBadInput, "MODEL or --pytorch FILE:CALLABLE is required");
  Work work(session);
  const ProfileRequest& request = flags.request;
  const InterruptGuard guard(*session.cancellation);
  const ProfileOutcome outcome = profile_model(work.context(), request);
  work.clear_progress();
  if (session.json) {
    session.print_json(to_json(outcome));
    return;
  }
  session.print(profile_report(outcome));
  session.print(fmt::format("\nnow: tune {} --cluster {}\n",
                            request.out.empty() ? outcome.digest : request.out, work.settings().cluster));
}

}  // namespace

void add_profile_command(CLI::App& tune, Session& session) {
  CLI::App* command =
      tune.add_subcommand("profile", "Time every layer of a model on this machine, and keep the profile");
  command->footer(
      "Examples:\n"
      "  tune profile resnet50 --batch 16 --out resnet50-here.json\n"
      "  tune profile bert_base --batch 4 --threads 8 --budget 2m\n"
      "  tune profile --pytorch train.py:make --batch 16     # make(16) returns (model, inputs[, loss])\n"
      "Then `tune resnet50-here.json --cluster lab` plans for these times, and `tune show profiles` lists "
      "them.");
  auto flags = std::make_shared<ProfileFlags>();
  CLI::Option* const model =
      command->add_option("MODEL", flags->request.model, "resnet50, vgg16, bert_base or bert_large");
  command
      ->add_option(
          "--pytorch", flags->request.pytorch,
          "a model of your own in place of MODEL: what this callable of a Python file makes for a batch")
      ->type_name("FILE:CALLABLE")
      ->excludes(model);
  add_common_flags(*command, session, {"cluster"});
  flags->request.device = "cpu";
  command
      ->add_option("--device", flags->request.device,
                   "what computes: cpu; meta, with --pytorch, for sizes alone")
      ->capture_default_str();
  command->add_option("--batch", flags->request.batch, "samples of one iteration")
      ->check(CLI::Range(1, 1 << 20))
      ->default_str("the shipped profile's; 1 with --pytorch");
  command->add_option("--threads", flags->request.threads, "threads of this processor that compute")
      ->check(CLI::Range(1, 4096))
      ->default_str("all");
  constexpr Knob budget = knob_of(Takes::kTime, "", "--budget",
                                  "longest time for the measurement; each shape is timed once at least");
  add_knob(*command, budget, flags->request.budget);
  constexpr Knob width =
      knob_of(Takes::kRatio, "", "--width", "a time is done when its median's 95 % interval is this narrow");
  add_knob(*command, width, flags->request.width);
  command->add_option("--out", flags->request.out, "write the profile to this file as well")
      ->type_name("FILE");
  command->callback(
      [&session, flags] { session.action = [&session, flags] { run_profile(session, *flags); }; });
}

}  // namespace commtune::api
