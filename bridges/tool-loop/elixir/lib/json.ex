defmodule ToolLoop.JSON do
  @moduledoc "Reads and writes JSON (RFC 8259). A decoded object is a map that holds the order of its keys under `:keys`."

  def decode(text) do
    {value, rest} = value(skip(text))
    if skip(rest) == "", do: {:ok, value}, else: :error
  rescue
    ArgumentError -> :error
  catch
    :bad -> :error
  end

  defp value("null" <> rest), do: {nil, rest}
  defp value("true" <> rest), do: {true, rest}
  defp value("false" <> rest), do: {false, rest}
  defp value("\"" <> rest), do: string(rest, [])
  defp value("[" <> rest), do: items(skip(rest), [])
  defp value("{" <> rest), do: members(skip(rest), %{keys: []})

  defp value(text) do
    case Regex.run(~r/\A-?(?:0|[1-9]\d*)(?:(\.\d+)?(?:[eE][+-]?\d+)?)/, text) do
      [number | _] -> {number(number), binary_part(text, byte_size(number), byte_size(text) - byte_size(number))}
      nil -> throw(:bad)
    end
  end

  defp number(text) do
    cond do
      text =~ "." -> String.to_float(text)
      text =~ ~r/[eE]/ -> String.to_float(String.replace(text, ~r/[eE]/, ".0e"))
      true -> String.to_integer(text)
    end
  end

  defp items("]" <> rest, []), do: {[], rest}

  defp items(text, found) do
    {value, rest} = value(text)

    case skip(rest) do
      "," <> rest -> items(skip(rest), [value | found])
      "]" <> rest -> {Enum.reverse([value | found]), rest}
      _ -> throw(:bad)
    end
  end

  defp members("}" <> rest, %{keys: []} = found), do: {found, rest}

  defp members("\"" <> rest, found) do
    with {key, rest} <- string(rest, []), ":" <> rest <- skip(rest), {value, rest} <- value(skip(rest)) do
      keys = if is_map_key(found, key), do: found.keys, else: [key | found.keys]
      found = Map.put(%{found | keys: keys}, key, value)

      case skip(rest) do
        "," <> rest -> members(skip(rest), found)
        "}" <> rest -> {%{found | keys: Enum.reverse(found.keys)}, rest}
        _ -> throw(:bad)
      end
    else
      _ -> throw(:bad)
    end
  end

  defp members(_, _), do: throw(:bad)

  @escapes %{?" => "\"", ?\\ => "\\", ?/ => "/", ?b => "\b", ?f => "\f", ?n => "\n", ?r => "\r", ?t => "\t"}

  defp string("\"" <> rest, found), do: {found |> Enum.reverse() |> IO.iodata_to_binary(), rest}

  defp string(<<"\\u", high::binary-4, "\\u", low::binary-4, rest::binary>>, found)
       when binary_part(high, 0, 1) in ["d", "D"] and binary_part(low, 0, 1) in ["d", "D"] do
    {high, low} = {String.to_integer(high, 16), String.to_integer(low, 16)}
    pair? = high in 0xD800..0xDBFF and low in 0xDC00..0xDFFF
    string(rest, [if(pair?, do: <<0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00::utf8>>, else: "\uFFFD\uFFFD") | found])
  end

  defp string(<<"\\u", hex::binary-4, rest::binary>>, found) do
    code = String.to_integer(hex, 16)
    string(rest, [if(code in 0xD800..0xDFFF, do: "\uFFFD", else: <<code::utf8>>) | found])
  end

  defp string(<<?\\, escape, rest::binary>>, found) when is_map_key(@escapes, escape), do: string(rest, [@escapes[escape] | found])
  defp string(<<char::utf8, rest::binary>>, found) when char >= 32 and char != ?\\, do: string(rest, [<<char::utf8>> | found])
  defp string(_, _), do: throw(:bad)

  defp skip(<<space, rest::binary>>) when space in ' \t\r\n', do: skip(rest)
  defp skip(text), do: text

  def encode(nil), do: "null"
  def encode(value) when is_boolean(value) or is_integer(value), do: to_string(value)
  def encode(value) when is_float(value), do: :erlang.float_to_binary(value, [:short])
  def encode(value) when is_binary(value), do: IO.iodata_to_binary([?", quoted(value, []), ?"])
  def encode(value) when is_list(value), do: "[#{Enum.map_join(value, ",", &encode/1)}]"
  def encode(%{keys: keys} = value), do: object(keys, value)
  def encode(value) when is_map(value), do: object(Map.keys(value), value)

  defp object(keys, value), do: "{#{Enum.map_join(keys, ",", &"#{encode(to_string(&1))}:#{encode(value[&1])}")}}"

  defp quoted(<<char, rest::binary>>, done) when char in [?", ?\\], do: quoted(rest, [done, ?\\, char])
  defp quoted(<<char, rest::binary>>, done) when char < 32, do: quoted(rest, [done, "\\u00", Base.encode16(<<char>>)])
  defp quoted(<<char::utf8, rest::binary>>, done), do: quoted(rest, [done | <<char::utf8>>])
  defp quoted(<<_, rest::binary>>, done), do: quoted(rest, [done | "\uFFFD"])
  defp quoted("", done), do: done
end
