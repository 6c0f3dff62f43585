/** Answers the phrases that the offline helper understands through the real tools, and otherwise says that it is not a language model. */

import { isObject, type JsonObject } from '../../kit/json.ts'
import type { ChatRequest, Message, ToolSpec } from '../../runtime/port.ts'
import { type Intent, type Topic, understand } from './intents.ts'
import type { ScriptedReply } from './mock-fixture.ts'

type Result = Extract<Message, { role: 'tool' }>
const howToConnect =
  'To connect a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENROUTER_API_KEY or OLLAMA_HOST, or run "braidclaw onboard".'

/** Argument names that a tool's schema may use for each meaning; the first one in the schema is used. */
const meanings: { readonly [meaning: string]: readonly string[] } = {
  path: ['path', 'file', 'directory', 'dir', 'root', 'cwd'],
  content: ['content', 'text', 'contents'],
  command: ['command', 'cmd'],
  url: ['url', 'uri'],
  query: ['query', 'q', 'text', 'pattern'],
  pattern: ['pattern', 'query', 'regex', 'text', 'grep'],
  glob: ['glob', 'files', 'include', 'name', 'pattern'],
}

const shownCharacters = 20_000

/** Deterministic. Calls only tools of `request.tools`, one at a time, and answers when their result has arrived. */
export function offlineReply(request: ChatRequest): ScriptedReply {
  const asked = request.messages.findLastIndex((message) => message.role === 'user')
  const question = request.messages[asked]
  const wanted = understand(question?.role === 'user' ? question.content : '')
  const results = request.messages.slice(asked + 1).filter((message): message is Result => message.role === 'tool')
  if (results.length > 0) return reply({ text: report(wanted, results) })
  return wanted.kind === 'say' ? reply({ text: sentence(wanted.topic, request.tools) }) : callTool(wanted, request.tools)
}

function callTool(wanted: Extract<Intent, { kind: 'tool' }>, tools: readonly ToolSpec[]): ScriptedReply {
  const tool = tools.find((each) => each.name === wanted.tool)
  if (tool === undefined) {
    return reply({ text: `I would use the tool \`${wanted.tool}\` for that, but it is not available here. ${toolList(tools)}` })
  }
  const args = argumentsFor(tool, wanted.args)
  if (args === undefined) return reply({ text: `I do not know how to fill in the arguments of the tool \`${tool.name}\` for that.` })
  return reply({ calls: [{ name: tool.name, raw: JSON.stringify(args) }] })
}

/** @returns undefined when the schema lacks an argument for one of the values, or requires one that we do not have */
function argumentsFor(tool: ToolSpec, wanted: { readonly [meaning: string]: string }): JsonObject | undefined {
  const properties = isObject(tool.parameters.properties) ? Object.keys(tool.parameters.properties) : []
  const args: { [name: string]: string } = {}
  for (const [meaning, value] of Object.entries(wanted)) {
    const name = meanings[meaning]?.find((each) => properties.includes(each) && !Object.hasOwn(args, each))
    if (name !== undefined) args[name] = value
    else if (meaning !== 'path' || value !== '.') return undefined
  }
  return (tool.parameters.required ?? []).every((name) => Object.hasOwn(args, name)) ? args : undefined
}

function report(wanted: Intent, results: readonly Result[]): string {
  return results.map((result) => reportOne(wanted, result)).join('\n\n')
}

function reportOne(wanted: Intent, { name, content, isError }: Result): string {
  if (isError) return `The tool \`${name}\` did not do it: ${shorten(content)}`
  const lead = wanted.kind === 'tool' && wanted.tool === name ? wanted.lead : `The tool \`${name}\` answered:`
  return `${lead}\n\n${content.trim() === '' ? '(nothing)' : shorten(content)}`
}

function shorten(text: string): string {
  if (text.length <= shownCharacters) return text
  return `${text.slice(0, shownCharacters).toWellFormed()}\n(… ${text.length - shownCharacters} more characters not shown)`
}

function sentence(topic: Topic, tools: readonly ToolSpec[]): string {
  switch (topic) {
    case 'greeting':
      return 'Hello! I am the offline helper of BraidClaw. Ask me about the files here, the time, or what was said before; "help" tells more.'
    case 'thanks':
      return 'You are welcome.'
    case 'connect':
      return `${howToConnect} Or write a [providers.models.NAME] table into the config file; "braidclaw config show" tells where it is.`
    case 'tools':
      return toolList(tools)
    case 'self':
      return [
        'I am the offline helper of BraidClaw: a few fixed phrases and the real tools, no language model.',
        'I can answer things like “What files are in this project?”, “Read README.md”, “Search for TODO”, “What time is it?”,',
        '“What did I say about adapters?”, “Run `ls -la`”, “Fetch https://example.com” or “Write "hello" to notes.txt”.',
        toolList(tools),
        howToConnect,
      ].join('\n')
    case 'unknown':
      return `I did not understand that: I am BraidClaw's offline helper, not a language model, and know only a few phrases ("help" lists them). ${howToConnect}`
  }
}

function toolList(tools: readonly ToolSpec[]): string {
  if (tools.length === 0) return 'No tools are available to me here.'
  const names = tools.map((tool) => tool.name).toSorted()
  return `The tools I have here: ${names.join(', ')}.`
}

function reply(of: { readonly text?: string; readonly calls?: ScriptedReply['calls'] }): ScriptedReply {
  return { text: of.text ?? '', thinking: '', calls: of.calls ?? [], chunks: 1, delayMs: 0 }
}
