/** Manages the memory of one agent in a folder: soul, summary, pins and the last pairs of its history, consistent after any crash. */

import { closeSync, existsSync, mkdirSync, openSync, statSync, writeSync } from 'node:fs'
import { atEnd, unlessCode } from '../../kit/errors.ts'
import type { Clock, Log, Message } from '../../runtime/port.ts'
import { type Compaction, compact, type Summarise } from '../conversations/compact.ts'
import { type Context, estimateTokens } from '../conversations/model-context.ts'
import { defaultSoul, systemText } from '../conversations/summary-words.ts'
import { type FolderPaths, folderPaths } from './agent-folder.ts'
import { readText, textBound } from './bounded-read.ts'
import { catchDiskError, type Disk, diskErrorMessage, realDisk } from './disk.ts'
import { folderLock, takeLock, type WithFolderLock } from './folder-lock.ts'
import { appendPair, type Pair, type PairHistory, pairsIn, readHistory } from './history-file.ts'
import { createFolderStore, type Lengths } from './history-source.ts'
import { createPins, type Pins } from './pins.ts'

export type RecallOptions = {
  readonly folder: string
  readonly now: Clock
  readonly log: Log
  /** Removes secrets from everything that is stored. */
  readonly redact?: (text: string) => string
  /** See Lengths. Defaults: 200, 40 and 262,144. */
  readonly max?: number
  readonly keep?: number
  readonly portionBytes?: number
  /** Only tests set it. */
  readonly disk?: Disk
}

/** Rereads a file after it changed on disk: an edit of soul.md takes effect in the next turn. */
export type Recall = {
  readonly folder: string
  /** The text of soul.md, or the default soul. */
  soul(): string
  /** The text before the messages: soul, summary, pins. */
  system(): string
  /**
   * The last `keep` messages that fit into the budget, in complete pairs; `omittedTurns` counts the pairs in the file that were left out.
   */
  context(tokenBudget: number): Context
  /** `ok: false`: nothing was written; the message says why. */
  remember(user: string, assistant: string): { readonly ok: true } | { readonly ok: false; readonly message: string }
  /** Compacts when there are more than `max` messages. Call it after each turn; when nothing is due it only checks the file. */
  compact(summarise: Summarise, signal: AbortSignal): Promise<Compaction>
  readonly pins: Pins
}

export type OpenedRecall = { readonly ok: true; readonly recall: Recall } | { readonly ok: false; readonly message: string }

/** Creates the folder (0700) and its files when absent, and completes or discards what a crash interrupted. */
export function openRecall(options: RecallOptions): OpenedRecall {
  const { folder } = options
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const recall = createRecall(options)
    recall.system()
    createFiles(folderPaths(folder))
    return { ok: true, recall }
  } catch (error) {
    const trouble = diskErrorMessage(error)
    if (trouble === undefined) throw error
    return { ok: false, message: `the memory folder "${folder}" cannot be used (${trouble}); choose another or change its permissions` }
  }
}

/**
 * Lets people find the files that they may read and edit. A name that exists stays, whatever it is. Bun's `writeFileSync` would cut the
 * file to the length of its text, and with it a first pair that another process appended meanwhile.
 */
function createFiles({ soul, summary, history }: FolderPaths): void {
  for (const [path, text] of [
    [soul, `${defaultSoul}\n`],
    [summary, ''],
    [history, ''],
  ] as const) {
    const file = unlessCode(['EEXIST'], () => openSync(path, 'wx', 0o600))
    if (file === undefined) continue
    using _end = atEnd(() => closeSync(file))
    if (text !== '') writeSync(file, text)
  }
}

/** Opens only the pins of a folder, which must exist. */
export function openPins({ folder, now, log, disk = realDisk }: RecallOptions): Pins {
  const paths = folderPaths(folder)
  return createPins({ path: paths.pins, disk, now, withFolderLock: folderLock({ paths, disk, log }) })
}

function createRecall(options: RecallOptions): Recall {
  const { folder, now, log, redact = (text) => text, disk = realDisk } = options
  const lengths: Lengths = { max: options.max ?? 200, keep: options.keep ?? 40, portionBytes: options.portionBytes ?? 262_144 }
  const paths = folderPaths(folder)
  const step = folderLock({ paths, disk, log })
  const pins = createPins({ path: paths.pins, disk, now, withFolderLock: step })
  const store = createFolderStore({ paths, disk, lengths, withFolderLock: step })
  const view = createView({ paths, log, withFolderLock: step, pins, pairs: pairsIn(lengths.keep) })

  function remember(user: string, assistant: string): ReturnType<Recall['remember']> {
    const pair = { user: redact(user), assistant: redact(assistant) }
    return catchDiskError(() => {
      step(() => appendPair(disk, paths.history, pair))
      return { ok: true }
    })
  }

  async function compactNow(summarise: Summarise, signal: AbortSignal): Promise<Compaction> {
    using turn = takeLock(paths.compacting, 0)
    // Keep the `await`: it holds the lock until the compaction ends.
    return turn ? await compact(store, { summarise: clean(summarise, redact), now, log, signal }) : { state: 'busy' }
  }

  return {
    folder,
    pins,
    remember,
    soul: () => view().soul,
    system: () => systemText(view()),
    context: (tokenBudget) => contextOf(view().history, tokenBudget),
    compact: (summarise, signal) => compactNow(summarise, signal).catch((error: unknown) => failedBy(error, log)),
  }
}

