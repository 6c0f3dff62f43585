/** Lists the fields of a proposed call that a rule may test. */

import type { Json } from '../../kit/json.ts'
import type { Proposal } from '../event.ts'

/** In addition to these, `input` and every `input.name.deeper`. */
export const fields = ['tool', 'risk', 'verdict', 'rule', 'summary', 'writes', 'input'] as const

type Field = (typeof fields)[number]

/** The allowed values of fields that have a fixed set. */
export const choices: { readonly [field: string]: readonly string[] } = {
  risk: ['low', 'medium', 'high'],
  verdict: ['allow', 'ask', 'deny'],
}

export function isField(name: string): boolean {
  return fields.some((field) => field === name) || /^input(\.[^.]+)+$/.test(name)
}

/** Returns undefined when the call has no such field. */
export function fieldOf({ call, judgement }: Proposal, name: string): Json | undefined {
  const [head = '', ...path] = name.split('.')
  const whole: { readonly [field in Field]: Json } = { ...judgement, tool: call.name, input: call.input }
  return path.reduce<Json | undefined>(memberOf, memberOf(whole, head))
}

function memberOf(value: Json | undefined, key: string): Json | undefined {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
  return Object.entries(value).find(([name]) => name === key)?.[1]
}
