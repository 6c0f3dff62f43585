/**
 * Reads the catalogue that decides what root runs, the built-in one or a file that only root or we can change, and reports every problem at
 * once, by line and field; tells whether an operation can run here.
 */

import { accessSync, closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { errorCode, explainErrno, maxConfigBytes } from '../../../config/text/read-toml-file.ts'
import { createTableReader, type FieldProblem, type TableReader } from '../../../config/text/table-reader.ts'
import { readToml } from '../../../config/text/toml.ts'
import { atEnd, attempt, succeeds } from '../../../kit/errors.ts'
import { isObject } from '../../../kit/json.ts'
import { didYouMean } from '../../../kit/text.ts'
import { listOperation, type OperationRow, risks } from '../hostd-wire.ts'
import { checkValue, describeParam } from './bind.ts'
import { builtInCatalogue } from './built-in.ts'
import {
  type ArgvElement,
  type Catalogue,
  compilePattern,
  type LinearPattern,
  type Operation,
  type Param,
  type Platform,
  paramsOf,
  parseElement,
  platforms,
  type ServerRules,
} from './operation.ts'

type ReadCatalogue = { readonly ok: true; readonly parsed: ParsedCatalogue } | { readonly ok: false; readonly message: string }

export function readCatalogue(path: string | undefined, uid: number): ReadCatalogue {
  if (path === undefined) return { ok: true, parsed: parseCatalogue(builtInCatalogue) }
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    using _end = atEnd(() => closeSync(file))
    return readOpen(file, path, uid)
  } catch (error) {
    const code = errorCode(error)
    const why = code === 'ELOOP' ? 'it is a symbolic link; name the file itself' : explainErrno(code)
    return { ok: false, message: `the catalogue "${path}" cannot be read: ${why}` }
  }
}

function readOpen(file: number, path: string, uid: number): ReadCatalogue {
  const found = fstatSync(file)
  if (!found.isFile()) return { ok: false, message: `the catalogue "${path}" is not a regular file` }
  if (found.size > maxConfigBytes)
    return { ok: false, message: `the catalogue "${path}" has ${found.size} bytes; the limit is ${maxConfigBytes}` }
  const unsafe = whyUnsafe(found, path, uid) ?? unsafeFolder(path, uid)
  return unsafe === undefined ? { ok: true, parsed: parseCatalogue(readFileSync(file, 'utf8')) } : { ok: false, message: unsafe }
}

/** @returns why others could change it */
export function whyUnsafe(
  { uid: owner, mode }: { readonly uid: number; readonly mode: number },
  path: string,
  uid: number,
): string | undefined {
  if (owner !== 0 && owner !== uid) return `"${path}" belongs to user ${owner}; it must belong to root or to the user of hostd (${uid})`
  if (mode & 0o022) return `"${path}" can be written by others (mode ${(mode & 0o777).toString(8)}); run: chmod go-w "${path}"`
}

/** Checks each folder of the path: a user who may rename one could put another file there. In a sticky folder such as /tmp only owners rename. */
export function unsafeFolder(path: string, uid: number): string | undefined {
  const folder = realpathSync(dirname(path))
  for (let at = folder; ; at = dirname(at)) {
    const found = lstatSync(at)
    const isSticky = (found.mode & 0o1000) !== 0
    const unsafe = whyUnsafe({ uid: found.uid, mode: isSticky ? 0 : found.mode }, at, uid)
    if (unsafe !== undefined || at === dirname(at)) return unsafe
  }
}

type ParsedCatalogue = { readonly catalogue: Catalogue; readonly problems: readonly FieldProblem[] }

const ids = { min: 0, max: 4_294_967_294 }

export function parseCatalogue(text: string): ParsedCatalogue {
  const { data, problems: broken, place } = readToml(text)
  const problems: FieldProblem[] = broken.map(({ line, message }) => ({ line, field: '', message }))
  const root = createTableReader({ data, path: '', place }, problems)
  const server = root.raw('server')
  const rules = serverRules(createTableReader({ data: isObject(server) ? server : {}, path: 'server', place }, problems))
  if (server !== undefined && !isObject(server)) root.wrong('server', 'is a table')
  const operations = root.tables('operations').map(([op, table]) => parseOperation(op, table))
  root.end()
  return { catalogue: { server: rules, operations }, problems: problems.sort((a, b) => (a.line ?? 0) - (b.line ?? 0)) }
}