function clean(summarise: Summarise, redact: (text: string) => string): Summarise {
  return async (request, signal) => {
    const answer = await summarise(request, signal)
    return answer.ok ? { ...answer, text: redact(answer.text) } : answer
  }
}

function failedBy(error: unknown, log: Log): Compaction {
  const message = diskErrorMessage(error)
  if (message === undefined) throw error
  log('warn', 'compaction failed', { message })
  return { state: 'failed', message }
}

/** Returns the newest pairs that fit into the budget. */
function contextOf({ starts, recent }: PairHistory, tokenBudget: number): Context {
  const newest: Message[][] = []
  let tokens = 0
  for (const pair of recent.toReversed()) {
    const messages = messagesOf(pair)
    const more = estimateTokens(messages)
    if (tokens + more > tokenBudget) break
    tokens += more
    newest.unshift(messages)
  }
  return { messages: newest.flat(), omittedTurns: starts.length - newest.length, estimatedTokens: tokens }
}

/** An empty answer gets no parts, because some vendors refuse an empty text. */
function messagesOf({ user, assistant }: Pair): Message[] {
  return [
    { role: 'user', content: user },
    { role: 'assistant', parts: assistant === '' ? [] : [{ type: 'text', text: assistant }] },
  ]
}

type View = { readonly soul: string; readonly summary: string; readonly pins: readonly string[]; readonly history: PairHistory }

type ViewOptions = {
  readonly paths: FolderPaths
  readonly log: Log
  readonly withFolderLock: WithFolderLock
  readonly pins: Pick<Pins, 'list'>
  /** How many pairs of the history to read. */
  readonly pairs: number
}

/** In bytes. Longer souls are used but logged, because other programs stop reading here. */
const usualSoul = 8192

/**
 * Reads the content of an agent folder, and reads it again after one of its files changed. Reads a read-only folder without its lock.
 * @returns a function that throws errno errors
 */
function createView(options: ViewOptions): () => View {
  const { paths, log, withFolderLock } = options
  const state: { print?: string; view?: View } = {}

  function readAgain(): View {
    state.print = printOf(paths)
    state.view = load(options, state.view?.history)
    return state.view
  }

  return () => {
    if (state.view && state.print === printOf(paths) && !existsSync(paths.marker)) return state.view
    try {
      return withFolderLock(readAgain)
    } catch (error) {
      const why = diskErrorMessage(error)
      if (why === undefined) throw error
      log('warn', 'memory folder read without its lock', { folder: paths.folder, why })
      return readAgain()
    }
  }
}

/** Combines inode, size and both times: an edit changes at least one of them. */
function printOf({ soul, summary, history, pins }: FolderPaths): string {
  return [soul, summary, history, pins]
    .map((path) => {
      const found = statSync(path, { throwIfNoEntry: false, bigint: true })
      return found ? `${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}` : 'none'
    })
    .join('\n')
}

function load({ paths, log, pins, pairs }: ViewOptions, before?: PairHistory): View {
  const history = readHistory(paths.history, pairs, before)
  const { unreadable, unpaired, torn } = history
  if (unreadable + unpaired > 0) log('warn', 'history lines ignored', { path: paths.history, unreadable, unpaired, torn })
  const pinList = pins.list()
  if (pinList.unreadable > 0) log('warn', 'pins ignored', { path: paths.pins, unreadable: pinList.unreadable })
  if (pinList.trouble) log('warn', 'pins ignored', { why: pinList.trouble })
  return {
    history,
    soul: textIn(paths.soul, log) || defaultSoul,
    summary: textIn(paths.summary, log),
    pins: pinList.pins.map(({ text }) => text),
  }
}

/** Reports omitted text in the log and to the model. */
function textIn(path: string, log: Log): string {
  const found = readText(path, textBound)
  if (found.state === 'unusable') log('warn', 'memory file ignored', { path, why: found.why })
  if (found.state !== 'read') return ''
  if (found.bytes > usualSoul) log(found.whole ? 'info' : 'warn', 'memory file is long', { path, bytes: found.bytes, used: textBound })
  return found.whole ? found.text : `${found.text}\n[${path} goes on for ${found.bytes - textBound} more bytes, which are not used]`
}
