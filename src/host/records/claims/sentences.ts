/** Splits an answer in Markdown into plain sentences of its author: without code blocks, quotations, open to-do items and other languages. */

/** Stands for a file name or a command in a sentence; `names` of the sentence has its text. */
export const NAME = '\\uE000\\d+\\uE001'

export type Sentence = {
  readonly text: string
  readonly names: readonly string[]
  /** The line that introduces the list of which the sentence is an item. */
  readonly lead: string
}

/** Sections and lists under these words say what is still to do, or what somebody else wants. */
const otherLists =
  /\b(next steps?|to-?do|remaining|not (yet )?(done|run|verified|tested|checked)|suggest\w*|recommend\w*|how to|usage|instructions|plan|you (can|should|could|need|must|may|want)|follow[- ]?ups?|steps|acceptance|requirements?|checklist|before (my|the|this) changes?|future|options?|ideas?|if you|would|will|outstanding|open|pending|(make sure|check|verify|ensure) that)\b/i
const longest = 12_000

/** Returns nothing for a text that is not English. */
export function sentencesOf(answer: string): readonly Sentence[] {
  const text = withoutForeign(answer.slice(0, longest))
  return isEnglish(text) ? linesOf(text).flatMap(split) : []
}

/** Removes what the author quotes: code blocks, block quotations, comments, struck text. */
function withoutForeign(answer: string): string {
  return answer
    .replace(/\r\n?/g, '\n')
    .replace(/^[ \t>]*(`{3,}|~{3,})[^\n]*\n(?:[\s\S]*?\n[ \t>]*\1[`~]*[ \t]*(?=\n|$)|[\s\S]*$)/gm, '\n')
    .replace(/<!--[\s\S]*?-->|<(pre|code|blockquote|details)\b[\s\S]*?<\/\1>|~~[^~\n]+~~/g, ' ')
    .replace(/^[ \t]*>.*(\n(?![ \t]*\n).+)*/gm, '')
    .replace(/(^|\n[ \t]*\n)((?: {4}|\t)(?![ \t]*(?:[-*+]|\d+[.)])\s).*(?:\n|$))+/g, '$1')
}

const english =
  /\b(the|and|is|are|was|were|to|of|in|it|that|with|for|all|have|has|now|this|no|not|i|we|tests?|done|fixed|files?|build|pass(es|ed)?)\b/gi
const others =
  /\b(der|die|das|und|ist|nicht|ich|ein|eine|wurde|habe|alle|le|la|les|et|est|une|des|dans|je|tous|el|los|las|es|y|una|que|se|het|een|niet|ik|zijn|il|che|sono|não|uma|os|foram|och|är|inte|jag|nie|jest|się|ve|bir)\b/gi

