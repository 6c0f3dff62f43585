/** Finds the files and folders that the operator names with "@" in a message, and completes such a name. Messages of other people never come here. */

import { lstatSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Conversation, TurnStart } from '../../host/api.ts'
import { attempt } from '../../kit/errors.ts'
import { count, cut, visible } from '../../kit/text.ts'
import type { AgentEvent } from '../../runtime/event.ts'

type Runtime = Awaited<ReturnType<Conversation['tools']>>
type Tools = Pick<Runtime, 'files'> & { readonly policy: Pick<Runtime['policy'], 'home' | 'workspace'> }
type Calls = NonNullable<TurnStart['calls']>

const mostCalls = 20
const mostWords = 200

const picture = String.raw`\.(?:png|jpe?g|webp|gif)`
/** Matches `@"a name":1-9`, `@name`, and the absolute path of a picture as terminals paste it: quoted, or with backslashes. */
const named = new RegExp(
  String.raw`(?<=^|[\s(])(?:@"([^"\n]+)"((?::\d+(?:-\d+)?)?)|@([^\s"]+)|(['"])(/[^'"\n]+${picture})\4(?=$|\s)|(/(?:\\.|[^\s\\'"])+${picture})(?=$|\s))`,
  'gi',
)

/**
 * Returns the calls that read what the message names, and notes on what is not added. A word that names nothing stays text. What exists and
 * is forbidden becomes a call too, so that the gate refuses it on record.
 */
export function mentionsIn(words: string, tools: Tools): { readonly calls: Calls; readonly notes: readonly string[] } {
  const calls = new Map<string, Calls[number]>()
  const left = new Set<string>()
  const texts = new Map(Array.from(words.matchAll(named), (match) => [match[0], match]))
  for (const match of [...texts.values()].slice(0, mostWords)) {
    const found = spellings(match, tools.policy.home).flatMap(({ path, ...lines }) => ({ path, lines, type: typeOf(path, tools) }))
    const mention = found.find(({ type }) => type !== undefined)
    if (!mention) continue
    const call = { name: mention.type === 'directory' ? 'file_list' : 'file_read', input: { path: mention.path, ...mention.lines } }
    if (calls.size >= mostCalls) left.add(`a message adds at most ${mostCalls} files`)
    else calls.set(JSON.stringify(call), call)
  }
  if (texts.size > mostWords) left.add(`only the first ${mostWords} names were looked at`)
  return { calls: [...calls.values()], notes: [...left] }
}

type Spelling = { readonly path: string; readonly offset?: number; readonly limit?: number }

/** Returns what a word may name, the most literal reading first: lines and the end of a sentence are part of the name of a file that exists. */
function spellings([, inQuotes = '', lines, word = '', , quoted = '', bare = '']: RegExpExecArray, home: string): Spelling[] {
  const short = word.replace(/[.,;:!?)\]}>'`]+$/, '')
  const literal = [lines ? '' : inQuotes, word, quoted, bare.replaceAll(/\\(.)/g, '$1'), short].map((path) => ({ path }))
  return [...literal, ...[`${inQuotes}${lines}`, word, short].map(withLines)]
    .filter(({ path }) => path !== '')
    .map((spelling) => ({ ...spelling, path: spelling.path.replace(/^~(?=\/)/, home) }))
}

function withLines(text: string): Spelling {
  const [, path = '', first = '', last = first] = /^(.+):(\d+)(?:-(\d+))?$/s.exec(text) ?? []
  return { path, offset: Math.max(1, Number(first)), limit: Math.max(1, Number(last) - Number(first) + 1) }
}

/** Returns undefined for what does not exist. Of a forbidden path it only learns whether its name exists. */
function typeOf(path: string, { files, policy }: Tools): string | undefined {
  if (visible(path) !== path) return undefined
  const found = files.stat(path)
  if (found.ok) return found.type
  const isThere = found.denied !== undefined && attempt(() => lstatSync(resolve(policy.workspace, path)))
  return isThere ? 'forbidden' : undefined
}

type CallPrinter = {
  readonly show: (event: AgentEvent) => void
  readonly out: (text: string) => void
  readonly err: (text: string) => void
}