function serverRules(table: TableReader): ServerRules {
  const token = table.text('token_sha256', '')
  if (token !== '' && !/^[0-9a-f]{64}$/.test(token)) table.wrong('token_sha256', 'is the SHA-256 of the token, 64 hex digits')
  const rules = {
    uids: table.numbers('uids', ids),
    gids: table.numbers('gids', ids),
    controlUids: table.numbers('control_uids', ids),
    connections: table.whole('connections', { min: 1, max: 1_000, fallback: 32 }),
    concurrent: table.whole('concurrent', { min: 1, max: 64, fallback: 4 }),
    perMinute: table.whole('per_minute', { min: 1, max: 100_000, fallback: 3_000 }),
  }
  table.end()
  return token === '' ? rules : { ...rules, tokenSha256: token }
}

function parseOperation(op: string, table: TableReader): Operation {
  if (!/^[a-z][a-z0-9-]{0,63}$/.test(op)) table.wrong('', 'is named with small letters, digits and "-"')
  if (op === listOperation) table.wrong('', 'is built in and lists the operations')
  const params = Object.fromEntries(table.tables('params').map(([name, param]) => [name, namedParam(name, param)]))
  const [program = '', ...rest] = table.texts('argv')
  if (table.has('argv') && !isProgram(program)) table.wrong('argv', 'begins with the absolute path of a program, without parameters')
  const operation: Operation = {
    op,
    about: table.text('about'),
    platforms: platformsOf(table),
    risk: table.oneOf('risk', risks),
    approval: table.truth('approval', false),
    compat: table.truth('compat', false),
    program,
    arguments: argumentsOf(rest, table),
    params,
    timeoutMs: table.whole('timeout_s', { min: 1, max: 3_600, fallback: 30 }) * 1_000,
    outputBytes: table.whole('output_bytes', { min: 1, max: 1_048_576, fallback: 65_536 }),
    env: Object.fromEntries(environment(table)),
    doneCodes: table.numbers('done_codes', { min: 0, max: 255 }),
  }
  checkUse(operation, table)
  if (operation.compat && operation.approval)
    table.wrong('compat', 'excludes "approval": the shared secret can bring no approval, so leave out one of the two')
  table.end()
  return operation
}

function namedParam(name: string, table: TableReader): Param {
  if (!/^[a-z][a-z0-9_]{0,31}$/.test(name)) table.wrong('', 'is named with small letters, digits and "_"')
  return parseParam(table)
}

function isProgram(path: string): boolean {
  return /^\/[^{}\0]+$/.test(path) && !/(?:^|\/)\.\.?(?:\/|$)/.test(path)
}

function argumentsOf(sources: readonly string[], table: TableReader): readonly ArgvElement[] {
  return sources.flatMap((source) => {
    const parsed = parseElement(source)
    if (parsed.ok && !source.includes('\0')) return [parsed.element]
    table.wrong('argv', parsed.ok ? 'contains a NUL character' : parsed.message)
    return []
  })
}

function environment(table: TableReader): (readonly [string, string])[] {
  const raw = table.raw('env') ?? {}
  if (!isObject(raw)) {
    table.wrong('env', 'is a table of texts')
    return []
  }
  return Object.entries(raw).flatMap(([name, value]) => {
    if (
      typeof value === 'string' &&
      /^[A-Z_][A-Z0-9_]*$/.test(name) &&
      !/^(?:LD_|DYLD_|BASH_ENV$|ENV$|IFS$)/.test(name) &&
      !value.includes('\0')
    )
      return [[name, value] as const]
    table.wrong('env', `${name} cannot be set: names are capital letters, values are texts, and the loader's variables (LD_…) are refused`)
    return []
  })
}

function platformsOf(table: TableReader): readonly Platform[] {
  const named = table.texts('platforms', platforms)
  for (const name of named)
    if (!platforms.some((one) => one === name))
      table.wrong('platforms', `"${name}" is not one of ${platforms.join(', ')}${didYouMean(name, platforms)}`)
  if (named.length === 0) table.wrong('platforms', 'names no platform')
  return platforms.filter((one) => named.includes(one))
}

/** Checks that every parameter is used, every used one exists, a list is a whole element, and two parameters never touch. */
function checkUse({ arguments: elements, params }: Operation, table: TableReader): void {
  const used = new Set(elements.flatMap(paramsOf))
  for (const name of used)
    if (!Object.hasOwn(params, name))
      table.wrong('argv', `{${name}} is not a parameter of this operation${didYouMean(name, Object.keys(params))}`)
  for (const name of Object.keys(params)) if (!used.has(name)) table.wrong(`params.${name}`, 'is used in no element of argv')
  for (const element of elements) {
    const isList = paramsOf(element).some((name) => params[name]?.type === 'list')
    if (isList && element.length > 1) table.wrong('argv', 'a list is an element of its own: "{name}" without other text')
    const touches = element.some((piece, at) => 'param' in piece && 'param' in (element[at + 1] ?? { text: '' }))
    if (touches) table.wrong('argv', 'two parameters in one element need a text between them')
  }
}

