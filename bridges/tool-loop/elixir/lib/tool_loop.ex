defmodule ToolLoop do
  @moduledoc "Asks the model, runs the tools that it calls, tells it their results, and asks again. The state of the process is the conversation."

  use GenServer
  alias ToolLoop.{JSON, LlmClient}

  @options [system: :string, tools: :string, skills_dir: :string, log_file: :string, max: :integer]

  def main(argv) do
    {options, _, wrong} = OptionParser.parse(argv, strict: @options)
    if wrong != [] or options[:tools] == nil, do: stop(1, "usage: shellclaw-tool-loop --tools TOOLS [--system TEXT] [--skills-dir DIR] [--log-file FILE] [--max N]")
    if model() == "", do: stop(1, "no model: set TOOL_LOOP_MODEL")
    # Bytes pass as they are.
    :io.setopts(:standard_io, [:binary, encoding: :latin1])
    if folder = options[:skills_dir], do: System.put_env("BRAIDCLAW_TOOLS_DIR", folder)
    made = unless System.get_env("TOOL_LOOP_DIR"), do: private_folder()
    {:ok, loop} = GenServer.start_link(__MODULE__, options)
    answer = GenServer.call(loop, {:ask, IO.binread(:stdio, :eof)}, :infinity)
    if made, do: File.rm_rf!(made)

    case answer do
      {:text, text} -> IO.binwrite(:stdio, [text, "\n"])
      {:failed, why} -> stop(1, why)
      :too_many -> stop(2, "the limit of #{options[:max] || 5} tool rounds is reached")
    end
  end

  defp private_folder do
    folder = Path.join(System.tmp_dir!(), "tool-loop-#{Base.encode16(:crypto.strong_rand_bytes(8))}")
    File.mkdir!(folder)
    File.chmod!(folder, 0o700)
    System.put_env("TOOL_LOOP_DIR", folder)
    folder
  end

  defp stop(code, why) do
    IO.puts(:stderr, "tool-loop elixir: " <> String.replace(why, ~r/[\x00-\x08\x0b-\x1f\x7f-\x9f]/u, ""))
    System.halt(code)
  end

  @impl true
  def init(options) do
    url = System.get_env("ANTHROPIC_BASE_URL", "https://api.anthropic.com") |> String.trim_trailing("/") |> String.trim_trailing("/v1")
    max_tokens = String.to_integer(System.get_env("TOOL_LOOP_MAX_TOKENS", "4096"))
    state = %{url: url <> "/v1/messages", key: System.get_env("ANTHROPIC_API_KEY", ""), model: model(), max_tokens: max_tokens}
    system = if options[:system] in [nil, ""], do: %{}, else: %{system: options[:system]}
    {:ok, Enum.into(options, Map.merge(%{max: 5, log_file: ""}, state)) |> Map.delete(:system) |> Map.merge(system) |> Map.put(:list, options[:tools])}
  end

  @impl true
  def handle_call({:ask, message}, _from, state) do
    {told, code} = System.cmd(braidclaw(), ["tool", "list", "--tools", state.list, "--json"] ++ sandbox())
    {:ok, rows} = if code == 0, do: JSON.decode(told), else: throw({:failed, "tool list ended with #{code}"})
    tools = for %{"active" => true} = row <- rows, do: %{name: row["name"], description: row["description"], input_schema: row["parameters"]}
    state = if tools == [], do: Map.delete(state, :tools), else: %{state | tools: tools}
    {:reply, round(state, [%{role: "user", content: message}], 1), state}
  catch
    {:failed, why} -> {:reply, {:failed, why}, state}
  end

  defp round(state, messages, number) do
    iteration(state, number)
    %{"content" => blocks} = reply = LlmClient.ask(state, messages)
    if reply["stop_reason"] == "max_tokens", do: IO.puts(:stderr, "tool-loop elixir: the answer was cut by its limit (TOOL_LOOP_MAX_TOKENS)")

    case Enum.filter(blocks, &match?(%{"type" => "tool_use"}, &1)) do
      [] -> {:text, for(%{"type" => "text", "text" => text} <- blocks, into: "", do: text)}
      _ when number > state.max -> :too_many
      calls -> round(state, messages ++ [%{role: "assistant", content: blocks}, %{role: "user", content: Enum.map(calls, &dispatch_tool(&1, state))}], number + 1)
    end
  end

  # The arguments stand in a file: a command line is short, and every user of the machine can read it.
  @run ~S([ -z "$TOOL_LOOP_CALLER" ] || kill -0 "$TOOL_LOOP_CALLER" || exit 99; echo $$ >"$TOOL_LOOP_DIR/child"; exec "$0" "$@" <"$TOOL_LOOP_DIR/arguments")

  defp dispatch_tool(%{"id" => id, "name" => name, "input" => input}, state) do
    File.write!(Path.join(System.fetch_env!("TOOL_LOOP_DIR"), "arguments"), JSON.encode(input))
    words = ["tool", "run", "--channel", "tool-loop", "--tools", state.list, "--json", "-"] ++ agent() ++ sandbox() ++ ["--", name]
    {told, code} = System.cmd("sh", ["-c", @run, braidclaw() | words])
    # 1: the tool failed; 3, 4: not permitted; 5 to 7: a limit. Anything else, or no word, is no result but the end.
    unless code == 0 or (code in [1, 3, 4, 5, 6, 7] and told != ""), do: throw({:failed, "tool run #{name} ended with #{code}"})
    result = %{type: "tool_result", tool_use_id: id, content: told}
    if code == 0, do: result, else: Map.put(result, :is_error, true)
  end

  defp iteration(%{log_file: ""}, number), do: System.cmd(braidclaw(), ["log"] ++ agent() ++ ["--", "iteration", "#{number}"])

  defp iteration(%{log_file: file}, number) do
    name = List.last(["default" | agent()])
    now = DateTime.utc_now() |> DateTime.truncate(:second) |> DateTime.to_iso8601()
    File.write!(file, ~s({"ts":"#{now}","agent":"#{name}","event":"iteration","message":"#{number}"}\n), [:append])
  end

  defp model, do: System.get_env("TOOL_LOOP_MODEL", System.get_env("SHELLCLAW_MODEL", ""))
  defp braidclaw, do: System.get_env("BRAIDCLAW", "braidclaw")
  defp agent, do: option("--agent", System.get_env("TOOL_LOOP_AGENT", ""))
  defp sandbox, do: option("--sandbox", System.get_env("TOOL_LOOP_SANDBOX", ""))
  defp option(_, ""), do: []
  defp option(name, value), do: [name, value]
end