/** Shows the calls of the operator in short, and other events as usual: a line for each file that was added, and what a command printed. */
export function showCalls(calls: Calls, { show, out, err }: CallPrinter): CallPrinter['show'] {
  const [left, open] = [[...calls], new Map<string, Calls[number]>()]
  return (event) => {
    const next = event.type === 'tool_use' ? left.shift() : undefined
    if (event.type === 'tool_use' && next) return void open.set(event.toolCallId, next)
    const call = event.type === 'tool_result' ? open.get(event.toolCallId) : undefined
    if (event.type !== 'tool_result' || call === undefined) return show(event)
    const output = String(event.output ?? '')
    const [why, printed] = event.status === 'completed' ? ['', output] : [output.split('\n', 1)[0] ?? '', output.replace(/^.*\n?/, '')]
    const isCommand = call.name === 'shell'
    if (isCommand && printed !== '') out(printed.endsWith('\n') ? printed : `${printed}\n`)
    if (why !== '') err(`✗ ${isCommand ? why : cut(`${call.input.path}: ${why}`, 300)}\n`)
    else if (!isCommand) err(`+ ${call.input.path} (${sizeOf(output)})\n`)
  }
}

/** Returns `120 lines`, or what a note in the result says, such as `lines 1–500 of 3000` for a part of a file. */
function sizeOf(output: string): string {
  const part = /^\[(?=a picture)([^\]]+)\]|\[(lines [^;\]]+)[^\n]*\]$/.exec(output)?.find((text, at) => at > 0 && text)
  return part ?? (/^\(empty \w+\)$/.test(output) ? 'empty' : count(output.trimEnd().split('\n').length, 'line'))
}

/** One call walks on for at most this time, and a walk that has ended begins again after the second time. In milliseconds. */
const walkMs = 30
const freshMs = 5_000
const mostPaths = 100_000
const mostShown = 50

type LookedAt = Tools['files']
type Walk = { readonly files: LookedAt; readonly seen: Set<string>; steps?: Iterator<string> | undefined; ended: number }

/** Completes the name after the "@" that the cursor stands in. `words` replace the text from `from` to the cursor. */
export function mentionCompleter(filesNow: () => Promise<LookedAt | undefined>) {
  let walk: Walk | undefined
  return async (line: string, cursor: number) => {
    const [, begun, inQuotes, word = ''] = /(?:^|[\s(])(@"([^"\n]*)|@([^\s"]*))$/.exec(line.slice(0, cursor)) ?? []
    const files = begun === undefined ? undefined : await filesNow()
    if (begun === undefined || files === undefined) return undefined
    if (walk?.files !== files) walk = { files, seen: new Set(), ended: Number.NEGATIVE_INFINITY }
    goOn(walk)
    const words = completePath(inQuotes ?? word, walk).map((path) => (/\s/.test(path) ? `@"${path}"` : `@${path}`))
    return { from: cursor - begun.length, words }
  }
}

/** Returns at most 50 paths that contain the text, the best first; folders end in "/". */
function completePath(text: string, { seen, files }: Walk): readonly string[] {
  const ranks: string[][] = [[], [], []]
  const wanted = text.toLowerCase()
  for (const path of seen) {
    const lower = path.toLowerCase()
    const [at, name] = [lower.lastIndexOf(wanted), nameAt(lower)]
    if (at >= 0) ranks[lower.startsWith(wanted) || at === name ? 0 : at > name ? 1 : 2]?.push(path)
  }
  const shown: string[] = []
  for (const path of ranks.flatMap((rank) => rank.sort((a, b) => a.length - b.length))) {
    if (shown.length === mostShown) break
    if (!path.includes('"') && visible(path) === path && files.stat(path).ok) shown.push(path)
  }
  return shown
}

/** Returns where the last name of a path begins. */
function nameAt(path: string): number {
  return path.lastIndexOf('/', path.length - 2) + 1
}

/** Walks a large folder in steps, over several calls, so that it never holds up the keyboard. */
function goOn(walk: Walk): void {
  const now = performance.now()
  if (now - walk.ended > freshMs) walk.steps ??= walk.files.walk('.')[Symbol.iterator]()
  while (walk.steps && performance.now() - now < walkMs) {
    const { value, done } = walk.steps.next()
    if (done || walk.seen.size >= mostPaths) Object.assign(walk, { steps: undefined, ended: now })
    // Adds the folders above it too.
    for (let path: string = value ?? ''; path !== '' && !walk.seen.has(path); path = path.slice(0, nameAt(path))) walk.seen.add(path)
  }
}