const types = ['enum', 'text', 'int', 'path', 'list'] as const
const longest = 4_096

function parseParam(table: TableReader): Param {
  const typed = byType(table)
  const optional = table.truth('optional', false)
  const fallback = table.raw('default')
  table.end()
  if (fallback === undefined) return optional ? { ...typed, fallback: null } : typed
  if (optional) table.wrong('optional', 'has no meaning beside a default')
  if (typeof fallback !== 'string' && typeof fallback !== 'number') {
    table.wrong('default', 'is a text or a whole number')
    return typed
  }
  const checked = checkValue(typed, fallback, (_, value) => ({ ok: true, texts: [value] }))
  if (!checked.ok) table.wrong('default', checked.message)
  return { ...typed, fallback }
}

function byType(table: TableReader): Param {
  const type = table.oneOf('type', types)
  if (type === 'enum') return { type, values: valuesOf(table) }
  if (type === 'int') return range(table)
  if (type === 'path') return { type, under: underOf(table), kind: table.oneOf('kind', ['any', 'file', 'folder'], 'any') }
  const most = table.whole('most', { min: 1, max: longest, fallback: 256 })
  if (type === 'text') return { type, most, pattern: patternOf(table) }
  return { type, most, pattern: patternOf(table), count: table.whole('count', { min: 1, max: 64, fallback: 16 }) }
}

function valuesOf(table: TableReader): readonly string[] {
  const values = table.texts('values')
  if (values.length === 0) table.wrong('values', 'names no value')
  for (const value of values)
    if (value === '' || /\p{Cc}/u.test(value)) table.wrong('values', 'contains an empty text or a control character')
  return values
}

function range(table: TableReader): Param {
  const limit = { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER }
  const [min, max] = [table.whole('min', limit), table.whole('max', limit)]
  if (min > max) table.wrong('max', `is below min (${min})`)
  return { type: 'int', min, max }
}

function underOf(table: TableReader): string {
  const under = table.text('under')
  if (!/^\/(?:[^/\0]+\/?)*$/.test(under) || /(?:^|\/)\.\.?(?:\/|$)/.test(under))
    table.wrong('under', 'is an absolute path without "." and ".."')
  return under
}

function patternOf(table: TableReader): LinearPattern {
  const source = table.text('pattern')
  const compiled = compilePattern(source)
  if (compiled.ok) return compiled.pattern
  table.wrong('pattern', compiled.message)
  return { source, matches: () => false }
}

export type Machine = { readonly platform: string; readonly uid: number }

/** @returns why a call would be refused; undefined when it can run */
export function whyUnavailable({ platforms, program }: Operation, { platform, uid }: Machine): string | undefined {
  if (!platforms.some((one) => one === platform)) return `it is for ${platforms.join(', ')}; this is ${platform}`
  const real = attempt(() => realpathSync(program))
  const found = real === undefined ? undefined : statSync(real, { throwIfNoEntry: false })
  if (real === undefined || !found) return `the program "${program}" does not exist`
  if (!found.isFile()) return `"${program}" is not a regular file`
  // A user who may write to a folder of the path could replace the program by another one, or by a link.
  const unsafe = whyUnsafe(found, program, uid) ?? unsafeFolder(program, uid) ?? unsafeFolder(real, uid)
  if (unsafe !== undefined) return unsafe
  return isExecutable(real) ? undefined : `"${program}" cannot be executed by us`
}

export function rowOf(operation: Operation, machine: Machine): OperationRow {
  const { op, about, platforms, risk, approval, compat, timeoutMs } = operation
  const why = whyUnavailable(operation, machine)
  const params = Object.fromEntries(Object.entries(operation.params).map(([name, param]) => [name, describeParam(param)]))
  const row = { op, about, platforms: [...platforms], risk, approval, compat: compat || undefined, params, timeout_s: timeoutMs / 1_000 }
  return why === undefined ? { ...row, available: true } : { ...row, available: false, unavailable: why }
}

function isExecutable(path: string): boolean {
  return succeeds(() => accessSync(path, constants.X_OK))
}
