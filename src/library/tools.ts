/**
 * Reads, writes, edits, searches and runs commands as plain functions in one folder. Exported as `braidclaw/tools`. An agent that is given one
 * uses its own tool of that kind instead, behind its gate and its sandbox.
 */

import { execFile } from 'node:child_process'
import { lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import { errorText } from '../kit/errors.ts'
import { parsePathGlob } from '../runtime/rules/text/glob.ts'
import { compile } from '../runtime/rules/text/machine.ts'

const [text, number, flag] = [z.string(), z.optional(z.number()), z.optional(z.boolean())]
/** Lines count from 1 and are inclusive. */
export const ReadFileInputSchema = z.object({ path: text, startLine: number, endLine: number })
export const WriteFileInputSchema = z.object({ path: text, content: text, createDirs: flag })
export const EditFileInputSchema = z.object({ path: text, oldString: z.string().min(1), newString: text, replaceAll: flag })
/** `pattern` is a regular expression; a `glob` without a slash is a name in any folder; `maxResults` is 200 by default. */
export const SearchInputSchema = z
  .object({ pattern: text, glob: text, path: text, ignoreCase: z.boolean(), maxResults: z.number() })
  .partial()
/** `timeout` is in milliseconds, 30,000 by default; `env` comes on top of the variables of this process. */
export const ExecInputSchema = z.object({ command: text, timeout: number, env: z.optional(z.record(z.string(), z.string())) })

/** A failed command has its output too. */
type Found<Result> = ({ success: true } & Result) | { success: false; error: string; stdout?: string; stderr?: string; exitCode?: number }
/** `cwd` is the folder (default: the current one); paths that lead out of it, also by a link, are refused. */
export type PlainContext = { readonly cwd?: string; readonly signal?: AbortSignal }

/** Makes a function whose input is checked, and which throws nothing: what goes wrong is in its result. */
function tool<Schema extends z.ZodObject, Result extends object>(
  schema: Schema,
  run: (input: z.output<Schema>, cwd: string, signal?: AbortSignal) => Result | Promise<Result>,
) {
  return async (input: z.input<Schema>, { cwd = process.cwd(), signal }: PlainContext = {}): Promise<Found<Result>> => {
    try {
      return { success: true, ...(await run(schema.parse(input), realpathSync(cwd), signal)) }
    } catch (error) {
      const { stdout, stderr, exitCode } = Object(error)
      return { success: false, error: errorText(error), ...(exitCode === undefined ? {} : { stdout, stderr, exitCode }) }
    }
  }
}

/** For `createAgent({ tools })`: each names the agent's own tool of its kind, which runs instead. */
export const plainTools = {
  readFile: { name: 'readFile', builtin: 'file_read', description: 'Read a file.', parameters: ReadFileInputSchema, execute: refuse },
  writeFile: { name: 'writeFile', builtin: 'file_write', description: 'Write a file.', parameters: WriteFileInputSchema, execute: refuse },
  editFile: { name: 'editFile', builtin: 'file_edit', description: 'Replace text.', parameters: EditFileInputSchema, execute: refuse },
  search: { name: 'search', builtin: 'search', description: 'Find files and lines.', parameters: SearchInputSchema, execute: refuse },
  bash: { name: 'bash', builtin: 'shell', description: 'Run a command.', parameters: ExecInputSchema, execute: refuse },
} as const

function refuse(): never {
  throw new Error('a plain tool does not run for an agent in the process of its caller; the agent has one of its own for this')
}

/** @throws Error when the path, or what it links to, is outside */
function within(cwd: string, path: string): string {
  const full = resolve(cwd, path)
  let there = full
  while (lstatSync(there, { throwIfNoEntry: false }) === undefined) there = dirname(there)
  const real = join(realpathSync(there), relative(there, full))
  if (real !== cwd && !real.startsWith(cwd.endsWith(sep) ? cwd : cwd + sep)) throw new Error(`${path} is outside of ${cwd}`)
  return real
}

/** Reads a file, or some of its lines. */
export const readFile = tool(ReadFileInputSchema, ({ path, startLine, endLine }, cwd) => {
  const content = readFileSync(within(cwd, path), 'utf8')
  if (startLine === undefined && endLine === undefined) return { path, content }
  const lines = content.split('\n')
  const [start, end] = [Math.max(1, startLine ?? 1), Math.min(lines.length, endLine ?? lines.length)]
  if (start > lines.length) throw new Error(`startLine ${start} is beyond the end; ${path} has ${lines.length} lines`)
  return { path, content: lines.slice(start - 1, end).join('\n'), lines: { start, end, total: lines.length } }
})

/** Creates or replaces a file. */
export const writeFile = tool(WriteFileInputSchema, ({ path, content, createDirs = false }, cwd) => {
  const full = within(cwd, path)
  if (createDirs) mkdirSync(dirname(full), { recursive: true })
  writeFileSync(full, content)
  return { path, bytesWritten: Buffer.byteLength(content) }
})

/** Replaces the first occurrence of a text, or all. */
export const editFile = tool(EditFileInputSchema, ({ path, oldString, newString, replaceAll = false }, cwd) => {
  const full = within(cwd, path)
  const [first = '', ...rest] = readFileSync(full, 'utf8').split(oldString)
  if (rest.length === 0) throw new Error(`oldString is not in ${path}`)
  writeFileSync(full, replaceAll ? [first, ...rest].join(newString) : first + newString + rest.join(oldString))
  return { path, replacements: replaceAll ? rest.length : 1 }
})

/** Finds files by glob, lines by regular expression, or both. It follows no links, and leaves out .git and node_modules. */
export const search = tool(SearchInputSchema, ({ pattern, glob = '*', path = '.', ignoreCase = false, maxResults = 200 }, cwd) => {
  const isWanted = compile(parsePathGlob(glob.includes('/') ? glob.replace(/^\.?\//, '') : `**/${glob}`))
  const below = filesBelow(within(cwd, path)).map((file) => relative(cwd, file))
  const files = below.filter((file) => isWanted(file))
  if (pattern === undefined) return { files: files.slice(0, maxResults), matches: [], count: files.length }
  const regex = new RegExp(pattern, ignoreCase ? 'i' : '')
  const linesOf = (file: string) => readFileSync(join(cwd, file), 'utf8').split('\n')
  const matches = files.flatMap((file) =>
    linesOf(file).flatMap((content, at) => (regex.test(content) ? [{ file, line: at + 1, content: content.trimEnd() }] : [])),
  )
  return { files: [...new Set(matches.map(({ file }) => file))], matches: matches.slice(0, maxResults), count: matches.length }
})

function filesBelow(path: string): string[] {
  if (!lstatSync(path).isDirectory()) return [path]
  const entries = readdirSync(path, { withFileTypes: true }).filter(({ name }) => name !== '.git' && name !== 'node_modules')
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  return entries.flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(path, entry.name)) : entry.isFile() ? [join(path, entry.name)] : [],
  )
}

/** Runs a command with bash. Nothing confines it. */
export const bash = tool(ExecInputSchema, async ({ command, timeout = 30_000, env = {} }, cwd, signal) => {
  const options = { cwd, timeout, signal, env: { ...process.env, ...env }, maxBuffer: 16 * 1024 * 1024 }
  try {
    const { stdout, stderr } = await promisify(execFile)('bash', ['-c', command], options)
    return { stdout, stderr, exitCode: 0, command }
  } catch (error) {
    const { killed, code, message, stdout, stderr } = Object(error)
    const why = killed ? `it took longer than ${timeout} ms` : typeof code === 'number' ? `exit code ${code}` : message
    throw Object.assign(new Error(`the command failed: ${why}`), { stdout, stderr, exitCode: Number(code ?? 1) || 1 })
  }
})
