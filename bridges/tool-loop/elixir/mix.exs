defmodule ToolLoop.MixProject do
  use Mix.Project

  @build System.get_env("TOOL_LOOP_BUILD", ".")

  def project do
    [
      app: :tool_loop,
      version: "0.1.0",
      elixir: "~> 1.14",
      deps: [],
      build_path: Path.join(@build, "_build"),
      escript: [main_module: ToolLoop, path: Path.join(@build, "shellclaw-tool-loop")]
    ]
  end

  def application, do: [extra_applications: [:inets, :ssl, :public_key]]
end
