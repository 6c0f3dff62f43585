/** Answers the phrases that the offline helper understands through the real tools, and otherwise says that it is not a language model. */

import { isObject, type JsonObject } from '../../kit/json.ts'
import type { ChatRequest, Message, ToolSpec } from '../../runtime/port.ts'
import type { ScriptedReply } from './mock-fixture.ts'

type ToolMessage = Extract<Message, { role: 'tool' }>
const howToConnect =
  'To connect a real model, run "braidclaw onboard", or set OPENAI_API_KEY, ANTHROPIC_API_KEY or another key of docs/models.md.'

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
  const last = request.messages.findLastIndex((message) => message.role === 'user')
  const question = request.messages[last]
  const intent = understand(question?.role === 'user' ? question.content : '')
  const results = request.messages.slice(last + 1).filter((message): message is ToolMessage => message.role === 'tool')
  if (results.length > 0) return reply({ text: report(intent, results) })
  return intent.kind === 'say' ? reply({ text: sentence(intent.topic, request.tools) }) : callTool(intent, request.tools)
}

function callTool(intent: Extract<Intent, { kind: 'tool' }>, tools: readonly ToolSpec[]): ScriptedReply {
  const tool = tools.find((each) => each.name === intent.tool)
  if (tool === undefined) {
    return reply({ text: `I would use the tool \`${intent.tool}\` for that, but it is not available here. ${toolList(tools)}` })
  }
  const args = argumentsFor(tool, intent.args)
  if (args === undefined) return reply({ text: `I do not know how to fill in the arguments of the tool \`${tool.name}\` for that.` })
  return reply({ calls: [{ name: tool.name, raw: JSON.stringify(args) }] })
}

/** @returns undefined when the schema lacks an argument for one of the values, or requires one that we do not have */
function argumentsFor(tool: ToolSpec, values: { readonly [meaning: string]: string }): JsonObject | undefined {
  const properties = isObject(tool.parameters.properties) ? Object.keys(tool.parameters.properties) : []
  const args: { [name: string]: string } = {}
  for (const [meaning, value] of Object.entries(values)) {
    const name = meanings[meaning]?.find((each) => properties.includes(each) && !Object.hasOwn(args, each))
    if (name !== undefined) args[name] = value
    else if (meaning !== 'path' || value !== '.') return undefined
  }
  return (tool.parameters.required ?? []).every((name) => Object.hasOwn(args, name)) ? args : undefined
}

function report(intent: Intent, results: readonly ToolMessage[]): string {
  return results.map((result) => reportOne(intent, result)).join('\n\n')
}

