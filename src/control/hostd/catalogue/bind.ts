/** Turns the parameters of a call into the elements of argv, or says everything that is wrong with them. */

import { didYouMean } from '../../../kit/did-you-mean.ts'
import { fillElement, paramsOf } from './argv-template.ts'
import { checkValue, describeParam, type ResolvePath } from './check-value.ts'
import type { Operation } from './operation.ts'

export type Bound = { readonly ok: true; readonly argv: readonly string[] } | { readonly ok: false; readonly problems: readonly string[] }

/** `null` marks an optional parameter that was not given. */
type Values = { readonly [name: string]: readonly string[] | null }

export function bindParams(operation: Operation, given: { readonly [name: string]: unknown }, resolvePath: ResolvePath): Bound {
  const problems: string[] = []
  const names = Object.keys(operation.params)
  for (const name of Object.keys(given))
    if (!Object.hasOwn(operation.params, name))
      problems.push(`"${name.slice(0, 64)}" is no parameter of ${operation.op}${didYouMean(name, names)}`)
  const values: { [name: string]: readonly string[] | null } = {}
  for (const [name, param] of Object.entries(operation.params)) {
    const value = (Object.hasOwn(given, name) ? given[name] : undefined) ?? param.fallback
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

function fill({ program, arguments: elements, params }: Operation, values: Values): Bound {
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

function single(values: Values): { [name: string]: string } {
  return Object.fromEntries(Object.entries(values).map(([name, texts]) => [name, texts?.[0] ?? '']))
}