/** Counts the commonest words; a text in another alphabet has none of them. */
function isEnglish(text: string): boolean {
  const prose = text.replace(/`[^`\n]*`/g, ' ')
  const letters = prose.match(/\p{L}/gu)?.length ?? 0
  const latin = prose.match(/\p{Script=Latin}/gu)?.length ?? 0
  const own = prose.match(english)?.length ?? 0
  return latin >= letters * 0.8 && own >= (prose.match(others)?.length ?? 0)
}

type ProseLine = { readonly text: string; readonly lead: string }

/** Joins wrapped lines, and leaves out lists that are not about what was done. */
function linesOf(text: string): readonly ProseLine[] {
  const lines: { text: string; lead: string }[] = []
  /** `section` and `list`: their heading or first line says that they are left out. `open`: the next line continues the last one. */
  const state = { lead: '', section: false, list: false, open: false }
  for (const raw of text.split('\n')) {
    const line = raw.trim()
    const item = /^(?:[-*+•]|\d+[.)])\s+(.*)$/.exec(line)?.[1] ?? (line.startsWith('|') ? line.replace(/\s*\|\s*/g, ' ') : undefined)
    const heading = /^#{1,6}\s+(.*?)#*$/.exec(line)?.[1] ?? /^\*\*([^*]+)\*\*:?$/.exec(line)?.[1]
    if (heading !== undefined) Object.assign(state, { lead: heading, section: otherLists.test(heading), list: false, open: false })
    else if (item === undefined && line.endsWith(':')) Object.assign(state, { lead: line, list: otherLists.test(line), open: false })
    else if (line === '') state.open = false
    else if (item === undefined && !state.open && !/^\s/.test(raw)) Object.assign(state, { lead: '', list: false })
    if (line === '' || (heading === undefined && (state.section || state.list))) continue
    const last = lines.at(-1)
    const isOwn = heading !== undefined || item !== undefined || line.endsWith(':')
    if (state.open && !isOwn && last) last.text += ` ${line}`
    else if (!/^\[ \]/.test(item ?? '') && !(heading !== undefined && state.section))
      lines.push({ text: (item ?? heading ?? line).replace(/^\[x\]/i, '✅').replace(/:$/, ''), lead: item === undefined ? '' : state.lead })
    state.open = heading === undefined && !line.endsWith(':')
  }
  return lines
}

const extensions =
  'tsx?|jsx?|mjs|cjs|mts|jsonc?|jsonl|md|mdx|txt|py|pyi|rs|go|java|kt|rb|php|c|h|cc|cpp|hpp|cs|s?css|less|html?|ya?ml|toml|sh|bash|sql|lock|xml|csv|ini|cfg|conf|env|svg|png|jpe?g|gif|pdf|docx|xlsx|parquet|sqlite|wasm|vue|svelte|swift|exs?|zig|lua|pl|ps1|gradle|proto|tf|ipynb|log|bat'
const barePath = new RegExp(
  `(?<![\\w/:.@-])(?:(?:~|\\.{1,2})?/)?(?:[\\w@.+-]+/)*(?:[\\w@+-][\\w@.+-]*\\.(?:${extensions})|Makefile|Dockerfile|LICENSE|CHANGELOG|README|\\.gitignore|\\.env(?:\\.\\w+)?)(?![\\w/])`,
  'g',
)
const bareCommand =
  /(?<![\w/.-])(?:(?:npm|pnpm|yarn|bun)(?: run)? (?:test|build|lint|typecheck|type-check|check|format|install|ci|start)(?::[\w:-]+)?|(?:npx|bunx) [\w@/-]+|cargo (?:test|build|check|clippy|run|fmt)|go (?:test|build|vet)|make (?:test|check|build|lint|all|install)|git (?:push|commit|status|diff|add|log|merge|rebase)|(?:python3? -m )?pytest|tsc|eslint|biome|mypy|pyright|ruff|jest|vitest|clippy|rspec|phpunit|tox)(?: --?[\w-]+(?:=\S+)?| \.\/\.\.\.)*(?![\w/-])/g
const products = /^(node|next|vue|three|express|d3|nuxt|chart|moment|discord|socket|ember|backbone|react|angular)\.js$/i

export function isPath(name: string): boolean {
  return (
    !/\s|^https?:|[(){}<>;=$]|^--?\w/.test(name) &&
    !products.test(name) &&
    (name.replace(barePath, '') === '' || /^[\w@.+~-]*(\/[\w@.+-]+)+\/?$|^[\w@.+-]+\/$/.test(name))
  )
}

export function isCommand(name: string): boolean {
  return /^(?:\.{0,2}\/)?[\w./@-]+(?:\s+\S.*)?$/.test(name) && !/^[A-Z_]+$|\(\)?$/.test(name)
}

/** Replaces names by tokens, so that what they hold is not read as prose, and splits the line. */
function split({ text, lead }: ProseLine): readonly Sentence[] {
  const names: string[] = []
  const token = (name: string) => `\uE000${names.push(name) - 1}\uE001`
  const plain = text
    .replace(/[\uE000-\uE003]/g, ' ')
    .replace(/[✔✓☑👍🟢]\uFE0F?/gu, '✅')
    .replace(/`{1,2}([^`]{1,300})`{1,2}/g, (_, code: string) => token(code.trim()))
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[“"]([^“”"]+)[”"]/g, (_, quoted: string) => (isPath(quoted) ? token(quoted) : ' \uE002 '))
    .replace(/https?:\/\/\S+/g, ' ')
    .replace(/\*\*|__|(?<![\w*])[*_]|[*_](?![\w*])/g, '')
    .replace(bareCommand, token)
    .replace(barePath, (path) => (products.test(path) ? path : token(path)))
    // "Lint — clean", "npm test → pass": the name of a row and its result.
    .replace(/^(\W{0,9}(?:\S+ ){0,3}\S+)\s+(?:[—–-]+|→|=>|->)\s+(?!\uE000)/, '$1: ')
    .replace(/[’]/g, "'")
  return plain
    .split(/(?<=[.!?…])["')\]]*\s+(?=\S)|(?<=[。])/u)
    .filter((sentence) => sentence.trim() !== '' && !/\?["')\]]*\s*$/.test(sentence))
    .map((sentence) => ({ text: sentence.trim(), names, lead }))
}
