/** What stands before an agent's messages: its soul, its context files in the order of their names, and what was pinned or summed up. */

import { existsSync, readdirSync, readSync, realpathSync } from 'node:fs'
import { join, sep } from 'node:path'
import { folderPaths } from './agent-folder.ts'
import { agentPaths } from './agent-paths.ts'
import { readText, withFile } from './bounded-read.ts'

export type Composition =
  /** `notices`: files that were left out, and why. An agent without any file has an empty text. */
  { readonly ok: true; readonly text: string; readonly notices: readonly string[] } | { readonly ok: false; readonly message: string }

export type Composed = {
  readonly folder: string
  /** In place of soul.md: it must be there, and lie below `home`, links followed. */
  readonly soul?: { readonly path: string; readonly home: string }
}

/** A text as long as this is no soul. */
const bound = 1 << 20

/**
 * Exactly what `cat soul.md` prints where there is nothing else. Further parts are separated by an empty line; a summary and pinned facts
 * (`braidclaw memory pin`) come last, under headings of their own. Never throws for trouble with a file: a soul that cannot be read is
 * `ok: false`.
 */
export async function composeSystem({ folder, soul }: Composed): Promise<Composition> {
  const paths = agentPaths(folder)
  if (!soul && isPlain(paths)) return { ok: true, text: '', notices: [] }
  const refusal = soul && outside(soul.path, soul.home)
  if (refusal !== undefined) return { ok: false, message: refusal }
  const own = readWhole(soul?.path ?? paths.soul)
  if (!own.ok) return own
  if (soul && own.missing) return { ok: false, message: `"${soul.path}" is not there; agents.json names it as the soul` }
  const notices: string[] = []
  const context = contextTexts(paths.context, notices)
  const text = joined([own.text, ...context])
  return { ok: true, text: await withRecall({ folder, text, notices }), notices }
}

/** Most agents have nothing to say of themselves: then nothing is opened. */
function isPlain({ folder, soul, context, sessions }: ReturnType<typeof agentPaths>): boolean {
  // A folder that we may not look into seems empty as well: there the slow way says why.
  if (!existsSync(sessions)) return false
  const { summary, pins } = folderPaths(folder)
  return ![soul, context, summary, pins].some((path) => existsSync(path))
}

type Whole = { readonly ok: true; readonly text: string; readonly missing: boolean } | { readonly ok: false; readonly message: string }

function readWhole(path: string): Whole {
  try {
    return withFile(path, (file, size): Whole => {
      if (size > bound) return { ok: false, message: `"${path}" has ${size} bytes; a system prompt may have at most ${bound}` }
      const bytes = new Uint8Array(size)
      return { ok: true, text: new TextDecoder().decode(bytes.subarray(0, readSync(file, bytes))), missing: false }
    })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    return error.code === 'ENOENT'
      ? { ok: true, text: '', missing: true }
      : { ok: false, message: `"${path}" cannot be read: ${error.message}` }
  }
}

/** Hidden files (an editor's, for one) and folders are no context. */
function contextTexts(folder: string, notices: string[]): readonly string[] {
  return namesIn(folder, notices).flatMap((name) => {
    const read = readWhole(join(folder, name))
    if (read.ok) return [read.text]
    notices.push(`${read.message}; it is left out`)
    return []
  })
}

function namesIn(folder: string, notices: string[]): readonly string[] {
  if (!existsSync(folder)) return []
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith('.md') && !name.startsWith('.'))
      .sort()
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error
    notices.push(`"${folder}" cannot be read: ${error.message}; it is left out`)
    return []
  }
}

/** One part as it is. */
function joined(parts: readonly string[]): string {
  const filled = parts.filter((part) => part.trim() !== '')
  if (filled.length < 2) return filled[0] ?? ''
  return `${filled.map((part) => part.trimEnd()).join('\n\n')}\n`
}

type Recalled = { readonly folder: string; readonly text: string; readonly notices: string[] }

/** Loaded where there is something to recall. */
async function withRecall({ folder, text, notices }: Recalled): Promise<string> {
  const paths = folderPaths(folder)
  if (!existsSync(paths.pins) && !existsSync(paths.summary)) return text
  const [{ openPins }, { systemText }] = await Promise.all([import('./agent-memory.ts'), import('../conversations/summary-words.ts')])
  const found = readText(paths.summary, bound)
  if (found.state === 'unusable') notices.push(`"${paths.summary}" cannot be read: ${found.why}; it is left out`)
  const summary = found.state === 'read' ? found.text : ''
  const { pins, trouble } = openPins({ folder, now: Date.now, log: () => {} }).list()
  if (trouble !== undefined) notices.push(trouble)
  if (summary === '' && pins.length === 0) return text
  const whole = systemText({ soul: text.trimEnd(), summary, pins: pins.map((pin) => pin.text) })
  return `${whole.replace(/^\n---\n/, '')}\n`
}

function outside(path: string, home: string): string | undefined {
  if (!existsSync(path)) return undefined
  const [real, root] = [realpathSync(path), realpathSync(home)]
  return real.startsWith(`${root}${sep}`)
    ? undefined
    : `"${path}" leads out of ${home} (to "${real}"); a soul that agents.json names must lie in it`
}
