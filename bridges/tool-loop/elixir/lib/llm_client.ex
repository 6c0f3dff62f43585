defmodule ToolLoop.LlmClient do
  @moduledoc "Asks a model by the Messages API."

  alias ToolLoop.JSON

  @doc "Returns the reply, whose content is a list of blocks. Throws `{:failed, why}` for everything else."
  def ask(%{url: url, key: key} = state, messages) do
    body = JSON.encode(Map.merge(Map.take(state, [:model, :max_tokens, :tools, :system]), %{messages: messages}))
    headers = [{'anthropic-version', '2023-06-01'} | if(key == "", do: [], else: [{'x-api-key', to_charlist(key)}])]
    request = {to_charlist(url), headers, 'application/json', body}

    case :httpc.request(:post, request, [timeout: 600_000, autoredirect: false, ssl: tls(url)], body_format: :binary) do
      {:ok, {{_, 200, _}, _, text}} -> reply(url, JSON.decode(text), text)
      {:ok, {{_, status, _}, _, text}} -> throw({:failed, "#{url} answered #{status}: #{reason(JSON.decode(text))}"})
      {:error, _} -> throw({:failed, "#{url} did not answer"})
    end
  end

  defp reply(_, {:ok, %{"content" => blocks} = reply}, _) when is_list(blocks), do: reply
  defp reply(url, _, text), do: throw({:failed, "#{url} answered what is no reply: #{binary_part(text, 0, min(300, byte_size(text)))}"})

  defp reason({:ok, %{"error" => %{"message" => message}}}) when is_binary(message), do: message
  defp reason(_), do: "no reason given"

  defp tls("https:" <> _) do
    match = [match_fun: :public_key.pkix_verify_hostname_match_fun(:https)]
    [verify: :verify_peer, cacerts: :public_key.cacerts_get(), depth: 5, customize_hostname_check: match]
  end

  defp tls(_), do: []
end
