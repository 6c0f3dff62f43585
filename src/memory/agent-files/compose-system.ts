/** Composes an agent's system text: its soul, its context files in the order of their names, its summary and its pinned facts. */

import { existsSync, readdirSync, readSync, realpathSync } from 'node:fs'
import { join, sep } from 'node:path'
import { errnoOf, errorText, hasCode } from '../../kit/errors.ts'
import { systemText } from '../conversations/summary-words.ts'
import { folderPaths } from './agent-folder.ts'
import { agentPaths } from './agent-paths.ts'
import { readText, withFile } from './bounded-read.ts'

export type Composition =
  /** `notices` lists the files that were left out, and why. An agent without files has an empty text. */
  { readonly ok: true; readonly text: string; readonly notices: readonly string[] } | { readonly ok: false; readonly message: string }

export type ComposeOptions = {
  readonly folder: string
  /** Replaces soul.md: the file must exist below `home`, with symbolic links resolved. */
  readonly soul?: { readonly path: string; readonly home: string }
  /** Only the soul: without context files, summary and pins. */
  readonly soulOnly?: boolean
}

/** The limit of a soul or context file in bytes. */
const bound = 1 << 20

/**
 * Returns exactly the text of soul.md when there is nothing else. An empty line separates further parts; a summary and pinned facts
 * (`braidclaw memory pin`) come last, under their own headings. Never throws because of a file error: an unreadable soul gives `ok: false`.
 */
export async function composeSystem({ folder, soul, soulOnly = false }: ComposeOptions): Promise<Composition> {
  const paths = agentPaths(folder)
  if (!soul && isPlain(paths)) return { ok: true, text: '', notices: [] }
  const refusal = soul && outside(soul.path, soul.home)
  if (refusal !== undefined) return { ok: false, message: refusal }
  const own = readWhole(soul?.path ?? paths.soul)
  if (!own.ok) return own
  if (soul && own.missing) return { ok: false, message: `"${soul.path}" is not there; agents.json names it as the soul` }
  if (soulOnly) return { ok: true, text: own.text, notices: [] }
  const notices: string[] = []
  const context = contextTexts(paths.context, notices)
  const text = joined([own.text, ...context])
  return { ok: true, text: await withRecall({ folder, text, notices }), notices }
}

/** Opens no file for an agent without its own texts, which is the usual case. */
function isPlain({ folder, soul, context, sessions }: ReturnType<typeof agentPaths>): boolean {
  // A folder without permission also looks empty; the full path then reports the reason.
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
    if (errnoOf(error) === undefined) throw error
    return hasCode(error, 'ENOENT')
      ? { ok: true, text: '', missing: true }
      : { ok: false, message: `"${path}" cannot be read: ${errorText(error)}` }
  }
}

/** Skips hidden files (such as editor files) and folders. */
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
    if (errnoOf(error) === undefined) throw error
    notices.push(`"${folder}" cannot be read: ${errorText(error)}; it is left out`)
    return []
  }
}

/** Returns a single part unchanged. */
function joined(parts: readonly string[]): string {
  const filled = parts.filter((part) => part.trim() !== '')
  if (filled.length < 2) return filled[0] ?? ''
  return `${filled.map((part) => part.trimEnd()).join('\n\n')}\n`
}

type RecallInput = { readonly folder: string; readonly text: string; readonly notices: string[] }

/** Imports the module of pins only when there is a summary or a pin. */
async function withRecall({ folder, text, notices }: RecallInput): Promise<string> {
  const paths = folderPaths(folder)
  if (!existsSync(paths.pins) && !existsSync(paths.summary)) return text
  const { pinsIn } = await import('./pins.ts')
  const found = readText(paths.summary, bound)
  if (found.state === 'unusable') notices.push(`"${paths.summary}" cannot be read: ${found.why}; it is left out`)
  const summary = found.state === 'read' ? found.text : ''
  const { pins, trouble } = pinsIn(paths.pins)
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