function reportOne(intent: Intent, { name, content, isError }: ToolMessage): string {
  if (isError) return `The tool \`${name}\` did not do it: ${shorten(content)}`
  const lead = intent.kind === 'tool' && intent.tool === name ? intent.lead : `The tool \`${name}\` answered:`
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

/** `args` are keyed by meaning; the tool's own schema decides the argument names. */
type Intent =
  | { readonly kind: 'tool'; readonly tool: string; readonly args: { readonly [meaning: string]: string }; readonly lead: string }
  | { readonly kind: 'say'; readonly topic: Topic }

type Topic = 'greeting' | 'thanks' | 'self' | 'tools' | 'connect' | 'unknown'

/** Tried in this order; the first function that recognises the sentence decides. */
const intents: readonly ((text: string) => Intent | undefined)[] = [
  smallTalk,
  commandIntent,
  writeFile,
  fetchUrl,
  recall,
  readClock,
  findFiles,
  listFiles,
  searchText,
  readFile,
  aboutItself,
]

/** Always returns an intent; the topic is `unknown` when nothing matches. */
export function understand(message: string): Intent {
  const text = message
    .trim()
    .replaceAll('’', "'")
    .replace(/^(?:(?:please|could you|would you|can you|ok|okay|so|hey|now)[,\s]+)+(?=\S)(?!do\b)/i, '')
    .replace(/[\s?!.]+$/, '')
  if (text.length > 2_000) return say('unknown')
  for (const recognise of intents) {
    const intent = recognise(text)
    if (intent !== undefined) return intent
  }
  return say('unknown')
}

function smallTalk(text: string): Intent | undefined {
  if (/^(?:hi|hello|hey|howdy|good (?:morning|afternoon|evening))(?: there| again| braidclaw)?$/i.test(text)) return say('greeting')
  if (/^(?:thanks|thank you|thx|bye|goodbye)(?: .{0,20})?$/i.test(text)) return say('thanks')
  return /^(?:(?:what|which|list|show me|show|tell me)(?: (?:the|your|all|available))* tools\b.*|tools)$/i.test(text)
    ? say('tools')
    : undefined
}

function commandIntent(text: string): Intent | undefined {
  const said = /^(?:(?:run|execute)(?: the)?(?: shell)?(?: command)?:?\s+|\$\s*)(.+)$/is.exec(text)?.[1]
  if (said === undefined) return undefined
  const command = quotedIn(said) ?? (/^(?:the|a|an|my|all|some|this|that|it|tests?)\b/i.test(said) ? undefined : said)
  return command === undefined ? undefined : use('shell', { command }, `\`${command}\` printed:`)
}

function writeFile(text: string): Intent | undefined {
  const named = '(?:the |a )?(?:new )?(?:file )?(?:called |named )?(\\S+)'
  const into = new RegExp(`^(?:write|save|put)\\s+(.+)\\s+(?:to|into|in)\\s+${named}$`, 'is').exec(text)
  const having = new RegExp(
    `^(?:create|make|write)\\s+${named}\\s+(?:with|containing|saying)\\s+(?:the )?(?:text |contents? )?(.+)$`,
    'is',
  ).exec(text)
  const [content, path] = having === null ? [into?.[1], into?.[2]] : [having[2], having[1]]
  if (content === undefined || path === undefined) return undefined
  const target = unquoted(path)
  return use('file_write', { path: target, content: quotedIn(content) ?? content }, `Writing \`${target}\`:`)
}

function fetchUrl(text: string): Intent | undefined {
  const url = /https?:\/\/[^\s"'`<>]+/i.exec(text)?.[0].replace(/[.,!?)]+$/, '')
  const isRequest = /^(?:https?:|fetch|get|open|download|read|show|visit|load|what)/i.test(text)
  return url !== undefined && isRequest ? use('http', { url }, `${url} answered:`) : undefined
}

function recall(text: string): Intent | undefined {
  const past =
    /^(?:what did (?:i|we|you) (?:say|tell you|talk|discuss|write|decide)|did (?:i|we) (?:ever )?(?:talk|speak|say|mention|discuss))\b/i
  const have = /^(?:(?:do you |can you )?(?:remember|recall)|have (?:i|we) (?:ever )?(?:talked|spoken|discussed|mentioned))\b/i
  const search =
    /^(?:search|look in|ask|check)(?: in)?(?: the| your| my| our)? (?:memory|history|past conversations|conversations)\b|^memory\b:?/i
  const opening = [past, have, search].map((pattern) => pattern.exec(text)?.[0]).find((found) => found !== undefined)
  if (opening === undefined) return undefined
  const rest = text.slice(opening.length).replace(/^\s*(?:anything|something)?\s*(?:about|for|of|on|regarding)?\s*/i, '')
  const query = quotedIn(rest) ?? rest
  return query === '' ? undefined : use('memory_search', { query }, `In memory, about “${query}”:`)
}

function readClock(text: string): Intent | undefined {
  const asks = /^(?:what|tell me|give me|show me|do you know|the|current|today)?\b.*\b(?:time|date|day|clock)\b/i.test(text)
  const plain =
    /^(?:(?:what|what's|which|tell|give|show|me|do|you|know|is|it|the|current|today|today's|right|now|here|local|of|week|and|time|date|day|clock|utc)\b[\s,]*)+$/i
  return asks && plain.test(text) ? use('time', {}, 'The clock says:') : undefined
}

function findFiles(text: string): Intent | undefined {
  const glob = /[`"']?([\w./{},-]*\*[\w.*/{},-]*)[`"']?/.exec(text)?.[1]
  const isRequest = /^(?:find|list|show|search|which|what|are there|where)\b/i.test(text)
  return glob !== undefined && isRequest ? use('search', { glob, path: '.' }, `Files that match \`${glob}\`:`) : undefined
}

function listFiles(text: string): Intent | undefined {
  const about =
    /\b(?:files|folders|directories|directory listing)\b/i.test(text) && !/\b(?:contain|mention|use|say|has|have|with)\b/i.test(text)
  const isRequest = about && /^(?:what|which|list|show|give|tell|see)\b/i.test(text)
  const short = /^(?:ls|dir|list)(?: (\S+))?$/i.exec(text)
  const inside = /^what(?:'s| is) (?:in|inside) (.+)$/i.exec(text)?.[1]
  const looksLikeFile = inside !== undefined && /\.\w+[`"']?$/.test(inside)
  if (!isRequest && short === null && (inside === undefined || looksLikeFile) && !/^what(?:'s| is) here$/i.test(text)) return undefined
  const place = short?.[1] ?? inside ?? /\b(?:in|inside|under|of|from)\s+(.+)$/i.exec(text)?.[1] ?? '.'
  const path = folder(place)
  return use('file_list', { path }, path === '.' ? 'These are the files here:' : `These are the files in \`${path}\`:`)
}

function searchText(text: string): Intent | undefined {
  const opening =
    /^(?:(?:search|grep|look)(?: the| this| my)?(?: files| project| code| workspace)?(?: for)?|find|where (?:is|are|do (?:we|i|they) (?:use|define|mention))|(?:which|what) files? (?:contains?|mentions?|uses?|has|have))\s+/i
  const rest = opening.exec(text) === null ? undefined : text.replace(opening, '').replace(/\s+(?:defined|used|mentioned)$/i, '')
  if (rest === undefined) return undefined
  const where = /\s(?:in|inside|under)\s+([^\s`"']+|[`"'][^`"']+[`"']|(?:the|this|my) \w+)$/i.exec(rest)
  const what = where === null ? rest : rest.slice(0, where.index)
  const pattern = quotedIn(what) ?? what.replace(/^(?:the (?:word|text|string) |all |every )/i, '')
  const path = where?.[1] === undefined ? '.' : folder(where[1])
  return pattern === '' ? undefined : use('search', { pattern: literal(pattern), path }, `Places that mention “${pattern}”:`)
}

function readFile(text: string): Intent | undefined {
  if (!/^(?:read|cat|open|show|print|display|view|see|summari[sz]e|explain|describe|tell me|what)\b/i.test(text)) return undefined
  const path =
    quotedIn(text) ?? /(?:^|\s)((?:[\w.@~+-]*\/)*[\w.@~+-]*\.[\w-]+|(?:\S+\/)?(?:Makefile|Dockerfile|LICENSE))(?=[\s,;:]|$)/.exec(text)?.[1]
  const place = /^(?:read|cat|open|print|display|view)\s+(?:the )?(?:file )?(\S*\/\S+)$/i.exec(text)?.[1]
  const readme = /\breadme\b/i.test(text) ? 'README.md' : undefined
  const target = path ?? place ?? readme
  return target === undefined ? undefined : use('file_read', { path: target }, `${unable(text)}\`${target}\` says:`)
}

function aboutItself(text: string): Intent | undefined {
  if (/\b(?:connect|configure|set ?up|add|use)\b.*\b(?:model|provider|llm|api key|openai|anthropic|ollama)\b/i.test(text))
    return say('connect')
  if (
    /^(?:help\b.*|(?:who|what) are you|what(?:'s| is) (?:this|braidclaw|your name)|what can (?:you|i) do.*|how (?:does this|do you) work)$/i.test(
      text,
    )
  ) {
    return say('self')
  }
  return /^(?:are you|is this|which|what)\b.*\b(?:model|ai|llm|chatbot|human|robot|offline)\b/i.test(text) ? say('self') : undefined
}

/** The helper shows a file; it cannot summarise it and must not pretend to. */
function unable(text: string): string {
  const verb = /^(?:summari[sz]e|explain|describe)\b/i.exec(text)?.[0].toLowerCase()
  return verb === undefined ? '' : `I cannot ${verb}, but `
}

/** Maps "this project", "the folder" or "here" to the current folder; any other text is a path. */
function folder(place: string): string {
  const name = unquoted(place.replace(/^(?:the|this|my|our)\s+/i, '').replace(/\s+(?:folder|directory|dir)$/i, ''))
  return /^(?:project|folder|directory|dir|workspace|repo|repository|here|it|code|codebase|files|everything|current)$/i.test(name)
    ? '.'
    : name
}

/** Escapes the user's text, because the tool expects a regular expression. */
function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

function quotedIn(text: string): string | undefined {
  const found = /`([^`]+)`|"([^"]+)"|“([^”]+)”|(?<!\w)'([^']+)'(?!\w)/.exec(text)
  return found?.slice(1).find((group) => group !== undefined)
}

function unquoted(text: string): string {
  return text.replace(/^[`"'“]+|[`"'”]+$/g, '')
}

function use(tool: string, args: { readonly [meaning: string]: string }, lead: string): Intent {
  return { kind: 'tool', tool, args, lead }
}

function say(topic: Topic): Intent {
  return { kind: 'say', topic }
}
