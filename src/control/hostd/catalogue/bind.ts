/** Turns the parameters of a call into the elements of argv, or says everything that is wrong with them. */

import { lstatSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { shown } from '../../../config/text/toml.ts'
import { attempt } from '../../../kit/errors.ts'
import { didYouMean } from '../../../kit/text.ts'
import type { Operation, Param } from './operation.ts'
import { fillElement, paramsOf } from './operation.ts'

type BoundParams = { readonly ok: true; readonly argv: readonly string[] } | { readonly ok: false; readonly problems: readonly string[] }

/** `null` marks an optional parameter without a value. */
type ParamValues = { readonly [name: string]: readonly string[] | null }

export function bindParams(operation: Operation, params: { readonly [name: string]: unknown }, resolvePath: ResolvePath): BoundParams {
  const problems: string[] = []
  const names = Object.keys(operation.params)
  for (const name of Object.keys(params))
    if (!Object.hasOwn(operation.params, name))
      problems.push(`"${name.slice(0, 64)}" is not a parameter of ${operation.op}${didYouMean(name, names)}`)
  const values: { [name: string]: readonly string[] | null } = {}
  for (const [name, param] of Object.entries(operation.params)) {
    const value = (Object.hasOwn(params, name) ? params[name] : undefined) ?? param.fallback
    if (value === undefined) problems.push(`${name} is missing; it is ${describeParam(param)}`)
    if (value === undefined || value === null) {
      values[name] = null
      continue
    }
    const checked = checkValue(param, value, resolvePath)
    if (checked.ok) values[name] = checked.texts
    else problems.push(`${name} ${checked.message}`)
  }
  return problems.length > 0 ? { ok: false, problems } : fill(operation, values)
}

function fill({ program, arguments: elements, params }: Operation, values: ParamValues): BoundParams {
  const argv = [program]
  const problems: string[] = []
  for (const element of elements) {
    const names = paramsOf(element)
    if (names.some((name) => values[name] === null)) continue
    const [name = ''] = names
    const sets = params[name]?.type === 'list' ? (values[name] ?? []).map((text) => ({ [name]: text })) : [single(values)]
    for (const set of sets) {
      const filled = fillElement(element, set)
      if ('text' in filled) argv.push(filled.text)
      else problems.push(filled.wrong)
    }
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, argv }
}

function single(values: ParamValues): { [name: string]: string } {
  return Object.fromEntries(Object.entries(values).map(([name, texts]) => [name, texts?.[0] ?? '']))
}

/** `texts` are the elements that the value becomes: one, or several for a list. */
type CheckedValue = { readonly ok: true; readonly texts: readonly string[] } | { readonly ok: false; readonly message: string }

export type ResolvePath = (param: Extract<Param, { type: 'path' }>, value: string) => CheckedValue

export function checkValue(param: Param, value: unknown, resolvePath: ResolvePath): CheckedValue {
  if (param.type === 'list') return checkList(param, value)
  if (param.type === 'int') return checkWhole(param, value)
  if (typeof value !== 'string') return wrong(`must be a text; got ${shown(value)}`)
  const control = controlIn(value)
  if (control !== undefined) return wrong(control)
  if (param.type === 'enum')
    return param.values.includes(value) ? one(value) : wrong(`must be ${describeParam(param)}; got ${shown(value)}`)
  return param.type === 'text' ? checkText(param, value) : resolvePath(param, value)
}

/** Returns `integer 1 to 500`, `text ^[a-z]+$`. */
export function describeParam(param: Param): string {
  const words = typeInWords(param)
  if (param.fallback === undefined) return words
  return param.fallback === null ? `${words}, optional` : `${words}, default ${param.fallback}`
}

function typeInWords(param: Param): string {
  if (param.type === 'enum') return `one of ${param.values.join(', ')}`
  if (param.type === 'int') return `integer ${param.min} to ${param.max}`
  if (param.type === 'path') return `existing ${param.kind === 'any' ? 'path' : param.kind} under ${param.under}`
  const text = `text ${param.pattern.source}`
  return param.type === 'text' ? text : `list of at most ${param.count}: ${text}`
}

function checkWhole({ min, max }: Extract<Param, { type: 'int' }>, value: unknown): CheckedValue {
  const isWhole = typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max
  return isWhole ? one(String(value)) : wrong(`must be an integer from ${min} to ${max}; got ${shown(value)}`)
}

function checkText(
  { pattern, most }: { readonly pattern: { source: string; matches(text: string): boolean }; readonly most: number },
  value: string,
): CheckedValue {
  if (value.length > most) return wrong(`has ${value.length} characters; at most ${most}`)
  return pattern.matches(value) ? one(value) : wrong(`must match ${pattern.source}; got ${shown(value)}`)
}

function checkList(param: Extract<Param, { type: 'list' }>, value: unknown): CheckedValue {
  if (!Array.isArray(value)) return wrong(`must be a list of texts; got ${shown(value)}`)
  if (value.length > param.count) return wrong(`has ${value.length} elements; at most ${param.count}`)
  const texts: string[] = []
  for (const each of value) {
    const control = typeof each === 'string' ? controlIn(each) : `must contain only texts; got ${shown(each)}`
    const checked = control === undefined ? checkText(param, each) : wrong(control)
    if (!checked.ok) return checked
    texts.push(...checked.texts)
  }
  return { ok: true, texts }
}

function controlIn(value: string): string | undefined {
  if (!value.isWellFormed()) return 'must be well-formed Unicode'
  const found = /\p{Cc}/u.exec(value)?.[0]
  return found === undefined ? undefined : `must not contain control characters; got ${shown(found)}`
}

function one(text: string): CheckedValue {
  return { ok: true, texts: [text] }
}

function wrong(message: string): CheckedValue {
  return { ok: false, message }
}

/** Checks a path. The program opens it again later, so keep the folder of such a parameter writable only by users you trust. */
export const resolvePath: ResolvePath = ({ under, kind }, value) => {
  const root = realFolder(under)
  if (root === undefined) return { ok: false, message: `must be under ${under}, which is not a folder here` }
  const inside = value === under || value.startsWith(under.endsWith('/') ? under : `${under}/`) ? value.slice(under.length) : value
  if (value.startsWith('/') && inside === value) return { ok: false, message: `must be under ${under}` }
  const parts = inside.split('/').filter((part) => part !== '')
  if (parts.some((part) => part === '..' || part === '.')) return { ok: false, message: 'must not contain "." or ".."' }
  return statPath(root, parts, kind)
}

function statPath(root: string, parts: readonly string[], kind: 'any' | 'file' | 'folder'): ReturnType<ResolvePath> {
  let path = root
  for (const part of parts) {
    path = join(path, part)
    const found = statOf(path)
    if (!found) return { ok: false, message: `must exist; "${path}" does not exist` }
    if (found.isSymbolicLink()) return { ok: false, message: `must not lead through a symbolic link; "${path}" is one` }
  }
  const last = statOf(path)
  if (kind === 'file' && !last?.isFile()) return { ok: false, message: `must be a regular file; "${path}" is not one` }
  if (kind === 'folder' && !last?.isDirectory()) return { ok: false, message: `must be a folder; "${path}" is not one` }
  return { ok: true, texts: [path] }
}

/** @returns undefined also when a part of the path is a file, or when we may not read a folder */
function statOf(path: string) {
  return attempt(() => lstatSync(path, { throwIfNoEntry: false }))
}

function realFolder(path: string): string | undefined {
  const real = attempt(() => realpathSync(path))
  return real !== undefined && statOf(real)?.isDirectory() ? real : undefined
}
