/** Finds the procedures of a home and of its workspace, and reads them. */

import { join } from 'node:path'
import { readConfigFile } from '../config/text/read-toml-file.ts'
import type { FieldProblem } from '../config/text/table-reader.ts'
import type { Setup } from '../host/api.ts'
import { FailureError } from '../host/failure.ts'
import { openTools } from '../host/records/tools.ts'
import { everything } from '../host/toolset/tools-option.ts'
import { namesIn } from '../kit/proc.ts'
import { sha256 } from '../kit/sha256.ts'
import { didYouMean, quote, visible } from '../kit/text.ts'
import type { Tool } from '../runtime/port.ts'
import { readSop, type Sop } from './sop-file.ts'

/** A file with a procedure. `digest` names this version of it. */
export type SopFile = {
  readonly name: string
  readonly path: string
  readonly where: 'home' | 'workspace'
  readonly text: string
  readonly digest: string
  readonly sop: Sop
  readonly problems: readonly FieldProblem[]
}

export type SopTools = ReadonlyMap<string, Tool>

/** Returns every tool that a step may name. */
export async function sopTools(setup: Setup): Promise<SopTools> {
  const { all, close } = await openTools(setup, everything(setup))
  await close()
  return new Map(all.map((tool) => [tool.name, tool]))
}

/** A name that stands in several folders belongs to the first one. */
function foldersOf({ paths, config }: Pick<Setup, 'paths' | 'config'>): readonly (readonly [SopFile['where'], string])[] {
  return [
    ['home', join(paths.home, 'sops')],
    ['home', join(paths.home, 'workspace', 'sops')],
    ['workspace', join(config.workspaceDir, 'sops')],
  ]
}

/** Reads all procedures, in the order of their names. */
export async function findSops(setup: Setup, tools: SopTools): Promise<readonly SopFile[]> {
  const found = new Map<string, SopFile>()
  for (const [where, folder] of foldersOf(setup))
    for (const name of namesIn(folder).filter((each) => !each.startsWith('.'))) {
      const file = found.has(name) ? undefined : await readSopFile({ where, path: join(folder, name, 'SOP.toml'), name }, tools)
      if (file) found.set(name, file)
    }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** @returns undefined when the file does not exist */
async function readSopFile(at: Pick<SopFile, 'where' | 'path' | 'name'>, tools: SopTools): Promise<SopFile | undefined> {
  const read = readConfigFile(at.path)
  if (read.state === 'missing') return undefined
  if (read.state === 'text') return { ...at, ...(await parseSop(read.text, { folder: at.name, tools })) }
  const { sop } = await readSop({ text: '', tools })
  return { ...at, text: '', digest: '', sop, problems: [{ field: '', message: read.why, line: read.line }] }
}

/** Reads the text of one version. */
export async function parseSop(text: string, given: { readonly folder?: string; readonly tools: SopTools }) {
  return { text, digest: sha256(text), ...(await readSop({ text, ...given })) }
}

/** @throws FailureError `usage` that names the nearest one, or every problem of the file */
export async function findSop(setup: Setup, tools: SopTools, name: string): Promise<SopFile> {
  const all = await findSops(setup, tools)
  const found = all.find((each) => each.name === name)
  if (found === undefined) throw new FailureError('usage', `no procedure ${quote(name)}${nearestOf(setup, all, name)}`)
  if (found.problems.length === 0) return found
  throw new FailureError('error', problemLines(found).join('\n'))
}

function nearestOf(setup: Setup, all: readonly SopFile[], name: string): string {
  const near = didYouMean(
    name,
    all.map((each) => each.name),
  )
  if (near !== '') return near
  return all.length === 0
    ? `; there are none yet: write ${join(setup.paths.home, 'sops', 'NAME', 'SOP.toml')}`
    : '; see: braidclaw sop list'
}

const mostShown = 200

/** Returns one line for each problem: file, line, column, field and what to do. */
export function problemLines({ path, problems }: Pick<SopFile, 'path' | 'problems'>): readonly string[] {
  const lines = problems.slice(0, mostShown).map(({ line, column, field, message }) => {
    const place = [visible(path), ...(line === undefined ? [] : [line, ...(column === undefined ? [] : [column])])].join(':')
    return `${place}: ${field === '' ? '' : `${visible(field)}: `}${visible(message)}`
  })
  return problems.length > mostShown ? [...lines, `${visible(path)}: and ${problems.length - mostShown} more problems`] : lines
}
