#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/actions/profile.h"
#include "api/cli/commands.h"
#include "api/cli/knob_flags.h"
#include "api/output/report.h"
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

Seconds time_of(const Layer& layer) { return layer.forward + layer.backward + layer.update; }

/// The layers that take the most, and all together. The optimizer's step has a column where it was timed.
std::string profile_report(const ProfileOutcome& outcome, std::string_view how) {
  const Profile& profile = outcome.profile;
  std::vector<const Layer*> layers;
  layers.reserve(profile.layers.size());
  for (const Layer& layer : profile.layers) layers.push_back(&layer);
  std::stable_sort(layers.begin(), layers.end(),
                   [](const Layer* a, const Layer* b) { return time_of(*a) > time_of(*b); });
  const bool has_updates = profile.update().count() > 0;
  const Seconds whole = profile.forward() + profile.backward() + profile.update();
  std::vector<Table::Column> columns{{"layer", Align::kLeft}, {"forward"}, {"backward"}};
  if (has_updates) columns.push_back({"update"});
  columns.push_back({"share"});
  Table table(std::move(columns));
  const auto add = [&](const std::string& name, Seconds forward, Seconds backward, Seconds update,
                       const std::string& part) {
    std::vector<std::string> cells{name, format_time(forward), format_time(backward)};
    if (has_updates) cells.push_back(format_time(update));
    cells.push_back(part);
    table.add(std::move(cells));
  };
  for (std::size_t i = 0; i < std::min(layers.size(), kSlowest); ++i) {
    const Layer& layer = *layers[i];
    add(layer.name, layer.forward, layer.backward, layer.update, share(time_of(layer), whole));
  }
  add(fmt::format("all {} layers", layers.size()), profile.forward(), profile.backward(), profile.update(),
      "");
  std::string text =
      fmt::format("{}, batch {}, on {}: {} in {}\n\n", profile.model, batch_text(profile.batch),
                  profile.origin.device.empty() ? "an unnamed device" : profile.origin.device, how,
                  format_time(outcome.elapsed));
  text += table.text();
  if (profile.batch > 0 && whole.count() > 0)
    text +=
        fmt::format("{:.2f} samples/s on one worker without communication\n", profile.batch / whole.count());
  text += fmt::format("{}\nnote: {}\n", profile.origin.source, profile.origin.note);
  return text;
}

void run_profile(const Session& session, const ProfileFlags& flags) {
  if (flags.request.model.empty() && flags.request.pytorch.empty() && flags.request.trace.empty())
    throw Error(ErrorCode::kBadInput, "MODEL, --pytorch FILE:CALLABLE or --import FILE is required");
  Work work(session);
  ProfileRequest request = flags.request;
  if (const auto path = session.environment.find("PATH"); path != session.environment.end())
    request.search_path = path->second;
  const InterruptGuard guard(*session.cancellation);
  const ProfileOutcome outcome = profile_model(work.context(), request);
  work.clear_progress();
  if (session.json) {
    session.print_json(to_json(outcome));
    return;
  }
  session.print(profile_report(outcome, request.trace.empty() ? "measured" : "imported"));
  session.print(fmt::format("\nnow: tune {} --cluster {}\n",
                            request.out.empty() ? outcome.digest : request.out, work.settings().cluster));
}

}  // namespace

void add_profile_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand(
      "profile", "Time every layer of a model on this machine, or import a trace, and keep the profile");
  command->footer(
      "Examples:\n"
      "  tune profile resnet50 --batch 16 --out resnet50-here.json\n"
      "  tune profile bert_base --batch 4 --threads 8 --budget 2m\n"
      "  tune profile resnet50 --batch 64 --device cuda --precision bf16\n"
      "  tune profile --pytorch train.py:make --batch 16     # make(16) returns (model, inputs[, loss])\n"
      "  tune profile --import trace.json --batch 16         # what PyTorch's profiler recorded\n"
      "  tune profile --import trace.json --model resnet50   # times of the trace, names and sizes of the "
      "model\n"
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
  CLI::Option* const trace = command
                                 ->add_option("--import", flags->request.trace,
                                              "times from a trace in place of a measurement: a Chrome trace "
                                              "of PyTorch's profiler, or a Chakra "
                                              "execution trace that chakra_trace_link made")
                                 ->type_name("FILE")
                                 ->excludes(model)
                                 ->excludes("--pytorch");
  command
      ->add_option("--model", flags->request.sizes,
                   "with --import: the profile that lends layers, names and sizes")
      ->type_name("NAME")
      ->default_str("the trace's own")
      ->needs(trace);
  add_common_flags(*command, session, {"cluster"});
  flags->request.device = "cpu";
  command
      ->add_option("--device", flags->request.device,
                   "what computes: cpu; cuda, a GPU; meta, with --pytorch, for sizes alone")
      ->capture_default_str();
  command
      ->add_option("--gpu", flags->request.gpu,
                   "with --device cuda: which GPU, as CUDA_VISIBLE_DEVICES numbers them")
      ->check(CLI::Range(0, 1023))
      ->capture_default_str();
  command
      ->add_option(
          "--precision", flags->request.precision,
          "with --device cuda: fp32, tf32 (products on tensor cores) or bf16 (as PyTorch's autocast)")
      ->capture_default_str();
  command->add_option("--batch", flags->request.batch, "samples of one iteration")
      ->check(CLI::Range(1, 1 << 20))
      ->default_str("the profile's; 1 with --pytorch, and with --import without --model");
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
