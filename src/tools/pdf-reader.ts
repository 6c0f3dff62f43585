/** Reads the pages of a PDF in a confined process of our own, and words them for the model. */

import { closeSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { isObject, parseJson } from '../kit/json.ts'
import type { ToolContext, ToolResult } from '../runtime/port.ts'
import type { ChildEnvironment } from '../sandbox/contract.ts'
import type { Workspace } from '../workspace/contract.ts'
import type { PdfPages, PdfRange } from './pdf-text.ts'
import { openContent, type Spawn, type SpawnResult } from './process.ts'
import { done } from './tool-kind.ts'

export type PdfDeps = {
  readonly files: Pick<Workspace, 'root' | 'readBytes'>
  readonly spawn: Spawn
  readonly env: ChildEnvironment
  readonly shownBytes: () => number
}

/** The most data and processor time of the process that reads a file. */
const [memoryMib, cpuSeconds] = [512, 20]
/** The bytes that are printed below the last page. */
const footerRoom = 256

/** Never rejects: what keeps it from reading is the failure. */
export async function readPages(
  { files, spawn, env, shownBytes }: PdfDeps,
  bytes: Uint8Array,
  asked: Omit<PdfRange, 'maxBytes'>,
  { signal }: ToolContext,
): Promise<PdfPages> {
  const range: PdfRange = { ...asked, maxBytes: Math.max(256, shownBytes() - footerRoom) }
  const { argv, readablePaths } = reader(JSON.stringify(range))
  const limits = `ulimit -c 0; ulimit -d ${memoryMib * 1_024}; ulimit -t ${cpuSeconds}; exec "$@"`
  const input = openContent(bytes)
  const printed: Uint8Array[] = []
  const ended = await spawn({
    argv: ['/bin/sh', '-c', limits, 'sh', ...argv],
    cwd: files.root,
    env,
    stdin: input,
    readablePaths,
    readOnly: true,
    signal,
    onOutput: (chunk, from) => void (from === 'stdout' && printed.push(chunk.slice())),
  })
  closeSync(input)
  const value = parseJson(Buffer.concat(printed).toString())
  return isPages(value) ? value : { failure: howItEnded(ended, signal) }
}

/** Returns the command line that starts our own reader, and what it needs to see of our program. */
function reader(range: string) {
  if (import.meta.path.startsWith('/$bunfs/'))
    return { argv: [process.execPath, '__pdf', range], readablePaths: [{ path: process.execPath }] }
  const module = join(import.meta.dir, `pdf-text${extname(import.meta.path)}`)
  const library = Bun.resolveSync('unpdf', import.meta.dir)
  const load = (path: string) => `await import(${JSON.stringify(path)})`
  const script = `process.stdout.write(await (${load(module)}).pdfText(${load(library)}, ${JSON.stringify(range)}))`
  return {
    argv: [process.execPath, '--config=/dev/null', '--no-env-file', '--no-install', '-e', script],
    readablePaths: [process.execPath, dirname(module), join(dirname(library), '..')].map((path) => ({ path })),
  }
}

function isPages(value: unknown): value is PdfPages {
  return isObject(value) && (typeof value.failure === 'string' || Array.isArray(value.pages))
}

function howItEnded(ended: SpawnResult, { aborted }: AbortSignal): string {
  if (!ended.ok) return ended.message
  if (aborted) return 'the reader was stopped'
  const how = ended.stopped ?? (ended.signal === undefined ? `exit code ${ended.code}` : ended.signal)
  return `its reader ended without a result (${how}): the file needs more than ${memoryMib} MiB of memory or ${cpuSeconds} s of processor time`
}

export function shown({ total, pages }: Extract<PdfPages, { pages: unknown }>): ToolResult {
  const texts = pages.map(({ page, text, isCut }) => {
    const note = isCut ? `\n[page ${page} is longer than fits and was cut]` : ''
    return `[page ${page}]\n${text === '' ? '(no text; perhaps a picture)' : text}${note}\n`
  })
  const [first, last] = [pages[0]?.page ?? 0, pages.at(-1)?.page ?? 0]
  const more = last < total ? `; continue with offset ${last + 1}` : ''
  return done(`${texts.join('')}[pages ${first}–${last} of ${total}${more}]`, { pages: texts.length, total })
}
