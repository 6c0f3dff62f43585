/** Reads the content of an agent folder, and reads it again after one of its files changed. */

import { existsSync, statSync } from 'node:fs'
import type { Log } from '../../runtime/port.ts'
import { defaultSoul } from '../conversations/summary-words.ts'
import type { FolderPaths } from './agent-folder.ts'
import { readText, textBound } from './bounded-read.ts'
import { diskErrorMessage } from './disk.ts'
import type { Alone } from './folder-lock.ts'
import { type History, readHistory } from './history-file.ts'
import type { Pins } from './pins.ts'

export type View = { readonly soul: string; readonly summary: string; readonly pins: readonly string[]; readonly history: History }

export type ViewOptions = {
  readonly paths: FolderPaths
  readonly log: Log
  readonly alone: Alone
  readonly pins: Pick<Pins, 'list'>
  /** How many pairs of the history to read. */
  readonly pairs: number
}

/** In bytes. Longer souls are used but logged, because other programs stop reading here. */
const usualSoul = 8192

/** Reads a read-only folder without its lock. @returns a function that throws errno errors */
export function createView(options: ViewOptions): () => View {
  const { paths, log, alone } = options
  const state: { print?: string; view?: View } = {}

  function look(): View {
    state.print = printOf(paths)
    state.view = load(options, state.view?.history)
    return state.view
  }

  return () => {
    if (state.view && state.print === printOf(paths) && !existsSync(paths.marker)) return state.view
    try {
      return alone(look)
    } catch (error) {
      const why = diskErrorMessage(error)
      if (why === undefined) throw error
      log('warn', 'memory folder read without its lock', { folder: paths.folder, why })
      return look()
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

function load({ paths, log, pins, pairs }: ViewOptions, before?: History): View {
  const history = readHistory(paths.history, pairs, before)
  const { unreadable, unpaired, torn } = history
  if (unreadable + unpaired > 0) log('warn', 'history lines ignored', { path: paths.history, unreadable, unpaired, torn })
  const kept = pins.list()
  if (kept.unreadable > 0) log('warn', 'pins ignored', { path: paths.pins, unreadable: kept.unreadable })
  if (kept.trouble) log('warn', 'pins ignored', { why: kept.trouble })
  return {
    history,
    soul: textIn(paths.soul, log) || defaultSoul,
    summary: textIn(paths.summary, log),
    pins: kept.pins.map(({ text }) => text),
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
